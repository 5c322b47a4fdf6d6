//! Copies the events of all parts in the order in which their calls ended.

use super::numbers::Numbers;
use super::part::Part;
use crate::pipeline::Progress;
use crate::ImportError;
use iodock_event::event::EventRow;
use iodock_event::{EventColumns, Losses, Side, NONE, UNKNOWN};
use iodock_store::{EventReader, StoreWriter};
use iodock_tracker::{Coverage, DEFAULT_COVERAGE_BYTES};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of rows passed to the store at a time.
const ROWS: usize = 1 << 15;
/// Number of rows that all parts together may have read ahead.
const AHEAD: usize = 1 << 17;
const LEAST_AHEAD: usize = 256;

struct Source<'a> {
    part: &'a Part,
    reader: EventReader,
    rows: EventColumns,
    at: usize,
    ahead: usize,
    /// The last known time, on the clock of the merged store.
    time: i64,
}

impl Source<'_> {
    /// Returns the time when the next row's call ended; `None` at the end.
    fn load(&mut self) -> Result<Option<i64>, ImportError> {
        if self.at == self.rows.len() {
            self.rows.clear();
            self.at = 0;
            if !self.reader.read(self.ahead, &mut self.rows)? {
                return Ok(None);
            }
        }
        let (rows, at) = (&self.rows, self.at);
        let end = match (rows.end_ts[at], rows.ts[at], rows.dur[at]) {
            (UNKNOWN, UNKNOWN, _) => UNKNOWN,
            (UNKNOWN, ts, UNKNOWN) => ts,
            (UNKNOWN, ts, dur) => ts.saturating_add(dur),
            (end, ..) => end,
        };
        if end != UNKNOWN {
            // Times never decrease within a part, so that its rows keep their order.
            self.time = self.time.max(end.saturating_add(self.part.clock_offset));
        }
        Ok(Some(self.time))
    }

    /// Returns whether the next row is the other end of the previous row's call.
    fn belongs_to_last(&self) -> bool {
        let side = self.rows.side.get(self.at).copied();
        side.is_some_and(|side| side == Side::Out as u8 || side == Side::New as u8)
    }

    fn take(&mut self) -> EventRow {
        let row = self.rows.row(self.at);
        self.at += 1;
        renumbered(row, self.part)
    }
}

fn renumbered(row: EventRow, part: &Part) -> EventRow {
    let file = |id: u32| part.files.get(id as usize).copied().unwrap_or(NONE);
    let moved = |id: u32, first: u32| if id == NONE { NONE } else { id.saturating_add(first) };
    EventRow {
        call: part.calls.get(row.call as usize).copied().unwrap_or(row.call),
        errno: part.errnos.get(row.errno as usize).copied().unwrap_or(u16::MAX),
        utid: row.utid.saturating_add(part.first_utid),
        file: file(row.file),
        other_file: file(row.other_file),
        handle: moved(row.handle, part.first_handle),
        interface_call: moved(row.interface_call, part.first_interface_call),
        site: part.sites.get(row.site as usize).copied().unwrap_or(NONE),
        stack: part.stacks.get(row.stack as usize).copied().unwrap_or(NONE),
        // These values refer to one part alone, so the coverage computes them again.
        own_read: UNKNOWN,
        any_read: UNKNOWN,
        own_written: UNKNOWN,
        any_written: UNKNOWN,
        ..row
    }
}

/// Copies the events of all parts to the store, and returns the losses of the coverage.
///
/// # Errors
/// A part cannot be read, the store cannot be written, or `cancel` was set.
pub fn copy(
    parts: &[Part],
    numbers: &Numbers,
    writer: &mut StoreWriter,
    (progress, cancel): (&mut dyn FnMut(Progress), &AtomicBool),
) -> Result<Losses, ImportError> {
    let ahead = (AHEAD / parts.len().max(1)).clamp(LEAST_AHEAD, ROWS);
    let source = |part| Source {
        part,
        reader: Part::events(part),
        rows: EventColumns::default(),
        at: 0,
        ahead,
        time: i64::MIN,
    };
    let mut sources: Vec<Source> = parts.iter().map(source).collect();
    let mut queue = BinaryHeap::new();
    for (index, source) in sources.iter_mut().enumerate() {
        queue.extend(source.load()?.map(|time| Reverse((time, index))));
    }
    let mut coverage = Coverage::new(DEFAULT_COVERAGE_BYTES);
    let tasks = &numbers.tables.tasks;
    let process_of = |utid: u32| tasks.get(utid as usize).map_or(NONE, |task| task.upid);
    let total = parts.iter().map(|part| part.rows("events")).sum();
    let mut out = EventColumns::with_capacity(ROWS + 1);
    let mut done = 0;
    while let Some(Reverse((_, index))) = queue.pop() {
        let until = queue.peek().map_or(i64::MAX, |Reverse((time, _))| *time);
        let source = &mut sources[index];
        loop {
            out.push(&source.take());
            let next = source.load()?;
            let goes_on =
                next.is_some_and(|time| time <= until) || next.is_some() && source.belongs_to_last();
            if out.len() >= ROWS && !(next.is_some() && source.belongs_to_last()) {
                if cancel.load(Ordering::Relaxed) {
                    return Err(ImportError::Cancelled);
                }
                coverage.annotate_by(&mut out, 0, process_of);
                done += out.len() as u64;
                out = writer.write_events(out)?.unwrap_or_default();
                progress(Progress { bytes: done, total_bytes: Some(total), calls: done });
            }
            if !goes_on {
                queue.extend(next.map(|time| Reverse((time, index))));
                break;
            }
        }
    }
    coverage.annotate_by(&mut out, 0, process_of);
    writer.write_events(out)?;
    Ok(coverage.losses())
}
