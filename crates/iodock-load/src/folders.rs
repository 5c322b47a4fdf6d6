//! Accesses files by name inside an open folder, so that links are never followed.

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

pub fn open_at(folder: RawFd, name: &CStr, flags: i32) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the name is a C string, and a new descriptor has no other owner.
    unsafe {
        match libc::openat(folder, name.as_ptr(), flags, 0o600) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

pub fn open_directory(folder: RawFd, name: &CStr) -> io::Result<OwnedFd> {
    open_at(folder, name, libc::O_RDONLY | libc::O_DIRECTORY)
}

pub fn status_of(fd: RawFd) -> io::Result<libc::stat> {
    // SAFETY: zeroes are a valid stat, and the kernel fills it in.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        match libc::fstat(fd, &mut status) {
            0 => Ok(status),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
