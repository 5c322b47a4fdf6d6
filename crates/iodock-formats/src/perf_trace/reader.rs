//! Converts lines to records.

use super::arguments::fill;
use super::line::{is_known, lost, read, Body, Call, Start};
use super::order::Sorter;
use super::stack::Stack;
use crate::runs::{Order, RecordLines, Runs};
use crate::strace::number;
use crate::{Chunk, Lines, LogReader};
use iodock_event::constants::{CLONE_FILES, CLONE_FS, CLONE_THREAD, CLONE_VFORK, CLONE_VM};
use iodock_event::{
    Action, Batch, CallId, Clock, ErrnoId, Fork, LossKind, Outcome, Phase, RawCall, Record, TaskEnd, Text,
    UNKNOWN,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Resolution of the time stamps in ns.
const RESOLUTION: i64 = 1000;
const THREAD: u64 = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_THREAD;
/// Names of the first call of a new glibc thread. Other children do not begin with these calls.
const FIRST_OF_THREAD: [&[u8]; 2] = [b"rseq", b"set_robust_list"];

/// The order of lines. Only the lines of one thread are in order. Before perf 5.0, lines may be exchanged
/// when a thread moves to another CPU.
const ORDER: Order = Order { by_thread: true, jitter: 10_000_000 };
/// Thread id that records get if their lines show none.
const BARE: u32 = 0;

/// Reader of one log of perf trace.
pub struct PerfTraceReader {
    pub file: Arc<str>,
}

/// Data about a chunk that `parse` passes to `settle`.
#[derive(Default)]
pub struct Notes {
    crossings: Vec<Crossing>,
    /// The first call of each thread in this chunk.
    first: FxHashMap<u32, CallId>,
    /// Line number of each thread's last complete call in this chunk.
    whole: FxHashMap<u32, u64>,
    /// Records of clone3 whose flags perf does not show.
    without_flags: Vec<usize>,
    places: RecordLines,
}

/// A line that must be joined with another line.
enum Crossing {
    Begun { tid: u32, open: Open },
    Ended { tid: u32, record: usize, line: u64, text: Box<[u8]> },
}

/// A call that has begun, and the text of its arguments.
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
    /// Calls whose end perf dropped. Later lines of their threads show this.
    endless: Vec<(u32, Open)>,
    /// First call of each thread whose clone3 has not appeared yet.
    first: FxHashMap<u32, CallId>,
    /// Line number of each thread's last complete call.
    whole: FxHashMap<u32, u64>,
    runs: Runs,
    sorter: Sorter,
}

impl LogReader for PerfTraceReader {
    type Notes = Notes;
    type State = State;

    fn clock(&self) -> Clock {
        Clock::Relative
    }

    fn resolution(&self) -> Option<i64> {
        Some(RESOLUTION)
    }

    fn parse(&self, lines: &Lines<'_>, chunk: &mut Chunk<Notes>) {
        let mut stack = Stack::default();
        for line in lines.numbered() {
            let text = line.text.trim_ascii_end();
            if stack.takes(text) {
                chunk.notes.places.note(line.number, &chunk.batch.records);
                continue;
            }
            let first = chunk.batch.records.len();
            if !take(text, line.number, lines, chunk) && !chunk.notes.places.of_terminal(text, line.number) {
                chunk.lose_at(line.loss(), lines.file, line.number, text);
            }
            chunk.notes.places.note(line.number, &chunk.batch.records);
            stack.follow(first, &mut chunk.batch);
        }
        stack.end(&mut chunk.batch);
    }

    fn settle(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        let notes = std::mem::take(&mut chunk.notes);
        for crossing in notes.crossings {
            match crossing {
                Crossing::Begun { tid, open } => {
                    let before = state.open.insert(tid, open);
                    state.endless.extend(before.map(|open| (tid, open)));
                }
                Crossing::Ended { tid, record, line, text } => {
                    state.end(tid, record, (&self.file, line), &text, chunk);
                }
            }
        }
        state.whole.extend(notes.whole);
        for (tid, call) in notes.first {
            state.first.entry(tid).or_insert(call);
        }
        for record in notes.without_flags {
            flags_from_child(record, &mut state.first, &mut chunk.batch);
        }
        state.runs.follow(notes.places, BARE, Some(ORDER), &self.file, chunk);
        for (tid, open) in std::mem::take(&mut state.endless) {
            self.push_endless(state, LossKind::DroppedRecords, (tid, open), chunk);
        }
        state.sorter.sort(&mut chunk.batch, false);
    }

    fn beginnings<'a>(&self, state: &'a State) -> &'a [u64] {
        state.runs.beginnings()
    }

    fn finish(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        let mut open: Vec<(u32, Open)> = state.open.drain().collect();
        open.sort_by_key(|(_, open)| open.line);
        for (tid, open) in open {
            let went_on = state.whole.get(&tid).is_some_and(|&line| line > open.line);
            let why = if went_on { LossKind::DroppedRecords } else { LossKind::UnfinishedAtEnd };
            self.push_endless(state, why, (tid, open), chunk);
        }
        state.sorter.sort(&mut chunk.batch, true);
    }
}

impl PerfTraceReader {
    /// Adds the record of a call whose end is not in the log.
    fn push_endless(&self, state: &State, why: LossKind, (tid, open): (u32, Open), chunk: &mut Chunk<Notes>) {
        let mut raw = RawCall::new(open.call, tid);
        (raw.start, raw.phase) = (state.runs.moved(open.start), Phase::Exit);
        fill(&open.text, &mut raw, &mut chunk.batch);
        chunk.batch.records.push(Record::Call(raw));
        chunk.lose_at(why, &self.file, open.line, &open.text);
    }
}

impl State {
    /// Completes the record of a `[continued]` line with the arguments from the call's first part.
    fn end(
        &mut self,
        tid: u32,
        record: usize,
        (file, line): (&Arc<str>, u64),
        text: &[u8],
        chunk: &mut Chunk<Notes>,
    ) {
        let Some(Record::Call(ended)) = chunk.batch.records.get(record).copied() else { return };
        let begun = self.open.remove(&tid);
        let Some(open) = begun.as_ref().filter(|open| open.call == ended.call) else {
            self.endless.extend(begun.map(|open| (tid, open)));
            chunk.batch.counts.orphans += 1;
            chunk.lose_at(LossKind::OrphanResumed, file, line, text);
            return;
        };
        chunk.batch.counts.resumed += 1;
        let mut raw = RawCall { phase: Phase::Exit, start: open.start, end: UNKNOWN, ..ended };
        fill(&open.text, &mut raw, &mut chunk.batch);
        note_fork(&raw, &mut chunk.batch);
        chunk.batch.records[record] = Record::Call(raw);
    }
}

/// Reads one line. Returns `false` if it cannot be parsed.
fn take(line: &[u8], number: u64, lines: &Lines<'_>, chunk: &mut Chunk<Notes>) -> bool {
    let Some((start, body)) = read(line) else {
        if let Some(count) = lost(line) {
            chunk.batch.losses.add(LossKind::DroppedRecords, count);
            return true;
        }
        return is_known(line);
    };
    let (call, phase) = match body {
        Body::Event => return true,
        Body::Call(call) => (call, Phase::Whole),
        Body::Begun(call) => (call, Phase::Enter),
        Body::Continued(call) => (call, Phase::Orphan),
    };
    let Some(id) = CallId::intern(call.name) else {
        chunk.lose_at(LossKind::TooManyNames, lines.file, number, call.name);
        return true;
    };
    if phase != Phase::Enter && !has_result(&call, id.spec().action) {
        return false;
    }
    let mut raw = RawCall::new(id, start.tid);
    (raw.phase, raw.start) = (phase, start.time.unwrap_or(UNKNOWN));
    let bytes = chunk.batch.bytes.len();
    match fill(call.arguments, &mut raw, &mut chunk.batch) {
        None => {
            chunk.batch.bytes.truncate(bytes);
            return false;
        }
        Some(false) if phase != Phase::Orphan => {
            chunk.lose_at(LossKind::UnshownNames, lines.file, number, line)
        }
        Some(_) => {}
    }
    if phase == Phase::Orphan {
        // The line shows no arguments at all, so a missing argument does not mean 0.
        raw = RawCall { phase, start: raw.start, ..RawCall::new(id, start.tid) };
    } else {
        chunk.notes.first.entry(start.tid).or_insert(id);
    }
    if phase != Phase::Enter && !ended(&call, &start, &mut raw, &mut chunk.batch) {
        return true;
    }
    if start.wrapped {
        chunk.lose_at(LossKind::IncredibleNumbers, lines.file, number, line);
    }
    push(raw, &call, number, line, chunk);
    true
}

/// Returns whether perf could have printed this result. If there is none, the line was cut or its `=` is
/// lost.
fn has_result(call: &Call<'_>, action: Action) -> bool {
    let Some(result) = call.result else { return action == Action::Exit };
    let word = result.split(|byte| matches!(byte, b' ' | b'<')).next().unwrap_or_default();
    let is_flag = |flag: &[u8]| {
        let letters =
            flag.iter().all(|&byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        number(flag).is_some() || (letters && flag.first().is_some_and(u8::is_ascii_uppercase))
    };
    result.is_empty() || word == b"?" || word.split(|&byte| byte == b'|').all(is_flag)
}

fn push(raw: RawCall, call: &Call<'_>, line: u64, text: &[u8], chunk: &mut Chunk<Notes>) {
    let record = chunk.batch.records.len();
    match raw.phase {
        Phase::Enter => {
            chunk.batch.counts.unfinished += 1;
            let open = Open { call: raw.call, start: raw.start, text: call.arguments.into(), line };
            chunk.notes.crossings.push(Crossing::Begun { tid: raw.tid, open });
        }
        Phase::Orphan => {
            chunk.notes.crossings.push(Crossing::Ended { tid: raw.tid, record, line, text: text.into() });
        }
        _ => {
            chunk.notes.whole.insert(raw.tid, line);
            note_fork(&raw, &mut chunk.batch);
        }
    }
    if raw.call.spec().name == "clone3" && raw.flags == 0 && raw.phase != Phase::Enter {
        chunk.notes.without_flags.push(record);
    }
    chunk.batch.records.push(Record::Call(raw));
    if raw.phase == Phase::Whole && raw.call.spec().name == "exit_group" {
        let code = call.arguments.strip_prefix(b"error_code: ").map_or(Some(0), number);
        let exit_code = code.map(|code| code as i32 & 0xff);
        let (tid, time) = (raw.tid, raw.start);
        let end =
            TaskEnd { tid, time, exit_code, signal: Text::NONE, core_dumped: false, superseded_by: None };
        chunk.batch.records.push(Record::End(end));
    }
}

/// Sets the result and the duration. Returns `false` for the return of a fork in the child, because that is
/// not a separate call.
fn ended(call: &Call<'_>, start: &Start, raw: &mut RawCall, batch: &mut Batch) -> bool {
    if let Some(duration) = start.duration {
        raw.duration = duration;
        batch.counts.timed += 1;
    }
    let forks = matches!(raw.call.spec().action, Action::Fork | Action::Vfork | Action::Clone);
    let result = call.result.unwrap_or_default();
    if forks && start.time.is_none() && matches!(result, b"" | b"0") {
        batch.counts.timed -= u64::from(start.duration.is_some());
        return false;
    }
    if result.starts_with(b"?") || (call.result.is_none() && raw.call.spec().action == Action::Exit) {
        raw.outcome = Outcome::NoResult;
        return true;
    }
    batch.counts.untimed += u64::from(start.duration.is_none());
    raw.outcome = Outcome::Succeeded;
    let word = result.split(|byte| matches!(byte, b' ' | b'<')).next().unwrap_or_default();
    match number(word) {
        Some(-1) if result.get(3) == Some(&b'E') => {
            raw.outcome = Outcome::Failed;
            raw.result = -1;
            let name = result[3..].split(|&byte| byte == b' ').next().unwrap_or_default();
            raw.errno = ErrnoId::intern(name).unwrap_or(ErrnoId::NONE);
        }
        Some(value) => raw.result = value,
        // The result consists of names of flags, or is missing. The call succeeded, but its value is unknown.
        None => raw.result = UNKNOWN,
    }
    if let Some(name) = result[word.len()..].strip_prefix(b"<").and_then(|name| name.strip_suffix(b">")) {
        raw.result_text = batch.push_text(name);
    }
    true
}

fn note_fork(raw: &RawCall, batch: &mut Batch) {
    let forks = matches!(raw.call.spec().action, Action::Fork | Action::Vfork | Action::Clone);
    if !forks || raw.outcome != Outcome::Succeeded {
        return;
    }
    if let Some(child_tid) = u32::try_from(raw.result).ok().filter(|&child| child > 0) {
        batch.forks.push(Fork { parent_tid: raw.tid, child_tid, flags: raw.flags, call: raw.call });
    }
}

/// Sets the flags of a clone3, which takes them in memory that perf does not show. The child's first call
/// shows whether it is a thread or a process.
fn flags_from_child(record: usize, first: &mut FxHashMap<u32, CallId>, batch: &mut Batch) {
    let Some(Record::Call(raw)) = batch.records.get_mut(record) else { return };
    let Some(child) = u32::try_from(raw.result).ok().filter(|&child| child > 0) else { return };
    let is_thread =
        first.remove(&child).is_none_or(|call| FIRST_OF_THREAD.contains(&call.spec().name.as_bytes()));
    let flags = if is_thread { THREAD } else { CLONE_VM | CLONE_VFORK };
    raw.flags = flags;
    batch.forks.iter_mut().filter(|fork| fork.child_tid == child).for_each(|fork| fork.flags = flags);
}
