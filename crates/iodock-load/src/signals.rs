//! Signals that ask to end, and the process that started us: both are looked at between steps of waiting.

use crate::error::LoadError;
use std::sync::atomic::{AtomicI32, Ordering};

static ASKED: AtomicI32 = AtomicI32::new(0);
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

extern "C" fn note(signal: libc::c_int) {
    ASKED.store(signal, Ordering::SeqCst);
}

fn handle(signal: i32, handler: libc::sighandler_t) {
    // SAFETY: a handler that only stores into an atomic, or one of the system's own.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// From now on signals that ask to end are noted; they are let through, whatever the caller blocked.
pub fn watch() {
    ENDING.iter().for_each(|&signal| handle(signal, note as *const () as libc::sighandler_t));
    handle(libc::SIGPIPE, libc::SIG_IGN);
    // SAFETY: an empty set replaces this thread's.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// In a worker: the engine says when to end, and with it the worker ends.
pub fn leave_to_engine(engine: libc::pid_t) {
    ENDING.iter().for_each(|&signal| handle(signal, libc::SIG_IGN));
    // Beyond a limit of file size, write says EFBIG instead.
    handle(libc::SIGXFSZ, libc::SIG_IGN);
    // SAFETY: plain calls; a parent that was gone before is seen by its number.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != engine {
            libc::_exit(1);
        }
    }
}

/// # Errors
/// A signal came, or whoever holds the other end of standard input is gone.
pub fn check() -> Result<(), LoadError> {
    match ASKED.load(Ordering::SeqCst) {
        0 => {}
        libc::SIGINT => return Err(LoadError::stopped("interrupted")),
        libc::SIGTERM => return Err(LoadError::stopped("terminated")),
        _ => return Err(LoadError::stopped("asked to end")),
    }
    let mut input = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one struct, and no waiting.
    if unsafe { libc::poll(&mut input, 1, 0) } > 0 {
        return Err(LoadError::stopped("asked to end"));
    }
    Ok(())
}
