//! Merges the CPUs' streams of records by time. It reads one or two rounds ahead.

use super::rounds::{self, InCall, END, IN_CALL, IN_CALL_WORDS, NOTES, STRAGGLER_NS};
use crate::format::Kind;
use crate::record::Record;
use iodock_event::SourceError;
use iodock_journal::JournalReader;
use std::collections::HashMap;

/// Unread records of one CPU, or the recorder's notes.
struct Stream {
    what: u32,
    words: Vec<u64>,
    /// Index of the first word that was not consumed yet.
    at: usize,
    /// Time of the previous record.
    time: u64,
    /// Fields that a following short record inherits from the previous small record.
    left_out: u64,
}

impl Stream {
    #[inline]
    fn first(&self) -> Option<Record<'_>> {
        Record::first_of(&self.words[self.at..])
    }

    #[inline]
    fn first_time(&self) -> Option<u64> {
        self.first().map(|record| record.time_after(self.time))
    }
}

pub struct Streams {
    pub reader: JournalReader,
    streams: Vec<Stream>,
    /// Index of the stream being consumed, and the time up to which its records come before those of the
    /// other streams.
    current: Option<(usize, u64)>,
    /// All records up to this time are loaded.
    until: u64,
    /// Time of the end of the most recently loaded round.
    end: u64,
    /// Number of loaded rounds.
    pub loads: u64,
    in_call: Vec<InCall>,
    in_call_time: u64,
    /// Size and result of each task's last small record.
    small: HashMap<u32, (u32, u32)>,
    /// The expanded form of the current record if it is short, and its number of words; else 0 words.
    expanded: ([u64; 5], usize),
    /// Number of incomplete parts, and of short records whose reference is missing.
    pub damaged: u64,
}

impl Streams {
    pub fn new(reader: JournalReader) -> Self {
        let streams = Vec::new();
        let (in_call, in_call_time) = (Vec::new(), 0);
        Streams {
            reader,
            streams,
            current: None,
            until: 0,
            end: 0,
            loads: 0,
            in_call,
            in_call_time,
            small: HashMap::new(),
            expanded: ([0; 5], 0),
            damaged: 0,
        }
    }

    /// Moves to the next record of all streams, which [`record`](Self::record) then returns. Returns `false`
    /// at the end.
    ///
    /// # Errors
    /// Fails if the file can't be read further.
    #[inline]
    pub fn find(&mut self) -> Result<bool, SourceError> {
        if let Some((at, limit)) = self.current {
            if self.streams[at].first_time().is_some_and(|time| time <= limit) {
                self.expand(at);
                return Ok(true);
            }
        }
        self.choose()
    }

    fn choose(&mut self) -> Result<bool, SourceError> {
        loop {
            let first = |(at, stream): (usize, &Stream)| Some((stream.first_time()?, stream.what, at));
            let (mut best, mut second) = (None, None);
            for found in self.streams.iter().enumerate().filter_map(first) {
                match best {
                    Some(known) if known <= found => second = second.min(Some(found)).or(Some(found)),
                    _ => second = best.replace(found),
                }
            }
            match best {
                Some((time, _, at)) if time <= self.until => {
                    let next = second.map_or(u64::MAX, |(time, _, _)| time);
                    self.current = Some((at, next.min(self.until)));
                    self.expand(at);
                    return Ok(true);
                }
                None if self.until == u64::MAX => return Ok(false),
                _ if self.load()? => {}
                _ => return Ok(false),
            }
        }
    }

    /// Expands the current record if it is short, and stores the values that the next short record may leave
    /// out.
    #[inline]
    fn expand(&mut self, at: usize) {
        self.expanded.1 = 0;
        let stream = &self.streams[at];
        let Some(record) = stream.first() else { return };
        let (kind, time) = (record.kind(), record.time_after(stream.time));
        let left_out = record.left_out();
        match kind {
            // The kernel's programs never write such a record, so the file is damaged.
            Kind::Again if stream.left_out == 0 => {
                self.damaged += 1;
                return;
            }
            Kind::Again => {
                let short = record.shortened(time, stream.left_out);
                let short = Record { words: &short };
                self.expanded = short.expanded(time, self.before(short.tid()));
                return;
            }
            Kind::Short | Kind::ShortPositioned | Kind::ShortSized => {
                self.expanded = record.expanded(time, self.before(record.tid()));
            }
            Kind::Small | Kind::Positioned => {}
            _ => return,
        }
        self.streams[at].left_out = left_out.unwrap_or(0);
        if matches!(kind, Kind::Short | Kind::ShortPositioned) {
            return;
        }
        let Some(whole) = self.record_of(at) else { return };
        let (tid, (_, result), (_, size)) = (whole.tid(), whole.halves(2), whole.halves(3));
        self.small.insert(tid, (size, result));
    }

    /// Returns size and result of a thread's previous small record.
    #[inline]
    fn before(&self, tid: u32) -> (u32, u32) {
        self.small.get(&tid).copied().unwrap_or_default()
    }

    /// Returns the current record.
    #[inline]
    pub fn record(&self) -> Option<Record<'_>> {
        self.record_of(self.current?.0)
    }

    /// Returns the first record of a stream, in expanded form if it is short.
    #[inline]
    fn record_of(&self, at: usize) -> Option<Record<'_>> {
        match self.expanded {
            (_, 0) => self.streams[at].first(),
            (ref words, count) => Some(Record { words: &words[..count] }),
        }
    }

    /// Skips the current record.
    #[inline]
    pub fn advance(&mut self) {
        let Some((at, _)) = self.current else { return };
        let stream = &mut self.streams[at];
        let Some(record) = stream.first() else { return };
        let (time, length) = (record.time_after(stream.time), record.words.len());
        (stream.time, stream.at) = (time, stream.at + length);
    }

    /// Loads one more round. All records before the previous round's end are then loaded, and all calls in
    /// flight at that time are known from their records or from the list of unfinished calls. Returns false
    /// if the recorder has not yet written another round.
    fn load(&mut self) -> Result<bool, SourceError> {
        self.loads += 1;
        self.current = None;
        for stream in &mut self.streams {
            stream.words.drain(..stream.at);
            stream.at = 0;
        }
        let mut words = Vec::new();
        loop {
            let Some(payload) = self.reader.next_raw()? else {
                let is_over = !self.reader.is_growing() || self.reader.closing().is_some();
                self.until = if is_over { u64::MAX } else { self.until };
                return Ok(is_over);
            };
            words.clear();
            let eights = payload.chunks_exact(8).filter_map(|eight| eight.try_into().ok());
            words.extend(eights.map(u64::from_le_bytes));
            let mut ended = None;
            for (what, part) in rounds::parts(&words) {
                match what {
                    END => ended = part.first().copied(),
                    IN_CALL => self.note_in_call(part),
                    _ => self.add(what, part),
                }
            }
            if let Some(end) = ended {
                self.until = self.end.saturating_sub(STRAGGLER_NS);
                self.end = end;
                return Ok(true);
            }
        }
    }

    fn note_in_call(&mut self, part: &[u64]) {
        let Some((&time, calls)) = part.split_first() else { return };
        self.in_call_time = time;
        self.in_call = calls.chunks_exact(IN_CALL_WORDS).filter_map(InCall::from_words).collect();
    }

    /// Adds the complete records of a part to its stream.
    fn add(&mut self, what: u32, part: &[u64]) {
        let mut whole = 0;
        while let Some(record) = Record::first_of(&part[whole..]) {
            whole += record.words.len();
        }
        self.damaged += u64::from(whole < part.len());
        let known = self.streams.iter().position(|stream| stream.what == what);
        let at = known.unwrap_or_else(|| {
            self.streams.push(Stream { what, words: Vec::new(), at: 0, time: 0, left_out: 0 });
            self.streams.len() - 1
        });
        self.streams[at].words.extend_from_slice(&part[..whole]);
    }

    /// Calls `look` with every record that was loaded and not consumed yet, CPU by CPU. Short records are
    /// expanded without size and result.
    pub fn ahead(&self, mut look: impl FnMut(Record)) {
        for stream in self.streams.iter().filter(|stream| stream.what != NOTES) {
            let (mut at, mut time, mut left_out) = (stream.at, stream.time, stream.left_out);
            while let Some(record) = Record::first_of(&stream.words[at..]) {
                time = record.time_after(time);
                let short = record.shortened(time, left_out);
                let shown = if record.kind() == Kind::Again { Record { words: &short } } else { record };
                if shown.is_short() {
                    let (words, count) = shown.expanded(time, (0, 0));
                    look(Record { words: &words[..count] });
                } else {
                    look(record);
                }
                left_out = record.left_out().unwrap_or(left_out);
                at += record.words.len();
            }
        }
    }

    /// Returns the calls that were in flight when the recorder last checked, if that was not before `time`.
    pub fn in_call_after(&self, time: u64) -> &[InCall] {
        if self.in_call_time >= time {
            &self.in_call
        } else {
            &[]
        }
    }
}
