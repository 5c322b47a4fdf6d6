//! Sorts records by the time at which calls end. perf reads the buffers of the CPUs one after the other, so
//! its lines are not sorted.

use iodock_event::{Batch, RawCall, Record, UNKNOWN};
use rustc_hash::FxHashMap;

/// Longest time by which a line may be late, ns. perf reads all buffers ten times a second, but less often on
/// a busy machine.
const WINDOW: i64 = 2_000_000_000;
/// Largest number of records held back. One buffer holds about this number (512 KiB, 130 bytes per call).
const HELD: usize = 4096;
/// Rounding error in ns. perf rounds both the beginning and the duration of a call to a microsecond.
const ROUNDING: i64 = 2000;

/// Sorts records, and carries the newest records of a chunk into the next one.
#[derive(Default)]
pub struct Sorter {
    held: Batch,
    /// The time at which each held record ended, in ns.
    times: Vec<i64>,
    latest: i64,
    latest_of_thread: FxHashMap<u32, i64>,
}

impl Sorter {
    /// Sorts the batch together with the records held back. If `last` is true, no record is held back.
    pub fn sort(&mut self, batch: &mut Batch, last: bool) {
        let mut times = std::mem::take(&mut self.times);
        let fresh = std::mem::take(&mut batch.records);
        for &record in &self.held.records {
            batch.push_copy(record, &self.held);
        }
        self.held.clear();
        times.extend(fresh.iter().map(|record| self.time_of(record)));
        batch.records.extend(fresh);

        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by_key(|&index| times[index]);
        let until = self.latest.saturating_sub(WINDOW);
        let settled = if last { order.len() } else { order.partition_point(|&index| times[index] < until) };
        let (out, held) = order.split_at(settled.max(order.len().saturating_sub(HELD)));
        for &index in held {
            self.held.push_copy(batch.records[index], batch);
        }
        self.times = held.iter().map(|&index| times[index]).collect();
        batch.records = out.iter().map(|&index| batch.records[index]).collect();
    }

    /// Returns the time at which the call ended. If perf does not show it, returns the time of the thread's
    /// previous line.
    fn time_of(&mut self, record: &Record) -> i64 {
        let (tid, time) = match record {
            Record::Call(raw) => (raw.tid, end_of(raw)),
            Record::End(end) => (end.tid, end.time),
            _ => return self.latest,
        };
        let time = match time {
            UNKNOWN => self.latest_of_thread.get(&tid).copied().unwrap_or(self.latest),
            time => match self.latest_of_thread.get(&tid) {
                Some(&before) if before.saturating_sub(time) <= ROUNDING => time.max(before),
                _ => time,
            },
        };
        self.latest_of_thread.insert(tid, time);
        self.latest = self.latest.max(time);
        time
    }
}

/// Returns the time at which the call ended, or began if perf does not show the end.
fn end_of(raw: &RawCall) -> i64 {
    match raw.end_time() {
        UNKNOWN => raw.start,
        end => end,
    }
}
