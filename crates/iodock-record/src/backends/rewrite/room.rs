//! Chooses the folder in which a session is created.

use crate::error::{plain, Refusal};
use crate::launch;
use iodock_preload::{left, session};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folder of a file system in this machine's memory.
pub const SHARED: &str = "/dev/shm";

/// Returns a path in shared memory, or in another folder from which libraries may be loaded.
///
/// # Errors
/// Fails if there is no such folder.
pub fn place() -> Result<PathBuf, Refusal> {
    let name = format!("{}{}-{:x}", left::NAME, std::process::id(), session::ticks());
    let folders = [PathBuf::from(SHARED), std::env::temp_dir()];
    let found = folders.iter().find(|folder| may_hold_programs(folder));
    found.map(|folder| folder.join(name)).ok_or_else(|| {
        let [shared, temporary] = folders.each_ref().map(|folder| folder.display());
        let message = format!("the shared buffers can't be made: neither {shared} nor {temporary} may be written to and hold programs");
        Refusal::new(message, "set TMPDIR to a folder that is not mounted noexec, or choose --backend ptrace")
    })
}

/// Largest number of files that are open at the same time while a program is recorded.
const DESCRIPTORS: usize = 20;

/// Returns the reason why no session can be created here: there is no folder, few files may be open (`ulimit
/// -n`), or file sizes are limited (`ulimit -f`).
pub fn refusal() -> Option<Refusal> {
    let file = match place() {
        Ok(place) => place.with_extension("room"),
        Err(refusal) => return Some(refusal),
    };
    let made = fs::File::create_new(&file).and_then(|made| made.set_len(session::FILE_BYTES));
    let _ = fs::remove_file(&file);
    let error = made.and_then(|()| launch::may_open(DESCRIPTORS)).err()?;
    let message = format!("{}: the shared buffers can't be made there: {}", file.display(), plain(&error));
    let first = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "allow more files to be open at once (ulimit -n), or ",
        Some(libc::EFBIG) => "allow larger files (ulimit -f), or ",
        _ => "",
    };
    Some(Refusal::new(message, format!("{first}choose --backend ptrace")))
}

fn may_hold_programs(folder: &Path) -> bool {
    let Ok(text) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends with NUL, and `status` has room for the result.
    unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        libc::statvfs(text.as_ptr(), &mut status) == 0
            && status.f_flag & (libc::ST_NOEXEC | libc::ST_RDONLY) == 0
            && libc::access(text.as_ptr(), libc::W_OK) == 0
    }
}
