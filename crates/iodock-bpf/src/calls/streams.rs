//! The CPUs' streams of records, merged into one by time, a round or two ahead.

use super::rounds::{self, InCall, END, IN_CALL, IN_CALL_WORDS, NOTES, STRAGGLER_NS};
use crate::record::Record;
use iodock_event::SourceError;
use iodock_journal::JournalReader;

/// Of one CPU, or the recorder's notes.
struct Stream {
    what: u32,
    words: Vec<u64>,
    /// Taken up to here.
    at: usize,
}

impl Stream {
    #[inline]
    fn first(&self) -> Option<Record<'_>> {
        Record::first_of(&self.words[self.at..])
    }
}

pub struct Streams {
    pub reader: JournalReader,
    streams: Vec<Stream>,
    /// The stream that is being taken from, up to that time.
    current: Option<(usize, u64)>,
    /// Nothing older than this comes any more.
    until: u64,
    /// End of the round before the last.
    end: u64,
    /// Goes up when more is loaded.
    pub loads: u64,
    in_call: Vec<InCall>,
    in_call_time: u64,
    /// Parts that were not whole.
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
            damaged: 0,
        }
    }

    /// Goes to the next record of all, which [`record`](Self::record) gives then; `false` at the end.
    ///
    /// # Errors
    /// The file can't be read on.
    #[inline]
    pub fn find(&mut self) -> Result<bool, SourceError> {
        if let Some((at, limit)) = self.current {
            if self.streams[at].first().is_some_and(|record| record.time() <= limit) {
                return Ok(true);
            }
        }
        self.choose()
    }

    fn choose(&mut self) -> Result<bool, SourceError> {
        loop {
            let first = |(at, stream): (usize, &Stream)| Some((stream.first()?.time(), stream.what, at));
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
                    return Ok(true);
                }
                None if self.until == u64::MAX => return Ok(false),
                _ => self.load()?,
            }
        }
    }

    /// The record found.
    #[inline]
    pub fn record(&self) -> Option<Record<'_>> {
        self.streams[self.current?.0].first()
    }

    /// Passes over the record found.
    #[inline]
    pub fn advance(&mut self) {
        let Some((at, _)) = self.current else { return };
        let length = self.streams[at].first().map_or(0, |record| record.words.len());
        self.streams[at].at += length;
    }

    /// One more round. What is older than the one before it is complete then, and all calls that were in
    /// flight at its end are known: by their records, or as calls that had not ended.
    fn load(&mut self) -> Result<(), SourceError> {
        self.loads += 1;
        self.current = None;
        for stream in &mut self.streams {
            stream.words.drain(..stream.at);
            stream.at = 0;
        }
        let mut words = Vec::new();
        loop {
            let Some(payload) = self.reader.next_raw()? else {
                self.until = u64::MAX;
                return Ok(());
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
                return Ok(());
            }
        }
    }

    fn note_in_call(&mut self, part: &[u64]) {
        let Some((&time, calls)) = part.split_first() else { return };
        self.in_call_time = time;
        self.in_call = calls.chunks_exact(IN_CALL_WORDS).filter_map(InCall::from_words).collect();
    }

    /// Adds whole records only.
    fn add(&mut self, what: u32, part: &[u64]) {
        let mut whole = 0;
        while let Some(record) = Record::first_of(&part[whole..]) {
            whole += record.words.len();
        }
        self.damaged += u64::from(whole < part.len());
        let known = self.streams.iter().position(|stream| stream.what == what);
        let at = known.unwrap_or_else(|| {
            self.streams.push(Stream { what, words: Vec::new(), at: 0 });
            self.streams.len() - 1
        });
        self.streams[at].words.extend_from_slice(&part[..whole]);
    }

    /// Every record that was loaded and not taken yet, CPU by CPU.
    pub fn ahead(&self, mut look: impl FnMut(Record)) {
        for stream in self.streams.iter().filter(|stream| stream.what != NOTES) {
            let mut at = stream.at;
            while let Some(record) = Record::first_of(&stream.words[at..]) {
                look(record);
                at += record.words.len();
            }
        }
    }

    /// Calls that had not ended when it was looked, if that was after `time`.
    pub fn in_call_after(&self, time: u64) -> &[InCall] {
        if self.in_call_time >= time {
            &self.in_call
        } else {
            &[]
        }
    }
}
