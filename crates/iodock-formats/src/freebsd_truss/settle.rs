//! Adds the starts of threads in the order of the log. The first thread of a process gets the process's
//! number, as on Linux.

use crate::runs::Runs;
use iodock_event::{Batch, Record, Start};
use rustc_hash::FxHashMap;

/// The first line of a thread in a chunk, or the end of a process.
#[derive(Clone, Copy, Debug)]
pub struct Appeared {
    /// Index of the record before which the thread appears or the process ends.
    pub index: usize,
    pub pid: u32,
    /// The thread that appears; `None` if the process has ended.
    pub tid: Option<u32>,
}

/// State that the reader carries from chunk to chunk.
#[derive(Default)]
pub struct State {
    /// Process of each thread that has appeared.
    threads: FxHashMap<u32, u32>,
    /// The first thread of each process.
    firsts: FxHashMap<u32, u32>,
    pub runs: Runs,
    pub timed: u64,
    pub untimed: u64,
}

/// Inserts the starts of new threads, and gives first threads the numbers of their processes.
pub fn settle(state: &mut State, appeared: &[Appeared], batch: &mut Batch) {
    if state.firsts.is_empty() && appeared.iter().all(|one| one.tid.is_none()) {
        return;
    }
    let mut renamed: FxHashMap<u32, u32> = state.firsts.iter().map(|(&pid, &tid)| (tid, pid)).collect();
    let mut appeared = appeared.iter().peekable();
    let mut records = Vec::with_capacity(batch.records.len());
    for (index, record) in batch.records.iter().enumerate() {
        while let Some(one) = appeared.next_if(|one| one.index <= index) {
            state.take(one, &mut renamed, &mut records);
        }
        records.extend(with_number(*record, &renamed));
    }
    for one in appeared {
        state.take(one, &mut renamed, &mut records);
    }
    batch.records = records;
    for fork in &mut batch.forks {
        fork.parent_tid = renamed.get(&fork.parent_tid).copied().unwrap_or(fork.parent_tid);
    }
}

impl State {
    fn take(&mut self, one: &Appeared, renamed: &mut FxHashMap<u32, u32>, records: &mut Vec<Record>) {
        let Some(tid) = one.tid else {
            self.threads.retain(|_, pid| *pid != one.pid);
            self.firsts.remove(&one.pid);
            return;
        };
        if self.threads.insert(tid, one.pid) == Some(one.pid) {
            return;
        }
        if *self.firsts.entry(one.pid).or_insert(tid) == tid {
            renamed.insert(tid, one.pid);
        } else {
            renamed.remove(&tid);
            records.push(Record::Start(Start::of_thread(tid, one.pid)));
        }
    }
}

/// Returns the record with its thread's new number. Drops the end of a first thread, because it does not end
/// the process.
fn with_number(record: Record, renamed: &FxHashMap<u32, u32>) -> Option<Record> {
    match record {
        Record::Call(mut raw) => {
            raw.tid = renamed.get(&raw.tid).copied().unwrap_or(raw.tid);
            Some(Record::Call(raw))
        }
        Record::End(end) if renamed.contains_key(&end.tid) => None,
        other => Some(other),
    }
}
