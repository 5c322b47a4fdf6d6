//! Runs a tool for a source. At the deadline, the tool and its children are killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval for checking whether a tool that has closed its output has ended.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
enum State {
    #[default]
    Free,
    Running(Child),
    /// No tool may be started any more.
    Closed,
}

/// A tool, shared between the source and the thread that watches its deadline.
#[derive(Clone, Debug, Default)]
pub struct Tool(Arc<Mutex<State>>);

impl Tool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts `command`; `take` gets the child for its pipes. Errors: it cannot be started, or the deadline
    /// is over.
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

    /// Exit status of the tool; `None` if it was killed at the deadline. Call this after its output has
    /// ended.
    pub fn wait(&self) -> Option<ExitStatus> {
        loop {
            match self.status() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => thread::sleep(PAUSE),
                Err(_) => return None,
            }
        }
    }

    /// Errors: no tool is running.
    fn status(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.state();
        let State::Running(child) = &mut *state else { return Err(io::ErrorKind::NotFound.into()) };
        let status = child.try_wait()?;
        if status.is_some() {
            *state = State::Free;
        }
        Ok(status)
    }

    /// Called at the end of the source's round: kills a running tool, and prevents later starts. It does not
    /// wait, since the tool may be unkillable.
    pub fn close(&self) {
        if let State::Running(mut child) = std::mem::replace(&mut *self.state(), State::Closed) {
            // It may have ended while its children still run. It was not waited for, so its number is not
            // reused.
            kill(&mut child);
        }
    }
}

/// Kills it together with its children.
fn kill(child: &mut Child) {
    // SAFETY: sends a signal to the group that the child leads, which is not waited for yet.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    let _ = child.try_wait();
}

/// If the agent ends while the tool is being started, it cannot kill the tool.
fn die_with_the_agent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls that are safe there.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The agent may have ended before.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
            Ok(())
        });
    }
}
