//! Converts lines to records.

use super::arguments::{fill, fill_begun};
use super::head::Layout;
use super::line::{read, Body, Call, Start};
use super::names;
use super::settle::{forks, note_fork, Crossing, Notes, State, Thread, BARE};
use crate::{Chunk, Lines, LogReader};
use iodock_event::{
    Action, CallId, Clock, ErrnoId, LossKind, Outcome, Phase, RawCall, Record, TaskEnd, Text, UNKNOWN,
};
use std::sync::Arc;

/// Largest error number. Results from -4095 to -1 are errors (include/linux/err.h).
const LAST_ERRNO: i64 = 4095;
/// Error numbers that the kernel uses internally (include/linux/errno.h). ltrace does not translate them.
const OF_KERNEL: [(i64, &str); 4] =
    [(512, "ERESTARTSYS"), (513, "ERESTARTNOINTR"), (514, "ERESTARTNOHAND"), (516, "ERESTART_RESTARTBLOCK")];

/// Reader of one log.
pub struct LtraceReader {
    pub layout: Layout,
    pub file: Arc<str>,
}

impl LogReader for LtraceReader {
    type Notes = Notes;
    type State = State;

    fn clock(&self) -> Clock {
        self.layout.clock
    }

    fn resolution(&self) -> Option<i64> {
        self.layout.resolution
    }

    fn parse(&self, lines: &Lines<'_>, chunk: &mut Chunk<Notes>) {
        for line in lines.numbered() {
            let mut parser = Parser { layout: &self.layout, file: lines.file, line: line.number, chunk };
            let taken = !line.text.contains(&0) && parser.take(line.text, line.is_cut);
            if !taken && !chunk.notes.places.of_terminal(line.text, line.number) {
                chunk.lose_at(line.loss(), lines.file, line.number, line.text);
            }
            chunk.notes.places.note(line.number, &chunk.batch.records);
        }
    }

    fn settle(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        state.settle(self.layout.clock, &self.file, chunk);
    }

    fn beginnings<'a>(&self, state: &'a State) -> &'a [u64] {
        state.runs.beginnings()
    }

    fn finish(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        state.finish(self.layout.clock, &self.file, chunk);
    }
}

/// One line, and the chunk that receives its records.
struct Parser<'a> {
    layout: &'a Layout,
    file: &'a Arc<str>,
    line: u64,
    chunk: &'a mut Chunk<Notes>,
}

impl Parser<'_> {
    /// Reads the line. Returns `false` if it cannot be parsed.
    fn take(&mut self, text: &[u8], is_cut: bool) -> bool {
        let Some((start, body)) = read(text) else { return false };
        // The end of the log may have cut off digits of the result.
        if is_cut && matches!(body, Body::Call(call) | Body::Resumed(call) if call.duration.is_none()) {
            return false;
        }
        let time = self.chunk.notes.times.time(self.layout.clock, start.stamp);
        let tid = start.tid.unwrap_or(BARE);
        match body {
            Body::Call(call) => return self.whole(&call, tid, time, text),
            Body::Begun { name, arguments } => return self.begun(name, arguments, tid, time),
            Body::Resumed(call) => return self.resumed(&call, tid, time, true),
            Body::Either(call) if self.layout.suffixed => return self.resumed(&call, tid, time, false),
            Body::Executed => {
                let record = self.chunk.batch.records.len();
                self.chunk.notes.crossings.push(Crossing::Executed { tid, record, time });
            }
            Body::Exited(status) => self.gone(&start, time, Some(status & 0xff), Text::NONE),
            Body::Killed(signal) => {
                let signal = self.chunk.batch.push_text(signal);
                self.gone(&start, time, None, signal);
            }
            Body::Signal(name) => {
                let name = String::from_utf8_lossy(name).into_owned();
                *self.chunk.batch.counts.signals.entry(name).or_default() += 1;
            }
            Body::Either(_) | Body::Library | Body::Known => {}
        }
        true
    }

    /// Returns the call with this name; `None` if the table of names is full, which is counted as a loss.
    fn id(&mut self, name: &[u8]) -> Option<CallId> {
        let id = names::call(name, self.layout.x86_64);
        if id.is_none() {
            self.chunk.lose_at(LossKind::TooManyNames, self.file, self.line, name);
        }
        id
    }

    /// Notes that the thread makes this call. Returns whether another call of the thread may still be open.
    fn meet(&mut self, tid: u32, call: CallId) -> bool {
        let mut is_open = false;
        let thread = self.chunk.notes.threads.entry(tid).or_insert_with(|| {
            is_open = true;
            Thread { first: call, is_open: false }
        });
        std::mem::replace(&mut thread.is_open, false) || is_open
    }

    fn whole(&mut self, call: &Call<'_>, tid: u32, time: i64, text: &[u8]) -> bool {
        let Some(id) = self.id(call.name) else { return true };
        let mut raw = RawCall::new(id, tid);
        raw.start = time;
        let bytes = self.chunk.batch.bytes.len();
        let Some(unshown) = fill(call.arguments, &mut raw, &mut self.chunk.batch) else {
            self.chunk.batch.bytes.truncate(bytes);
            return false;
        };
        // This is the return of a fork in the child.
        if forks(id) && call.result == 0 {
            return true;
        }
        unshown.count(self.file, self.line, text, self.chunk);
        returned(call, &mut raw);
        let counts = &mut self.chunk.batch.counts;
        counts.timed += u64::from(raw.duration != UNKNOWN);
        counts.untimed += u64::from(raw.duration == UNKNOWN);
        let record = self.chunk.batch.records.len();
        if self.meet(tid, id) {
            self.chunk.notes.crossings.push(Crossing::Seen { tid, record });
        }
        note_fork(&raw, &mut self.chunk.batch);
        self.push(raw);
        true
    }

    fn begun(&mut self, name: &[u8], arguments: &[u8], tid: u32, time: i64) -> bool {
        let Some(id) = self.id(name) else { return true };
        let mut raw = RawCall::new(id, tid);
        (raw.start, raw.phase) = (time, Phase::Enter);
        let bytes = self.chunk.batch.bytes.len();
        if fill_begun(arguments, &mut raw, &mut self.chunk.batch).is_none() {
            self.chunk.batch.bytes.truncate(bytes);
            return false;
        }
        let record = self.chunk.batch.records.len();
        let may_be_open = self.meet(tid, id);
        if id.spec().action == Action::Exit {
            // The call never returns, so this line is all that the log shows of it.
            raw.phase = Phase::Whole;
            if may_be_open {
                self.chunk.notes.crossings.push(Crossing::Seen { tid, record });
            }
        } else {
            self.chunk.batch.counts.unfinished += 1;
            self.opened(tid);
            let crossing = Crossing::Begun { record, text: arguments.into(), line: self.line };
            self.chunk.notes.crossings.push(crossing);
        }
        self.chunk.batch.records.push(Record::Call(raw));
        true
    }

    fn opened(&mut self, tid: u32) {
        if let Some(thread) = self.chunk.notes.threads.get_mut(&tid) {
            thread.is_open = true;
        }
    }

    fn resumed(&mut self, call: &Call<'_>, tid: u32, time: i64, certain: bool) -> bool {
        let Some(id) = self.id(call.name) else { return true };
        if forks(id) && call.result == 0 {
            return true;
        }
        let mut raw = RawCall::new(id, tid);
        (raw.end, raw.phase) = (time, Phase::Orphan);
        returned(call, &mut raw);
        if certain {
            self.meet(tid, id);
        }
        let record = self.chunk.batch.records.len();
        let crossing = Crossing::Ended { record, text: call.arguments.into(), line: self.line, certain };
        self.chunk.notes.crossings.push(crossing);
        self.push(raw);
        true
    }

    fn push(&mut self, raw: RawCall) {
        if raw.call.spec().name == "clone3" && raw.outcome == Outcome::Succeeded {
            self.chunk.notes.without_flags.push(self.chunk.batch.records.len());
        }
        self.chunk.batch.records.push(Record::Call(raw));
    }

    /// Handles the end of a process or thread.
    fn gone(&mut self, start: &Start, time: i64, exit_code: Option<i32>, signal: Text) {
        let tid = start.tid.unwrap_or(BARE);
        let record = self.chunk.batch.records.len();
        self.chunk.notes.crossings.push(Crossing::Seen { tid, record });
        // The kernel may use the thread id again.
        self.chunk.notes.threads.remove(&tid);
        let end = TaskEnd { tid, time, exit_code, signal, core_dumped: false, superseded_by: None };
        self.chunk.batch.records.push(Record::End(end));
    }
}

/// Sets the result and the duration.
fn returned(call: &Call<'_>, raw: &mut RawCall) {
    raw.duration = call.duration.unwrap_or(UNKNOWN);
    let Some(number) = errno(call.result, raw.call.spec().action) else {
        (raw.outcome, raw.result) = (Outcome::Succeeded, call.result);
        return;
    };
    (raw.outcome, raw.result) = (Outcome::Failed, -1);
    let of_kernel = OF_KERNEL.iter().find(|(known, _)| *known == number);
    raw.errno = match of_kernel {
        Some((_, name)) => ErrnoId::intern(name.as_bytes()).unwrap_or(ErrnoId::NONE),
        None => i32::try_from(number).map_or(ErrnoId::NONE, ErrnoId::from_linux),
    };
}

/// Returns the error number that a result means. For 32-bit programs, ltrace prints some errors as unsigned
/// numbers, depending on its configuration. No read is that long and no map has such a high address, so these
/// numbers are errors.
fn errno(result: i64, action: Action) -> Option<i64> {
    let unsigned = matches!(
        action,
        Action::Map | Action::Read | Action::Write | Action::PositionedRead | Action::PositionedWrite
    );
    let result = match u32::try_from(result) {
        Ok(low) if unsigned && low as i32 as i64 >= -LAST_ERRNO && (low as i32) < 0 => i64::from(low as i32),
        _ => result,
    };
    (-LAST_ERRNO..0).contains(&result).then_some(-result)
}
