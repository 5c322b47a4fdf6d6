//! Launching a program that the kernel's programs follow, and emptying their buffers until all it started has
//! ended.

use super::allowed::load_refusal;
use super::decode::Decoder;
use super::records::Records;
use crate::backends::{Ended, ProgramExit};
use crate::clock::Clock;
use crate::control::{Control, Received};
use crate::error::{RecordError, Refusal};
use crate::launch::{self, Program, Waiting};
use iodock_bpf::plans::Plans;
use iodock_bpf::programs::{LoadError, Programs};
use iodock_bpf::reader::Reader;
use iodock_event::LossKind;
use iodock_journal::JournalWriter;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// How often the buffers are emptied: at two million calls a second a CPU fills 1 MiB meanwhile.
const PULSE_MS: i32 = 10;
/// A record is in its buffer this long after its time at the latest, but for interrupts; ns.
const STRAGGLER_NS: u64 = 2_000_000;
const SECOND: i64 = 1_000_000_000;

pub fn run(
    program: Program,
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Result<Ended, RecordError> {
    let plans = Plans::of_this_machine();
    let mut programs = Programs::load(&plans.plans).map_err(|error| refused(&error))?;
    let cant_start = |error: io::Error| {
        let message = format!("{} can't be started: {}", program.path.display(), launch::plain(&error));
        RecordError::Refused(Refusal::new(message, "iodock doctor says what this machine allows"))
    };
    let child = launch::fork(&program, &[]).map_err(cant_start)?;
    let pid = child.pid as u32;
    if let Err(error) = programs.attach() {
        child.abandon();
        return Err(refused(&error));
    }
    let mut records = Records::new(journal, control, Decoder::new(&plans, clock.epoch()));
    records.root(pid, &program.command_text(), clock.now());
    programs.follow(pid, pid);
    let following = Following {
        reader: Reader::new(&programs),
        programs: &programs,
        records,
        clock,
        control,
        root: child.pid,
        handle: handle_of(child.pid),
        received: control.received(),
        exit: None,
        killed: 0,
        last_flush: clock.now(),
    };
    following.run(child, &program)
}

fn refused(error: &LoadError) -> RecordError {
    RecordError::Refused(load_refusal(error))
}

/// A descriptor that becomes readable when the process ends; without one we look at every pulse.
fn handle_of(pid: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: gives a new descriptor or fails.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as libc::c_int;
    // SAFETY: ours alone.
    (handle >= 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) })
}

/// Lets this thread run before others when it has something to do: it does little, and a buffer that is not
/// emptied in time loses records. Where that is not allowed it stays as it is.
fn go_first() {
    // SAFETY: a plain structure; 0 is the calling thread. Its children don't inherit it.
    unsafe {
        let lowest = libc::sched_param { sched_priority: libc::sched_get_priority_min(libc::SCHED_RR) };
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &lowest);
    }
}

struct Following<'a> {
    programs: &'a Programs,
    reader: Reader<'a>,
    records: Records<'a>,
    clock: &'a Clock,
    control: &'a Control,
    root: libc::pid_t,
    handle: Option<OwnedFd>,
    received: Received,
    exit: Option<ProgramExit>,
    killed: u32,
    last_flush: i64,
}

impl Following<'_> {
    fn run(mut self, mut child: Waiting, program: &Program) -> Result<Ended, RecordError> {
        go_first();
        child.release();
        while self.exit.is_none() || !self.records.lives.is_empty() {
            self.wait();
            self.heed_signals();
            self.drain(STRAGGLER_NS);
            if self.exit.is_some() && !self.records.lives.is_empty() {
                self.drain(0);
            }
            if self.records.failure.is_none() && self.clock.now() - self.last_flush >= SECOND {
                self.records.flush();
                self.last_flush = self.clock.now();
            }
        }
        self.drain(0);
        if !self.records.launched && self.records.exec_errno != 0 {
            let error = io::Error::from_raw_os_error(self.records.exec_errno);
            return Err(launch::launch_error(&program.path.to_string_lossy(), &error));
        }
        Ok(self.finish())
    }

    /// Until the first process ends, or the next pulse.
    fn wait(&mut self) {
        let mut handle = libc::pollfd {
            fd: self.handle.as_ref().filter(|_| self.exit.is_none()).map_or(-1, |handle| handle.as_raw_fd()),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure to write to.
        unsafe { libc::poll(&mut handle, 1, PULSE_MS) };
        if self.exit.is_some() {
            return;
        }
        let mut status = 0;
        // SAFETY: a plain wait for our own child.
        if unsafe { libc::waitpid(self.root, &mut status, libc::WNOHANG) } == self.root {
            self.exit = Some(if libc::WIFSIGNALED(status) {
                ProgramExit::Signal(libc::WTERMSIG(status))
            } else {
                ProgramExit::Code(libc::WEXITSTATUS(status))
            });
        }
    }

    /// A signal sent to the recorder is meant for the program; a second one, or cancelling, kills it.
    fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent;
        let keys = received.terminal != self.received.terminal;
        let first = received.sent == 1;
        self.received = received;
        if cancelled || (asked && !first) || (self.exit.is_some() && (asked || keys)) {
            for pid in self.records.lives.processes() {
                self.killed += 1;
                // SAFETY: only sends a signal, to a process that the program made.
                unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            }
        } else if asked {
            // SAFETY: our child, not yet waited for.
            unsafe { libc::kill(self.root, received.last_sent) };
        }
    }

    /// Takes all records but those of the last `age` ns.
    fn drain(&mut self, age: u64) {
        let now = (self.clock.now() - self.clock.epoch()) as u64;
        let (reader, records) = (&mut self.reader, &mut self.records);
        records.new_drain();
        reader.drain(now - age, |record, ahead| records.take(record, ahead));
    }

    fn finish(mut self) -> Ended {
        self.records.lose(LossKind::DroppedRecords, self.programs.dropped());
        self.records.lose(LossKind::ForeignCalls, self.programs.foreign());
        self.records.lose(LossKind::UnreachedPrograms, self.programs.untracked());
        self.records.finish();
        Ended {
            exit: self.exit.unwrap_or(ProgramExit::Running),
            failure: self.records.failure.take(),
            losses: std::mem::take(&mut self.records.losses),
            killed: self.killed,
            warnings: Vec::new(),
        }
    }
}
