//! The pipeline that all data take: streams of records, tracker, coverage, sink.

use crate::merge::{Merge, Stream};
use crate::ImportError;
use iodock_event::interfaces::{DatasetRow, HintRow, InterfaceRow};
use iodock_event::{
    CallId, CallTotal, EventColumns, IoTime, Losses, Side, SourceCounts, SourceError, TaskRow, TaskUsage,
    UNKNOWN,
};
use iodock_tracker::{Coverage, IoTimes, Tracked, Tracker};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of rows passed to the sink at a time: enough that the cost of its queue is small, and few enough to
/// stay in the processor's cache.
const ROWS: usize = 1 << 15;

/// Receives events. Encoding runs on the sink's own threads.
pub trait EventSink {
    /// Removes rows that are not to be stored, before anything is computed from them. `tasks` contains the
    /// tasks known so far.
    fn choose(&mut self, _columns: &mut EventColumns, _tasks: &[TaskRow]) {}

    /// Receives `columns`, and returns empty columns for reuse.
    fn write(&mut self, columns: EventColumns) -> Result<EventColumns, ImportError>;

    /// Receives interface calls that have ended, and the hints and data sets of the files that they opened.
    fn interface_calls(
        &mut self,
        _rows: &[InterfaceRow],
        _hints: &[HintRow],
        _datasets: &[DatasetRow],
    ) -> Result<(), ImportError> {
        Ok(())
    }

    /// Is called when everything is tracked, before the tables are made.
    fn tracked(&mut self, _tracker: &mut Tracker) -> Result<(), ImportError> {
        Ok(())
    }

    /// Returns the recorded resource usage of tasks, by space. Is called when everything is tracked.
    fn usages(&mut self) -> Result<Vec<(u16, Vec<TaskUsage>)>, ImportError> {
        Ok(Vec::new())
    }
}

/// Progress of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Number of bytes read from the sources, and the total number if known.
    pub bytes: u64,
    pub total_bytes: Option<u64>,
    pub calls: u64,
}

/// The results of an import, except for the events themselves.
#[derive(Debug, Default)]
pub struct Imported {
    pub tracked: Tracked,
    pub counts: SourceCounts,
    pub losses: Losses,
    pub calls: u64,
    pub rows: u64,
    /// Whether at least one call has a duration.
    pub durations: bool,
    /// Totals by call, for sources that show no single calls.
    pub totals: BTreeMap<CallId, CallTotal>,
    /// Time in I/O calls, if it can be computed.
    pub io: Option<IoTime>,
}

/// Reads `streams` to their end.
///
/// # Errors
/// A source cannot be read further, the sink cannot write, or `cancel` was set.
pub fn run(
    streams: Vec<Stream>,
    tracker: Tracker,
    coverage_bytes: usize,
    sink: &mut dyn EventSink,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<Imported, ImportError> {
    Running::new(streams, tracker, coverage_bytes)?.run_on(sink, progress, cancel)
}

/// The state of an import between two steps.
pub(crate) struct Running {
    feed: Feed,
    tracker: Tracker,
    coverage: Coverage,
    io_times: IoTimes,
    /// Rows that have not been passed to the sink yet.
    out: EventColumns,
    imported: Imported,
}

/// The state of the source after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// The source has no data now, but may get more.
    Waiting,
    Over,
}

impl Running {
    pub fn new(
        streams: Vec<Stream>,
        mut tracker: Tracker,
        coverage_bytes: usize,
    ) -> Result<Self, ImportError> {
        Ok(Running {
            feed: Feed::new(streams, &mut tracker)?,
            tracker,
            coverage: Coverage::new(coverage_bytes),
            io_times: IoTimes::default(),
            out: EventColumns::with_capacity(ROWS * 2),
            imported: Imported::default(),
        })
    }

    /// Tracks about `most` rows, and passes rows to the sink when there are `ROWS` of them. The division
    /// into passes does not depend on the sizes of steps or on the times when records arrived.
    pub fn step(&mut self, most: usize, sink: &mut dyn EventSink) -> Result<Step, ImportError> {
        let (feed, tracker) = (&mut self.feed, &mut self.tracker);
        let rows = self.out.len().saturating_add(most).min(ROWS);
        let more = feed.track(rows, tracker, &mut self.out)?;
        if !more && feed.is_waiting()? {
            return Ok(Step::Waiting);
        }
        if more && self.out.len() < ROWS {
            return Ok(Step::More);
        }
        let mut out = std::mem::take(&mut self.out);
        sink.choose(&mut out, tracker.tasks());
        self.coverage.annotate(&mut out, 0, tracker.tasks());
        self.io_times.add(&out, tracker.files());
        if self.io_times.is_large() {
            self.io_times.shrink(&tracker.beginnings());
        }
        self.imported.count(&out);
        self.out = sink.write(out)?;
        self.out.clear();
        let (calls, hints) = (tracker.take_interface_calls(), tracker.take_hints());
        sink.interface_calls(&calls, &hints, &tracker.take_datasets())?;
        Ok(if more { Step::More } else { Step::Over })
    }

    /// Returns the number of calls tracked so far.
    pub fn calls(&self) -> u64 {
        let mut counted = Imported { calls: self.imported.calls, ..Imported::default() };
        counted.count(&self.out);
        counted.calls
    }

    /// Reads data that has arrived at the source since the last step.
    pub fn go_on(&mut self) -> Result<(), ImportError> {
        self.feed.go_on(&mut self.tracker)
    }

    /// Reads the streams to their end, and computes the results.
    pub fn run_on(
        mut self,
        sink: &mut dyn EventSink,
        progress: &mut dyn FnMut(Progress),
        cancel: &AtomicBool,
    ) -> Result<Imported, ImportError> {
        loop {
            check(cancel)?;
            let step = self.step(ROWS, sink)?;
            progress(self.feed.progress(self.imported.calls));
            match step {
                Step::More => {}
                Step::Over => break,
                Step::Waiting => return Err(ImportError::Source(self.feed.cut_off())),
            }
        }
        // The import may have been cancelled while it waited for the last batch.
        check(cancel)?;
        self.finish(sink)
    }

    fn finish(self, sink: &mut dyn EventSink) -> Result<Imported, ImportError> {
        let Running { feed, mut tracker, coverage, io_times, mut imported, .. } = self;
        for stream in feed.streams() {
            imported.counts.add(&stream.counts);
            imported.losses.merge(&stream.losses);
            imported.add_totals(&stream.totals);
        }
        imported.losses.merge(&coverage.losses());
        for (space, usages) in sink.usages()? {
            tracker.add_usages(space, &usages);
        }
        let (calls, hints) = (tracker.take_last_interface_calls(), tracker.take_hints());
        sink.interface_calls(&calls, &hints, &tracker.take_datasets())?;
        sink.tracked(&mut tracker)?;
        imported.tracked = tracker.finish();
        let tables = &mut imported.tracked.tables;
        (imported.io, tables.task_io) = io_times.finish(&tables.files.entries, tables.tasks.len());
        imported.losses.merge(&imported.tracked.losses);
        Ok(imported)
    }
}

fn check(cancel: &AtomicBool) -> Result<(), ImportError> {
    if cancel.load(Ordering::Relaxed) {
        return Err(ImportError::Cancelled);
    }
    Ok(())
}

impl Imported {
    fn add_totals(&mut self, totals: &[CallTotal]) {
        for one in totals {
            self.totals.entry(one.call).and_modify(|sum| *sum = sum.with(one)).or_insert(*one);
            self.calls = self.calls.saturating_add(one.calls.unwrap_or(0).max(0) as u64);
            self.durations |= one.time.is_some();
        }
    }

    fn count(&mut self, rows: &EventColumns) {
        self.rows += rows.len() as u64;
        let second = [Side::Out as u8, Side::New as u8];
        self.calls += rows.side.iter().filter(|side| !second.contains(side)).count() as u64;
        self.durations = self.durations || rows.dur.iter().any(|&dur| dur != UNKNOWN);
    }
}

/// A single stream, which is read directly, or several streams, which are merged.
enum Feed {
    One(Box<Stream>),
    Many(Merge),
}

impl Feed {
    fn new(mut streams: Vec<Stream>, tracker: &mut Tracker) -> Result<Self, ImportError> {
        if streams.len() != 1 {
            return Ok(Feed::Many(Merge::new(streams, tracker)?));
        }
        let stream = streams.remove(0);
        stream.hint(tracker);
        Ok(Feed::One(Box::new(stream)))
    }

    /// Tracks until `out` has `rows` rows. Returns false at the end.
    fn track(
        &mut self,
        rows: usize,
        tracker: &mut Tracker,
        out: &mut EventColumns,
    ) -> Result<bool, ImportError> {
        match self {
            Feed::Many(merge) => merge.track(rows, tracker, out),
            Feed::One(stream) => {
                while out.len() < rows {
                    if !stream.advance(tracker)? {
                        return Ok(false);
                    }
                    stream.track_batch(tracker, out);
                }
                Ok(true)
            }
        }
    }

    /// Returns whether the source may get more data. This is possible only for a single source.
    fn is_waiting(&mut self) -> Result<bool, ImportError> {
        match self {
            Feed::One(stream) => stream.is_waiting(),
            Feed::Many(_) => Ok(false),
        }
    }

    fn go_on(&mut self, tracker: &mut Tracker) -> Result<(), ImportError> {
        match self {
            Feed::One(stream) => stream.go_on(tracker),
            Feed::Many(merge) => merge.go_on(tracker),
        }
    }

    /// Returns the error for a source that should be complete but still waits for data.
    fn cut_off(&self) -> SourceError {
        SourceError {
            file: "the recording".into(),
            line: None,
            message: "it is not complete".into(),
            hint: "open the store again".into(),
        }
    }

    fn streams(&self) -> &[Stream] {
        match self {
            Feed::One(stream) => std::slice::from_ref(stream),
            Feed::Many(merge) => merge.streams(),
        }
    }

    fn progress(&self, calls: u64) -> Progress {
        let parts = || self.streams().iter().map(Stream::progress);
        Progress {
            bytes: parts().map(|(done, _)| done).sum(),
            total_bytes: parts().map(|(_, total)| total).sum(),
            calls,
        }
    }
}
