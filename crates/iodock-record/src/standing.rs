//! Stops for job control. A key of the terminal stops recorder and program together. A program that stops
//! itself would leave the recorder waiting in the terminal's foreground, without a prompt: so the recorder
//! stops, too.

/// Processes that are continued together with the recorder are running again within this time; ns.
const TOGETHER: i64 = 200_000_000;

/// Stops the recorder together with what it records.
#[derive(Default)]
pub struct StopAlong {
    /// Time when the recorder was continued after it had stopped because of the program.
    since: Option<i64>,
}

impl StopAlong {
    /// To be called periodically with whether everything recorded is stopped: if any process still runs, it
    /// might wait for the recorder, or wake the others. `root` is the first process, not yet waited for.
    pub fn heed(&mut self, all_stopped: bool, root: libc::pid_t, now: impl Fn() -> i64) {
        match self.since {
            _ if !all_stopped => self.since = None,
            None if shell_waits() => {
                // SAFETY: stops this process until its shell, which sees that, lets it go on.
                unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
                self.since = Some(now());
            }
            // Only the recorder was continued.
            Some(since) if now() - since > TOGETHER => {
                // SAFETY: the root has not been waited for, so the id is its own.
                unsafe { libc::kill(root, libc::SIGCONT) };
                self.since = None;
            }
            _ => {}
        }
    }
}

/// Whether this is a foreground job of a shell on a terminal.
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
