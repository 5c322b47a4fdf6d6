//! Name patterns: the common part of the names of many files, with the varying part replaced by `*`.
//!
//! The following rules change only names with a path, and only in folders that contain more than one file.
//!
//! 1. In each component a run of digits becomes `*`, except the version digits of a library's name.
//!    `data/FA12/tagged7.dat` becomes `data/FA*/tagged*.dat`.
//! 2. A shared library is `*.so*` in its folder.
//! 3. Names that differ only in one component form a cluster. If a folder, changed as in 1, contains at
//!    least [`CLUSTER`] different last components with the same ending, these become `*.ending` (files
//!    without an ending: `*`).
//! 4. A pattern with only one file is dropped, and the file's pattern is its own name.
//!
//! The time is linear in the lengths of the names. Only patterns are kept in memory, not a string per file.

use hashbrown::HashTable;
use iodock_event::tables::ByteArena;
use iodock_event::{shown, FileTable, NONE};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

/// Number of different names, equal except for one component, from which the component becomes `*`.
const CLUSTER: usize = 8;

/// A pattern under construction, and the number of files that have it.
#[derive(Clone, Copy)]
struct Pattern {
    text: u32,
    files: u32,
}

/// Assigns a pattern to each file of the table.
pub fn fill(files: &mut FileTable) {
    let mut texts = Texts::default();
    let mut names: Vec<Pattern> = Vec::new();
    let mut starred = Vec::new();
    let mut of_file = vec![NONE; files.len()];
    for file in 0..files.len() as u32 {
        if !files.entries[file as usize].kind.has_path() {
            continue;
        }
        star_digits(files.names.get(file), &mut starred);
        let text = texts.intern(&starred);
        if text as usize == names.len() {
            names.push(Pattern { text, files: 0 });
        }
        names[text as usize].files += 1;
        of_file[file as usize] = text;
    }
    let clustered = widen(&mut texts, &names, last_component_starred);
    let widened = widen(&mut texts, &clustered, last_folder_starred);
    assign(files, &of_file, &texts, &widened);
}

/// Replaces runs of digits by `*`, and the name of a shared library by `*.so*`.
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

/// Returns whether the name is that of a shared library, such as `libc.so.6`, `ld-linux.so.2` or
/// `_json.cpython-311-x86_64-linux-gnu.so`.
fn is_library(base: &[u8]) -> bool {
    base.windows(3)
        .enumerate()
        .any(|(at, part)| part == b".so" && matches!(base.get(at + 3), None | Some(b'.')))
}

/// Replaces each pattern by the wider pattern that `star` makes of it, if at least [`CLUSTER`] different
/// patterns have the same wider one.
fn widen(texts: &mut Texts, patterns: &[Pattern], star: fn(&[u8], &mut Vec<u8>) -> bool) -> Vec<Pattern> {
    let mut wider: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
    let mut shapes: FxHashMap<u32, Option<u32>> = FxHashMap::default();
    let mut shape = Vec::new();
    for pattern in patterns {
        // Many names may already have the same pattern. It counts once.
        shapes.entry(pattern.text).or_insert_with(|| {
            let wide = star(texts.get(pattern.text), &mut shape).then(|| texts.intern(&shape))?;
            let (different, files) = wider.entry(wide).or_default();
            *different += 1;
            *files += pattern.files;
            Some(wide)
        });
    }
    let widened = patterns.iter().map(|&pattern| match shapes[&pattern.text] {
        Some(text) if wider[&text].0 >= CLUSTER => Pattern { text, files: wider[&text].1 },
        _ => pattern,
    });
    widened.collect()
}

/// Replaces the last component by `*`, but keeps its ending: `/p/ab.py` becomes `/p/*.py`.
fn last_component_starred(name: &[u8], out: &mut Vec<u8>) -> bool {
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
    true
}

/// Replaces the last folder by `*`: `/set-a/x.dat` becomes `/*/x.dat`. Returns `false` if the name is less
/// than two folders deep.
fn last_folder_starred(name: &[u8], out: &mut Vec<u8>) -> bool {
    let slash = |name: &[u8]| name.iter().rposition(|&byte| byte == b'/');
    let Some(base) = slash(name) else { return false };
    let Some(folder) = slash(&name[..base]).map(|at| at + 1) else { return false };
    if folder <= 1 || folder == base {
        return false;
    }
    out.clear();
    out.extend_from_slice(&name[..folder]);
    out.push(b'*');
    out.extend_from_slice(&name[base..]);
    true
}

fn assign(files: &mut FileTable, of_file: &[u32], texts: &Texts, patterns: &[Pattern]) {
    let mut ids: FxHashMap<u32, u32> = FxHashMap::default();
    for (entry, &name) in files.entries.iter_mut().zip(of_file) {
        let Some(pattern) = patterns.get(name as usize).filter(|pattern| pattern.files > 1) else { continue };
        entry.pattern = *ids.entry(pattern.text).or_insert_with(|| {
            files.patterns.push(shown(texts.get(pattern.text)).into_owned());
            (files.patterns.len() - 1) as u32
        });
    }
}

/// Texts without duplicates, numbered in order of addition.
#[derive(Default)]
struct Texts {
    kept: ByteArena,
    ids: HashTable<u32>,
}

impl Texts {
    fn get(&self, id: u32) -> &[u8] {
        self.kept.get(id)
    }

    fn intern(&mut self, text: &[u8]) -> u32 {
        let kept = &self.kept;
        if let Some(&id) = self.ids.find(hash(text), |&id| kept.get(id) == text) {
            return id;
        }
        let id = self.kept.push(text);
        let kept = &self.kept;
        self.ids.insert_unique(hash(text), id, |&id| hash(kept.get(id)));
        id
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
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
    fn differing_digits_of_similar_names_become_a_star() {
        let names = texts(&["/d/FA1/tagged7.dat", "/d/FA22/tagged9.dat", "/d/FA22/once3.dat", "/etc/passwd"]);
        assert_eq!(
            patterns(&names),
            ["/d/FA*/tagged*.dat", "/d/FA*/tagged*.dat", "/d/FA22/once3.dat", "/etc/passwd"]
        );
    }

    #[test]
    fn shared_libraries_of_a_folder_share_a_pattern() {
        let names = texts(&["/lib/libc.so.6", "/lib/libm.so.6", "/lib/ld-linux-x86-64.so.2", "/lib/x.sort"]);
        assert_eq!(patterns(&names), ["/lib/*.so*", "/lib/*.so*", "/lib/*.so*", "/lib/x.sort"]);
    }

    #[test]
    fn many_names_with_the_same_ending_share_a_pattern() {
        let words = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr"];
        let names: Vec<String> = words.iter().map(|word| format!("/p/{word}.py")).collect();
        assert!(patterns(&names).iter().all(|pattern| pattern == "/p/*.py"));
        assert_eq!(patterns(&names[..3]), names[..3]);
        let names: Vec<String> = words.iter().map(|word| format!("/p/{word}/out.txt")).collect();
        assert!(patterns(&names).iter().all(|pattern| pattern == "/p/*/out.txt"));
    }
}
