//! Properties of the programs that were executed. They are read from the program files when a recording ends,
//! because a recorder inside a program does not see libraries that were mapped before it was loaded.

mod elf;

use iodock_event::{shown, Tables};
use iodock_store::ExecutableRow;
use rustc_hash::FxHashSet;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Largest number of different programs that are examined. Even a large build with tests runs fewer.
const MOST: usize = 4096;
/// Number of bytes that the kernel reads to determine a file's format (BINPRM_BUF_SIZE).
const HEAD_BYTES: usize = 256;
/// O_NONBLOCK | O_NOCTTY | O_CLOEXEC. With these flags, open does not wait if the name now belongs to a pipe
/// or terminal.
const CAUTIOUS: i32 = 0o4000 | 0o400 | 0o2_000_000;

/// Returns the properties of each program that was executed on this machine, by path. Leaves out programs
/// that were removed or cannot be read.
pub fn rows(tables: &Tables) -> Vec<ExecutableRow> {
    let (here, mut seen) = (this_host(), FxHashSet::default());
    let host = |utid: u32| tables.tasks.get(utid as usize).and_then(|task| tables.host(task.host));
    let is_here = |utid: u32| host(utid).is_none_or(|host| host == here);
    let paths = tables.commands.paths().filter(|&(utid, path)| is_here(utid) && seen.insert(path));
    paths.take(MOST).filter_map(|(_, path)| row(path)).collect()
}

/// Returns this machine's name as recorders store it.
fn this_host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_string()
}

fn row(path: &[u8]) -> Option<ExecutableRow> {
    // Names in /proc depend on the process that reads them, and names in /dev are devices.
    if !path.starts_with(b"/") || path.starts_with(b"/proc/") || path.starts_with(b"/dev/") {
        return None;
    }
    let name = Path::new(std::ffi::OsStr::from_bytes(path));
    let mut file = OpenOptions::new().read(true).custom_flags(CAUTIOUS).open(name).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let head = head(&mut file)?;
    let mut row = ExecutableRow {
        path: shown(path).into_owned(),
        real_path: std::fs::canonicalize(name)
            .ok()
            .map(|real| shown(real.as_os_str().as_bytes()).into_owned()),
        ..ExecutableRow::default()
    };
    if let Some(line) = head.strip_prefix(b"#!") {
        row.kind = "script";
        row.interpreter = Some(shown(first_line(line)).into_owned());
    } else if head.starts_with(b"\x7fELF") {
        row.kind = "elf";
        let found = elf::read(file).unwrap_or_default();
        row.languages = found.languages.into_iter().map(str::to_string).collect();
        row.libraries = found.libraries.iter().map(|name| shown(name).into_owned()).collect();
    } else {
        row.kind = "other";
    }
    Some(row)
}

fn head(file: &mut File) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    file.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

fn first_line(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b'\n' || byte == 0).next().unwrap_or_default().trim_ascii()
}

#[cfg(test)]
mod tests;
