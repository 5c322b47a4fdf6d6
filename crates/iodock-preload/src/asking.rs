//! Answers requests that processes write to the session's header. A process waits until its request is done.

use crate::format::header;
use crate::page::HeaderPage;
use crate::session::Session;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The value of the requester's word when the recorder no longer answers requests. No process has this
/// number.
const STOPPED: u32 = u32::MAX;

/// Interval at which the recorder checks for requests without being woken: a requester may be killed before
/// it has woken the recorder, and later requesters only wait for their turn.
const LOOK: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A kind of request, described by offsets of its fields in the header.
#[derive(Clone, Copy)]
pub struct Wish {
    /// Offset of the offer: what may be requested, as a size or as bits of `format::trace`. 0: nothing.
    offer: usize,
    /// Offset of the requester's number.
    asking: usize,
    /// Offset of the number of the requester that was served last, if that is stored.
    served: Option<usize>,
}

/// Processes that map a file of at least the offered size request sampling of their page faults
/// (native/watch.c). If the offer is 1, that includes mapped programs and libraries.
pub const WATCH: Wish =
    Wish { offer: header::WATCH_FROM, asking: header::WATCH_ASKING, served: Some(header::WATCH_BEGUN) };
/// Threads that are about to execute a program request tracing (native/traced.c). The offer consists of bits
/// of [`crate::format::trace`].
pub const TRACE: Wish = Wish { offer: header::TRACE_WHAT, asking: header::TRACE_ASKING, served: None };

/// The place in the header for one kind of request.
pub struct Asking {
    page: HeaderPage,
    wish: Wish,
}

impl Asking {
    /// Allows processes to request `offer` from now on.
    pub fn begin(session: &Session, wish: Wish, offer: u64) -> io::Result<Asking> {
        let place = Asking { page: HeaderPage::of(session)?, wish };
        place.offer(offer);
        Ok(place)
    }

    fn offer(&self, offer: u64) {
        self.page.long(self.wish.offer).store(offer, SeqCst);
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        self.page.word(at)
    }

    /// Answers requests until [`Asking::stop`]. `serve` handles a request and returns whether it succeeded;
    /// then the requester continues. `withdrawn` is called with requesters that gave up waiting.
    pub fn answer(&self, mut serve: impl FnMut(u32) -> bool, mut withdrawn: impl FnMut(u32)) {
        let asking = self.word(self.wish.asking);
        loop {
            match asking.load(SeqCst) {
                STOPPED => return,
                0 => {
                    // SAFETY: the word stays mapped during the call, and its value is checked again
                    // afterwards.
                    unsafe { libc::syscall(libc::SYS_futex, asking.as_ptr(), libc::FUTEX_WAIT, 0, &LOOK) };
                }
                id => {
                    let served = if serve(id) { id } else { 0 };
                    if let Some(place) = self.wish.served {
                        self.word(place).store(served, SeqCst);
                    }
                    if asking.compare_exchange(id, 0, SeqCst, SeqCst).is_err() {
                        withdrawn(id);
                    }
                    self.wake();
                }
            }
        }
    }

    /// Ends the answering of requests.
    pub fn stop(&self) {
        self.offer(0);
        self.word(self.wish.asking).store(STOPPED, SeqCst);
        self.wake();
    }

    fn wake(&self) {
        let asking = self.word(self.wish.asking);
        // SAFETY: the call accesses no memory of ours; it only wakes threads that wait on this word.
        unsafe { libc::syscall(libc::SYS_futex, asking.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}
