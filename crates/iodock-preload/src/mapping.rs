//! A file as memory, to be read: a library is looked at in few places, and copied at most once.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub struct Mapping {
    start: *mut libc::c_void,
    bytes: usize,
    identity: u64,
}

impl Mapping {
    /// # Errors
    /// It can't be opened or mapped, or is empty.
    pub fn of(path: &Path) -> io::Result<Mapping> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        let bytes = about.len() as usize;
        let how = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        // SAFETY: a new mapping, of a descriptor that is open.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, how, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start, bytes, identity: identity(&about) })
    }

    /// Tells the file from others, and from itself after a change: `is_same_file` in native/patch.c has the same.
    pub fn identity(&self) -> u64 {
        self.identity
    }
}

fn identity(about: &Metadata) -> u64 {
    let told = [about.dev(), about.ino(), about.size(), about.mtime() as u64, about.mtime_nsec() as u64];
    told.into_iter().fold(0, |hash: u64, word| {
        let hash = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^ hash >> 32
    })
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped as long as this is. (Who cuts off a library that is in use kills what uses it, us among them.)
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing of it is lent out any more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
