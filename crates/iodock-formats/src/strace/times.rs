//! Converts the time stamps of lines to times that never decrease. Handles clocks that start again at
//! midnight, clocks that are set back while a program runs, and differences to the previous line.

use super::prefix::Stamp;
use super::threads::Span;
use iodock_event::{Batch, Clock, Record, UNKNOWN};
use rustc_hash::FxHashMap;

const DAY: i64 = 86_400 * 1_000_000_000;
const HALF_DAY: i64 = DAY / 2;
/// Tolerance for the order of one thread's lines, ns. If a line is earlier than the thread's previous line by
/// more than this, the clock was set back. Lines of different threads do not show this, because a log may be
/// merged from several logs.
const JITTER: i64 = 1_000_000;

/// The time within one chunk. Days and sums count from the first line of the chunk, until
/// [`Timeline::settle`] adds those of the preceding chunks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    // Times of the first and the last line, within their day; set only for clocks without a date.
    first: Option<i64>,
    last: Option<i64>,
    /// Midnights so far, the amount by which the clock was set back, or the sum of differences, in ns.
    base: i64,
    /// The latest time of all lines and ends of calls; 0 before the first line.
    latest: i64,
}

impl Times {
    /// Returns the time of a line; [`UNKNOWN`] if its stamp has another form than those of the log.
    #[inline(always)]
    pub fn time(&mut self, clock: Clock, stamp: Stamp) -> i64 {
        if stamp.clock != clock {
            return UNKNOWN;
        }
        match clock {
            Clock::Epoch => self.base.saturating_add(stamp.ns),
            Clock::None => UNKNOWN,
            Clock::Day => self.of_day(stamp.ns),
            Clock::Relative => {
                self.base = self.base.saturating_add(stamp.ns);
                self.base
            }
        }
    }

    /// Returns the corrected time of a line, or `None` if it needs no correction. `last` is the time of the
    /// thread's previous line. If the clock was set back in between, all following times are moved after the
    /// latest line.
    #[inline(always)]
    pub fn in_order(&mut self, time: i64, last: i64) -> Option<i64> {
        if last != UNKNOWN && time < last.saturating_sub(JITTER) {
            self.base = self.base.saturating_add(self.latest - time);
            return Some(self.latest);
        }
        self.latest = self.latest.max(time);
        None
    }

    /// Notes the end of a call that began at `start`, without moving any time. Ignores durations of days,
    /// which may be damaged.
    #[inline(always)]
    pub fn lasted(&mut self, start: i64, duration: i64) {
        if start != UNKNOWN && (0..DAY).contains(&duration) {
            self.latest = self.latest.max(start.saturating_add(duration));
        }
    }

    #[inline(always)]
    fn of_day(&mut self, ns: i64) -> i64 {
        match self.last {
            Some(last) if ns + HALF_DAY < last => self.base = self.base.saturating_add(DAY),
            Some(_) => {}
            None => self.first = Some(ns),
        }
        self.last = Some(ns);
        self.base.saturating_add(ns)
    }
}

/// The time over all chunks so far.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    last: Option<i64>,
    base: i64,
    latest: i64,
    /// The time of each thread's last line.
    seen: FxHashMap<u32, i64>,
}

impl Timeline {
    /// Moves the times of a chunk after those of the previous chunks. Returns the amount, and whether the
    /// clock was set back between the chunks.
    pub fn settle(&mut self, times: &Times, spans: &[Span], batch: &mut Batch) -> (i64, bool) {
        if let (Some(last), Some(first)) = (self.last, times.first) {
            if first + HALF_DAY < last {
                self.base = self.base.saturating_add(DAY);
            }
        }
        let was_set_back = self.set_back(spans);
        if self.base != 0 {
            for record in &mut batch.records {
                shift(record, self.base);
            }
        }
        let moved_by = self.base;
        self.base = self.base.saturating_add(times.base);
        self.last = times.last.or(self.last);
        self.latest = self.latest.max(times.latest.saturating_add(moved_by));
        for span in spans {
            self.seen.insert(span.tid, span.last.saturating_add(moved_by));
        }
        (moved_by, was_set_back)
    }

    /// Returns whether a thread continues at an earlier time than before; if so, moves the base.
    fn set_back(&mut self, spans: &[Span]) -> bool {
        let first = |span: &Span| span.first.saturating_add(self.base);
        let is_back = |span: &Span| {
            self.seen.get(&span.tid).is_some_and(|&last| first(span) < last.saturating_sub(JITTER))
        };
        let earliest = spans.iter().filter(|span| is_back(span)).map(first).min();
        if let Some(earliest) = earliest {
            self.base = self.base.saturating_add(self.latest - earliest);
        }
        earliest.is_some()
    }
}

fn shift(record: &mut Record, by: i64) {
    let add = |time: &mut i64| {
        if *time != UNKNOWN {
            *time = time.saturating_add(by);
        }
    };
    match record {
        Record::Call(raw) => {
            add(&mut raw.start);
            add(&mut raw.end);
        }
        Record::End(end) => add(&mut end.time),
        Record::Start(_) | Record::Descriptor(_) | Record::Identity(_) | Record::Interface(_) => {}
    }
}
