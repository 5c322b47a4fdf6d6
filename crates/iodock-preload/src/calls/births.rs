//! Finds the parents of threads. The chunks contain a fork after it has returned to the parent, and a child
//! from its first call on, in any order. The system reuses ids, so a thread is identified by its id and the
//! fork that created it.

use crate::reader::{CallRecord, Entry};
use iodock_event::constants::CLONE_THREAD;
use iodock_event::{CallId, Fork};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct Births {
    /// Running threads and their processes.
    pub tasks: HashMap<u32, u32>,
    /// The task that currently writes to each stream.
    of_stream: HashMap<usize, u32>,
    pub processes: HashSet<u32>,
    /// Children whose first entry came before their parent's fork, with that parent. The child may have ended
    /// since.
    early: HashSet<(u32, u32)>,
    /// Threads whose parent was unknown when they appeared, and the time of that.
    orphans: HashMap<u32, u64>,
}

/// A successful fork.
#[derive(Clone, Copy)]
pub struct ForkCall {
    pub fork: Fork,
    /// Start of the fork, in units of the session's clock.
    pub start: u64,
}

/// A thread whose first entry was read.
pub struct Birth {
    pub tid: u32,
    pub pid: u32,
    pub parent: Option<u32>,
    pub fork: Option<Fork>,
}

pub fn is_fork(call: CallId) -> bool {
    call.spec().family == "fork"
}

/// Returns the fork in this entry, if the entry is a successful fork.
pub fn fork_of(entry: &Entry) -> Option<ForkCall> {
    let Entry::Call(call) = entry else { return None };
    fork_call(call)
}

pub fn fork_call(call: &CallRecord) -> Option<ForkCall> {
    let CallRecord { tid, result, flags, start, call, .. } = *call;
    let fork = || Fork { parent_tid: tid, child_tid: result as u32, flags, call };
    (result > 0 && is_fork(call)).then(|| ForkCall { fork: fork(), start })
}

impl Births {
    fn add(&mut self, tid: u32, pid: u32) {
        self.tasks.insert(tid, pid);
        self.processes.insert(pid);
    }

    pub fn root(&mut self, pid: u32) {
        self.add(pid, pid);
    }

    /// Whether the fork has created a new thread with the id of a known thread, which then has ended.
    pub fn is_used_again(&self, ForkCall { fork, start }: ForkCall) -> bool {
        let child = fork.child_tid;
        let is_its_child = || {
            let appeared = self.orphans.get(&child);
            self.early.contains(&(child, fork.parent_tid)) || appeared.is_some_and(|&time| time > start)
        };
        self.tasks.contains_key(&child) && !is_its_child()
    }

    /// Called for a fork that has returned to its parent, a thread of `pid`. Returns the child's birth unless
    /// the child has appeared before.
    pub fn forked(&mut self, pid: u32, ForkCall { fork, start }: ForkCall) -> Option<Birth> {
        let (child, parent) = (fork.child_tid, fork.parent_tid);
        let was_orphan = self.orphans.remove(&child).is_some_and(|time| time > start);
        if self.early.remove(&(child, parent)) || was_orphan {
            return None;
        }
        let pid = if fork.flags & CLONE_THREAD != 0 { pid } else { child };
        self.add(child, pid);
        Some(Birth { tid: child, pid, parent: Some(parent), fork: Some(fork) })
    }

    /// Returns the task that has written to `stream` so far, if it belongs to a process other than `pid`. A
    /// child of vfork writes to its parent's stream, so one of the two processes is the other's child.
    pub fn lender(&self, stream: usize, pid: u32) -> Option<u32> {
        let before = self.of_stream.get(&stream)?;
        self.tasks.get(before).filter(|&&other| other != pid).map(|_| *before)
    }

    /// Called when a thread writes to `stream` from `time` on. `fork` is the fork that creates the thread and
    /// has not returned yet. Returns the thread's birth if its id is not known.
    pub fn appears(
        &mut self,
        stream: usize,
        (tid, pid): (u32, u32),
        time: u64,
        fork: Option<Fork>,
    ) -> Option<Birth> {
        let lender = self.lender(stream, pid);
        self.of_stream.insert(stream, tid);
        if self.tasks.contains_key(&tid) {
            return None;
        }
        let vfork = || {
            let call = CallId::intern(b"vfork")?;
            Some(Fork { parent_tid: lender?, child_tid: tid, flags: 0, call })
        };
        let fork = fork.or_else(vfork);
        self.add(tid, pid);
        match fork {
            Some(fork) => drop(self.early.insert((tid, fork.parent_tid))),
            None => drop(self.orphans.insert(tid, time)),
        }
        Some(Birth { tid, pid, parent: fork.map(|fork| fork.parent_tid), fork })
    }

    /// Called when another back end records the process from now on.
    pub fn leave(&mut self, pid: u32) {
        self.ended(pid);
    }

    /// Called when this back end records the process again.
    pub fn come_back(&mut self, stream: usize, tid: u32, pid: u32) {
        self.of_stream.insert(stream, tid);
        self.add(tid, pid);
    }

    /// Removes a process that has ended. Returns its threads, the first thread last.
    pub fn ended(&mut self, pid: u32) -> Vec<u32> {
        self.processes.remove(&pid);
        let mut tids: Vec<u32> =
            self.tasks.iter().filter(|(_, &of)| of == pid).map(|(&tid, _)| tid).collect();
        tids.sort_unstable_by_key(|&tid| (tid == pid, tid));
        for tid in &tids {
            self.tasks.remove(tid);
        }
        tids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: u32 = 5;
    const CHILD: u32 = 9;

    fn fork_at(start: u64) -> ForkCall {
        let call = CallId::intern(b"fork").expect("a call");
        ForkCall { fork: Fork { parent_tid: PARENT, child_tid: CHILD, flags: 0, call }, start }
    }

    fn births() -> Births {
        let mut births = Births::default();
        births.root(PARENT);
        births
    }

    #[test]
    fn a_later_fork_may_reuse_the_id_of_a_child() {
        let mut births = births();
        assert!(!births.is_used_again(fork_at(10)));
        assert!(births.forked(PARENT, fork_at(10)).is_some());
        assert!(births.is_used_again(fork_at(20)));
        births.ended(CHILD);
        assert!(!births.is_used_again(fork_at(20)));
        assert!(births.forked(PARENT, fork_at(20)).is_some());
    }

    #[test]
    fn a_child_seen_before_its_fork_returns_is_counted_once() {
        let mut births = births();
        assert!(births.appears(1, (CHILD, CHILD), 11, Some(fork_at(10).fork)).is_some());
        assert!(!births.is_used_again(fork_at(10)));
        // The child may even have ended before its parent's fork returns.
        births.ended(CHILD);
        assert!(births.forked(PARENT, fork_at(10)).is_none());
        assert!(births.appears(2, (CHILD, CHILD), 21, Some(fork_at(20).fork)).is_some());
        assert!(births.forked(PARENT, fork_at(20)).is_none());
        assert!(births.is_used_again(fork_at(30)));
    }

    #[test]
    fn an_orphan_is_the_child_of_a_fork_that_began_before_it_appeared() {
        let mut births = births();
        assert!(births.appears(1, (CHILD, CHILD), 11, None).is_some());
        assert!(births.is_used_again(fork_at(12)));
        assert!(!births.is_used_again(fork_at(10)));
        assert!(births.forked(PARENT, fork_at(10)).is_none());
        assert!(births.is_used_again(fork_at(12)));
    }
}
