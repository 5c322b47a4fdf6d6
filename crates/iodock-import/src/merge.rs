//! Merges several sources: records in the order in which calls begin and end, across all logs.

use crate::ImportError;
use iodock_event::{
    Batch, CallTotal, Clock, EventColumns, Losses, Phase, RawCall, Record, RecordSource, SourceCounts,
    UNKNOWN,
};
use iodock_tracker::Tracker;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A source, and the space its thread ids belong to.
pub struct Stream {
    source: Box<dyn RecordSource>,
    space: u16,
    batch: Batch,
    /// The next batch, read early so that a fork in it is known before its child's records are tracked.
    ahead: Option<Batch>,
    at: usize,
    /// The end of the call whose beginning was tracked last.
    ending: Option<RawCall>,
    /// The last time known, for records that have none.
    time: i64,
    /// Correction of its clock, ns: used only for the order.
    clock_offset: i64,
    pub counts: SourceCounts,
    pub losses: Losses,
    pub totals: Vec<CallTotal>,
}

impl Stream {
    /// Reads the first batches. `None` if the source contains no record at all.
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

    /// Whether it has counts by call and no calls.
    pub fn counts_only(&self) -> bool {
        self.ahead.as_ref().is_some_and(|first| !first.totals.is_empty())
    }

    /// Whether its calls have durations. Without these the order of ends is not known.
    pub fn has_durations(&self) -> bool {
        self.ahead.as_ref().is_none_or(|first| first.counts.timed > 0 || first.counts.untimed == 0)
    }

    /// Passes the forks in the next batch to the tracker. Once per batch, by `advance`, and once at the
    /// start.
    pub fn hint(&self, tracker: &mut Tracker) {
        if let Some(ahead) = &self.ahead {
            tracker.add_hints(self.space, &ahead.forks);
        }
    }

    /// Whether the source is followed as it grows, and the batch after the next is not complete.
    pub fn is_waiting(&mut self) -> Result<bool, ImportError> {
        Ok(self.source.is_waiting()?)
    }

    /// Reads data that arrived at the source since.
    pub fn go_on(&mut self, tracker: &mut Tracker) -> Result<(), ImportError> {
        self.source.go_on()?;
        if self.ahead.is_none() {
            self.ahead = self.source.next_batch()?;
            self.hint(tracker);
        }
        Ok(())
    }

    /// The next batch becomes the current one. False at the end, or if the one after the next, whose forks must be known then, is
    /// not complete.
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

    /// Tracks the whole current batch: for a single source.
    pub fn track_batch(&self, tracker: &mut Tracker, out: &mut EventColumns) {
        tracker.track(self.space, &self.batch, out);
    }

    /// Time of the next half of a call; `None` at the end of the batch.
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

    /// Tracks the next record or half of one. `until`: no other source has anything before this time.
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

/// A beginning counts where it starts, an end where it ends.
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

/// The streams, earliest first.
pub struct Merge {
    streams: Vec<Stream>,
    queue: BinaryHeap<Reverse<(i64, usize)>>,
}

impl Merge {
    pub fn new(mut streams: Vec<Stream>, tracker: &mut Tracker) -> Result<Self, ImportError> {
        let mut queue = BinaryHeap::with_capacity(streams.len());
        // All forks of first batches come before any record: a child's log may be listed before its parent's.
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

    /// Continues after the end with data that arrived at the sources since.
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

    /// Time up to which all sources are complete, ns since the epoch, as far as they contain it.
    pub fn until(&self) -> Option<i64> {
        self.streams.iter().filter_map(|stream| stream.source.until()).min()
    }

    /// Tracks about `rows` rows more. False at the end.
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
            // Stays with this stream while it is the earliest: logs of ranks have long runs of records.
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
    /// The time of the next step; reads the next batch at the end of the current one.
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
