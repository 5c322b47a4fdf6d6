//! Stops for job control. A key of the terminal stops recorder and program alike. A program that stops
//! itself would leave the recorder waiting in the terminal's foreground, with no prompt: so it stops too.

use super::{Tracer, SECOND};
use crate::backends::ptrace::request;

/// Who goes on together with the recorder has said so by then.
const TOGETHER: i64 = SECOND / 5;

impl Tracer<'_> {
    /// A thread is in a group stop, and stays there.
    pub(super) fn listen(&mut self, slot: usize, tid: u32) {
        self.tasks.get(slot).stopped = true;
        let _ = request::listen(tid);
    }

    /// Stops the recorder if all that it follows stands still. If anything still ran, that might wait for
    /// the recorder, or wake the others.
    pub(super) fn stop_along(&mut self) {
        if !self.filtered || !self.tasks.all_stopped() {
            self.stopped_along = None;
            return;
        }
        match self.stopped_along {
            None if shell_waits() => {
                // SAFETY: stops this process until its shell, which sees that, lets it go on.
                unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
                self.stopped_along = Some(self.clock.now());
            }
            // Only the recorder was told to go on.
            Some(since) if self.now - since > TOGETHER => {
                // SAFETY: the root is traced by us, so the id is its own.
                unsafe { libc::kill(self.root as i32, libc::SIGCONT) };
                self.stopped_along = None;
            }
            _ => {}
        }
    }
}

/// Is this a foreground job of a shell on a terminal?
fn shell_waits() -> bool {
    // SAFETY: a NUL-terminated name; the descriptor is closed again; the others can't fail.
    unsafe {
        let terminal = libc::open(c"/dev/tty".as_ptr(), libc::O_RDONLY | libc::O_NOCTTY | libc::O_CLOEXEC);
        if terminal < 0 {
            return false;
        }
        let foreground = libc::tcgetpgrp(terminal);
        libc::close(terminal);
        foreground == libc::getpgrp() && libc::getsid(0) != libc::getpid()
    }
}
