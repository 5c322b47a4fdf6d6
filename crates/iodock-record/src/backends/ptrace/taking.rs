//! Attaches to a running thread: it must be stopped before anything else is done with it.

use super::request;
use std::io;

/// Result of attaching to a thread.
pub enum Taken {
    /// The thread is stopped with this signal, or with SIGTRAP if there is none.
    Stands(i32),
    /// The thread ended before it stopped, with this status. No other process can wait for it any more.
    Ended(i32),
    /// The thread is not traced.
    Refused,
}

/// Attaches to a thread, which may not be allowed, and waits until it is stopped.
pub fn take(tid: u32) -> Taken {
    if request::seize(tid, request::OPTIONS).is_err() {
        return Taken::Refused;
    }
    // Fails if it was killed in between: then its end is reported to us.
    let _ = request::interrupt(tid);
    first_stop(tid)
}

/// Waits for the stop that PTRACE_INTERRUPT causes.
pub fn first_stop(tid: u32) -> Taken {
    loop {
        let mut status = 0;
        // SAFETY: a plain wait for a thread that we trace.
        let waited = unsafe { libc::waitpid(tid as i32, &mut status, libc::__WALL) };
        if waited < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
            continue;
        }
        if waited < 0 {
            return Taken::Refused;
        }
        if !libc::WIFSTOPPED(status) {
            return Taken::Ended(status);
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        if event == request::EVENT_STOP {
            return Taken::Stands(signal);
        }
        // Another event came first; the requested stop will follow.
        let _ = request::resume(tid, if event == 0 { signal } else { 0 });
    }
}
