//! Name patterns: what the names of many files have in common, with the varying part starred.
//!
//! The rule. Only names with a path, and only in folders that hold more than one file, are starred.
//!
//! 1. In each component a run of digits becomes `*`, but for the digits of a version in a library's name.
//!    `data/FA12/tagged7.dat` becomes `data/FA*/tagged*.dat`.
//! 2. A shared library is `*.so*` in its folder.
//! 3. Names that agree but for one component form a cluster: where a folder, starred as in 1, holds at
//!    least [`CLUSTER`] different last components with the same ending, these become `*.ending` (files
//!    without an ending: `*`).
//! 4. A pattern that only one file has is given up: that file shows its own name.
//!
//! The time is linear in the names' lengths; only patterns are kept, not a string for each file.

use iodock_event::{shown, FileTable, NONE};
use rustc_hash::{FxHashMap, FxHashSet};

/// So many different names that differ in one component make it a `*`.
const CLUSTER: usize = 8;

/// Gives each file of the table its pattern.
pub fn fill(files: &mut FileTable) {
    let mut texts: FxHashMap<Box<[u8]>, u32> = FxHashMap::default();
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let mut counts: Vec<u32> = Vec::new();
    let mut starred = Vec::new();
    let mut of_file = vec![NONE; files.len()];
    for file in 0..files.len() as u32 {
        if !files.entries[file as usize].kind.has_path() {
            continue;
        }
        star_digits(files.names.get(file), &mut starred);
        let next = names.len() as u32;
        let id = *texts.entry(starred.as_slice().into()).or_insert(next);
        if id == next {
            names.push(starred.as_slice().into());
            counts.push(0);
        }
        counts[id as usize] += 1;
        of_file[file as usize] = id;
    }
    drop(texts);
    let clustered = cluster(&names, &counts);
    assign(files, &of_file, &clustered);
}

/// Runs of digits as `*`; a library as `*.so*`.
fn star_digits(name: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let base = name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    if is_library(&name[base..]) {
        star_run(&name[..base], out);
        out.extend_from_slice(b"*.so*");
    } else {
        star_run(name, out);
    }
}

fn star_run(name: &[u8], out: &mut Vec<u8>) {
    let mut in_digits = false;
    for &byte in name {
        let digit = byte.is_ascii_digit();
        if !digit {
            out.push(byte);
        } else if !in_digits {
            out.push(b'*');
        }
        in_digits = digit;
    }
}

/// `libc.so.6`, `ld-linux.so.2`, `_json.cpython-311-x86_64-linux-gnu.so`
fn is_library(base: &[u8]) -> bool {
    base.windows(3)
        .enumerate()
        .any(|(at, part)| part == b".so" && matches!(base.get(at + 3), None | Some(b'.')))
}

/// For each starred name the pattern its files get: where many names of a folder share an ending, the
/// folder and `*.ending`.
fn cluster(names: &[Box<[u8]>], counts: &[u32]) -> Vec<(Box<[u8]>, u32)> {
    let mut sizes: FxHashMap<Box<[u8]>, (usize, u32)> = FxHashMap::default();
    let mut shape = Vec::new();
    for (name, &count) in names.iter().zip(counts) {
        last_component_starred(name, &mut shape);
        let (different, files) = sizes.entry(shape.as_slice().into()).or_default();
        *different += 1;
        *files += count;
    }
    let shapes = names.iter().zip(counts).map(|(name, &count)| {
        last_component_starred(name, &mut shape);
        match sizes.get(shape.as_slice()) {
            Some(&(different, files)) if different >= CLUSTER => (shape.as_slice().into(), files),
            _ => (name.clone(), count),
        }
    });
    star_folders(shapes.collect())
}

/// The folders' own names, and the files in all of them.
type Folders<'a> = (FxHashSet<&'a [u8]>, u32);

/// The same one component up: `set-a/x.dat`, `set-b/x.dat`, ... become `*/x.dat`.
fn star_folders(names: Vec<(Box<[u8]>, u32)>) -> Vec<(Box<[u8]>, u32)> {
    let mut folders: FxHashMap<Box<[u8]>, Folders> = FxHashMap::default();
    let mut shape = Vec::new();
    for (name, count) in &names {
        if let Some(folder) = last_folder_starred(name, &mut shape) {
            let (different, files) = folders.entry(shape.as_slice().into()).or_default();
            if different.insert(folder) {
                *files += count;
            }
        }
    }
    let widened = names.iter().map(|(name, count)| {
        if last_folder_starred(name, &mut shape).is_some() {
            if let Some((different, files)) = folders.get(shape.as_slice()) {
                if different.len() >= CLUSTER {
                    return (shape.as_slice().into(), *files);
                }
            }
        }
        (name.clone(), *count)
    });
    widened.collect()
}

fn last_component_starred(name: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let base = name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    out.extend_from_slice(&name[..base]);
    out.push(b'*');
    if let Some(dot) = name[base..].iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0) {
        if &name[base..] == b"*.so*" {
            out.extend_from_slice(b".so*");
        } else {
            out.extend_from_slice(&name[base + dot..]);
        }
    }
}

/// The folder's own name, which is replaced in `out`; none for names less than two folders deep.
fn last_folder_starred<'a>(name: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let base = name.iter().rposition(|&byte| byte == b'/')?;
    let folder = name[..base].iter().rposition(|&byte| byte == b'/')? + 1;
    if folder <= 1 || folder == base {
        return None;
    }
    out.clear();
    out.extend_from_slice(&name[..folder]);
    out.push(b'*');
    out.extend_from_slice(&name[base..]);
    Some(&name[folder..base])
}

fn assign(files: &mut FileTable, of_file: &[u32], patterns: &[(Box<[u8]>, u32)]) {
    let mut ids: FxHashMap<&[u8], u32> = FxHashMap::default();
    for (entry, &pattern) in files.entries.iter_mut().zip(of_file) {
        let Some((name, count)) = patterns.get(pattern as usize) else { continue };
        if *count < 2 {
            continue;
        }
        entry.pattern = *ids.entry(name).or_insert_with(|| {
            files.patterns.push(shown(name).into_owned());
            (files.patterns.len() - 1) as u32
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iodock_event::{FileEntry, FileKind};

    fn patterns(names: &[String]) -> Vec<String> {
        let mut files = FileTable::default();
        for name in names {
            files.push(name.as_bytes(), FileEntry::new(FileKind::File));
        }
        fill(&mut files);
        (0..files.len() as u32).map(|file| files.row(file).pattern().to_string()).collect()
    }

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn digits_are_starred_where_names_share_the_rest() {
        let names = texts(&["/d/FA1/tagged7.dat", "/d/FA22/tagged9.dat", "/d/FA22/once3.dat", "/etc/passwd"]);
        assert_eq!(
            patterns(&names),
            ["/d/FA*/tagged*.dat", "/d/FA*/tagged*.dat", "/d/FA22/once3.dat", "/etc/passwd"]
        );
    }

    #[test]
    fn libraries_are_one_row() {
        let names = texts(&["/lib/libc.so.6", "/lib/libm.so.6", "/lib/ld-linux-x86-64.so.2", "/lib/x.sort"]);
        assert_eq!(patterns(&names), ["/lib/*.so*", "/lib/*.so*", "/lib/*.so*", "/lib/x.sort"]);
    }

    #[test]
    fn many_names_with_one_ending_are_a_cluster() {
        let words = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr"];
        let names: Vec<String> = words.iter().map(|word| format!("/p/{word}.py")).collect();
        assert!(patterns(&names).iter().all(|pattern| pattern == "/p/*.py"));
        assert_eq!(patterns(&names[..3]), names[..3]);
        let names: Vec<String> = words.iter().map(|word| format!("/p/{word}/out.txt")).collect();
        assert!(patterns(&names).iter().all(|pattern| pattern == "/p/*/out.txt"));
    }
}
