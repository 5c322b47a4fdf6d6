//! Detects signals that request a stop, and the end of the calling process. The engine checks both while it
//! waits.

use crate::error::LoadError;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

static ASKED: AtomicI32 = AtomicI32::new(0);
static LET_GO: AtomicBool = AtomicBool::new(false);
/// Line that the calling process sends when all ranks have reached a barrier.
const GO: &[u8] = b"go\n";
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

extern "C" fn note(signal: libc::c_int) {
    ASKED.store(signal, Ordering::SeqCst);
}

fn handle(signal: i32, handler: libc::sighandler_t) {
    // SAFETY: the handler only stores into an atomic variable, or is SIG_IGN, which the system defines.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Installs handlers for signals that request a stop, and unblocks all signals, which the caller may have
/// blocked.
pub fn watch() {
    ENDING.iter().for_each(|&signal| handle(signal, note as *const () as libc::sighandler_t));
    handle(libc::SIGPIPE, libc::SIG_IGN);
    // SAFETY: the set is initialised, and replaces the signal mask of this thread.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Prepares a worker. It ignores signals, because the engine decides when it ends, and the kernel kills it
/// when the engine ends.
///
/// A worker has its own session. With autogroup (sched(7)) all processes of a session share one part of the
/// processors, so a compilation in the check-up's terminal would halve the results.
pub fn leave_to_engine(engine: libc::pid_t) {
    ENDING.iter().for_each(|&signal| handle(signal, libc::SIG_IGN));
    // With SIGXFSZ ignored, a write beyond the file size limit returns EFBIG.
    handle(libc::SIGXFSZ, libc::SIG_IGN);
    // SAFETY: these calls access no memory of the caller. If the engine has ended already, the parent's id
    // differs.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != engine {
            libc::_exit(1);
        }
    }
}

/// Checks whether a stop is requested.
///
/// # Errors
/// Fails if a signal has arrived, or the process at the other end of standard input has ended.
pub fn check() -> Result<(), LoadError> {
    match ASKED.load(Ordering::SeqCst) {
        0 => {}
        libc::SIGINT => return Err(LoadError::stopped("interrupted")),
        libc::SIGTERM => return Err(LoadError::stopped("terminated")),
        _ => return Err(LoadError::stopped("asked to end")),
    }
    hear(Duration::ZERO)
}

/// Waits at most `patience` for input from the calling process.
fn hear(patience: Duration) -> Result<(), LoadError> {
    let mut input = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel gets a pointer to one struct and the count 1.
    if unsafe { libc::poll(&mut input, 1, patience.as_millis() as libc::c_int) } <= 0 {
        return Ok(());
    }
    let mut word = [0u8; GO.len()];
    // SAFETY: the kernel gets the buffer and its length.
    let length = unsafe { libc::read(0, word.as_mut_ptr().cast(), word.len()) };
    if length == GO.len() as isize && word == GO {
        LET_GO.store(true, Ordering::SeqCst);
        return Ok(());
    }
    Err(LoadError::stopped("asked to end"))
}

/// Returns whether the calling process has allowed a start since the last call. Waits for it at most
/// `patience`.
///
/// # Errors
/// Fails like `check`.
pub fn let_go(patience: Duration) -> Result<bool, LoadError> {
    if !LET_GO.load(Ordering::SeqCst) {
        hear(patience)?;
    }
    Ok(LET_GO.swap(false, Ordering::SeqCst))
}
