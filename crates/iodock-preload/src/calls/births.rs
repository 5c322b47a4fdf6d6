//! Who is whose child: the buffers show a fork when its parent has come back from it, and a child when it
//! makes its first step, in any order.

use crate::reader::{CallRecord, Entry};
use iodock_event::constants::CLONE_THREAD;
use iodock_event::{CallId, Fork};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct Births {
    /// Living threads and their processes.
    pub tasks: HashMap<u32, u32>,
    /// What each stream's entries are of now.
    of_stream: HashMap<usize, u32>,
    pub processes: HashSet<u32>,
    /// Children seen before their parent came back from making them.
    early: HashSet<u32>,
}

/// A thread that appears.
pub struct Birth {
    pub tid: u32,
    pub pid: u32,
    pub parent: Option<u32>,
    pub fork: Option<Fork>,
}

pub fn is_fork(call: CallId) -> bool {
    call.spec().family == "fork"
}

/// The fork that this entry is, if it is one that succeeded.
pub fn fork_of(entry: &Entry) -> Option<Fork> {
    let Entry::Call(call) = entry else { return None };
    (call.result > 0 && is_fork(call.call)).then(|| fork(call))
}

fn fork(call: &CallRecord) -> Fork {
    Fork { parent_tid: call.tid, child_tid: call.result as u32, flags: call.flags, call: call.call }
}

impl Births {
    fn add(&mut self, tid: u32, pid: u32) {
        self.tasks.insert(tid, pid);
        self.processes.insert(pid);
    }

    pub fn root(&mut self, pid: u32) {
        self.add(pid, pid);
    }

    /// A fork has returned a child to its parent.
    pub fn forked(&mut self, call: &CallRecord) -> Option<Birth> {
        let child = call.result as u32;
        if self.early.remove(&child) || self.tasks.contains_key(&child) {
            return None;
        }
        let pid = if call.flags & CLONE_THREAD != 0 { call.pid } else { child };
        self.add(child, pid);
        Some(Birth { tid: child, pid, parent: Some(call.tid), fork: Some(fork(call)) })
    }

    /// A thread writes into `stream` from now on. `forks`: those that have not returned yet, by child.
    pub fn appears(
        &mut self,
        stream: usize,
        (tid, pid): (u32, u32),
        forks: &HashMap<u32, Fork>,
    ) -> Option<Birth> {
        let before = self.of_stream.insert(stream, tid);
        if self.tasks.contains_key(&tid) {
            return None;
        }
        let fork = forks.get(&tid).copied();
        // A child of vfork writes into its parent's stream.
        let lender = before.filter(|before| self.tasks.get(before).is_some_and(|&other| other != pid));
        let vfork = || {
            let call = CallId::intern(b"vfork")?;
            Some(Fork { parent_tid: lender?, child_tid: tid, flags: 0, call })
        };
        let fork = fork.or_else(vfork);
        self.add(tid, pid);
        if fork.is_some() {
            self.early.insert(tid);
        }
        Some(Birth { tid, pid, parent: fork.map(|fork| fork.parent_tid), fork })
    }

    /// A process is told of elsewhere from now on.
    pub fn leave(&mut self, pid: u32) {
        self.ended(pid);
    }

    /// It is told of here again.
    pub fn come_back(&mut self, stream: usize, tid: u32, pid: u32) {
        self.of_stream.insert(stream, tid);
        self.add(tid, pid);
    }

    /// A process has ended: its threads.
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
