//! Which programs load a library of ours at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Enough for an ELF file's segments and the name of its dynamic linker, which linkers put first.
const HEAD_BYTES: u64 = 64 << 10;
/// Scripts that interpret scripts, as deep as the kernel goes.
const DEPTH: usize = 5;

/// Has the program at `path` a dynamic linker, so that it heeds LD_PRELOAD? For a script that is its
/// interpreter's. What can't be read is believed.
pub fn reaches(path: &Path) -> bool {
    let mut path = path.to_path_buf();
    for _ in 0..DEPTH {
        let Some(head) = head(&path) else { return true };
        if head.starts_with(b"\x7fELF") {
            return iodock_preload::elf::parse(&head).is_some_and(|elf| elf.interpreter.is_some());
        }
        // Without such a line the shell runs it, which is dynamic.
        let Some(next) = interpreter(&head) else { return true };
        path = next;
    }
    true
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The program that a script's first line names.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let name = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}
