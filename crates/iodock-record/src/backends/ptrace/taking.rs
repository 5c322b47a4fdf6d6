//! Taking a thread that runs: it stands still before anything is done with it.

use super::request;
use std::io;

/// What became of a thread that was to be taken.
pub enum Taken {
    /// It stands still, with this signal; SIGTRAP for none.
    Stands(i32),
    /// It has ended first, with this status, and nobody else can wait for it any more.
    Ended(i32),
    /// It is not traced.
    Refused,
}

/// Takes a thread that may not be ours and waits until it stands still.
pub fn take(tid: u32) -> Taken {
    if request::seize(tid, request::OPTIONS).is_err() {
        return Taken::Refused;
    }
    // Fails if it is killed meanwhile: its end is ours now.
    let _ = request::interrupt(tid);
    first_stop(tid)
}

/// Waits for the stop that PTRACE_INTERRUPT asks for.
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
        // Something else came first; the stop that we asked for still comes.
        let _ = request::resume(tid, if event == 0 { signal } else { 0 });
    }
}
