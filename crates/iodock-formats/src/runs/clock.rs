//! Detects clocks that were set back, in logs whose lines are in the order in which calls end.

use iodock_event::{Batch, Phase, RawCall, Record, UNKNOWN};
use rustc_hash::FxHashMap;

/// The order of the lines in a log.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Whether only the lines of one thread are in order.
    pub by_thread: bool,
    /// Longest time by which a line may precede the previous line, ns.
    pub jitter: i64,
}

/// The times of a log up to the current line.
#[derive(Debug, Default)]
pub struct Clocked {
    first: Option<i64>,
    latest: i64,
    /// The sum of the times by which the clock was set back, ns.
    pub base: i64,
    seen: FxHashMap<u32, i64>,
}

/// A place where the clock was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of the first record after the place.
    pub record: usize,
    /// Whether the time returns to the log's beginning, so that another log begins here.
    pub anew: bool,
}

impl Clocked {
    /// Moves the times of the records after each such place behind all earlier times. Returns the places.
    pub fn follow(&mut self, order: Order, batch: &mut Batch) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, record) in batch.records.iter_mut().enumerate() {
            let (tid, time) = match record {
                Record::Call(raw) => (raw.tid, time_of(raw)),
                Record::End(end) => (end.tid, end.time),
                _ => continue,
            };
            if time == UNKNOWN {
                continue;
            }
            if let Some(anew) = self.is_back(order, tid, time.saturating_add(self.base)) {
                steps.push(Step { record: index, anew });
                self.base = self.latest.saturating_sub(time);
                self.first = None;
                self.seen.clear();
            }
            let time = time.saturating_add(self.base);
            self.latest = self.latest.max(time);
            self.first.get_or_insert(time);
            self.seen.insert(if order.by_thread { tid } else { 0 }, time);
            if self.base != 0 {
                shift(record, self.base);
            }
        }
        steps
    }

    /// Returns whether the time of a line is too early (`Some`) and, if so, whether another log begins there.
    fn is_back(&self, order: Order, tid: u32, time: i64) -> Option<bool> {
        let first = self.first?;
        let anew = time <= first && self.latest.saturating_sub(first) > order.jitter.max(ANEW);
        let last = self.seen.get(if order.by_thread { &tid } else { &0 });
        let back = last.is_some_and(|&last| time < last.saturating_sub(order.jitter));
        (anew || back).then_some(anew)
    }
}

/// Shortest duration of a log after which a new beginning can be recognised, ns.
const ANEW: i64 = 1_000_000;

/// Returns the time at which the line was printed.
fn time_of(raw: &RawCall) -> i64 {
    match raw.phase {
        _ if raw.end != UNKNOWN => raw.end,
        Phase::Enter => raw.start,
        _ if raw.start == UNKNOWN || raw.duration == UNKNOWN => raw.start,
        _ => raw.start.saturating_add(raw.duration),
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
