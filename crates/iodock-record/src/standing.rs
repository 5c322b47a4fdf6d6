//! Stops the recorder when the program is stopped by job control. A key of the terminal stops recorder and
//! program together. But a program that stops itself would leave the recorder waiting in the terminal's
//! foreground, where the shell shows no prompt. So the recorder stops, too.

/// Time in ns within which processes that are continued together with the recorder are running again.
const TOGETHER: i64 = 200_000_000;

/// Stops the recorder together with the processes that it records.
#[derive(Default)]
pub struct StopAlong {
    /// Time at which the recorder was continued, after it had stopped because of the program.
    since: Option<i64>,
}

impl StopAlong {
    /// Stops the recorder if needed, or continues the program. Call this periodically. `all_stopped` says
    /// whether all recorded processes are stopped: a process that still runs may wait for the recorder, or
    /// continue the others. `root` is the first process, which was not waited for.
    pub fn heed(&mut self, all_stopped: bool, root: libc::pid_t, now: impl Fn() -> i64) {
        match self.since {
            _ if !all_stopped => self.since = None,
            None if shell_waits() => {
                // SAFETY: kill accesses no memory. It stops this process until its shell continues it.
                unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
                self.since = Some(now());
            }
            // The shell has continued only the recorder, so the recorder continues the program.
            Some(since) if now() - since > TOGETHER => {
                // SAFETY: kill accesses no memory, and the process was not waited for, so its id is still
                // valid.
                unsafe { libc::kill(root, libc::SIGCONT) };
                self.since = None;
            }
            _ => {}
        }
    }
}

/// Returns whether this process is a foreground job of a shell on a terminal.
fn shell_waits() -> bool {
    // SAFETY: the name ends with NUL, the descriptor is closed again, and the other calls access no memory.
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
