//! A file as memory, to be read: a library is looked at in few places, and copied at most once.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::path::Path;

pub struct Mapping {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Mapping {
    /// # Errors
    /// It can't be opened or mapped, or is empty.
    pub fn of(path: &Path) -> io::Result<Mapping> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len() as usize;
        let how = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        // SAFETY: a new mapping, of a descriptor that is open.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, how, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start, bytes })
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped as long as this is. Libraries that programs use are replaced, and not cut off, as programs need them.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing of it is lent out any more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
