//! The in-order step (`LogReader::settle`), which joins calls that begin in one chunk and end in a later one.

use super::join;
use super::refused::take_back;
use super::threads::Span;
use super::times::{Timeline, Times};
use super::untagged::Change;
use crate::runs::{Divider, Mark};
use crate::Chunk;
use iodock_event::{Action, Batch, CallId, LossKind, RawCall, Record, UNKNOWN};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Data about a chunk that the parallel step passes to the in-order step.
#[derive(Debug, Default)]
pub struct Notes {
    /// The owners of untagged lines, which the parallel step needs.
    pub owners: Vec<Change>,
    /// Places where another log may begin.
    pub marks: Vec<Mark>,
    pub times: Times,
    pub spans: Vec<Span>,
    /// Number of the first line of the chunk.
    pub first_line: u64,
    /// Events that concern calls from earlier chunks, in the order of lines.
    pub crossings: Vec<Crossing>,
    /// Indices of the records of calls that a seccomp filter refused.
    pub refused: Vec<usize>,
    /// Calls that are open at the end of the chunk.
    pub open: Vec<(u32, Open)>,
    pub table: Table,
}

/// Rows of a table of `-C`. Such lines count as rows only below a header.
#[derive(Debug, Default)]
pub struct Table {
    /// Number of the last line that belongs to a table.
    pub last: u64,
    /// Rows at the beginning of the chunk, whose header may be in the previous chunk.
    pub headless: Vec<(u64, Box<[u8]>)>,
}

/// An event that concerns a call which began before the chunk.
#[derive(Debug)]
pub enum Crossing {
    /// A `resumed` line: its record and its text.
    Ended { tid: u32, record: usize, text: Box<[u8]>, line: u64 },
    /// The thread's first line in this chunk is not a `resumed` line, so its open call has no result.
    /// `record` is the index before which that call is inserted.
    Seen { tid: u32, record: usize },
    /// The line `superseded by execve in pid FROM`: the call of that thread continues under `to`.
    Moved { from: u32, to: u32 },
}

/// A call that has begun, and its text.
#[derive(Debug)]
pub struct Open {
    pub call: CallId,
    pub start: i64,
    pub text: Box<[u8]>,
    pub line: u64,
}

/// State that the reader carries from chunk to chunk.
#[derive(Debug, Default)]
pub struct State {
    timeline: Timeline,
    divider: Divider,
    open: FxHashMap<u32, Open>,
    scratch: Vec<u8>,
    /// Number of the last line of the last table.
    table: u64,
    timed: u64,
    untimed: u64,
}

impl State {
    /// Returns the lines at which further logs begin.
    pub fn beginnings(&self) -> &[u64] {
        &self.divider.beginnings
    }

    /// Settles one chunk. `bare` is the process of the log's lines, if none of them shows one.
    pub fn settle(&mut self, file: &Arc<str>, bare: Option<u32>, chunk: &mut Chunk<Notes>) {
        let notes = std::mem::take(&mut chunk.notes);
        self.divider.follow(&chunk.batch, &notes.marks, bare);
        let (moved_by, was_set_back) = self.timeline.settle(&notes.times, &notes.spans, &mut chunk.batch);
        if was_set_back {
            chunk.lose_at(LossKind::ClockSetBack, file, notes.first_line, b"");
        }
        self.rows(&notes.table, file, chunk);
        let mut interrupted = Vec::new();
        for crossing in notes.crossings {
            match crossing {
                Crossing::Ended { tid, record, text, line } => {
                    self.end(tid, record, &text, (file, line), chunk)
                }
                Crossing::Seen { tid, record } => {
                    if let Some(open) = self.open.remove(&tid) {
                        interrupted.push((record, open.without_result(tid, &mut chunk.batch)));
                    }
                }
                Crossing::Moved { from, to } => {
                    if let Some(open) = self.open.remove(&from) {
                        self.open.insert(to, open);
                    }
                }
            }
        }
        take_back(&notes.refused, &mut chunk.batch);
        insert_all(&mut chunk.batch.records, interrupted);
        for (tid, mut open) in notes.open {
            if open.start != UNKNOWN {
                open.start = open.start.saturating_add(moved_by);
            }
            self.open.insert(tid, open);
        }
        self.timed += chunk.batch.counts.timed;
        self.untimed += chunk.batch.counts.untimed;
    }

    /// Counts as damaged the lines that look like rows of a table but belong to none, not even to one that
    /// began in an earlier chunk.
    fn rows(&mut self, table: &Table, file: &Arc<str>, chunk: &mut Chunk<Notes>) {
        if let Some((first, _)) = table.headless.first().filter(|(first, _)| self.table + 1 == *first) {
            self.table = first + table.headless.len() as u64 - 1;
        } else {
            for (line, text) in &table.headless {
                chunk.lose_at(LossKind::UnreadableLines, file, *line, text);
            }
        }
        self.table = self.table.max(table.last);
    }

    /// Replaces the record of a `resumed` line by the whole call, if its beginning is known.
    fn end(
        &mut self,
        tid: u32,
        record: usize,
        text: &[u8],
        (file, line): (&Arc<str>, u64),
        chunk: &mut Chunk<Notes>,
    ) {
        let Some(Record::Call(orphan)) = chunk.batch.records.get(record).copied() else { return };
        match self.joined(tid, text, &orphan, &mut chunk.batch) {
            Some(raw) => {
                self.open.remove(&tid);
                chunk.batch.records[record] = Record::Call(RawCall { stack: orphan.stack, ..raw });
            }
            None => {
                chunk.batch.counts.orphans += 1;
                chunk.lose_at(LossKind::OrphanResumed, file, line, text);
            }
        }
    }

    fn joined(&mut self, tid: u32, text: &[u8], orphan: &RawCall, batch: &mut Batch) -> Option<RawCall> {
        let open = self.open.get(&tid).filter(|open| open.call == orphan.call)?;
        if matches!(orphan.call.spec().action, Action::Fork | Action::Vfork | Action::Clone) {
            // The parallel step added this fork without its flags, so it is replaced.
            let child = orphan.result;
            batch.forks.retain(|fork| fork.parent_tid != tid || i64::from(fork.child_tid) != child);
        }
        let mut raw = RawCall::new(open.call, tid);
        raw.start = open.start;
        join::ended_call(&open.text, text, orphan.end, &mut self.scratch, &mut raw, batch)?;
        Some(raw)
    }

    /// Adds records for calls that never returned, and losses that concern the whole log. Called after the
    /// last chunk.
    pub fn finish(&mut self, file: &Arc<str>, stamped: bool, chunk: &mut Chunk<Notes>) {
        let mut open: Vec<(u32, Open)> = self.open.drain().collect();
        open.sort_by_key(|(_, open)| open.line);
        for (tid, open) in open {
            let raw = open.without_result(tid, &mut chunk.batch);
            chunk.batch.records.push(Record::Call(raw));
            chunk.lose_at(LossKind::UnfinishedAtEnd, file, open.line, &open.text);
        }
        if self.timed == 0 {
            chunk.batch.losses.add(LossKind::MissingDurations, self.untimed);
        }
        if !stamped {
            chunk.batch.losses.add(LossKind::MissingTimestamps, self.timed + self.untimed);
        }
    }
}

impl Open {
    fn without_result(&self, tid: u32, batch: &mut Batch) -> RawCall {
        let mut raw = RawCall::new(self.call, tid);
        raw.start = self.start;
        join::without_result(&self.text, raw, batch)
    }
}

/// Inserts each call before the record at its index. The indices are in ascending order.
fn insert_all(records: &mut Vec<Record>, calls: Vec<(usize, RawCall)>) {
    if calls.is_empty() {
        return;
    }
    let mut calls = calls.into_iter().peekable();
    let old = std::mem::take(records);
    records.reserve(old.len() + calls.len());
    for (index, record) in old.into_iter().enumerate() {
        while let Some((_, raw)) = calls.next_if(|&(place, _)| place <= index) {
            records.push(Record::Call(raw));
        }
        records.push(record);
    }
    records.extend(calls.map(|(_, raw)| Record::Call(raw)));
}
