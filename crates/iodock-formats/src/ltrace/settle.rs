//! Joins the parts of calls that span several lines or chunks, in the order of the log.

use super::arguments::{fill, fill_begun};
use super::stamps::{Timeline, Times};
use crate::runs::{Order, RecordLines, Runs};
use crate::Chunk;
use iodock_event::constants::{CLONE_FILES, CLONE_FS, CLONE_THREAD, CLONE_VFORK, CLONE_VM};
use iodock_event::{Action, Batch, CallId, Clock, Fork, LossKind, Outcome, Phase, RawCall, Record, UNKNOWN};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The order of lines. A single ltrace process prints all lines, but it measures durations and the times
/// before lines at slightly different moments.
const ORDER: Order = Order { by_thread: false, jitter: 10_000_000 };
/// Thread id that records get if their lines show none.
pub const BARE: u32 = 0;
const THREAD: u64 = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_THREAD;
/// Names of the first call of a new glibc thread. Other children of clone3 do not begin with these calls.
const FIRST_OF_THREAD: [&str; 2] = ["rseq", "set_robust_list"];

/// Data about a chunk that `parse` passes to `settle`.
#[derive(Default)]
pub struct Notes {
    pub crossings: Vec<Crossing>,
    /// The first call of each thread in this chunk, and whether a call is still open.
    pub threads: FxHashMap<u32, Thread>,
    /// Records of clone3, whose flags ltrace does not show.
    pub without_flags: Vec<usize>,
    pub times: Times,
    pub places: RecordLines,
}

/// State of a thread at the end of a chunk.
pub struct Thread {
    pub first: CallId,
    pub is_open: bool,
}

/// A line that must be joined with another line.
pub enum Crossing {
    /// The beginning of a call: its record, and the text of its arguments.
    Begun { record: usize, text: Box<[u8]>, line: u64 },
    /// The end of a call: its record, and the rest of its arguments. `certain` is false if it may also
    /// be the end of a library call.
    Ended { record: usize, text: Box<[u8]>, line: u64, certain: bool },
    /// The thread continues, so its open call has no end in the log. `record` is the index at which that call
    /// is inserted.
    Seen { tid: u32, record: usize },
    /// The thread's execve succeeded. `record` is the index at which the execve is inserted.
    Executed { tid: u32, record: usize, time: i64 },
}

/// A call that has begun and not ended.
struct Open {
    call: CallId,
    start: i64,
    text: Box<[u8]>,
    line: u64,
}

/// State that the reader carries from chunk to chunk.
#[derive(Default)]
pub struct State {
    open: FxHashMap<u32, Open>,
    /// First call of each thread whose clone3 has not appeared yet.
    first: FxHashMap<u32, CallId>,
    timeline: Timeline,
    pub runs: Runs,
    timed: u64,
    untimed: u64,
}

/// Changes to a chunk's records. They are made after all record indices have been used.
#[derive(Default)]
struct Changes {
    /// Calls to insert, with the index of the record that follows each, in ascending order.
    added: Vec<(usize, RawCall)>,
    dropped: FxHashSet<usize>,
}

impl State {
    pub fn settle(&mut self, clock: Clock, file: &Arc<str>, chunk: &mut Chunk<Notes>) {
        let notes = std::mem::take(&mut chunk.notes);
        self.timeline.settle(&notes.times, &mut chunk.batch.records);
        let mut changes = Changes::default();
        for crossing in notes.crossings {
            self.cross(crossing, file, chunk, &mut changes);
        }
        for (tid, thread) in notes.threads {
            self.first.entry(tid).or_insert(thread.first);
        }
        for record in notes.without_flags {
            flags_from_child(record, &mut self.first, &mut chunk.batch);
        }
        let order = (clock != Clock::None).then_some(ORDER);
        self.runs.follow(notes.places, BARE, order, file, chunk);
        changes.make(&self.runs, &mut chunk.batch.records);
        self.timed += chunk.batch.counts.timed;
        self.untimed += chunk.batch.counts.untimed;
    }

    fn cross(
        &mut self,
        crossing: Crossing,
        file: &Arc<str>,
        chunk: &mut Chunk<Notes>,
        changes: &mut Changes,
    ) {
        match crossing {
            Crossing::Begun { record, text, line } => {
                let Some(Record::Call(raw)) = chunk.batch.records.get(record).copied() else { return };
                let open = Open { call: raw.call, start: raw.start, text, line };
                if let Some(before) = self.open.insert(raw.tid, open) {
                    changes.added.push((record, before.without_result(raw.tid, &mut chunk.batch)));
                }
            }
            Crossing::Ended { record, text, line, certain } => {
                if !self.end(record, &text, (file, line), certain, chunk, changes) {
                    changes.dropped.insert(record);
                }
            }
            Crossing::Seen { tid, record } => {
                if let Some(open) = self.open.remove(&tid) {
                    changes.added.push((record, open.without_result(tid, &mut chunk.batch)));
                }
            }
            Crossing::Executed { tid, record, time } => {
                let Some(open) = self.open.remove(&tid) else { return };
                let mut raw = open.without_result(tid, &mut chunk.batch);
                if raw.call.spec().action == Action::Exec {
                    (raw.outcome, raw.result, raw.end) =
                        (Outcome::Succeeded, 0, self.timeline.of_chunk(time));
                    chunk.batch.counts.resumed += 1;
                    chunk.batch.counts.untimed += 1;
                }
                changes.added.push((record, raw));
            }
        }
    }

    /// Completes the record of a `resumed` line with the arguments from the call's first line. Returns
    /// `false` if it is not a system call.
    fn end(
        &mut self,
        record: usize,
        text: &[u8],
        (file, line): (&Arc<str>, u64),
        certain: bool,
        chunk: &mut Chunk<Notes>,
        changes: &mut Changes,
    ) -> bool {
        let Some(Record::Call(ended)) = chunk.batch.records.get(record).copied() else { return true };
        let tid = ended.tid;
        let is_its = self.open.get(&tid).is_some_and(|open| open.call == ended.call);
        if !is_its && !certain {
            return false;
        }
        let counts = &mut chunk.batch.counts;
        counts.timed += u64::from(ended.duration != UNKNOWN);
        counts.untimed += u64::from(ended.duration == UNKNOWN);
        let Some(open) = self.open.remove(&tid) else {
            chunk.batch.counts.orphans += 1;
            chunk.lose_at(LossKind::OrphanResumed, file, line, text);
            return true;
        };
        if !is_its {
            changes.added.push((record, open.without_result(tid, &mut chunk.batch)));
            chunk.batch.counts.orphans += 1;
            chunk.lose_at(LossKind::OrphanResumed, file, line, text);
            return true;
        }
        let whole = [&open.text[..], text].concat();
        let mut raw = RawCall { phase: Phase::Exit, start: open.start, ..ended };
        // The time of the line is the time when the call ended.
        raw.end = if raw.duration == UNKNOWN { ended.end } else { UNKNOWN };
        match fill(&whole, &mut raw, &mut chunk.batch) {
            None => chunk.lose_at(LossKind::UnreadableLines, file, line, text),
            Some(unshown) => unshown.count(file, line, &whole, chunk),
        }
        chunk.batch.counts.resumed += 1;
        note_fork(&raw, &mut chunk.batch);
        chunk.batch.records[record] = Record::Call(raw);
        true
    }

    /// Adds records for calls that are unfinished after the last chunk, and losses that concern the whole
    /// log.
    pub fn finish(&mut self, clock: Clock, file: &Arc<str>, chunk: &mut Chunk<Notes>) {
        let mut open: Vec<(u32, Open)> = self.open.drain().collect();
        open.sort_by_key(|(_, open)| open.line);
        for (tid, open) in open {
            let mut raw = open.without_result(tid, &mut chunk.batch);
            raw.start = self.runs.moved(raw.start);
            chunk.batch.records.push(Record::Call(raw));
            chunk.lose_at(LossKind::UnfinishedAtEnd, file, open.line, &open.text);
        }
        if self.timed == 0 {
            chunk.batch.losses.add(LossKind::MissingDurations, self.untimed);
        }
        if clock == Clock::None {
            chunk.batch.losses.add(LossKind::MissingTimestamps, self.timed + self.untimed);
        }
    }
}

impl Open {
    fn without_result(&self, tid: u32, batch: &mut Batch) -> RawCall {
        let mut raw = RawCall::new(self.call, tid);
        (raw.start, raw.phase) = (self.start, Phase::Exit);
        fill_begun(&self.text, &mut raw, batch);
        raw
    }
}

impl Changes {
    fn make(self, runs: &Runs, records: &mut Vec<Record>) {
        if self.added.is_empty() && self.dropped.is_empty() {
            return;
        }
        let moved = |mut raw: RawCall| {
            (raw.start, raw.end) = (runs.moved(raw.start), runs.moved(raw.end));
            Record::Call(raw)
        };
        let mut added = self.added.into_iter().peekable();
        let old = std::mem::take(records);
        for (index, record) in old.into_iter().enumerate() {
            while let Some((_, raw)) = added.next_if(|&(place, _)| place <= index) {
                records.push(moved(raw));
            }
            if !self.dropped.contains(&index) {
                records.push(record);
            }
        }
        records.extend(added.map(|(_, raw)| moved(raw)));
    }
}

pub fn forks(call: CallId) -> bool {
    matches!(call.spec().action, Action::Fork | Action::Vfork | Action::Clone)
}

/// Announces a new process or thread to the tracker.
pub fn note_fork(raw: &RawCall, batch: &mut Batch) {
    if !forks(raw.call) || raw.outcome != Outcome::Succeeded {
        return;
    }
    if let Some(child_tid) = u32::try_from(raw.result).ok().filter(|&child| child > 0) {
        batch.forks.push(Fork { parent_tid: raw.tid, child_tid, flags: raw.flags, call: raw.call });
    }
}

/// Sets the flags of a clone3, which takes them in memory that ltrace does not show. The child's first call
/// shows whether it is a thread or a process.
fn flags_from_child(record: usize, first: &mut FxHashMap<u32, CallId>, batch: &mut Batch) {
    let Some(Record::Call(raw)) = batch.records.get_mut(record) else { return };
    let Some(child) = u32::try_from(raw.result).ok().filter(|&child| child > 0) else { return };
    let of_thread = |call: CallId| {
        let name = call.name();
        // If the call numbers may be those of another machine, only rseq is certain.
        FIRST_OF_THREAD.contains(&name.as_str()) || name.starts_with("syscall_0x")
    };
    let flags = match first.remove(&child).is_none_or(of_thread) {
        true => THREAD,
        false => CLONE_VM | CLONE_VFORK,
    };
    raw.flags = flags;
    batch.forks.iter_mut().filter(|fork| fork.child_tid == child).for_each(|fork| fork.flags = flags);
}
