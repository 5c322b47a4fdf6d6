//! Runs a tool for a source. At the deadline, the agent kills the tool and its children.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval at which the agent checks whether a tool that has closed its output has ended.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
enum State {
    #[default]
    Free,
    Running(Child),
    /// The round is over, and no tool may be started.
    Closed,
}

/// A tool, which the source and the thread that watches the deadline share.
#[derive(Clone, Debug, Default)]
pub struct Tool(Arc<Mutex<State>>);

impl Tool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts `command`. `take` gets the child, to take its pipes. Fails if the tool cannot be started or the
    /// deadline is over.
    pub fn start<T>(&self, command: &mut Command, take: impl FnOnce(&mut Child) -> T) -> io::Result<T> {
        die_with_the_agent(command);
        let mut child = command.process_group(0).spawn()?;
        let taken = take(&mut child);
        let mut state = self.state();
        if matches!(*state, State::Closed) {
            kill(&mut child);
            return Err(io::ErrorKind::TimedOut.into());
        }
        *state = State::Running(child);
        Ok(taken)
    }

    /// Waits for the tool and returns its exit status. Returns `None` if it was killed at the deadline. Call
    /// this after its output has ended.
    pub fn wait(&self) -> Option<ExitStatus> {
        loop {
            match self.status() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => thread::sleep(PAUSE),
                Err(_) => return None,
            }
        }
    }

    /// Returns the exit status if the tool has ended. Fails if no tool is running.
    fn status(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.state();
        let State::Running(child) = &mut *state else { return Err(io::ErrorKind::NotFound.into()) };
        let status = child.try_wait()?;
        if status.is_some() {
            *state = State::Free;
        }
        Ok(status)
    }

    /// Kills a running tool and prevents later starts. It is called at the end of the source's round. It does
    /// not wait, because the kernel may be unable to kill the tool.
    pub fn close(&self) {
        if let State::Running(mut child) = std::mem::replace(&mut *self.state(), State::Closed) {
            // The tool may have ended while its children still run. It was not waited for, so no other
            // process has its id.
            kill(&mut child);
        }
    }
}

/// Kills the tool together with its children.
fn kill(child: &mut Child) {
    // SAFETY: the signal goes to the process group that the child leads. The child was not waited for, so no
    // other group has its id.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    let _ = child.try_wait();
}

/// Makes the kernel kill the tool when the agent ends. Otherwise an agent that ends during the start could
/// not kill it.
fn die_with_the_agent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec this makes only system calls, which are allowed there.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The agent may have ended before prctl was called.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
            Ok(())
        });
    }
}
