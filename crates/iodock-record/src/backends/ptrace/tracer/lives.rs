//! Threads and processes: how they are born, execute programs, and end.

use super::{Tracer, SECOND};
use crate::backends::ptrace::tasks::State;
use crate::backends::ptrace::{environment, request};
use crate::backends::ProgramExit;
use crate::process;
use iodock_event::{Fork, Outcome};

impl Tracer<'_> {
    pub(super) fn forked(&mut self, slot: usize, tid: u32, event: i32) {
        let child = request::event_message(tid).unwrap_or(0) as u32;
        if child != 0 {
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
                self.tasks.add(child, tgid, State::Running, self.now);
            }
        }
        self.note_company(tid, child, tgid);
    }

    /// Whose use of the machine can be asked for at its end, and whose would hold that of others too.
    fn note_company(&mut self, parent: u32, child: u32, child_tgid: u32) {
        if let Some(slot) = self.tasks.find(child) {
            self.tasks.get(slot).alone = child == child_tgid;
        }
        // A child's use is its maker's once it has waited for it; any thread can.
        let maker = self.tasks.find(parent).map(|slot| self.tasks.get(slot).tgid);
        if let Some(leader) = maker.and_then(|tgid| self.tasks.find(tgid)) {
            self.tasks.get(leader).alone = false;
        }
    }

    /// A child whose parent's fork is still to be reported: it waits, so that the record begins with
    /// its birth.
    pub(super) fn unexpected(&mut self, tid: u32) {
        if self.detaching {
            let _ = request::detach(tid, 0);
            return;
        }
        self.tasks.add(tid, tid, State::Unexpected, self.now);
    }

    /// Children whose parent was killed before it could report them.
    pub(super) fn free_orphans(&mut self) {
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

    /// A thread that is not the leader called exec: it goes on under the leader's id.
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
        if let Some(what) = crate::launch::privilege(&path) {
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
            // Short and simple: four files of /proc would cost more than all else that it is asked.
            task.asked_at_end = true;
            self.asked_at_end += 1;
        } else {
            let tgid = task.tgid;
            self.records.usage(tid, tgid, self.now);
        }
        self.go(slot, tid, 0);
    }

    /// The call in flight never returns.
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
        let Some(slot) = self.tasks.find(tid) else { return };
        self.abandon_call(slot);
        self.records.ended(tid, status, self.now, &mut self.tasks);
        if self.tasks.get(slot).asked_at_end {
            self.asked_at_end -= 1;
            self.records.usage_at_end(tid, &self.usage, self.now);
        }
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
}
