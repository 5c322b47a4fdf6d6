//! Handles the creation, execs and ends of threads and processes.

use super::{Tracer, SECOND};
use crate::backends::ptrace::tasks::{Stage, State, Task};
use crate::backends::ptrace::{environment, request};
use crate::backends::ProgramExit;
use crate::locks::lock;
use crate::process;
use iodock_event::{Fork, Outcome};

/// Longest time in ns that a child waits for the report of its fork, if its parent is alive.
const MOST_WAIT: i64 = 10 * SECOND;

/// End of a child whose fork has not been reported yet.
pub struct EarlyEnd {
    tid: u32,
    status: i32,
    time: i64,
}

impl Tracer<'_> {
    pub(super) fn forked(&mut self, slot: usize, tid: u32, event: i32) {
        if let Some(child) = request::child_made(tid, event) {
            self.now = self.clock.now();
            self.born(slot, tid, child, event);
        }
        self.go(slot, tid, 0);
    }

    pub(super) fn born(&mut self, slot: usize, tid: u32, child: u32, event: i32) {
        let task = self.tasks.get(slot);
        let raw = &task.call.raw;
        let (flags, call, in_call) = (raw.flags, raw.call, task.state == State::InCall);
        let shares = in_call && flags & iodock_event::constants::CLONE_THREAD != 0;
        let shares = shares || (!in_call && event == libc::PTRACE_EVENT_CLONE);
        let tgid = if shares { task.tgid } else { child };
        if matches!(task.stage, Stage::Taken | Stage::Told | Stage::Leaving) {
            return self.born_aside(child, tgid);
        }
        if in_call {
            self.records.enter_all(&mut self.tasks);
            self.records.batch.forks.push(Fork { parent_tid: tid, child_tid: child, flags, call });
        }
        self.records.start(child, tgid, Some(tid), self.now, false, false);
        if tgid == child {
            self.process_born(child);
        }
        if let Some(at) = self.early_ends.iter().position(|end| end.tid == child) {
            let end = self.early_ends.swap_remove(at);
            self.records.ended(child, end.status, self.now, &mut self.tasks);
            return self.note_company(tid, child, tgid);
        }
        match self.tasks.find(child) {
            // The child has stopped before the fork was reported, and waits.
            Some(early) => {
                let task = self.tasks.get(early);
                (task.state, task.tgid) = (State::Running, tgid);
                self.go(early, child, 0);
            }
            None => {
                self.tasks.add(child, tgid, State::Running, self.now);
            }
        }
        self.note_company(tid, child, tgid);
    }

    fn process_born(&mut self, pid: u32) {
        lock(&self.control.processes).push(pid);
        if self.aside {
            self.newborn.push(pid);
        }
    }

    /// Handles a child of a signal handler, which the other back end records. The tracer detaches as soon as
    /// it stops.
    fn born_aside(&mut self, child: u32, tgid: u32) {
        match self.tasks.find(child) {
            Some(early) => self.hand_back(early, child),
            None => {
                let slot = self.tasks.add(child, tgid, State::Running, self.now);
                self.tasks.get(slot).stage = Stage::Leaving;
            }
        }
    }

    /// Marks tasks for which wait4 reports exactly their own usage, because they have no children and no
    /// other threads.
    fn note_company(&mut self, parent: u32, child: u32, child_tgid: u32) {
        if let Some(slot) = self.tasks.find(child) {
            self.tasks.get(slot).alone = child == child_tgid;
        }
        // A process's usage includes that of children that it has waited for, and any of its threads may
        // wait.
        let maker = self.tasks.find(parent).map(|slot| self.tasks.get(slot).tgid);
        if let Some(leader) = maker.and_then(|tgid| self.tasks.find(tgid)) {
            self.tasks.get(leader).alone = false;
        }
    }

    /// Holds a child whose parent's fork is not reported yet, so that its creation is recorded first.
    pub(super) fn unexpected(&mut self, tid: u32, event: i32) {
        if self.detaching {
            let _ = request::detach(tid, 0);
            return;
        }
        self.now = self.clock.now();
        self.early_ends.retain(|end| end.tid != tid);
        let slot = self.tasks.add(tid, tid, State::Unexpected, self.now);
        if event == libc::PTRACE_EVENT_EXIT {
            // The child was killed before its first stop. It continues immediately, because its process can't
            // end before the child has ended.
            self.go(slot, tid, 0);
        }
        if self.aside {
            // The task's parent may have ended. Then only this entry shows the other back end that the task
            // exists.
            self.newborn.push(process::tgid_of(tid).unwrap_or(tid));
        }
    }

    /// Releases children whose parent was killed before the fork was reported. For other children the report
    /// will come soon.
    pub(super) fn free_orphans(&mut self) {
        let since = self.now - SECOND;
        let kept = self.now - MOST_WAIT;
        self.early_ends.retain(|end| end.time > kept);
        let waits = |task: &&Task| task.state == State::Unexpected && task.born <= since;
        let orphans: Vec<u32> = self.tasks.iter().filter(waits).map(|task| task.tid).collect();
        for tid in orphans {
            let tgid = process::tgid_of(tid).unwrap_or(tid);
            let Some(slot) = self.tasks.find(tid) else { continue };
            if self.may_be_reported(slot, tid) {
                continue;
            }
            self.records.start(tid, tgid, None, self.now, tid == tgid, false);
            if tid == tgid {
                self.process_born(tid);
            }
            let task = self.tasks.get(slot);
            (task.state, task.tgid) = (State::Running, tgid);
            self.go(slot, tid, 0);
        }
    }

    /// Returns whether the fork may still be reported: on an overloaded machine this may take long.
    fn may_be_reported(&mut self, slot: usize, tid: u32) -> bool {
        let tgid = process::tgid_of(tid).unwrap_or(tid);
        let maker = if tgid == tid { process::status_field(tid, "PPid:") } else { Some(tgid) };
        let waited = self.now - self.tasks.get(slot).born;
        // With CLONE_PARENT the parent is not the creator, which may have ended. So the waiting time is
        // limited.
        waited < MOST_WAIT && self.tasks.iter().any(|task| Some(task.tgid) == maker)
    }

    pub(super) fn executed(&mut self, slot: usize, tid: u32) {
        self.now = self.clock.now();
        let caller = request::event_message(tid).unwrap_or(u64::from(tid)) as u32;
        let mut slot = slot;
        if caller != tid {
            if let Some(from) = self.tasks.find(caller) {
                slot = self.superseded(slot, from, tid, caller);
            }
        }
        self.launched |= tid == self.root;
        if let Some(rank) = environment::rank(tid) {
            self.records.rank(tid, self.now, rank, &mut self.tasks);
        }
        if !self.privileged {
            self.warn_of_privileges(tid);
        }
        self.go(slot, tid, 0);
    }

    /// Handles an exec by a thread other than the leader. It continues under the leader's id.
    pub(super) fn superseded(&mut self, leader: usize, caller: usize, tid: u32, caller_tid: u32) -> usize {
        self.abandon_call(leader);
        self.records.superseded(tid, caller_tid, self.now, &mut self.tasks);
        self.records.renamed(caller, leader);
        self.tasks.take_over(caller, leader);
        self.tasks.get(leader).call.raw.tid = tid;
        leader
    }

    pub(super) fn warn_of_privileges(&mut self, tid: u32) {
        let Ok(path) = std::fs::read_link(format!("/proc/{tid}/exe")) else { return };
        if let Some(what) = crate::program::privilege(&path) {
            let text = format!("{} is {what} and ran without its privileges; record as root", path.display());
            if !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    pub(super) fn leaving(&mut self, slot: usize, tid: u32) {
        self.now = self.clock.now();
        let task = self.tasks.get(slot);
        if task.alone && self.now - task.born < SECOND {
            // The task ran only for a short time and alone. Reading four files of /proc would take longer
            // than all other work for it, so its usage is read from wait4.
            task.asked_at_end = true;
            self.asked_at_end += 1;
        } else {
            let tgid = task.tgid;
            self.records.usage(tid, tgid, self.now);
        }
        self.go(slot, tid, 0);
    }

    /// Records the call in flight, which never returns.
    pub(super) fn abandon_call(&mut self, slot: usize) {
        let task = self.tasks.get(slot);
        if task.state == State::InCall {
            task.state = State::Running;
            task.call.raw.outcome = Outcome::NoResult;
            self.records.call(slot, &mut self.tasks);
        }
    }

    pub(super) fn death(&mut self, tid: u32, status: i32) {
        self.now = self.clock.now();
        self.note_exit(tid, status);
        let renamed = self.end_others(tid, status);
        let Some(slot) = self.tasks.find(tid) else {
            return if renamed {
                self.records.ended(tid, status, self.now, &mut self.tasks)
            } else {
                self.ended_early(tid, status)
            };
        };
        let task = self.tasks.get(slot);
        if task.state == State::Unexpected {
            self.tasks.remove(slot);
            return self.ended_early(tid, status);
        }
        // The other back end reports this end, unless the task is inside its exec.
        let is_ours = task.state == State::InCall || !matches!(task.stage, Stage::Taken | Stage::Told);
        self.abandon_call(slot);
        if is_ours {
            self.records.ended(tid, status, self.now, &mut self.tasks);
        }
        if self.tasks.get(slot).asked_at_end {
            self.asked_at_end -= 1;
            self.records.usage_at_end(tid, &self.usage, self.now);
        }
        if self.tasks.get(slot).tgid == tid {
            lock(&self.control.processes).retain(|&pid| pid != tid);
        }
        self.tasks.remove(slot);
    }

    /// Ends the other threads of a process. Each thread's end is reported, except that of a thread that was
    /// killed during an exec: it has its process's id then. Returns whether there were such threads.
    fn end_others(&mut self, tgid: u32, status: i32) -> bool {
        let is_other = |task: &&Task| task.tgid == tgid && task.tid != tgid;
        let others: Vec<u32> = self.tasks.iter().filter(is_other).map(|task| task.tid).collect();
        for &tid in &others {
            let Some(slot) = self.tasks.find(tid) else { continue };
            self.abandon_call(slot);
            self.records.ended(tid, status, self.now, &mut self.tasks);
            self.asked_at_end -= u32::from(self.tasks.get(slot).asked_at_end);
            self.tasks.remove(slot);
        }
        !others.is_empty()
    }

    /// Stores the end of a child that was killed before its fork was reported. Otherwise the child would
    /// appear to run after the report.
    fn ended_early(&mut self, tid: u32, status: i32) {
        if !self.detaching {
            self.early_ends.push(EarlyEnd { tid, status, time: self.now });
        }
    }

    /// Stores how the first process ended. No other thread can wait for it any more.
    pub(super) fn note_exit(&mut self, tid: u32, status: i32) {
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
}
