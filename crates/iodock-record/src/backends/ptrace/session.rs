//! Begins a trace: starts a program, or attaches to running ones.

use super::super::{Ended, Target};
use super::request;
use super::requests::Requests;
use super::taking::{first_stop, Taken};
use super::tracer::Tracer;
use crate::clock::Clock;
use crate::control::Control;
use crate::error::{launch_error, plain, RecordError, Refusal};
use crate::launch;
use crate::process;
use crate::program::Program;
use iodock_journal::JournalWriter;
use std::collections::BTreeSet;
use std::io;

pub fn run(
    target: Target,
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Result<Ended, RecordError> {
    match target {
        Target::Launch(program) => launch(&program, Tracer::new(journal, clock, control, true)),
        Target::Attach(pids) => attach(&pids, Tracer::new(journal, clock, control, false)),
        Target::Group(_) => Err(super::super::no_groups()),
    }
}

/// Traces threads for another back end as `requests` say, until they are closed. `root` is the first process,
/// whose end is reported if it is among the traced tasks. Runs on a separate thread.
pub fn serve(
    requests: &Requests,
    root: u32,
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Ended {
    crate::control::hear_wake_only();
    requests.adopt();
    let _end = Leaving(requests);
    Tracer::new(journal, clock, control, false).serve(requests, root)
}

/// Refuses all further requests when it is dropped, even after an error.
struct Leaving<'a>(&'a Requests);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.refuse();
        self.0.leave();
    }
}

fn launch(program: &Program, mut tracer: Tracer) -> Result<Ended, RecordError> {
    let cant_start = |error: io::Error| {
        let message = format!("{} can't be started: {}", program.path.display(), plain(&error));
        RecordError::Refused(Refusal::new(message, "iodock doctor says what this machine allows"))
    };
    let mut child = launch::fork(program).map_err(cant_start)?;
    let pid = child.pid as u32;
    // PTRACE_O_EXITKILL is not set, so that the program survives a recorder that is killed.
    if let Err(error) = request::seize(pid, request::OPTIONS) {
        let refusal = seize_refusal(pid, &error);
        child.abandon();
        return Err(RecordError::Refused(refusal));
    }
    // A task stops at calls only after a first stop.
    let _ = request::interrupt(pid);
    if !matches!(first_stop(pid), Taken::Stands(_)) {
        return Err(cant_start(io::Error::other("it was killed before it began")));
    }
    tracer.add_root(pid, program.command_text());
    child.release();
    let ended = tracer.follow();
    if let Some(error) = tracer.exec_error() {
        return Err(launch_error(&program.path.to_string_lossy(), &error));
    }
    match child.failure() {
        Some(error) => Err(cant_start(error)),
        None => Ok(ended),
    }
}

/// Attaches to all threads of the processes. This is repeated until their lists contain no new thread,
/// because the threads may create others at the same time.
fn attach(pids: &[u32], mut tracer: Tracer) -> Result<Ended, RecordError> {
    let mut seized = BTreeSet::new();
    for &pid in pids {
        if let Err(refusal) = seize_all(pid, &mut seized) {
            for &(_, tid) in &seized {
                release(tid);
            }
            return Err(RecordError::Refused(refusal));
        }
    }
    tracer.attached(&seized);
    Ok(tracer.follow())
}

fn seize_all(pid: u32, seized: &mut BTreeSet<(u32, u32)>) -> Result<(), Refusal> {
    loop {
        let mut found_new = false;
        for tid in process::threads(pid).map_err(|error| seize_refusal(pid, &error))? {
            if seized.contains(&(pid, tid)) {
                continue;
            }
            match request::seize(tid, request::OPTIONS) {
                Ok(()) => {}
                // The thread has ended, or its parent is traced, so that it is traced already.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && tid != pid => continue,
                Err(_) if process::tracer_of(tid) == Some(own_thread()) => continue,
                Err(error) => return Err(seize_refusal(pid, &error)),
            }
            // This fails only if the thread has ended, which the later wait shows.
            let _ = request::interrupt(tid);
            seized.insert((pid, tid));
            found_new = true;
        }
        if !found_new {
            return Ok(());
        }
    }
}

fn own_thread() -> u32 {
    // SAFETY: gettid has no arguments and can't fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Detaches from a thread that was attached and interrupted.
fn release(tid: u32) {
    let mut status = 0;
    // SAFETY: waitpid writes only to `status`, and the recorder has interrupted this thread.
    let stopped = unsafe { libc::waitpid(tid as i32, &mut status, libc::__WALL) } == tid as i32;
    if stopped && libc::WIFSTOPPED(status) {
        let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
        let _ = request::detach(tid, signal);
    }
}

/// Returns the reason why a process can't be traced.
fn seize_refusal(pid: u32, error: &io::Error) -> Refusal {
    if let Some(tracer) = process::tracer_of(pid).filter(|&tracer| tracer != 0) {
        return Refusal::new(
            format!("process {pid} is being traced already, by process {tracer} (a debugger, strace, another recorder)"),
            "a process has one tracer at a time: end that one first, or start iodock outside of it",
        );
    }
    if process::is_zombie(pid) {
        return Refusal::new(
            format!("process {pid} has ended already, and its parent has not waited for it"),
            "ps -e lists the processes that run",
        );
    }
    if process::is_of_kernel(pid) {
        return Refusal::new(
            format!("process {pid} is a thread of the kernel, which makes no calls"),
            "ps -e lists the processes that run",
        );
    }
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => {
            Refusal::new(format!("there is no process {pid}"), "ps -e lists the processes that run")
        }
        _ => crate::doctor::ptrace_refusal().unwrap_or_else(|| {
            Refusal::new(
                format!("process {pid} may not be traced: {}", plain(error)),
                "it belongs to another user, is privileged, or /proc/sys/kernel/yama/ptrace_scope forbids it: \
                 start it with iodock record, or attach as root",
            )
        }),
    }
}
