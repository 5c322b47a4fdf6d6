//! Attaches to a running thread. The thread must stop before the tracer can make other requests.

use super::request;
use std::io;

/// Result of attaching to a thread.
pub enum Taken {
    /// The thread is stopped with this signal, or with SIGTRAP if there is none.
    Stands(i32),
    /// The thread ended before it stopped, with this status. No other process can wait for it any more.
    Ended(i32),
    /// The kernel did not allow tracing the thread.
    Refused,
}

/// Attaches to a thread, if the kernel allows it, and waits until it is stopped.
pub fn take(tid: u32) -> Taken {
    if request::seize(tid, request::OPTIONS).is_err() {
        return Taken::Refused;
    }
    // This fails if the thread was killed. The wait then reports its end.
    let _ = request::interrupt(tid);
    first_stop(tid)
}

/// Waits for the stop that PTRACE_INTERRUPT causes.
pub fn first_stop(tid: u32) -> Taken {
    loop {
        let mut status = 0;
        // SAFETY: waitpid writes only to `status`, and this thread traces the other one.
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
        // Another event came first. The requested stop follows later.
        let _ = request::resume(tid, if event == 0 { signal } else { 0 });
    }
}
