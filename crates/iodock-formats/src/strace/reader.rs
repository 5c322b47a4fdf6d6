//! The parallel step (`LogReader::parse`), which parses the lines of a chunk into records.

use super::frames::{Stack, FRAME};
use super::join;
use super::line::{self, Kind};
use super::names::call_id;
use super::prefix::{Prefix, Stamp};
use super::settle::{Crossing, Notes, Open, State};
use super::survey::Layout;
use super::threads::{Begun, Threads};
use super::times::Times;
use super::untagged::{Change, Owner, Untagged};
use crate::runs::{self, Mark, Sign};
use crate::{strace_table, Chunk, Lines, LogReader};
use iodock_event::{CallId, Clock, LossKind, Outcome, Phase, RawCall, Record, UNKNOWN};
use memchr::memchr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of other lines that are allowed between two rows of a table, because one of its rows may be
/// damaged.
const TABLE_GAP: u64 = 2;

/// Reader of one strace log.
pub struct StraceReader {
    pub layout: Layout,
    /// Finds the owners of untagged lines, in logs where some lines have `[pid N]`.
    pub untagged: Option<Mutex<Untagged>>,
    pub file: Arc<str>,
}

impl LogReader for StraceReader {
    type Notes = Notes;
    type State = State;

    fn clock(&self) -> Clock {
        self.layout.clock
    }

    fn resolution(&self) -> Option<i64> {
        self.layout.resolution
    }

    fn scan(&self, lines: &Lines<'_>, notes: &mut Notes) {
        if let Some(untagged) = &self.untagged {
            let mut untagged = untagged.lock().unwrap_or_else(PoisonError::into_inner);
            untagged.scan(lines.bytes, lines.first_line, &mut notes.owners);
        }
    }

    fn parse(&self, lines: &Lines<'_>, chunk: &mut Chunk<Notes>) {
        let owners = std::mem::take(&mut chunk.notes.owners).into_iter();
        let mut pass = Pass {
            reader: self,
            text: lines.bytes,
            chunk,
            threads: Threads::default(),
            times: Times::default(),
            scratch: Vec::new(),
            line: lines.first_line,
            dangling: None,
            just_begun: None,
            ended: None,
            stack: Stack::default(),
            owner: Owner { tid: self.layout.bare_tid, ambiguous: false },
            owners,
            next_owner: u64::MAX,
        };
        pass.next_owner = pass.owners.as_slice().first().map_or(u64::MAX, |change| change.line);
        pass.chunk.notes.first_line = lines.first_line;
        pass.all(lines.at_end);
        pass.close();
    }

    fn settle(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        let bare = self.layout.bare.then_some(self.layout.bare_tid);
        state.settle(&self.file, bare, chunk);
    }

    fn beginnings<'a>(&self, state: &'a State) -> &'a [u64] {
        state.beginnings()
    }

    fn finish(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        state.finish(&self.file, self.layout.clock != Clock::None, chunk);
    }
}

/// The line of a call that lacks the call's end.
#[derive(Clone, Copy)]
pub struct Dangling<'a> {
    pub name: &'a [u8],
    pub text: &'a [u8],
    pub tid: u32,
    pub start: i64,
    pub line: u64,
}

/// The state of parsing one chunk.
pub struct Pass<'a> {
    pub(super) reader: &'a StraceReader,
    pub(super) text: &'a [u8],
    pub(super) chunk: &'a mut Chunk<Notes>,
    pub(super) threads: Threads,
    pub(super) times: Times,
    pub(super) scratch: Vec<u8>,
    /// Number of the current line.
    pub(super) line: u64,
    /// The line of a call that a newline in the program's output has broken. The end of the call may follow
    /// on a separate line.
    pub(super) dangling: Option<Dangling<'a>>,
    /// The thread whose call began on the previous line. With `-z` the call's end follows without any prefix.
    pub(super) just_begun: Option<u32>,
    /// Index of the record that the previous line ended. The stack of its call may follow.
    pub(super) ended: Option<usize>,
    pub(super) stack: Stack<'a>,
    /// The owner of the current line if it shows no thread, and the later changes of the owner.
    owner: Owner,
    owners: std::vec::IntoIter<Change>,
    /// The first line of the next entry in `owners`.
    next_owner: u64,
}

impl<'a> Pass<'a> {
    fn all(&mut self, at_end: bool) {
        let holed = memchr(0, self.text).is_some();
        let mut start = 0;
        while start < self.text.len() {
            let newline = memchr(b'\n', &self.text[start..]);
            let end = newline.map_or(self.text.len(), |at| start + at);
            let mut stop = end;
            while stop > start && self.text[stop - 1] == b'\r' {
                stop -= 1;
            }
            let cut = newline.is_none() && at_end;
            let line = &self.text[start..stop];
            if self.line >= self.next_owner {
                self.change_owner();
            }
            if !self.follow_stack(line) {
                let records = self.chunk.batch.records.len();
                if (holed && memchr(0, line).is_some()) || !self.one(line, cut) {
                    self.unreadable(line, cut);
                }
                let now = self.chunk.batch.records.len();
                self.ended = (now > records).then(|| now - 1);
            }
            start = end + 1;
            self.line += 1;
        }
        self.follow_stack(b"");
        self.drop_dangling();
    }

    /// Reads a line of a stack. These lines follow the line of their call.
    #[inline]
    fn follow_stack(&mut self, line: &[u8]) -> bool {
        let is_frame = line.starts_with(FRAME) && (self.ended.is_some() || self.is_in_stack());
        if is_frame {
            self.frame(line);
        } else if self.is_in_stack() {
            self.end_stack();
        }
        is_frame
    }

    #[cold]
    fn change_owner(&mut self) {
        while let Some(change) = self.owners.as_slice().first().filter(|change| change.line <= self.line) {
            self.owner = change.owner;
            self.owners.next();
        }
        self.next_owner = self.owners.as_slice().first().map_or(u64::MAX, |change| change.line);
    }

    /// Reads a line. Returns `false` if it cannot be parsed.
    #[inline]
    pub(super) fn one(&mut self, line: &'a [u8], cut: bool) -> bool {
        let (prefix, kind) = line::read(line);
        let just_begun = self.just_begun.take();
        if self.owner.ambiguous && prefix.tid.is_none() && !matches!(kind, Kind::Noise | Kind::Unknown) {
            self.lose(LossKind::UntaggedLines, self.line, line);
        }
        match kind {
            Kind::Call { name, text } => self.call(prefix, name, text, cut),
            Kind::Begun { name, text } => self.begun(prefix, name, text),
            Kind::Resumed { name, text } => self.resumed(prefix, name, text, cut),
            Kind::End { text } => self.task_end(prefix, text),
            Kind::Signal { name } => {
                // With `-r`, the time of the next line counts from this line.
                self.time(self.tid(&prefix), prefix.stamp);
                self.signal(name);
                if name == b"SIGSYS" {
                    self.refused(self.tid(&prefix), line);
                }
                true
            }
            Kind::Noise => {
                // A program may print such lines in the middle of a call.
                if self.dangling.is_none() {
                    self.noise(line);
                }
                true
            }
            Kind::Row if self.dangling.is_none() => self.row(line),
            Kind::Row | Kind::Unknown => {
                just_begun.is_some_and(|tid| self.end_of(tid, line)) || self.tail(line)
            }
        }
    }

    /// Handles a line without a record: notes separators between logs, and headers of tables.
    #[cold]
    fn noise(&mut self, line: &[u8]) {
        if runs::separates_logs(line) {
            self.mark(Sign::Between);
        } else if strace_table::is_header(line) {
            self.mark(Sign::Table);
            self.chunk.notes.table.last = self.line;
        }
    }

    /// Returns whether this is a row of a table whose header precedes it.
    #[cold]
    fn row(&mut self, line: &[u8]) -> bool {
        let (first, table) = (self.chunk.notes.first_line, &mut self.chunk.notes.table);
        if table.last > 0 && self.line - table.last <= TABLE_GAP {
            table.last = self.line;
            return true;
        }
        let leads = self.line == first + table.headless.len() as u64;
        if leads {
            table.headless.push((self.line, line.into()));
        }
        leads
    }

    #[inline(always)]
    pub(super) fn tid(&self, prefix: &Prefix) -> u32 {
        prefix.tid.unwrap_or(self.owner.tid)
    }

    #[inline(always)]
    fn time(&mut self, tid: u32, stamp: Stamp) -> i64 {
        let time = self.times.time(self.reader.layout.clock, stamp);
        if time == UNKNOWN {
            return time;
        }
        let last = self.threads.seen(tid, time);
        match self.times.in_order(time, last) {
            None => time,
            Some(later) => self.set_back(tid, later),
        }
    }

    /// Handles a clock that was set back before this line. `later` is the line's time after the correction.
    #[cold]
    fn set_back(&mut self, tid: u32, later: i64) -> i64 {
        self.threads.seen(tid, later);
        self.lose(LossKind::ClockSetBack, self.line, b"");
        later
    }

    pub(super) fn id(&mut self, name: &[u8]) -> Option<CallId> {
        let id = call_id(name);
        if id.is_none() {
            let file = Arc::clone(&self.reader.file);
            self.chunk.lose_at(LossKind::TooManyNames, &file, self.line, name);
        }
        id
    }

    #[inline]
    fn call(&mut self, prefix: Prefix, name: &'a [u8], text: &'a [u8], cut: bool) -> bool {
        let tid = self.tid(&prefix);
        let Some(id) = self.id(name) else { return true };
        let mut raw = RawCall::new(id, tid);
        if line::whole_call(text, &mut raw, &mut self.chunk.batch).is_none() {
            // The end of a damaged log is not used to judge the clock.
            let start = if cut { UNKNOWN } else { self.time(tid, prefix.stamp) };
            self.dangle(Dangling { name, text, tid, start, line: self.line }, cut);
            return self.dangling.is_some();
        }
        if cut && self.is_cut(&raw) {
            return false;
        }
        raw.start = self.time(tid, prefix.stamp);
        if raw.outcome == Outcome::NoResult {
            self.mark(Sign::Last);
        }
        self.whole(raw);
        true
    }

    /// Notes a place where another log may begin, before the next record is added.
    #[cold]
    fn mark(&mut self, sign: Sign) {
        let record = self.chunk.batch.records.len();
        self.chunk.notes.marks.push(Mark { record, line: self.line, sign });
    }

    /// Returns whether the duration is missing in the log's last line, which has no newline.
    fn is_cut(&self, raw: &RawCall) -> bool {
        self.reader.layout.durations && raw.duration == UNKNOWN && raw.outcome != Outcome::NoResult
    }

    #[inline(always)]
    pub(super) fn whole(&mut self, raw: RawCall) {
        self.meet(raw.tid);
        self.times.lasted(raw.start, raw.duration);
        self.count_duration(&raw);
        self.chunk.batch.records.push(Record::Call(raw));
    }

    /// Notes a line of a thread. Any line except the end of a call shows that the thread's earlier call has
    /// no result.
    #[inline]
    fn meet(&mut self, tid: u32) {
        let (open, new) = self.threads.meet(tid);
        if let Some(begun) = open.take() {
            self.interrupt(tid, &begun);
        } else if new {
            let record = self.chunk.batch.records.len();
            self.chunk.notes.crossings.push(Crossing::Seen { tid, record });
        }
    }

    fn interrupt(&mut self, tid: u32, begun: &Begun) {
        let mut raw = RawCall::new(begun.call, tid);
        raw.start = begun.start;
        let raw = join::without_result(&self.text[begun.text.clone()], raw, &mut self.chunk.batch);
        self.chunk.batch.records.push(Record::Call(raw));
    }

    #[inline]
    pub(super) fn count_duration(&mut self, raw: &RawCall) {
        if raw.duration != UNKNOWN {
            self.chunk.batch.counts.timed += 1;
        } else if raw.outcome != Outcome::NoResult {
            self.chunk.batch.counts.untimed += 1;
        }
    }

    fn begun(&mut self, prefix: Prefix, name: &[u8], text: &'a [u8]) -> bool {
        let Some(id) = self.id(name) else { return true };
        let mut raw = RawCall::new(id, self.tid(&prefix));
        raw.start = self.time(raw.tid, prefix.stamp);
        self.begin(raw, text);
        true
    }

    /// Adds a call whose end comes later. `raw` already has the thread, call and start.
    pub(super) fn begin(&mut self, mut raw: RawCall, text: &'a [u8]) {
        let tid = raw.tid;
        raw.phase = Phase::Enter;
        line::begun_call(text, &mut raw, &mut self.chunk.batch);
        self.meet(tid);
        let text = self.range(text);
        let begun = Begun { call: raw.call, start: raw.start, text, line: self.line };
        *self.threads.meet(tid).0 = Some(begun);
        self.just_begun = Some(tid);
        self.chunk.batch.counts.unfinished += 1;
        self.chunk.batch.records.push(Record::Call(raw));
    }

    /// Returns the position of a piece of the chunk's text.
    fn range(&self, piece: &[u8]) -> Range<usize> {
        let start = piece.as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + piece.len()
    }

    fn resumed(&mut self, prefix: Prefix, name: &[u8], text: &'a [u8], cut: bool) -> bool {
        let Some(id) = self.id(name) else { return true };
        let tid = self.tid(&prefix);
        let time = self.time(tid, prefix.stamp);
        let (open, _) = self.threads.meet(tid);
        let begun = open.take_if(|begun| begun.call == id);
        let mut raw = RawCall::new(id, tid);
        let read = match &begun {
            Some(begun) => {
                raw.start = begun.start;
                let first = &self.text[begun.text.clone()];
                join::ended_call(first, text, time, &mut self.scratch, &mut raw, &mut self.chunk.batch)
            }
            None => {
                raw.phase = Phase::Orphan;
                raw.end = time;
                line::orphaned_end(text, &mut raw, &mut self.chunk.batch)
            }
        };
        if read.is_none() || (cut && self.is_cut(&raw)) {
            // The log does not show the call's end, so the call continues.
            *self.threads.meet(tid).0 = begun;
            return false;
        }
        if begun.is_none() {
            let record = self.chunk.batch.records.len();
            let crossing = Crossing::Ended { tid, record, text: text.into(), line: self.line };
            self.chunk.notes.crossings.push(crossing);
        }
        self.chunk.batch.counts.resumed += 1;
        self.count_duration(&raw);
        self.chunk.batch.records.push(Record::Call(raw));
        true
    }

    fn task_end(&mut self, prefix: Prefix, text: &[u8]) -> bool {
        let tid = self.tid(&prefix);
        let time = self.time(tid, prefix.stamp);
        let Some(end) = line::task_end(text, tid, time, &mut self.chunk.batch) else { return false };
        self.meet(tid);
        self.mark(Sign::Last);
        self.chunk.batch.records.push(Record::End(end));
        if let Some(from) = end.superseded_by {
            // The thread that called execve continues under this thread's id, and so does its call.
            match self.threads.meet(from).0.take() {
                Some(begun) => *self.threads.meet(tid).0 = Some(begun),
                None => self.chunk.notes.crossings.push(Crossing::Moved { from, to: tid }),
            }
        }
        true
    }

    fn signal(&mut self, name: &[u8]) {
        let signals = &mut self.chunk.batch.counts.signals;
        let name = String::from_utf8_lossy(name);
        match signals.get_mut(name.as_ref()) {
            Some(count) => *count += 1,
            None => {
                signals.insert(name.into_owned(), 1);
            }
        }
    }

    pub(super) fn lose(&mut self, kind: LossKind, line: u64, text: &[u8]) {
        self.chunk.lose_at(kind, &self.reader.file, line, text);
    }

    /// Collects the data that the in-order step needs.
    fn close(self) {
        self.chunk.notes.times = self.times;
        self.chunk.notes.spans = self.threads.spans();
        for (tid, begun) in self.threads.into_open() {
            let text = self.text[begun.text].into();
            let open = Open { call: begun.call, start: begun.start, text, line: begun.line };
            self.chunk.notes.open.push((tid, open));
        }
    }
}
