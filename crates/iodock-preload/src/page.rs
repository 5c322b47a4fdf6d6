//! Maps the first page of a session's header, to which both the recorder and the processes write.

use crate::session::Session;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

const BYTES: usize = 4096;

pub struct HeaderPage {
    start: *mut u8,
}

// SAFETY: the memory is accessed only by atomic operations, and stays mapped as long as the value exists.
unsafe impl Send for HeaderPage {}
// SAFETY: the same holds for references to the value.
unsafe impl Sync for HeaderPage {}

impl HeaderPage {
    /// # Errors
    /// The page can't be mapped.
    pub fn of(session: &Session) -> io::Result<HeaderPage> {
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, session.file.as_raw_fd());
        // SAFETY: the kernel chooses a free address, so the new mapping replaces no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0) };
        match start == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(HeaderPage { start: start.cast() }),
        }
    }

    /// Returns the 4 bytes at offset `at`, which must be a multiple of 4.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at & 3 == 0 && at + 4 <= BYTES);
        // SAFETY: the assertion ensures that the word is aligned and within the page; all accesses are
        // atomic.
        unsafe { &*self.start.add(at).cast() }
    }

    /// Returns the 8 bytes at offset `at`, which must be a multiple of 8.
    pub fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at & 7 == 0 && at + 8 <= BYTES);
        // SAFETY: the assertion ensures that the word is aligned and within the page; all accesses are
        // atomic.
        unsafe { &*self.start.add(at).cast() }
    }
}

impl Drop for HeaderPage {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no reference to it exists any more.
        unsafe { libc::munmap(self.start.cast(), BYTES) };
    }
}
