//! Determines which programs can load the recorder's library.

use super::reason::Reason;
use crate::program::privilege;
use crate::program::Program;
use iodock_preload::cache::Cache;
use iodock_preload::own_calls::OwnCalls;
use iodock_preload::{elf, session};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Number of bytes at the beginning of a file that are read. They contain an ELF file's segments and the name
/// of its dynamic linker, which linkers place first.
const HEAD_BYTES: u64 = 64 << 10;
/// Longest chain of scripts that interpret scripts, as in the kernel.
const DEPTH: usize = 5;

/// Returns the reason why little or nothing of the program at `path` would be recorded, or `None` if it can
/// be recorded well. For a script the reason is that of its interpreter. A file that can't be read is assumed
/// to be recordable.
pub fn blind_to(path: &Path) -> Option<Reason> {
    let mut path = path.to_path_buf();
    for _ in 0..DEPTH {
        let head = head(&path)?;
        if head.starts_with(b"\x7fELF") {
            return blind_to_elf(&head).or_else(|| privilege(&path).map(|_| Reason::Privileged));
        }
        // A script without such a line is run by the shell, which loads libraries.
        path = interpreter(&head)?;
    }
    None
}

/// Calls that a program makes without libc.
#[derive(Default)]
pub struct PastLibc {
    pub calls: OwnCalls,
    /// Whether none of the libraries that are loaded at the start is libc.
    pub without_libc: bool,
}

/// Returns the system calls that the program and its initial libraries make directly. A file that can't be
/// read counts as making none.
pub fn own_calls(program: &Program) -> PastLibc {
    let Some((path, linker)) = executable(&program.path) else { return PastLibc::default() };
    let Some(libraries) = libraries(program, &path, &linker).clone() else { return PastLibc::default() };
    let patched = session::patched();
    let is_libc = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libc."));
    let without_libc = !libraries.iter().any(|path| patched.contains(path) && is_libc(path));
    let cache = Cache::of_user();
    let others = libraries.into_iter().chain([path]).filter(|path| !patched.contains(path));
    let mut calls = OwnCalls::default();
    for own in others.map(|path| cache.own_calls(&path)) {
        calls = OwnCalls::from_byte(calls.byte() | own.byte());
    }
    PastLibc { calls, without_libc }
}

/// Returns the file that is finally executed, and its dynamic linker.
fn executable(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut path = path.to_path_buf();
    for _ in 0..DEPTH {
        let head = head(&path)?;
        if head.starts_with(b"\x7fELF") {
            let linker = elf::parse(&head)?.interpreter?.split(|&byte| byte == 0).next()?;
            return Some((fs::canonicalize(&path).ok()?, PathBuf::from(OsStr::from_bytes(linker))));
        }
        path = interpreter(&head)?;
    }
    None
}

/// Returns the libraries that are loaded at the start of the program. The list is empty if they are not
/// known.
pub fn loaded_libraries(program: &Program) -> &[PathBuf] {
    let Some((path, linker)) = executable(&program.path) else { return &[] };
    libraries(program, &path, &linker).as_deref().unwrap_or_default()
}

/// Returns the libraries, which are determined only once.
fn libraries<'a>(program: &'a Program, path: &Path, linker: &Path) -> &'a Option<Vec<PathBuf>> {
    program.libraries.get_or_init(|| listed_libraries(program, path, linker))
}

/// Returns the libraries that the dynamic linker would load first, according to its own list, which contains
/// their paths. This runs no code of the program. Returns `None` if there is no list.
fn listed_libraries(program: &Program, path: &Path, linker: &Path) -> Option<Vec<PathBuf>> {
    let variables = [OsStr::new("LD_LIBRARY_PATH"), OsStr::new("LD_PRELOAD")];
    let given = variables.iter().filter_map(|name| {
        let value = program.variable(&name.to_string_lossy())?;
        Some((name, OsStr::from_bytes(value)))
    });
    let listed = Command::new(linker)
        .arg("--list")
        .arg(path)
        .env_clear()
        .envs(given)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    if !listed.status.success() {
        return None;
    }
    // A line of the list is `NAME => PATH (ADDRESS)` or `PATH (ADDRESS)`.
    let path_in = |line: &[u8]| {
        let line = line.trim_ascii();
        let end = line.windows(2).rposition(|pair| pair == b" (")?;
        let start = line[..end].windows(4).position(|arrow| arrow == b" => ").map_or(0, |at| at + 4);
        fs::canonicalize(OsStr::from_bytes(&line[start..end])).ok()
    };
    Some(listed.stdout.split(|&byte| byte == b'\n').filter_map(path_in).collect())
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

/// Returns whether this dynamic linker has also loaded the recorder. Another one comes with a libc whose call
/// sites are not known.
fn is_ours(linker: &Path) -> bool {
    // A linker that can't be found counts as the same one, because the kernel will report the error.
    fs::canonicalize(linker).map_or(true, |linker| session::paths().contains(&linker))
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES as usize);
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Returns the program in a script's first line.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let name = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}
