//! The tracer's main loop: wait for a stop, process it, continue the thread.

mod aside;
mod asked;
mod attaching;
mod calls;
mod lives;
mod stopping;

use super::super::{Ended, ProgramExit};
use super::recorded;
use super::records::Records;
use super::request;
use super::tasks::{Stage, State, Tasks};
use crate::clock::Clock;
use crate::control::{Control, Received};
use crate::locks::lock;
use crate::standing::StopAlong;
use iodock_event::CallId;
use iodock_journal::JournalWriter;
use lives::EarlyEnd;
use std::collections::VecDeque;
use std::{io, mem, ptr};

const SECOND: i64 = 1_000_000_000;
const SIGNALS: usize = 65;

pub struct Tracer<'a> {
    clock: &'a Clock,
    control: &'a Control,
    calls: Vec<Option<CallId>>,
    tasks: Tasks,
    records: Records<'a>,
    /// Whether the recorder started the program. Then it passes signals on to it, and its descendants end
    /// with the recording.
    is_ours: bool,
    root: u32,
    /// Command of the first process, until its first stop.
    command: Option<Vec<u8>>,
    /// Whether the first process has executed its program.
    launched: bool,
    exec_errno: i32,
    exit: ProgramExit,
    root_ended: bool,
    /// Number of threads that are about to end and whose usage is read from wait4.
    asked_at_end: u32,
    /// Usage of the last thread that was waited for, if it was requested.
    usage: libc::rusage,
    detaching: bool,
    killed: u32,
    received: Received,
    /// Signals to be passed on to the program, each with the time at which it arrived, in ns.
    forward: Vec<(i32, i64)>,
    /// Time at which each signal was last delivered to the first process, in ns.
    delivered: [i64; SIGNALS],
    stopping: StopAlong,
    /// Whether the tracer attaches to tasks for another back end.
    aside: bool,
    /// Path of the other back end's library. Calls that load it are not recorded.
    library: Vec<u8>,
    /// Stops that were collected and not processed yet, with the task's usage if it was requested.
    stops: VecDeque<(libc::pid_t, libc::c_int, libc::rusage)>,
    early_ends: Vec<EarlyEnd>,
    /// Processes that were created since the other back end was last notified.
    newborn: Vec<u32>,
    warnings: Vec<String>,
    privileged: bool,
    now: i64,
}

impl<'a> Tracer<'a> {
    pub fn new(
        journal: &'a mut JournalWriter,
        clock: &'a Clock,
        control: &'a Control,
        is_ours: bool,
    ) -> Self {
        Tracer {
            clock,
            control,
            calls: recorded::recorded_calls(),
            tasks: Tasks::new(),
            records: Records::new(journal, control, clock.now()),
            is_ours,
            root: 0,
            command: None,
            launched: !is_ours,
            exec_errno: 0,
            exit: ProgramExit::Running,
            root_ended: false,
            asked_at_end: 0,
            // SAFETY: zeroes are a valid rusage.
            usage: unsafe { mem::zeroed() },
            detaching: false,
            killed: 0,
            received: Received::default(),
            forward: Vec::new(),
            delivered: [i64::MIN / 2; SIGNALS],
            stopping: StopAlong::default(),
            aside: false,
            library: Vec::new(),
            stops: VecDeque::new(),
            early_ends: Vec::new(),
            newborn: Vec::new(),
            warnings: Vec::new(),
            privileged: crate::program::is_root(),
            now: clock.now(),
        }
    }

    /// Adds the child that will execute the program. It is stopped.
    pub fn add_root(&mut self, pid: u32, command: Vec<u8>) {
        self.root = pid;
        self.command = Some(command);
        let slot = self.tasks.add(pid, pid, State::Running, self.clock.now());
        lock(&self.control.processes).push(pid);
        self.go(slot, pid, 0);
    }

    /// Returns the reason why the program could not be executed, if there is one.
    pub fn exec_error(&self) -> Option<io::Error> {
        (!self.launched && self.exec_errno != 0).then(|| io::Error::from_raw_os_error(self.exec_errno))
    }

    /// Runs until every traced thread has ended or was detached.
    pub fn follow(&mut self) -> Ended {
        while self.one_stop() {}
        self.finished()
    }

    /// Waits for the next stop or end of any thread, or for a signal, and processes it. Returns false if no
    /// thread is left.
    fn one_stop(&mut self) -> bool {
        let (tid, status) = self.next_stop();
        if tid > 0 {
            self.stop(tid as u32, status);
            if self.now - self.records.last_flush >= SECOND {
                self.tick();
            }
        } else if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
            self.tick();
        } else {
            return false;
        }
        true
    }

    fn next_stop(&mut self) -> (libc::pid_t, libc::c_int) {
        if !self.aside {
            return self.wait(0);
        }
        if self.stops.is_empty() {
            let first = self.wait(0);
            if first.0 <= 0 || self.tasks.count() < 2 {
                return first;
            }
            self.stops.push_back((first.0, first.1, self.usage));
            self.collect();
        }
        let Some((tid, status, usage)) = self.stops.pop_front() else { return (0, 0) };
        self.usage = usage;
        (tid, status)
    }

    /// Collects the stops of all threads, so that each has its turn. Otherwise the kernel would report the
    /// same few threads repeatedly, if they stop at every call. Returns false if nothing is traced.
    fn collect(&mut self) -> bool {
        loop {
            let (tid, status) = self.wait(libc::WNOHANG);
            if tid <= 0 {
                return tid == 0;
            }
            self.stops.push_back((tid, status, self.usage));
        }
    }

    fn finished(&mut self) -> Ended {
        self.now = self.clock.now();
        self.records.finish(self.now);
        Ended {
            exit: self.exit,
            failure: self.records.failure.take(),
            losses: std::mem::take(&mut self.records.all_losses),
            killed: self.killed,
            warnings: std::mem::take(&mut self.warnings),
        }
    }

    /// Returns the next stop or end of any thread. It requests usage only while a thread is about to end,
    /// because the kernel would compute it at every stop.
    #[inline]
    fn wait(&mut self, how: libc::c_int) -> (libc::pid_t, libc::c_int) {
        let usage = if self.asked_at_end > 0 { ptr::addr_of_mut!(self.usage) } else { ptr::null_mut() };
        let mut status = 0;
        // SAFETY: wait4 writes only to `status` and `usage`. With __WNOTHREAD, it leaves children of other
        // threads alone.
        let tid = unsafe { libc::wait4(-1, &mut status, libc::__WALL | libc::__WNOTHREAD | how, usage) };
        (tid, status)
    }

    fn stop(&mut self, tid: u32, status: i32) {
        if !libc::WIFSTOPPED(status) {
            return self.death(tid, status);
        }
        let signal = libc::WSTOPSIG(status);
        let event = status >> 16;
        let known = self.tasks.find(tid).or_else(|| self.leader_of_exec(tid, event));
        let Some(slot) = known else { return self.unexpected(tid, event) };
        if self.detaching || (event == request::EVENT_STOP && self.tasks.get(slot).stage == Stage::Leaving) {
            return self.let_go(slot, tid, signal, event);
        }
        match event {
            0 if signal == libc::SIGTRAP | 0x80 => self.call_stop(slot, tid),
            0 => self.signal(slot, tid, signal),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.forked(slot, tid, event)
            }
            libc::PTRACE_EVENT_EXEC => self.executed(slot, tid),
            libc::PTRACE_EVENT_EXIT => self.leaving(slot, tid),
            request::EVENT_STOP if signal != libc::SIGTRAP => self.listen(slot, tid),
            _ => self.go(slot, tid, 0),
        }
    }

    /// Continues a thread. If this fails, the thread was killed, and its end is reported next.
    #[inline]
    fn go(&mut self, slot: usize, tid: u32, signal: i32) {
        self.tasks.get(slot).stopped = false;
        let _ = request::resume_to_call(tid, signal);
    }

    fn signal(&mut self, slot: usize, tid: u32, signal: i32) {
        self.now = self.clock.now();
        if self.tasks.get(slot).tgid == self.root {
            self.delivered[signal as usize % SIGNALS] = self.now;
        }
        self.records.signal(signal);
        self.go(slot, tid, signal);
    }

    /// Runs once a second, and after each wake-up signal.
    fn tick(&mut self) {
        self.now = self.clock.now();
        self.free_orphans();
        // When the tracer serves another back end, it is woken often, so it flushes at most once a second.
        if !self.aside || self.now - self.records.last_flush >= SECOND {
            self.records.flush(self.now);
        }
        if !self.aside {
            self.heed_signals();
            self.stop_along();
        }
    }
}
