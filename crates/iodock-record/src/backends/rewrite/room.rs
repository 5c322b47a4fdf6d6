//! Where a session's folder is made.

use crate::error::Refusal;
use crate::launch;
use iodock_preload::session;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Shared memory, or the next best place from which a library may be loaded.
pub fn place() -> PathBuf {
    let name = format!("iodock-{}-{:x}", std::process::id(), session::ticks());
    let shared = Path::new("/dev/shm");
    let folder = if may_hold_programs(shared) { shared.to_path_buf() } else { std::env::temp_dir() };
    folder.join(name)
}

/// Files that are open at once while a program is recorded, at most.
const DESCRIPTORS: usize = 20;

/// Why there can be no session here: few files may be open (`ulimit -n`), files are limited (`ulimit -f`), or the
/// place is read-only.
pub fn refusal() -> Option<Refusal> {
    let file = place().with_extension("room");
    let made = fs::File::create_new(&file).and_then(|made| made.set_len(session::FILE_BYTES));
    let _ = fs::remove_file(&file);
    let error = made.and_then(|()| launch::may_open(DESCRIPTORS)).err()?;
    let message =
        format!("{}: the shared buffers can't be made there: {}", file.display(), launch::plain(&error));
    Some(Refusal::new(message, "choose --backend ptrace"))
}

fn may_hold_programs(folder: &Path) -> bool {
    let Ok(text) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: a NUL-terminated path and a structure to write to.
    unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        libc::statvfs(text.as_ptr(), &mut status) == 0
            && status.f_flag & (libc::ST_NOEXEC | libc::ST_RDONLY) == 0
            && libc::access(text.as_ptr(), libc::W_OK) == 0
    }
}
