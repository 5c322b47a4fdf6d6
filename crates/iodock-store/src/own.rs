//! Determines which files in a folder belong to a store. iodock replaces or removes only these files.

use crate::manifest::MANIFEST;
use crate::new_store::TABLES;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Largest size of a manifest, bytes.
const LONGEST_MANIFEST: u64 = 16 << 20;
/// Endings of files that recorders write to `journal`. Each recorder has one base name.
const JOURNAL_ENDINGS: [&str; 5] = ["journal", "calls", "traced", "faults", "done"];

const SESSION_ENDING: &str = "session";
/// Files of a light recording that has no recorder process.
const SESSION_FILES: [&str; 3] = ["session", "calls", "libiodock_preload.so"];

/// Returns the files in `folder` (or `folder` itself) that iodock did not write; none for a store or an empty
/// folder. The function never follows links, because their targets do not belong to the store.
pub fn foreign(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Ok(vec![folder.to_path_buf()]);
    }
    let (mut own, mut found) = (Vec::new(), Vec::new());
    sort_out(folder, Path::new(""), &mut own, &mut found)?;
    if found.is_empty() && !own.is_empty() && !has_manifest(folder) {
        found.push(folder.join(MANIFEST));
    }
    found.sort();
    Ok(found)
}

/// Removes a store or an empty folder. Files that iodock did not write are kept, and cause an error.
pub fn remove_own(folder: &Path) -> io::Result<()> {
    let (mut own, mut found) = (Vec::new(), Vec::new());
    sort_out(folder, Path::new(""), &mut own, &mut found)?;
    if let Some(found) = found.first() {
        return Err(io::Error::other(format!("{} is not a part of a store", found.display())));
    }
    // The list has a folder before its content, so the reverse order empties a folder before removing it.
    for path in own.iter().rev() {
        if fs::symlink_metadata(path)?.is_dir() {
            fs::remove_dir(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    fs::remove_dir(folder)
}

/// Sorts the files of a folder into those of iodock and others. `below` is the path of `folder` in the store.
fn sort_out(
    folder: &Path,
    below: &Path,
    own: &mut Vec<PathBuf>,
    foreign: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, place) = (entry.file_type()?, below.join(entry.file_name()));
        let is_own = kind.is_dir() && is_own_folder(&place) || kind.is_file() && is_own_file(&place);
        if !is_own {
            foreign.push(entry.path());
            continue;
        }
        own.push(entry.path());
        if kind.is_dir() {
            sort_out(&entry.path(), &place, own, foreign)?;
        }
    }
    Ok(())
}

/// Splits a path in a store into its parts. The folder of tables being written inside a recording is left
/// out.
fn parts(place: &Path) -> Vec<&str> {
    let mut parts: Vec<&str> = place.iter().map(|part| part.to_str().unwrap_or("?")).collect();
    if parts.len() > 1 && is_partial(parts[0]) {
        parts.remove(0);
    }
    parts
}

pub(crate) fn is_partial(name: &str) -> bool {
    name.strip_prefix(".partial-").is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether it is the folder of a light recording without a recorder process. Such a folder may
/// contain only the library.
pub fn is_session(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| is_beside_journal(name, SESSION_ENDING))
}

fn is_own_folder(place: &Path) -> bool {
    match parts(place)[..] {
        ["journal", name] => is_beside_journal(name, SESSION_ENDING),
        [name] => name == "journal" || is_partial(name) || TABLES.contains(&name) && !name.contains('.'),
        _ => false,
    }
}

fn is_own_file(place: &Path) -> bool {
    match parts(place)[..] {
        [name] => {
            let rest = name.strip_prefix(MANIFEST);
            rest.is_some_and(|rest| rest.is_empty() || is_partial(rest))
                || name.strip_prefix(crate::stacks::FILE).is_some_and(is_partial)
                || TABLES.contains(&name) && name.contains('.')
        }
        ["journal", name] => matches!(name, "job" | "job.draft" | "lock") || is_journal(name),
        ["journal", session, name] => {
            is_beside_journal(session, SESSION_ENDING) && SESSION_FILES.contains(&name)
        }
        [crate::folds::FOLDER, name] => {
            name.strip_suffix(".parquet").is_some_and(|name| crate::folds::NAMES.contains(&name))
        }
        [_, name] => is_part(name),
        _ => false,
    }
}

/// Returns whether the name is that of a file in a journal, such as `main.journal` or
/// `rank-00003-HOST-4711.calls`.
fn is_journal(name: &str) -> bool {
    JOURNAL_ENDINGS.iter().any(|ending| is_beside_journal(name, ending))
}

/// Returns whether the name is `main.ENDING` or has the form `rank-00003-HOST-4711.ENDING`.
fn is_beside_journal(name: &str, ending: &str) -> bool {
    let recorder = name.strip_suffix(ending).and_then(|name| name.strip_suffix('.'));
    recorder.is_some_and(|recorder| recorder == "main" || is_rank(recorder))
}

/// Returns whether the name has the form `rank-00003-HOST-4711`.
fn is_rank(name: &str) -> bool {
    let Some((rank, place)) = name.strip_prefix("rank-").and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    let process = place.rsplit_once('-').map(|(_, process)| process);
    is_padded(rank) && process.is_some_and(is_number)
}

/// Returns whether the name has the form `part-00000.parquet`.
fn is_part(name: &str) -> bool {
    let number = name.strip_prefix("part-").and_then(|name| name.strip_suffix(".parquet"));
    number.is_some_and(is_padded)
}

/// Returns whether the text is a number of five digits, or of more digits without leading zeros.
fn is_padded(text: &str) -> bool {
    is_number(text) && (text.len() == 5 || text.len() > 5 && !text.starts_with('0'))
}

/// Returns whether the folder has a manifest of iodock, with a schema of any version.
pub fn has_manifest(folder: &Path) -> bool {
    let path = folder.join(MANIFEST);
    if !fs::metadata(&path).is_ok_and(|status| status.is_file() && status.len() <= LONGEST_MANIFEST) {
        return false;
    }
    let Ok(bytes) = fs::read(path) else { return false };
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return false };
    let writer = value.get("writer").and_then(serde_json::Value::as_str);
    value.get("schema").is_some_and(serde_json::Value::is_u64)
        && writer.is_some_and(|writer| writer.starts_with("iodock"))
}

/// Returns a list such as `notes.txt, events/mine` of up to five files, by their paths below the folder.
pub fn named(foreign: &[PathBuf], folder: &Path) -> String {
    let some = foreign.iter().take(5).map(|path| {
        let below = path.strip_prefix(folder).ok().filter(|below| !below.as_os_str().is_empty());
        below.unwrap_or(path).display().to_string()
    });
    let more = if foreign.len() > 5 { format!(" and {} more", foreign.len() - 5) } else { String::new() };
    some.collect::<Vec<_>>().join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_iodock_writes_are_its_own_files() {
        let own = [
            "manifest.json",
            "manifest.json.partial-12",
            "files.parquet",
            "call_totals.parquet",
            "events/part-00000.parquet",
            "events/part-123456.parquet",
            "folds/stored_durations.parquet",
            "folds/stored_openings.parquet",
            "folds/stored_slow_calls.parquet",
            "journal/job",
            "journal/job.draft",
            "journal/lock",
            "journal/main.journal",
            "journal/main.calls",
            "journal/main.traced",
            "journal/main.faults",
            "journal/rank-00003-node-1.a.org-4711.journal",
            "journal/rank-00003-n1-4711.done",
            ".partial-12/files.parquet",
            ".partial-12/events/part-00001.parquet",
        ];
        for name in own {
            assert!(is_own_file(Path::new(name)), "{name}");
        }
        let foreign = [
            "manifest.json.old",
            "manifest.json.partial-",
            "notes.parquet",
            "folds/mine.parquet",
            "folds/stored_durations.parquet.old",
            "journal/main.tex",
            "journal/main.journal.old",
            "journal/rank-list.txt",
            "journal/rank-3-n1-4711.journal",
            "journal/rank-00003-n1-4711.csv",
            "journal/rank-00003-n1.journal",
            "journal/rank-.journal",
            "events/part-1.parquet",
            "events/part-0000001.parquet",
            "events/folds/part-00000.parquet",
            ".partial-12/mine",
        ];
        for name in foreign {
            assert!(!is_own_file(Path::new(name)), "{name}");
        }
    }
}
