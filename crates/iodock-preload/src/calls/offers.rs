//! Chunks that are read are offered back to the threads that filled them: in the session's header, each in the place
//! of its number. Nothing else is given back that a thread has mapped still.

use crate::format::{header, OFFERED};
use crate::session::Session;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

const PAGE: usize = 4096;

pub struct Offers {
    page: *mut u8,
}

// SAFETY: the memory is only used as atomics, and is there as long as this is.
unsafe impl Send for Offers {}

impl Offers {
    /// # Errors
    /// The header can't be mapped.
    pub fn new(session: &Session) -> io::Result<Offers> {
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, session.file.as_raw_fd());
        // SAFETY: a new shared mapping of the header's first page, which is there.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, libc::MAP_SHARED, fd, 0) };
        match page == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Offers { page: page.cast() }),
        }
    }

    fn place(&self, index: u64) -> &AtomicU32 {
        let at = header::OFFERED + 4 * (index as usize % OFFERED);
        // SAFETY: within the page, aligned, and shared as an atomic is.
        unsafe { &*self.page.add(at).cast::<AtomicU32>() }
    }

    /// Offers chunk `index`. The one that stood in its place, if nobody has taken it, is offered no more.
    pub fn offer(&self, index: u64) -> Option<u64> {
        u64::from(self.place(index).swap(index as u32 + 1, SeqCst)).checked_sub(1)
    }

    /// Is chunk `index` still offered?
    pub fn has(&self, index: u64) -> bool {
        self.place(index).load(SeqCst) == index as u32 + 1
    }
}

impl Drop for Offers {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody uses it any more.
        unsafe { libc::munmap(self.page.cast(), PAGE) };
    }
}
