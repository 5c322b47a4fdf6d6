//! Which programs load a library of ours at all.

use super::reason::Reason;
use crate::program::privilege;
use iodock_preload::{elf, session};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Enough for an ELF file's segments and the name of its dynamic linker, which linkers put first.
const HEAD_BYTES: u64 = 64 << 10;
/// Scripts that interpret scripts, as deep as the kernel goes.
const DEPTH: usize = 5;

/// Why nothing, or little, of the program at `path` would be seen: `None` if it is well seen. For a script
/// that is its interpreter's answer. What can't be read is believed to be seen.
pub fn blind_to(path: &Path) -> Option<Reason> {
    let mut path = path.to_path_buf();
    for _ in 0..DEPTH {
        let head = head(&path)?;
        if head.starts_with(b"\x7fELF") {
            return blind_to_elf(&head).or_else(|| privilege(&path).map(|_| Reason::Privileged));
        }
        // Without such a line the shell runs it, which is dynamic.
        path = interpreter(&head)?;
    }
    None
}

fn blind_to_elf(head: &[u8]) -> Option<Reason> {
    let Some(elf) = elf::parse(head) else { return Some(Reason::Foreign) };
    let Some(linker) = elf.interpreter else { return Some(Reason::Static) };
    if elf.is_go {
        return Some(Reason::Go);
    }
    let linker = linker.split(|&byte| byte == 0).next().unwrap_or_default();
    (!is_ours(Path::new(OsStr::from_bytes(linker)))).then_some(Reason::OtherLibc)
}

/// Is this the dynamic linker that has loaded us? Others come with a libc whose sites are not known.
fn is_ours(linker: &Path) -> bool {
    // What can't be found can't be executed either, which the kernel will say.
    fs::canonicalize(linker).map_or(true, |linker| session::paths().contains(&linker))
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES as usize);
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The program that a script's first line names.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let name = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}
