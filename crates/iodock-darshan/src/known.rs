//! Recognises Darshan logs.

use crate::{binary, text, Fault};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Returns whether the file at `path` is a Darshan log or its text, possibly a damaged one: by its first
/// bytes, or by a name that only Darshan uses. Returns false for anything but a regular file, because reading
/// a pipe would consume its data.
pub fn is_darshan(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    if path.extension().is_some_and(|ending| ending == "darshan") {
        return true;
    }
    let mut head = Vec::new();
    let Ok(file) = File::open(path) else { return false };
    let is_read = file.take(text::HEAD_BYTES).read_to_end(&mut head).is_ok();
    is_read && (text::is_text(&head) || is_log(&head))
}

/// Returns whether the bytes begin a log. Logs of format 2 do not count, because other files may begin with
/// only a version, too.
fn is_log(head: &[u8]) -> bool {
    !matches!(binary::check(head), Err(Fault::NotDarshan | Fault::Empty | Fault::OldFormat(_)))
        && head.get(..2) == Some(b"3.")
        && head.get(4..8) == Some(&[0; 4])
}
