//! Processes that have mapped a large file ask to be watched; whoever answers does so before they touch it
//! (native/watch.c).

use crate::format::header;
use crate::session::Session;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

const PAGE: usize = 4096;
/// Stands where a process would ask; no process has this number.
const STOPPED: u32 = u32::MAX;

/// The place in the session's header where processes ask.
pub struct Watching {
    page: *mut u8,
}

// SAFETY: the memory is only used as atomics, and is there as long as this is.
unsafe impl Send for Watching {}
// SAFETY: as above.
unsafe impl Sync for Watching {}

impl Watching {
    /// From maps of `least` bytes on processes ask; from 1 byte on for programs and libraries too.
    pub fn begin(session: &Session, least: u64) -> io::Result<Watching> {
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, session.file.as_raw_fd());
        // SAFETY: a new shared mapping of the header's first page, which is there.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, libc::MAP_SHARED, fd, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let watching = Watching { page: page.cast() };
        // SAFETY: within the page, aligned.
        unsafe { (*watching.page.add(header::WATCH_FROM).cast::<AtomicU64>()).store(least, SeqCst) };
        Ok(watching)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: within the page, aligned, and shared as an atomic is.
        unsafe { &*self.page.add(at).cast::<AtomicU32>() }
    }

    /// Answers processes until [`Watching::stop`]: each goes on as soon as `watch` has returned whether it is
    /// watched.
    pub fn answer(&self, mut watch: impl FnMut(u32) -> bool) {
        let asking = self.word(header::WATCH_ASKING);
        loop {
            match asking.load(SeqCst) {
                STOPPED => return,
                0 => {
                    let forever = std::ptr::null::<libc::timespec>();
                    // SAFETY: a word of ours; woken or not, we look again.
                    unsafe { libc::syscall(libc::SYS_futex, asking.as_ptr(), libc::FUTEX_WAIT, 0, forever) };
                }
                pid => {
                    let begun = if watch(pid) { pid } else { 0 };
                    self.word(header::WATCH_BEGUN).store(begun, SeqCst);
                    // It may have given up meanwhile, and another may ask.
                    let _ = asking.compare_exchange(pid, 0, SeqCst, SeqCst);
                    self.wake();
                }
            }
        }
    }

    /// Nobody is answered any more.
    pub fn stop(&self) {
        // SAFETY: within the page, aligned.
        unsafe { (*self.page.add(header::WATCH_FROM).cast::<AtomicU64>()).store(0, SeqCst) };
        self.word(header::WATCH_ASKING).store(STOPPED, SeqCst);
        self.wake();
    }

    fn wake(&self) {
        let asking = self.word(header::WATCH_ASKING);
        // SAFETY: only wakes who waits there.
        unsafe { libc::syscall(libc::SYS_futex, asking.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `begin`.
        unsafe { libc::munmap(self.page.cast(), PAGE) };
    }
}
