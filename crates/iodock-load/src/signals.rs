//! Signals that ask to end, and the process that started us: both are looked at between steps of waiting.

use crate::error::LoadError;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

static ASKED: AtomicI32 = AtomicI32::new(0);
static LET_GO: AtomicBool = AtomicBool::new(false);
/// What is sent to us when all ranks have come to a barrier.
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
///
/// A worker has a session of its own. With autogroup (sched(7)) all processes of a session share one part of the
/// processors: a build in the terminal of the check-up would halve what is measured.
pub fn leave_to_engine(engine: libc::pid_t) {
    ENDING.iter().for_each(|&signal| handle(signal, libc::SIG_IGN));
    // Beyond a limit of file size, write says EFBIG instead.
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
/// A signal came, or whoever holds the other end of standard input is gone.
pub fn check() -> Result<(), LoadError> {
    match ASKED.load(Ordering::SeqCst) {
        0 => {}
        libc::SIGINT => return Err(LoadError::stopped("interrupted")),
        libc::SIGTERM => return Err(LoadError::stopped("terminated")),
        _ => return Err(LoadError::stopped("asked to end")),
    }
    hear(Duration::ZERO)
}

/// Waits so long for word from whoever started us.
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

/// Whether we were let go since this was last asked; waits so long for it.
///
/// # Errors
/// As `check`.
pub fn let_go(patience: Duration) -> Result<bool, LoadError> {
    if !LET_GO.load(Ordering::SeqCst) {
        hear(patience)?;
    }
    Ok(LET_GO.swap(false, Ordering::SeqCst))
}
