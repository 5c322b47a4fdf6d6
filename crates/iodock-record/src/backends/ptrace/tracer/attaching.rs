//! Handles threads that were running before the recording. The tracer attaches to them at its beginning and
//! detaches at its end.

use super::Tracer;
use crate::backends::ptrace::request;
use crate::backends::ptrace::taking::{first_stop, Taken};
use crate::backends::ptrace::tasks::State;
use crate::locks::lock;
use iodock_event::LossKind;
use std::collections::BTreeSet;

impl Tracer<'_> {
    /// Waits until each of the threads, which were attached and interrupted, is stopped. Then records their
    /// open files and continues them.
    pub fn attached(&mut self, threads: &BTreeSet<(u32, u32)>) {
        self.root = threads.first().map_or(0, |&(pid, _)| pid);
        let mut stopped = Vec::new();
        for &(pid, tid) in threads {
            if let Taken::Stands(signal) = first_stop(tid) {
                self.tasks.add(tid, pid, State::Running, self.clock.now());
                stopped.push((pid, tid, signal));
            }
        }
        for &(pid, tid, _) in &stopped {
            self.now = self.clock.now();
            self.records.start(tid, pid, None, self.now, pid == tid, true);
            if pid == tid {
                lock(&self.control.processes).push(pid);
                self.records.descriptors(pid, 0);
                self.control.faults.look_at(pid);
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

    pub(super) fn detach(&mut self) {
        self.detaching = true;
        self.records.enter_all(&mut self.tasks);
        let tids: Vec<(u32, State)> = self.tasks.iter().map(|task| (task.tid, task.state)).collect();
        for (tid, state) in tids {
            match (state, self.tasks.find(tid)) {
                // This thread is stopped already.
                (State::Unexpected, Some(slot)) => self.let_go(slot, tid, 0, request::EVENT_STOP),
                _ => drop(request::interrupt(tid)),
            }
        }
    }

    pub(super) fn let_go(&mut self, slot: usize, tid: u32, signal: i32, event: i32) {
        let forked =
            matches!(event, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE);
        if forked {
            let child = request::child_made(tid, event);
            if let Some(child) = child.filter(|&child| self.tasks.find(child).is_none()) {
                self.tasks.add(child, child, State::Running, self.now);
            }
        }
        let pending = event == 0 && signal != libc::SIGTRAP | 0x80;
        if request::detach(tid, if pending { signal } else { 0 }).is_err() {
            // The thread was killed in between. Its end must still be waited for.
            return;
        }
        if self.tasks.get(slot).state == State::InCall {
            self.records.lose(LossKind::UnfinishedAtEnd, 1);
        }
        self.tasks.remove(slot);
    }
}
