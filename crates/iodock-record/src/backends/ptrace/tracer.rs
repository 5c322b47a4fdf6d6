//! The loop: wait for a stop, note it, let the thread go on.

use super::super::{Ended, ProgramExit};
use super::records::Records;
use super::request::{self, CallInfo, OP_ENTRY, OP_EXIT};
use super::tasks::{State, Tasks};
use super::{decode, filter};
use crate::clock::Clock;
use crate::control::{Control, Received};
use crate::process;
use iodock_event::{Action, CallId, ErrnoId, Fork, LossKind, Outcome};
use iodock_journal::JournalWriter;
use std::collections::BTreeSet;
use std::io;

const CLONE_UNTRACED: u64 = 0x0080_0000;
const SECOND: i64 = 1_000_000_000;
/// A signal that reached the program and the recorder within this time is one and the same.
const SAME_SIGNAL: i64 = SECOND / 5;

pub struct Tracer<'a> {
    clock: &'a Clock,
    control: &'a Control,
    calls: Vec<Option<CallId>>,
    tasks: Tasks,
    records: Records<'a>,
    /// Every recorded call of the program stops by the filter; without it every call stops.
    filtered: bool,
    root: u32,
    /// The root's command, until its first stop.
    command: Option<Vec<u8>>,
    /// The root has executed its program.
    launched: bool,
    exec_errno: i32,
    exit: ProgramExit,
    root_ended: bool,
    detaching: bool,
    killed: u32,
    received: Received,
    forward: Option<(i32, i64)>,
    /// The last signal delivered to the root, and when.
    last_signal: (i32, i64),
    warnings: Vec<String>,
    privileged: bool,
    now: i64,
}

impl<'a> Tracer<'a> {
    pub fn new(
        journal: &'a mut JournalWriter,
        clock: &'a Clock,
        control: &'a Control,
        filtered: bool,
    ) -> Self {
        Tracer {
            clock,
            control,
            calls: filter::recorded_calls(),
            tasks: Tasks::new(),
            records: Records::new(journal, control, clock.now()),
            filtered,
            root: 0,
            command: None,
            launched: !filtered,
            exec_errno: 0,
            exit: ProgramExit::Running,
            root_ended: false,
            detaching: false,
            killed: 0,
            received: Received::default(),
            forward: None,
            last_signal: (0, i64::MIN / 2),
            warnings: Vec::new(),
            privileged: crate::launch::is_root(),
            now: clock.now(),
        }
    }

    pub fn add_root(&mut self, pid: u32, command: Vec<u8>) {
        self.root = pid;
        self.command = Some(command);
        self.tasks.add(pid, pid, State::Running);
        crate::control::lock(&self.control.processes).push(pid);
    }

    /// Why the program could not be executed, if that is what happened.
    pub fn exec_error(&self) -> Option<io::Error> {
        (!self.launched && self.exec_errno != 0).then(|| io::Error::from_raw_os_error(self.exec_errno))
    }

    /// Threads that were taken and interrupted: waits until each stands still, notes what they have
    /// open, and lets them go on.
    pub fn attached(&mut self, threads: &BTreeSet<(u32, u32)>) {
        self.root = threads.first().map_or(0, |&(pid, _)| pid);
        let mut stopped = Vec::new();
        for &(pid, tid) in threads {
            if let Some(signal) = first_stop(tid) {
                self.tasks.add(tid, pid, State::Running);
                stopped.push((pid, tid, signal));
            }
        }
        for &(pid, tid, _) in &stopped {
            self.now = self.clock.now();
            self.records.start(tid, pid, None, self.now, pid == tid, true);
            if pid == tid {
                crate::control::lock(&self.control.processes).push(pid);
                self.records.descriptors(pid, 0);
            }
        }
        for (_, tid, signal) in stopped {
            match self.tasks.find(tid) {
                Some(slot) if signal != libc::SIGTRAP => self.listen(slot, tid),
                Some(slot) => self.go(slot, tid, 0),
                None => {}
            }
        }
    }

    /// Until every traced thread has ended or was let go.
    pub fn follow(&mut self) -> Ended {
        loop {
            let mut status = 0;
            // SAFETY: a plain wait. __WNOTHREAD: other threads of this process keep their children.
            let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
            if tid > 0 {
                self.stop(tid as u32, status);
                if self.now - self.records.last_flush >= SECOND {
                    self.tick();
                }
            } else if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
                self.tick();
            } else {
                break;
            }
        }
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

    fn stop(&mut self, tid: u32, status: i32) {
        if !libc::WIFSTOPPED(status) {
            return self.death(tid, status);
        }
        let signal = libc::WSTOPSIG(status);
        let event = status >> 16;
        let Some(slot) = self.tasks.find(tid) else { return self.unexpected(tid) };
        if self.detaching {
            return self.let_go(slot, tid, signal, event);
        }
        match event {
            libc::PTRACE_EVENT_SECCOMP => self.entry(slot, tid),
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

    /// Lets a thread go on. It may have been killed meanwhile: then its end is reported next.
    #[inline]
    fn go(&mut self, slot: usize, tid: u32, signal: i32) {
        let task = self.tasks.get(slot);
        task.fresh = false;
        let in_call = task.state == State::InCall || !self.filtered;
        let _ = if in_call { request::resume_to_call(tid, signal) } else { request::resume(tid, signal) };
    }

    fn listen(&mut self, slot: usize, tid: u32) {
        if self.tasks.get(slot).fresh && self.filtered {
            // A new thread born into a group stop.
            self.tasks.get(slot).fresh = false;
        }
        let _ = request::listen(tid);
    }

    #[inline]
    fn entry(&mut self, slot: usize, tid: u32) {
        match request::call_info(tid) {
            Ok(info) => self.begin(slot, tid, &info),
            Err(_) => self.go(slot, tid, 0),
        }
    }

    /// Without a filter entries and exits both come here.
    #[inline]
    fn call_stop(&mut self, slot: usize, tid: u32) {
        match self.tasks.get(slot).state {
            State::InCall => self.end(slot, tid),
            State::InOtherCall => {
                self.tasks.get(slot).state = State::Running;
                self.go(slot, tid, 0);
            }
            _ if self.filtered => self.go(slot, tid, 0),
            _ => match request::call_info(tid) {
                Ok(info) if info.op == OP_ENTRY => self.begin(slot, tid, &info),
                // The end of a call that began before us.
                _ => self.go(slot, tid, 0),
            },
        }
    }

    #[inline]
    fn begin(&mut self, slot: usize, tid: u32, info: &CallInfo) {
        debug_assert!(info.op != OP_EXIT);
        if self.records.failure.is_some() {
            return self.go(slot, tid, 0);
        }
        let id = match self.calls.get(info.number as usize) {
            Some(&Some(id)) if info.arch == filter::AUDIT_ARCH && !self.anonymous(id, info) => id,
            known => {
                let foreign = info.arch != filter::AUDIT_ARCH || known.is_none();
                self.records.lose(LossKind::ForeignCalls, u64::from(foreign));
                self.tasks.get(slot).state = if self.filtered { State::Running } else { State::InOtherCall };
                return self.go(slot, tid, 0);
            }
        };
        if self.command.is_some() && tid == self.root {
            self.first_call();
        }
        let task = self.tasks.get(slot);
        decode::begin(&mut task.call, id, tid, info);
        let action = id.spec().action;
        if action == Action::Clone && task.call.raw.flags & CLONE_UNTRACED != 0 {
            keep_traced(tid, info);
        }
        task.entered = false;
        self.now = self.clock.now();
        task.call.raw.start = self.now;
        if action == Action::Exit {
            task.call.raw.outcome = Outcome::NoResult;
            self.records.call(slot, &mut self.tasks);
            task_running(&mut self.tasks, slot, self.filtered);
        } else {
            task.state = State::InCall;
            self.records.begun(slot);
        }
        self.go(slot, tid, 0);
    }

    /// mmap without a descriptor; the filter lets those pass.
    #[inline]
    fn anonymous(&self, id: CallId, info: &CallInfo) -> bool {
        !self.filtered && id.spec().action == Action::Map && info.arguments[4] as i32 == -1
    }

    #[inline]
    fn end(&mut self, slot: usize, tid: u32) {
        self.now = self.clock.now();
        let Ok(result) = request::result(tid) else { return };
        let task = self.tasks.get(slot);
        task.state = State::Running;
        decode::end(&mut task.call, tid, result, self.records.losses());
        let raw = &mut task.call.raw;
        raw.duration = self.now - raw.start;
        if (-4095..0).contains(&result) {
            raw.result = -1;
            raw.outcome = Outcome::Failed;
            raw.errno = ErrnoId::from_linux(-result as i32);
        } else {
            raw.result = result;
            raw.outcome = Outcome::Succeeded;
        }
        if !self.launched && tid == self.root && raw.call.spec().action == Action::Exec {
            self.exec_errno = i32::max(-result as i32, 0);
        }
        self.records.call(slot, &mut self.tasks);
        self.go(slot, tid, 0);
    }

    /// The root stands before its exec: what it has from us.
    fn first_call(&mut self) {
        let Some(command) = self.command.take() else { return };
        self.records.root(self.root, &command, self.clock.now());
        // Ours are closed by its exec; it never sees them.
        self.records.descriptors(self.root, iodock_event::constants::O_CLOEXEC);
    }

    fn signal(&mut self, slot: usize, tid: u32, signal: i32) {
        self.now = self.clock.now();
        if self.tasks.get(slot).tgid == self.root {
            self.last_signal = (signal, self.now);
        }
        self.records.signal(signal);
        self.go(slot, tid, signal);
    }

    fn forked(&mut self, slot: usize, tid: u32, event: i32) {
        let child = request::event_message(tid).unwrap_or(0) as u32;
        if child != 0 {
            self.now = self.clock.now();
            self.born(slot, tid, child, event);
        }
        self.go(slot, tid, 0);
    }

    fn born(&mut self, slot: usize, tid: u32, child: u32, event: i32) {
        let task = self.tasks.get(slot);
        let raw = &task.call.raw;
        let (flags, call, in_call) = (raw.flags, raw.call, task.state == State::InCall);
        let shares = in_call && flags & iodock_event::constants::CLONE_THREAD != 0;
        let shares = shares || (!in_call && event == libc::PTRACE_EVENT_CLONE);
        let tgid = if shares { task.tgid } else { child };
        if in_call {
            self.records.enter_all(&mut self.tasks);
            self.records.batch.forks.push(Fork { parent_tid: tid, child_tid: child, flags, call });
        }
        self.records.start(child, tgid, Some(tid), self.now, false, false);
        if tgid == child {
            crate::control::lock(&self.control.processes).push(child);
        }
        match self.tasks.find(child) {
            // It was there first and waits.
            Some(early) => {
                let task = self.tasks.get(early);
                (task.state, task.tgid) = (State::Running, tgid);
                self.go(early, child, 0);
            }
            None => {
                self.tasks.add(child, tgid, State::Running);
            }
        }
    }

    /// A child whose parent's fork is still to be reported: it waits, so that the record begins with
    /// its birth.
    fn unexpected(&mut self, tid: u32) {
        if self.detaching {
            let _ = request::detach(tid, 0);
            return;
        }
        self.tasks.add(tid, tid, State::Unexpected);
    }

    /// Children whose parent was killed before it could report them.
    fn free_orphans(&mut self) {
        let orphans: Vec<u32> =
            self.tasks.iter().filter(|task| task.state == State::Unexpected).map(|task| task.tid).collect();
        for tid in orphans {
            let tgid = process::tgid_of(tid).unwrap_or(tid);
            let Some(slot) = self.tasks.find(tid) else { continue };
            self.records.start(tid, tgid, None, self.now, tid == tgid, false);
            let task = self.tasks.get(slot);
            (task.state, task.tgid) = (State::Running, tgid);
            self.go(slot, tid, 0);
        }
    }

    fn executed(&mut self, slot: usize, tid: u32) {
        self.now = self.clock.now();
        let caller = request::event_message(tid).unwrap_or(u64::from(tid)) as u32;
        let mut slot = slot;
        if caller != tid {
            if let Some(from) = self.tasks.find(caller) {
                slot = self.superseded(slot, from, tid, caller);
            }
        }
        self.launched |= tid == self.root;
        if let Some(rank) = process::rank(tid) {
            self.records.rank(tid, self.now, rank, &mut self.tasks);
        }
        if !self.privileged {
            self.warn_of_privileges(tid);
        }
        self.go(slot, tid, 0);
    }

    /// A thread that is not the leader called exec: it goes on under the leader's id.
    fn superseded(&mut self, leader: usize, caller: usize, tid: u32, caller_tid: u32) -> usize {
        self.abandon_call(leader);
        self.records.superseded(tid, caller_tid, self.now, &mut self.tasks);
        self.records.renamed(caller, leader);
        self.tasks.take_over(caller, leader);
        self.tasks.get(leader).call.raw.tid = tid;
        leader
    }

    fn warn_of_privileges(&mut self, tid: u32) {
        let Ok(path) = std::fs::read_link(format!("/proc/{tid}/exe")) else { return };
        if let Some(what) = crate::launch::privilege(&path) {
            let text = format!("{} is {what} and ran without its privileges; record as root", path.display());
            if !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    fn leaving(&mut self, slot: usize, tid: u32) {
        self.now = self.clock.now();
        let task = self.tasks.get(slot);
        task.leaving = true;
        let tgid = task.tgid;
        self.records.usage(tid, tgid, self.now);
        self.go(slot, tid, 0);
    }

    /// The call in flight never returns.
    fn abandon_call(&mut self, slot: usize) {
        let task = self.tasks.get(slot);
        if task.state == State::InCall {
            task.state = State::Running;
            task.call.raw.outcome = Outcome::NoResult;
            self.records.call(slot, &mut self.tasks);
        }
    }

    fn death(&mut self, tid: u32, status: i32) {
        self.now = self.clock.now();
        let Some(slot) = self.tasks.find(tid) else { return };
        self.abandon_call(slot);
        self.records.ended(tid, status, self.now, &mut self.tasks);
        if self.tasks.get(slot).tgid == tid {
            crate::control::lock(&self.control.processes).retain(|&pid| pid != tid);
        }
        self.tasks.remove(slot);
        if tid == self.root {
            self.root_ended = true;
            self.received = self.control.received();
            self.exit = if libc::WIFSIGNALED(status) {
                ProgramExit::Signal(libc::WTERMSIG(status))
            } else {
                ProgramExit::Code(libc::WEXITSTATUS(status))
            };
        }
    }

    /// Once a second, and whenever there may be news.
    fn tick(&mut self) {
        self.now = self.clock.now();
        self.free_orphans();
        self.records.flush(self.now);
        self.heed_signals();
    }

    fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent || cancelled;
        let keys = received.terminal != self.received.terminal;
        let first = self.received.sent == 0 && received.sent == 1 && !cancelled;
        self.received = received;
        if !self.filtered {
            if asked || keys {
                self.detach();
            }
        } else if self.root_ended {
            if asked || keys {
                self.kill_all();
            }
        } else if asked && first {
            self.forward = Some((received.last_sent, self.now));
        } else if asked {
            self.kill_all();
        }
        self.forward_signal();
    }

    /// A signal sent to the recorder is meant for the program, unless it got it too (a batch system
    /// signals everyone): that shows within a moment.
    fn forward_signal(&mut self) {
        let Some((signal, since)) = self.forward else { return };
        if self.now - since < SAME_SIGNAL {
            return;
        }
        self.forward = None;
        if self.last_signal.0 != signal || (self.last_signal.1 - since).abs() > 2 * SAME_SIGNAL {
            // SAFETY: the root is alive, or a zombie that we have not waited for.
            unsafe { libc::kill(self.root as i32, signal) };
        }
    }

    fn kill_all(&mut self) {
        let processes: BTreeSet<u32> = self.tasks.iter().map(|task| task.tgid).collect();
        self.killed += processes.len() as u32;
        for pid in processes {
            // SAFETY: traced by us, so not yet waited for: the id is theirs.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
    }

    fn detach(&mut self) {
        self.detaching = true;
        self.records.enter_all(&mut self.tasks);
        let tids: Vec<(u32, State)> = self.tasks.iter().map(|task| (task.tid, task.state)).collect();
        for (tid, state) in tids {
            match (state, self.tasks.find(tid)) {
                // Stands still already.
                (State::Unexpected, Some(slot)) => self.let_go(slot, tid, 0, request::EVENT_STOP),
                _ => drop(request::interrupt(tid)),
            }
        }
    }

    fn let_go(&mut self, slot: usize, tid: u32, signal: i32, event: i32) {
        let forked =
            matches!(event, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE);
        if forked {
            let child = request::event_message(tid).unwrap_or(0) as u32;
            if child != 0 && self.tasks.find(child).is_none() {
                self.tasks.add(child, child, State::Running);
            }
        }
        let pending = event == 0 && signal != libc::SIGTRAP | 0x80;
        let _ = request::detach(tid, if pending { signal } else { 0 });
        if self.tasks.get(slot).state == State::InCall {
            self.records.lose(LossKind::UnfinishedAtEnd, 1);
        }
        self.tasks.remove(slot);
    }
}

fn task_running(tasks: &mut Tasks, slot: usize, filtered: bool) {
    tasks.get(slot).state = if filtered { State::Running } else { State::InOtherCall };
}

/// A child outside the trace could not make a single recorded call under the filter, so the flag that
/// asks for that is taken off.
fn keep_traced(tid: u32, info: &CallInfo) {
    const CLONE: u64 = 56;
    let _ = if info.number == CLONE {
        request::set_first_argument(tid, info.arguments[0] & !CLONE_UNTRACED)
    } else {
        request::peek(tid, info.arguments[0])
            .and_then(|flags| request::poke(tid, info.arguments[0], flags & !CLONE_UNTRACED))
    };
}

/// Waits for the stop that PTRACE_INTERRUPT asks for; its signal, or `None` if the thread ended.
fn first_stop(tid: u32) -> Option<i32> {
    loop {
        let mut status = 0;
        // SAFETY: a plain wait for a thread that we trace.
        let waited = unsafe { libc::waitpid(tid as i32, &mut status, libc::__WALL) };
        if waited < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
            continue;
        }
        if waited < 0 || !libc::WIFSTOPPED(status) {
            return None;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        if event == request::EVENT_STOP {
            return Some(signal);
        }
        // Something else came first; the stop that we asked for still comes.
        let _ = request::resume(tid, if event == 0 { signal } else { 0 });
    }
}
