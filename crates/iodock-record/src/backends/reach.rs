//! Determines which programs load a library of ours at all.

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

/// Enough for an ELF file's segments and the name of its dynamic linker, which linkers place first.
const HEAD_BYTES: u64 = 64 << 10;
/// Depth of scripts that interpret scripts, as in the kernel.
const DEPTH: usize = 5;

/// The reason why nothing, or little, of the program at `path` would be recorded: `None` if it can be
/// recorded well. For a script the reason of its interpreter. An unreadable file is assumed to be recordable.
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

/// Calls that a program makes without libc.
#[derive(Default)]
pub struct PastLibc {
    pub calls: OwnCalls,
    /// None of its initial libraries is libc.
    pub without_libc: bool,
}

/// System calls made directly by the program and its initial libraries. An unreadable file makes none.
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

/// The file that is finally executed, and its dynamic linker.
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

/// The initial libraries of the program; empty if they are not known.
pub fn loaded_libraries(program: &Program) -> &[PathBuf] {
    let Some((path, linker)) = executable(&program.path) else { return &[] };
    libraries(program, &path, &linker).as_deref().unwrap_or_default()
}

/// Determined once.
fn libraries<'a>(program: &'a Program, path: &Path, linker: &Path) -> &'a Option<Vec<PathBuf>> {
    program.libraries.get_or_init(|| listed_libraries(program, path, linker))
}

/// The libraries that the dynamic linker would load first, according to its own list: it knows their paths.
/// Nothing of the program is executed. `None` if there is no list.
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
    // NAME => PATH (ADDRESS), or PATH (ADDRESS).
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

/// Whether this is the dynamic linker that loaded us. Others come with a libc whose call sites are not known.
fn is_ours(linker: &Path) -> bool {
    // A file that can't be found can't be executed either, and the kernel will report that.
    fs::canonicalize(linker).map_or(true, |linker| session::paths().contains(&linker))
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES as usize);
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The program in a script's first line.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let name = line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next()?;
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}
