//! The first page of a session's header, which recorder and processes both write to.

use crate::session::Session;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

const BYTES: usize = 4096;

pub struct HeaderPage {
    start: *mut u8,
}

// SAFETY: the memory is only used as atomics, and is there as long as this is.
unsafe impl Send for HeaderPage {}
// SAFETY: as above.
unsafe impl Sync for HeaderPage {}

impl HeaderPage {
    /// # Errors
    /// It can't be mapped.
    pub fn of(session: &Session) -> io::Result<HeaderPage> {
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, session.file.as_raw_fd());
        // SAFETY: a new shared mapping of a page that is there.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0) };
        match start == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(HeaderPage { start: start.cast() }),
        }
    }

    /// The 4 bytes at `at`, a multiple of that.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at & 3 == 0 && at + 4 <= BYTES);
        // SAFETY: within the page, aligned, and shared as an atomic is.
        unsafe { &*self.start.add(at).cast() }
    }

    /// The 8 bytes at `at`, a multiple of that.
    pub fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at & 7 == 0 && at + 8 <= BYTES);
        // SAFETY: as above.
        unsafe { &*self.start.add(at).cast() }
    }
}

impl Drop for HeaderPage {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing of it is lent out any more.
        unsafe { libc::munmap(self.start.cast(), BYTES) };
    }
}
