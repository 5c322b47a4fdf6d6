//! Joins the parts that cross the borders of chunks, in the log's order.

use crate::runs::Runs;
use iodock_event::{lwp, Batch, CallId, Phase, Record, Start, UNKNOWN};
use rustc_hash::{FxHashMap, FxHashSet};

/// Value in place of a thread that marks the end of a process, whose number may be used again.
pub const ENDED: u32 = u32::MAX;

/// State that the reader carries from chunk to chunk.
#[derive(Default)]
pub struct State {
    pub known: FxHashSet<u32>,
    pub elapsed: FxHashMap<u32, i64>,
    pub sleeping: FxHashMap<u32, CallId>,
    pub without_stamp: u64,
    pub runs: Runs,
}

/// Returns the starts of threads to announce to the tracker, and their positions. Threads of one process
/// share their descriptors. The tracker must therefore know the process even if its first thread has no line,
/// because truss attached to it or because it is blocked.
pub fn new_threads(known: &mut FxHashSet<u32>, appeared: &[(usize, u32, u32)]) -> Vec<(usize, u32, u32)> {
    let mut new = Vec::new();
    for &(index, tid, pid) in appeared {
        if tid == ENDED {
            known.retain(|&tid| tid != pid && lwp::parts(tid).is_none_or(|(owner, _)| owner != pid));
        } else if known.insert(tid) && tid != pid {
            if known.insert(pid) {
                new.push((index, pid, pid));
            }
            new.push((index, tid, pid));
        }
    }
    new
}

/// Sets the times of a log with `-D` alone, in which a thread's time is the sum of its columns.
pub fn add_elapsed(state: &mut State, sums: &FxHashMap<u32, i64>, batch: &mut Batch) {
    let before = |tid: u32| state.elapsed.get(&tid).copied().unwrap_or(0);
    for record in &mut batch.records {
        match record {
            Record::Call(raw) if raw.end != UNKNOWN => raw.end = raw.end.saturating_add(before(raw.tid)),
            Record::End(end) if end.time != UNKNOWN => end.time = end.time.saturating_add(before(end.tid)),
            _ => {}
        }
    }
    for (&tid, &sum) in sums {
        let total = state.elapsed.entry(tid).or_default();
        *total = total.saturating_add(sum);
    }
}

/// Joins a `(sleeping...)` line and the later line with the result to one call. truss may print the first
/// line several times; only the first of them counts.
pub fn join_sleeping(state: &mut State, batch: &mut Batch, dropped: &mut FxHashSet<usize>) {
    for (index, record) in batch.records.iter_mut().enumerate() {
        let Record::Call(raw) = record else { continue };
        if raw.phase == Phase::Enter {
            if state.sleeping.insert(raw.tid, raw.call) == Some(raw.call) {
                dropped.insert(index);
            }
        } else if state.sleeping.remove(&raw.tid) == Some(raw.call) {
            raw.phase = Phase::Exit;
            batch.counts.resumed += 1;
        }
    }
}

/// Returns the records with starts of new threads inserted and dropped records removed.
pub fn rebuilt(
    records: &[Record],
    appeared: &[(usize, u32, u32)],
    dropped: &FxHashSet<usize>,
) -> Vec<Record> {
    let mut out = Vec::with_capacity(records.len() + appeared.len());
    let mut appeared = appeared.iter().peekable();
    for (index, record) in records.iter().enumerate() {
        while let Some(&&(_, tid, tgid)) = appeared.peek().filter(|&&&(at, ..)| at <= index) {
            out.push(Record::Start(Start::of_thread(tid, tgid)));
            appeared.next();
        }
        if !dropped.contains(&index) {
            out.push(*record);
        }
    }
    out.extend(appeared.map(|&(_, tid, tgid)| Record::Start(Start::of_thread(tid, tgid))));
    out
}
