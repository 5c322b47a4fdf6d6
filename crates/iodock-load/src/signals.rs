//! Signals that request the end, and the calling process: both are checked while waiting.

use crate::error::LoadError;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

static ASKED: AtomicI32 = AtomicI32::new(0);
static LET_GO: AtomicBool = AtomicBool::new(false);
/// Sent to us when all ranks have reached a barrier.
const GO: &[u8] = b"go\n";
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

/// From now on signals that request the end are noted. They are unblocked, even if the caller blocked them.
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

/// In a worker: the engine decides when to end, and a worker ends with its engine.
///
/// A worker has its own session. With autogroup (sched(7)) all processes of a session share one part of the
/// processors, so a build in the check-up's terminal would halve the results.
pub fn leave_to_engine(engine: libc::pid_t) {
    ENDING.iter().for_each(|&signal| handle(signal, libc::SIG_IGN));
    // Beyond a file size limit, write then returns EFBIG.
    handle(libc::SIGXFSZ, libc::SIG_IGN);
    // SAFETY: plain calls; a parent that was gone before is seen by its number.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != engine {
            libc::_exit(1);
        }
    }
}

/// # Errors
/// A signal arrived, or the process at the other end of standard input is gone.
pub fn check() -> Result<(), LoadError> {
    match ASKED.load(Ordering::SeqCst) {
        0 => {}
        libc::SIGINT => return Err(LoadError::stopped("interrupted")),
        libc::SIGTERM => return Err(LoadError::stopped("terminated")),
        _ => return Err(LoadError::stopped("asked to end")),
    }
    hear(Duration::ZERO)
}

/// Waits this long for input from the calling process.
fn hear(patience: Duration) -> Result<(), LoadError> {
    let mut input = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one struct.
    if unsafe { libc::poll(&mut input, 1, patience.as_millis() as libc::c_int) } <= 0 {
        return Ok(());
    }
    let mut word = [0u8; GO.len()];
    // SAFETY: into a buffer of that length.
    let length = unsafe { libc::read(0, word.as_mut_ptr().cast(), word.len()) };
    if length == GO.len() as isize && word == GO {
        LET_GO.store(true, Ordering::SeqCst);
        return Ok(());
    }
    Err(LoadError::stopped("asked to end"))
}

/// Whether a start was allowed since the last call; waits this long for it.
///
/// # Errors
/// Those of `check`.
pub fn let_go(patience: Duration) -> Result<bool, LoadError> {
    if !LET_GO.load(Ordering::SeqCst) {
        hear(patience)?;
    }
    Ok(LET_GO.swap(false, Ordering::SeqCst))
}
