//! What in a folder is a store's own. Only that is ever replaced or removed.

use crate::manifest::MANIFEST;
use crate::place::TABLES;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Larger files are no manifests.
const LONGEST_MANIFEST: u64 = 16 << 20;

/// What lies in `folder` (or is it) and was not written by iodock: empty for a store, or an empty folder. A link is
/// never followed: whatever it leads to is not ours.
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

/// Removes a store, or an empty folder. What was not written by iodock stays, and is an error.
pub fn remove_own(folder: &Path) -> io::Result<()> {
    let (mut own, mut found) = (Vec::new(), Vec::new());
    sort_out(folder, Path::new(""), &mut own, &mut found)?;
    if let Some(found) = found.first() {
        return Err(io::Error::other(format!("{} is not a part of a store", found.display())));
    }
    // A folder stands before what is in it.
    for path in own.iter().rev() {
        if fs::symlink_metadata(path)?.is_dir() {
            fs::remove_dir(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    fs::remove_dir(folder)
}

/// `below`: where `folder` is in the store.
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

/// Tables that take shape lie in a folder of their own inside a recording.
fn parts(place: &Path) -> Vec<&str> {
    let mut parts: Vec<&str> = place.iter().map(|part| part.to_str().unwrap_or("?")).collect();
    if parts.len() > 1 && is_partial(parts[0]) {
        parts.remove(0);
    }
    parts
}

fn is_partial(name: &str) -> bool {
    name.strip_prefix(".partial-").is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_own_folder(place: &Path) -> bool {
    match parts(place)[..] {
        [name] => name == "journal" || is_partial(name) || TABLES.contains(&name) && !name.contains('.'),
        _ => false,
    }
}

fn is_own_file(place: &Path) -> bool {
    match parts(place)[..] {
        [name] => {
            let rest = name.strip_prefix(MANIFEST);
            rest.is_some_and(|rest| rest.is_empty() || is_partial(rest))
                || TABLES.contains(&name) && name.contains('.')
        }
        ["journal", name] => {
            matches!(name, "job" | "job.draft" | "lock")
                || name.starts_with("main.")
                || name.starts_with("rank-")
        }
        [crate::folds::FOLDER, name] => name.ends_with(".parquet"),
        [_, name] => {
            let number = name.strip_prefix("part-").and_then(|name| name.strip_suffix(".parquet"));
            number.is_some_and(is_number)
        }
        _ => false,
    }
}

/// Has it a manifest of iodock, with a schema of whatever version?
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

/// `notes.txt, events/mine`: some of them, as they are called below the folder.
pub fn named(foreign: &[PathBuf], folder: &Path) -> String {
    let some = foreign.iter().take(5).map(|path| {
        let below = path.strip_prefix(folder).ok().filter(|below| !below.as_os_str().is_empty());
        below.unwrap_or(path).display().to_string()
    });
    let more = if foreign.len() > 5 { format!(" and {} more", foreign.len() - 5) } else { String::new() };
    some.collect::<Vec<_>>().join(", ") + &more
}
