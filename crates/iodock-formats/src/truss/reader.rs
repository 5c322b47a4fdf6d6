//! Converts lines to records.

use super::arguments::arguments;
use super::layout::{Column, Layout};
use super::line::{body, Body, Call, Ending};
use super::prefix::{base_stamp, prefix, Prefix};
use super::settle::{add_elapsed, join_sleeping, new_threads, rebuilt, State, ENDED};
use crate::runs::{Order, RecordLines};
use crate::{Chunk, Lines, LogReader};
use iodock_event::{
    lwp, Action, CallId, Clock, ErrnoId, Fork, LossKind, Outcome, Phase, RawCall, Record, Text, UNKNOWN,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The order of lines. truss traces each process with a process of its own, so lines may be slightly out of
/// order.
const ORDER: Order = Order { by_thread: false, jitter: 10_000_000 };
/// Nanoseconds of the last printed decimal.
const TICK: i64 = 100_000;
/// Process id that records get if the log shows none.
pub(super) const ONLY_PROCESS: u32 = 1;

/// Reader of one truss log.
pub struct TrussReader {
    layout: Layout,
    file: Arc<str>,
    /// Ids for threads whose process and lwp numbers do not fit into one id.
    large: Mutex<FxHashMap<(u32, u32), u32>>,
}

/// Data about a chunk that `parse` passes to `settle`.
#[derive(Default)]
pub struct Notes {
    /// Index of the record at which a thread first appears or a process ends, the thread, and the process.
    pub(super) appeared: Vec<(usize, u32, u32)>,
    pub(super) known: FxHashSet<u32>,
    /// Sum of the `-D` column for each thread, ns.
    elapsed: FxHashMap<u32, i64>,
    /// Whether the chunk has `(sleeping...)` lines.
    sleeps: bool,
    /// Number of calls without any time.
    without_stamp: u64,
    places: RecordLines,
}

/// Times of a line, in ns.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub end: i64,
    pub sys_cpu: i64,
}

/// The line to which the following lines may belong.
#[derive(Default)]
pub(super) struct Above {
    /// Index of the last call's record.
    pub call: Option<usize>,
    /// Whether the current line is inside the lines of `argv:`. The next field says the same for `envp:`.
    pub arguments: bool,
    pub environment: bool,
    /// The last signal that was not caught, and its process.
    pub signal: Option<(u32, Text)>,
}

pub(super) struct Parser<'a> {
    reader: &'a TrussReader,
    pub chunk: &'a mut Chunk<Notes>,
    pub above: Above,
    pub last_thread: u32,
}

impl TrussReader {
    pub fn new(layout: Layout, file: Arc<str>) -> Self {
        TrussReader { layout, file, large: Mutex::default() }
    }

    /// Returns the single number that identifies a process and lwp in records.
    #[inline]
    fn thread(&self, pid: u32, lwp: u32) -> u32 {
        lwp::thread_id(pid, lwp).unwrap_or_else(|| {
            let mut large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
            let next = lwp::FIRST_FREE + large.len() as u32;
            *large.entry((pid, lwp)).or_insert(next)
        })
    }

    fn is_delta_only(&self) -> bool {
        self.layout.position(Column::Stamp).is_none() && self.layout.position(Column::Delta).is_some()
    }
}

impl LogReader for TrussReader {
    type Notes = Notes;
    type State = State;

    fn clock(&self) -> Clock {
        match (self.layout.position(Column::Stamp), self.layout.base) {
            (Some(_), Some(_)) => Clock::Epoch,
            (Some(_), None) => Clock::Relative,
            (None, _) if self.is_delta_only() => Clock::Relative,
            (None, _) => Clock::None,
        }
    }

    fn parse(&self, lines: &Lines<'_>, chunk: &mut Chunk<Notes>) {
        let mut parser = Parser { reader: self, chunk, above: Above::default(), last_thread: ENDED };
        for line in lines.numbered() {
            let read = parser.line(line.text);
            let places = &mut parser.chunk.notes.places;
            if base_stamp(line.text).is_some() {
                places.between(line.number);
            }
            if !read && !places.of_terminal(line.text, line.number) {
                parser.chunk.lose_at(line.loss(), lines.file, line.number, line.text);
            }
            parser.chunk.notes.places.note(line.number, &parser.chunk.batch.records);
        }
    }

    fn settle(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        let notes = std::mem::take(&mut chunk.notes);
        state.without_stamp += notes.without_stamp;
        if self.is_delta_only() {
            add_elapsed(state, &notes.elapsed, &mut chunk.batch);
        }
        let order = self.layout.position(Column::Stamp).map(|_| ORDER);
        let bare = self.thread(ONLY_PROCESS, 1);
        state.runs.follow(notes.places, bare, order, &self.file, chunk);
        let mut dropped = FxHashSet::default();
        if notes.sleeps || !state.sleeping.is_empty() {
            join_sleeping(state, &mut chunk.batch, &mut dropped);
        }
        let appeared = new_threads(&mut state.known, &notes.appeared);
        if !appeared.is_empty() || !dropped.is_empty() {
            chunk.batch.records = rebuilt(&chunk.batch.records, &appeared, &dropped);
        }
    }

    fn beginnings<'a>(&self, state: &'a State) -> &'a [u64] {
        state.runs.beginnings()
    }

    fn finish(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        chunk.batch.losses.add(LossKind::UnfinishedAtEnd, state.sleeping.len() as u64);
        chunk.batch.losses.add(LossKind::MissingTimestamps, state.without_stamp);
    }
}

/// Returns whether the text contains a call with its result, such as `write(4, " a", 1) = 1`. Structures
/// contain none.
fn is_call(text: &[u8]) -> bool {
    let named = memchr::memchr(b'(', text)
        .is_some_and(|open| open > 0 && (text[open - 1].is_ascii_alphanumeric() || text[open - 1] == b'_'));
    let Some(close) = memchr::memrchr(b')', text).filter(|_| named) else { return false };
    let result = text[close + 1..].trim_ascii_start();
    [&b"= "[..], b"Err#", b"argc = "].iter().any(|&sign| result.starts_with(sign))
}

impl Parser<'_> {
    /// Reads one line. Returns `false` if it cannot be parsed.
    #[inline]
    fn line(&mut self, line: &[u8]) -> bool {
        let start = prefix(line);
        let text = line[start.body..].trim_ascii_end();
        let stamped = start.columns > 0;
        let meaning = body(text, start.indented, stamped);
        if self.above.arguments || self.above.environment {
            if let Some(known) = self.wrapped(&meaning, text, &start) {
                return known;
            }
        }
        match meaning {
            Body::Call(call) => return self.call(&call, &start),
            Body::Signal { name, default } => self.signal(name, default, &start),
            Body::Killed => self.killed(&start),
            Body::Argv(arguments) => {
                self.above.arguments = true;
                self.add_arguments(arguments);
            }
            Body::Envp => self.above.environment = true,
            // The line contains a call after a time that cannot be parsed.
            Body::Continuation if is_call(text) => return false,
            Body::Continuation => self.structure(text),
            // The line contains a call inside the line of a message whose end is lost.
            Body::Known if !text.starts_with(b"-> ") && !text.starts_with(b"<- ") && is_call(text) => {
                return false
            }
            Body::Known => {
                if stamped {
                    self.times(&start);
                }
            }
            Body::Unreadable => return false,
        }
        true
    }

    fn call(&mut self, call: &Call<'_>, start: &Prefix) -> bool {
        let Some(id) = CallId::intern(call.name) else {
            self.chunk.batch.lose(LossKind::TooManyNames);
            return true;
        };
        let pid = start.pid.unwrap_or(ONLY_PROCESS);
        let tid = self.reader.thread(pid, start.lwp.unwrap_or(1));
        let spec = id.spec();
        let batch = &mut self.chunk.batch;
        let bytes = batch.bytes.len();
        let mut raw = RawCall::new(id, tid);
        if !arguments(call.arguments, spec, &mut raw, batch) {
            batch.bytes.truncate(bytes);
            return false;
        }
        let times = self.times(start);
        (raw.end, raw.sys_cpu) = (times.end, times.sys_cpu);
        self.appear(tid, pid);
        if !self.ending(call, &mut raw) {
            return true;
        }
        self.count(&raw);
        self.above.call = Some(self.chunk.batch.records.len());
        self.chunk.batch.records.push(Record::Call(raw));
        if spec.action == Action::Exit {
            self.exit(call, &raw, pid);
        }
        true
    }

    /// Handles the text after the brackets. Returns `false` if the line is not a separate call.
    #[inline]
    fn ending(&mut self, call: &Call<'_>, raw: &mut RawCall) -> bool {
        match call.ending {
            Ending::Result { value, second } => {
                raw.outcome = Outcome::Succeeded;
                raw.result = value.unwrap_or(UNKNOWN);
                self.result(raw, second);
            }
            Ending::Error { name, number } => self.error(raw, name, number),
            Ending::Sleeping => {
                raw.phase = Phase::Enter;
                self.chunk.notes.sleeps = true;
            }
            Ending::AsChild(parent) => {
                // The parent's line counts as the call; this line shows that the child exists.
                if let Ok(parent_tid) = u32::try_from(parent) {
                    let child_tid = raw.tid;
                    self.chunk.batch.forks.push(Fork { parent_tid, child_tid, flags: 0, call: raw.call });
                }
                return false;
            }
            Ending::AsThread => return false,
            Ending::Executed => (raw.outcome, raw.result) = (Outcome::Succeeded, 0),
            Ending::Nothing => {}
        }
        true
    }

    /// Handles a successful result, which some actions need.
    #[inline]
    fn result(&mut self, raw: &mut RawCall, second: Option<i64>) {
        match raw.call.spec().action {
            Action::NewPipe => {
                if let (Some(second), Ok(first)) = (second, i32::try_from(raw.result)) {
                    raw.fd = first;
                    raw.fd2 = i32::try_from(second).unwrap_or(-1);
                }
            }
            Action::Fork | Action::Vfork if raw.result > 0 => {
                let fork =
                    Fork { parent_tid: raw.tid, child_tid: raw.result as u32, flags: 0, call: raw.call };
                self.chunk.batch.forks.push(fork);
            }
            _ => {}
        }
    }

    fn error(&mut self, raw: &mut RawCall, name: &[u8], number: i64) {
        raw.outcome = Outcome::Failed;
        raw.result = -1;
        let id = match name {
            b"" => ErrnoId::intern(format!("ERRNO_{number}").as_bytes()),
            name => ErrnoId::intern(name),
        };
        match id {
            Some(id) => raw.errno = id,
            None => self.chunk.batch.lose(LossKind::TooManyNames),
        }
    }

    #[inline]
    fn count(&mut self, raw: &RawCall) {
        let counts = &mut self.chunk.batch.counts;
        if raw.phase == Phase::Enter {
            counts.unfinished += 1;
            return;
        }
        if raw.sys_cpu == UNKNOWN {
            counts.untimed += 1;
        } else {
            counts.timed += 1;
        }
        self.chunk.notes.without_stamp += u64::from(raw.end == UNKNOWN);
    }

    /// Returns the times of the line. With `-D` alone, the end is the sum of the thread's columns in this
    /// chunk so far.
    #[inline]
    pub fn times(&mut self, start: &Prefix) -> Times {
        let mut times = Times { end: UNKNOWN, sys_cpu: UNKNOWN };
        let delta_only = self.reader.is_delta_only();
        for (&column, &ticks) in self.reader.layout.columns.iter().zip(&start.stamps[..start.columns]) {
            match column {
                Column::Stamp => {
                    let base = self.reader.layout.base.unwrap_or(0);
                    times.end = base.saturating_add(ticks).saturating_mul(TICK);
                }
                Column::SystemTime => times.sys_cpu = ticks.saturating_mul(TICK),
                Column::Delta if delta_only => {
                    let tid = self.reader.thread(start.pid.unwrap_or(ONLY_PROCESS), start.lwp.unwrap_or(1));
                    let sum = self.chunk.notes.elapsed.entry(tid).or_default();
                    *sum = sum.saturating_add(ticks.saturating_mul(TICK));
                    times.end = *sum;
                }
                Column::Delta => {}
            }
        }
        times
    }
}
