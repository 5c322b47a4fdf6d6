//! Merges several sources, so that records come in the order in which calls begin and end in all logs.

use crate::ImportError;
use iodock_event::{
    Batch, CallTotal, Clock, EventColumns, Losses, Phase, RawCall, Record, RecordSource, SourceCounts,
    UNKNOWN,
};
use iodock_tracker::Tracker;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A source, and the space to which its thread ids belong.
pub struct Stream {
    source: Box<dyn RecordSource>,
    space: u16,
    batch: Batch,
    /// The next batch. It is read early so that the tracker knows the forks in it before it tracks records of
    /// their children.
    ahead: Option<Batch>,
    at: usize,
    /// The call whose beginning was tracked last, until its end is tracked.
    ending: Option<RawCall>,
    /// The last known time, which is used for records without a time.
    time: i64,
    /// Correction of the source's clock, ns. It is used only to order records.
    clock_offset: i64,
    pub counts: SourceCounts,
    pub losses: Losses,
    pub totals: Vec<CallTotal>,
}

impl Stream {
    /// Reads the first batches. Returns `None` if the source contains no records.
    pub fn new(source: Box<dyn RecordSource>, space: u16) -> Result<Self, ImportError> {
        let mut stream = Stream {
            source,
            space,
            batch: Batch::default(),
            ahead: None,
            at: 0,
            ending: None,
            time: UNKNOWN,
            clock_offset: 0,
            counts: SourceCounts::default(),
            losses: Losses::default(),
            totals: Vec::new(),
        };
        stream.ahead = stream.source.next_batch()?;
        Ok(stream)
    }

    pub fn with_clock_offset(self, clock_offset: i64) -> Self {
        Stream { clock_offset, ..self }
    }

    pub fn clock(&self) -> Clock {
        self.source.clock()
    }

    pub fn progress(&self) -> (u64, Option<u64>) {
        self.source.progress()
    }

    pub fn space(&self) -> u16 {
        self.space
    }

    /// Returns whether the source has totals by call instead of single calls.
    pub fn counts_only(&self) -> bool {
        self.ahead.as_ref().is_some_and(|first| !first.totals.is_empty())
    }

    /// Returns whether the source's calls have durations. Without durations the order of their ends is
    /// unknown.
    pub fn has_durations(&self) -> bool {
        self.ahead.as_ref().is_none_or(|first| first.counts.timed > 0 || first.counts.untimed == 0)
    }

    /// Passes the forks in the next batch to the tracker. Each batch is passed once: the first one at the
    /// start, the others by `advance`.
    pub fn hint(&self, tracker: &mut Tracker) {
        if let Some(ahead) = &self.ahead {
            tracker.add_hints(self.space, &ahead.forks);
        }
    }

    /// Returns whether the source is still growing and its batch after the next is incomplete.
    pub fn is_waiting(&mut self) -> Result<bool, ImportError> {
        Ok(self.source.is_waiting()?)
    }

    /// Reads data that has arrived at the source since the last call.
    pub fn go_on(&mut self, tracker: &mut Tracker) -> Result<(), ImportError> {
        self.source.go_on()?;
        if self.ahead.is_none() {
            self.ahead = self.source.next_batch()?;
            self.hint(tracker);
        }
        Ok(())
    }

    /// Makes the next batch the current one. Returns false at the end, and if the following batch, whose
    /// forks must be known first, is still incomplete.
    pub fn advance(&mut self, tracker: &mut Tracker) -> Result<bool, ImportError> {
        if self.source.is_waiting()? {
            return Ok(false);
        }
        let Some(next) = self.ahead.take() else { return Ok(false) };
        self.counts.add(&next.counts);
        self.losses.merge(&next.losses);
        self.totals.extend(&next.totals);
        let done = std::mem::replace(&mut self.batch, next);
        self.source.recycle(done);
        self.at = 0;
        self.ahead = self.source.next_batch()?;
        self.hint(tracker);
        Ok(true)
    }

    /// Tracks the whole current batch. This is for a single source.
    pub fn track_batch(&self, tracker: &mut Tracker, out: &mut EventColumns) {
        tracker.track(self.space, &self.batch, out);
    }

    /// Returns the time of the next record, or of the end of the current call; `None` at the end of the
    /// batch.
    fn next_time(&mut self) -> Option<i64> {
        let time = match &self.ending {
            Some(call) => call.end_time(),
            None => record_time(self.batch.records.get(self.at)?),
        };
        if time != UNKNOWN {
            self.time = time.saturating_add(self.clock_offset);
        }
        Some(self.time)
    }

    /// Tracks the next record, or the beginning or end of a call. `until`: no other source has a record
    /// before this time.
    fn step(&mut self, until: i64, tracker: &mut Tracker, out: &mut EventColumns) {
        if let Some(call) = self.ending.take() {
            tracker.record(self.space, &self.batch, &Record::Call(call), out);
            return;
        }
        let record = self.batch.records[self.at];
        self.at += 1;
        if let Record::Call(call) = record {
            let end = call.end_time();
            if call.phase == Phase::Whole
                && call.start != UNKNOWN
                && end != UNKNOWN
                && end.saturating_add(self.clock_offset) > until
            {
                let half = |phase| RawCall { phase, ..call };
                tracker.record(self.space, &self.batch, &Record::Call(half(Phase::Enter)), out);
                self.ending = Some(half(Phase::Exit));
                return;
            }
        }
        tracker.record(self.space, &self.batch, &record, out);
    }
}

/// Returns the time by which a record is ordered: the end for a record of an end, else the start.
fn record_time(record: &Record) -> i64 {
    match record {
        Record::Call(call) if matches!(call.phase, Phase::Exit | Phase::Orphan) => call.end_time(),
        Record::Call(call) if call.start != UNKNOWN => call.start,
        Record::Call(call) => call.end_time(),
        Record::End(end) => end.time,
        Record::Start(start) => start.time,
        Record::Interface(interface) => interface.time,
        Record::Descriptor(_) | Record::Identity(_) => UNKNOWN,
    }
}

/// The streams, and a queue from which the stream with the earliest record is taken first.
pub struct Merge {
    streams: Vec<Stream>,
    queue: BinaryHeap<Reverse<(i64, usize)>>,
}

impl Merge {
    pub fn new(mut streams: Vec<Stream>, tracker: &mut Tracker) -> Result<Self, ImportError> {
        let mut queue = BinaryHeap::with_capacity(streams.len());
        // The tracker gets the forks of all first batches before any record, because a child's log may be
        // listed before its parent's.
        streams.iter().for_each(|stream| stream.hint(tracker));
        for (index, stream) in streams.iter_mut().enumerate() {
            if let Some(time) = stream.load(tracker)? {
                queue.push(Reverse((time, index)));
            }
        }
        Ok(Merge { streams, queue })
    }

    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Continues after the end, with data that has arrived at the sources since.
    pub fn go_on(&mut self, tracker: &mut Tracker) -> Result<(), ImportError> {
        let waiting: Vec<usize> = self.queue.iter().map(|&Reverse((_, index))| index).collect();
        for (index, stream) in self.streams.iter_mut().enumerate() {
            stream.go_on(tracker)?;
            if !waiting.contains(&index) {
                self.queue.extend(stream.load(tracker)?.map(|time| Reverse((time, index))));
            }
        }
        Ok(())
    }

    /// Returns the time up to which all sources are complete, in ns since the epoch, if the sources contain
    /// it.
    pub fn until(&self) -> Option<i64> {
        self.streams.iter().filter_map(|stream| stream.source.until()).min()
    }

    /// Tracks about `rows` more rows. Returns false at the end.
    pub fn track(
        &mut self,
        rows: usize,
        tracker: &mut Tracker,
        out: &mut EventColumns,
    ) -> Result<bool, ImportError> {
        while out.len() < rows {
            let Some(Reverse((_, index))) = self.queue.pop() else { return Ok(false) };
            let until = self.queue.peek().map_or(i64::MAX, |Reverse((time, _))| *time);
            let stream = &mut self.streams[index];
            // The loop stays with this stream while it has the earliest record, because the log of a rank
            // often has many records before the next rank's.
            loop {
                stream.step(until, tracker, out);
                match stream.load(tracker)? {
                    Some(time) if time <= until && out.len() < rows => {}
                    Some(time) => break self.queue.push(Reverse((time, index))),
                    None => break,
                }
            }
        }
        Ok(true)
    }
}

impl Stream {
    /// Returns the time of the next step. At the end of the current batch, reads the next one.
    fn load(&mut self, tracker: &mut Tracker) -> Result<Option<i64>, ImportError> {
        loop {
            if let Some(time) = self.next_time() {
                return Ok(Some(time));
            }
            if !self.advance(tracker)? {
                return Ok(None);
            }
        }
    }
}
