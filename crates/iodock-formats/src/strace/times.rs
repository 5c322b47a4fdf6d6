//! From the stamps that lines show to times that only grow: clocks that start again at midnight,
//! differences to the previous line.

use super::prefix::Stamp;
use iodock_event::{Batch, Clock, Record, UNKNOWN};

const DAY: i64 = 86_400 * 1_000_000_000;
const HALF_DAY: i64 = DAY / 2;

/// A chunk's own time: days and sums count from its first line, until [`Timeline::settle`] adds what
/// came before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    // Stamps of the first and last line, as of their day; only for clocks without a date.
    first: Option<i64>,
    last: Option<i64>,
    /// Midnights so far, or the sum of differences, in ns.
    base: i64,
}

impl Times {
    /// The time of a line; [`UNKNOWN`] if it shows another kind of stamp than the log does.
    #[inline(always)]
    pub fn time(&mut self, clock: Clock, stamp: Stamp) -> i64 {
        if stamp.clock != clock {
            return UNKNOWN;
        }
        match clock {
            Clock::Epoch => stamp.ns,
            Clock::None => UNKNOWN,
            Clock::Day => self.of_day(stamp.ns),
            Clock::Relative => {
                self.base = self.base.saturating_add(stamp.ns);
                self.base
            }
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

/// The log's time over all chunks so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeline {
    last: Option<i64>,
    base: i64,
}

impl Timeline {
    /// Moves a chunk's times behind those of the chunks before it; says by how much.
    pub fn settle(&mut self, times: &Times, batch: &mut Batch) -> i64 {
        if let (Some(last), Some(first)) = (self.last, times.first) {
            if first + HALF_DAY < last {
                self.base = self.base.saturating_add(DAY);
            }
        }
        if self.base != 0 {
            for record in &mut batch.records {
                shift(record, self.base);
            }
        }
        let moved_by = self.base;
        self.base = self.base.saturating_add(times.base);
        self.last = times.last.or(self.last);
        moved_by
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
        Record::Start(_) | Record::Descriptor(_) => {}
    }
}
