//! Emptying the kernel's buffers until all that is followed has ended, or a signal asks to stop.

use super::group::Group;
use super::records::Records;
use crate::backends::{Ended, ProgramExit};
use crate::clock::Clock;
use crate::control::{Control, Received};
use crate::process;
use crate::standing::StopAlong;
use iodock_bpf::programs::Programs;
use iodock_bpf::reader::Reader;
use iodock_event::LossKind;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// How often the buffers are emptied: at two million calls a second a CPU fills 1 MiB meanwhile.
const PULSE_MS: i32 = 10;
/// A record is in its buffer this long after its time at the latest, but for interrupts; ns.
const STRAGGLER_NS: u64 = 5_000_000;
const SECOND: i64 = 1_000_000_000;

/// What is followed.
pub enum Purpose {
    /// A child of ours and what it starts; with a descriptor that becomes readable when it ends.
    Launched { root: libc::pid_t, handle: Option<OwnedFd> },
    /// Processes that ran before, and what they start.
    Attached,
    /// Whatever is in a cgroup, until a signal.
    Group(Group),
}

impl Purpose {
    pub fn launched(root: libc::pid_t) -> Purpose {
        // SAFETY: gives a new descriptor or fails.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, root, 0) } as libc::c_int;
        // SAFETY: ours alone.
        let handle = (handle >= 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) });
        Purpose::Launched { root, handle }
    }
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

pub struct Following<'a> {
    programs: &'a Programs,
    reader: Reader<'a>,
    records: Records<'a>,
    clock: &'a Clock,
    control: &'a Control,
    purpose: Purpose,
    received: Received,
    exit: Option<ProgramExit>,
    killed: u32,
    stopped: bool,
    stopping: StopAlong,
    last_flush: i64,
}

impl<'a> Following<'a> {
    pub fn new(
        programs: &'a Programs,
        records: Records<'a>,
        clock: &'a Clock,
        control: &'a Control,
        purpose: Purpose,
    ) -> Self {
        Following {
            reader: Reader::new(programs),
            programs,
            records,
            clock,
            control,
            purpose,
            received: control.received(),
            exit: None,
            killed: 0,
            stopped: false,
            stopping: StopAlong::default(),
            last_flush: clock.now(),
        }
    }

    pub fn run(&mut self) {
        go_first();
        while self.goes_on() {
            self.wait();
            self.heed_signals();
            self.look_for_members();
            self.drain(STRAGGLER_NS);
            if self.exit.is_some() && !self.records.lives.is_empty() {
                self.drain(0);
            }
            if self.clock.now() - self.last_flush >= SECOND {
                self.stop_along();
                self.forget_the_gone();
                self.records.flush();
                self.last_flush = self.clock.now();
            }
        }
        self.drain(0);
    }

    /// Stops the recorder if all that it started stands still.
    fn stop_along(&mut self) {
        let Purpose::Launched { root, .. } = self.purpose else { return };
        if self.exit.is_none() {
            let clock = self.clock;
            let stopped = process::all_stopped(self.records.lives.processes());
            self.stopping.heed(stopped, root, || clock.now());
        }
    }

    fn goes_on(&self) -> bool {
        let living = !self.records.lives.is_empty();
        match self.purpose {
            Purpose::Launched { .. } => self.exit.is_none() || living,
            Purpose::Attached => living && !self.stopped,
            Purpose::Group(_) => !self.stopped,
        }
    }

    /// Until the first process ends, or the next pulse.
    fn wait(&mut self) {
        let handle = match &self.purpose {
            Purpose::Launched { handle: Some(handle), .. } if self.exit.is_none() => handle.as_raw_fd(),
            _ => -1,
        };
        let mut handle = libc::pollfd { fd: handle, events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure to write to.
        unsafe { libc::poll(&mut handle, 1, PULSE_MS) };
        let Purpose::Launched { root, .. } = self.purpose else { return };
        let mut status = 0;
        // SAFETY: a plain wait for our own child.
        if self.exit.is_none() && unsafe { libc::waitpid(root, &mut status, libc::WNOHANG) } == root {
            self.exit = Some(if libc::WIFSIGNALED(status) {
                ProgramExit::Signal(libc::WTERMSIG(status))
            } else {
                ProgramExit::Code(libc::WEXITSTATUS(status))
            });
        }
    }

    /// A signal sent to the recorder is meant for the program; a second one, or cancelling, kills it. What
    /// ran before runs on.
    fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent;
        let keys = received.terminal != self.received.terminal;
        let first = received.sent == 1;
        self.received = received;
        let Purpose::Launched { root, .. } = self.purpose else {
            self.stopped |= asked || keys || cancelled;
            return;
        };
        if cancelled || (asked && !first) || (self.exit.is_some() && (asked || keys)) {
            for pid in self.records.lives.processes() {
                self.killed += 1;
                // SAFETY: only sends a signal, to a process that the program made.
                unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            }
        } else if asked && self.exit.is_none() {
            // SAFETY: our child, not yet waited for.
            unsafe { libc::kill(root, received.last_sent) };
        }
    }

    /// Follows a process that runs already, with all its threads, while it may be making new ones.
    ///
    /// # Errors
    /// It is not there.
    pub fn attach(&mut self, pid: u32) -> io::Result<()> {
        loop {
            let threads = process::threads(pid)?;
            let new: Vec<u32> = threads.into_iter().filter(|&tid| !self.records.lives.has(tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                if self.programs.follow(tid, pid) {
                    self.records.attached(tid, pid, self.clock.now());
                }
            }
        }
    }

    /// Processes that came into the cgroup otherwise than by being born there.
    fn look_for_members(&mut self) {
        let Purpose::Group(group) = &mut self.purpose else { return };
        let new: Vec<u32> = group.members().into_iter().filter(|&pid| !self.records.lives.has(pid)).collect();
        for pid in new {
            // It may have gone already.
            let _ = self.attach(pid);
        }
    }

    /// Tasks that had ended when they were attached to: their end was not seen.
    fn forget_the_gone(&mut self) {
        if matches!(self.purpose, Purpose::Launched { .. }) {
            return;
        }
        let is_gone = |tid: u32, tgid: u32| !Path::new(&format!("/proc/{tgid}/task/{tid}")).exists();
        let gone: Vec<u32> =
            self.records.lives.all().filter(|&(tid, tgid)| is_gone(tid, tgid)).map(|(tid, _)| tid).collect();
        if !gone.is_empty() {
            self.drain(0);
            self.records.gone(&gone, self.clock.now());
        }
    }

    /// Takes all records but those of the last `age` ns.
    fn drain(&mut self, age: u64) {
        let now = (self.clock.now() - self.clock.epoch()) as u64;
        let (reader, records) = (&mut self.reader, &mut self.records);
        records.new_drain();
        reader.drain(now - age, |record, ahead| records.take(record, ahead));
    }

    /// Why the program could not be executed, if that is what happened.
    pub fn exec_error(&self) -> Option<io::Error> {
        let failed = !self.records.launched && self.records.exec_errno != 0;
        failed.then(|| io::Error::from_raw_os_error(self.records.exec_errno))
    }

    pub fn finish(mut self) -> Ended {
        let in_call =
            self.records.lives.all().filter(|&(tid, _)| self.programs.in_call(tid).is_some()).count();
        self.records.lose(LossKind::UnfinishedAtEnd, in_call as u64);
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
