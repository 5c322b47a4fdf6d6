//! Accesses files and folders that only this user can have written, because their content determines what
//! programs execute.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

pub fn user() -> u32 {
    // SAFETY: the call has no arguments and always succeeds.
    unsafe { libc::geteuid() }
}

/// Returns the inode of this process's PID namespace: process ids in another container have another meaning.
pub fn id_space() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino())
}

fn is_own(about: &Metadata) -> bool {
    about.uid() == user() && about.mode() & 0o022 == 0
}

/// Opens a file for reading.
///
/// # Errors
/// The file can't be opened, is not a regular file, or another user may have written it.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !(about.is_file() && is_own(&about)) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "may be written by others"));
    }
    Ok(file)
}

/// Whether the path is a folder, not a link, and writable only by this user.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir() && is_own(&about))
}

/// Creates a file that only this user can access.
///
/// # Errors
/// The file exists already, or can't be created.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
