//! Measures how long the run and each of its tasks were in I/O calls, and how long they only waited in them.
//!
//! `src/iodock/program/relations/io_time.py` computes the same in SQL, for stores without these numbers and
//! for filtered questions. A test compares the results.

mod union;

use iodock_event::tables::TaskIo;
use iodock_event::{
    CallClass, CallId, CallSpec, Direction, EventColumns, FileEntry, FileKind, IoTime, Side, NONE, UNKNOWN,
};
use union::Union;

/// How a call contributes to the time in I/O.
#[derive(Clone, Copy, Debug, Default)]
struct Sort {
    /// Whether it is an I/O call even without a file.
    is_io: bool,
    /// Whether the call waits for something else, whatever its file is.
    waits: bool,
    /// Whether the call moves bytes, and thus waits if its file is a pipe or similar.
    moves: bool,
}

impl Sort {
    fn of(spec: &CallSpec) -> Sort {
        let waits = matches!(spec.family, "poll" | "select" | "epoll_wait" | "accept" | "connect");
        let moves = spec.class == CallClass::Data;
        let costs = matches!(spec.class, CallClass::Metadata | CallClass::Seek | CallClass::Sync);
        Sort { is_io: moves || costs || waits, waits, moves }
    }
}

/// Returns whether a transfer on this kind of file waits for another process, the network or a person.
fn is_waited_for(kind: FileKind, direction: u8) -> bool {
    use FileKind::*;
    match kind {
        Pipe | Socket | Fifo | Eventfd | Epoll | Timerfd | Signalfd | Inotify | Pidfd => true,
        Standard => direction == Direction::Read as u8,
        _ => false,
    }
}

/// Sums up the I/O calls of a run as they end.
#[derive(Debug, Default)]
pub struct IoTimes {
    sorts: Vec<Sort>,
    any: Union,
    /// Time in calls that did not wait. `None` until a call has waited, because both sums are equal until
    /// then.
    file: Option<Union>,
    tasks: Vec<TaskIo>,
    /// State of files that have a path, by file id. Bit 0: the data calls were counted as I/O. Bit 1: they
    /// were counted as waiting. Such a file may later prove to be a FIFO.
    taken: Vec<u8>,
    has_intervals: bool,
    has_durations: bool,
}

impl IoTimes {
    /// Adds the rows of `rows`. `files` is the tracker's table of files.
    pub fn add(&mut self, rows: &EventColumns, files: &[FileEntry]) {
        for (row, &dur) in rows.dur.iter().enumerate() {
            let is_again = [Side::Out as u8, Side::New as u8].contains(&rows.side[row]);
            if is_again || dur == UNKNOWN {
                continue;
            }
            self.has_durations = true;
            let (sort, file) = (self.sort(rows.call[row]), rows.file[row]);
            if file == NONE && !sort.is_io {
                continue;
            }
            let waits = sort.waits || (sort.moves && self.is_waiting(file, files, rows.direction[row]));
            self.add_to_task(rows.utid[row], dur, waits);
            self.add_interval(rows.ts[row], rows.end_ts[row], dur, waits);
        }
    }

    fn sort(&mut self, call: u16) -> Sort {
        if call as usize >= self.sorts.len() {
            self.sorts = CallId::all().map(|call| Sort::of(call.spec())).collect();
        }
        self.sorts.get(call as usize).copied().unwrap_or_default()
    }

    fn is_waiting(&mut self, file: u32, files: &[FileEntry], direction: u8) -> bool {
        let Some(entry) = files.get(file as usize) else { return false };
        let waits = is_waited_for(entry.kind, direction);
        if entry.kind.has_path() {
            if file as usize >= self.taken.len() {
                self.taken.resize(files.len(), 0);
            }
            self.taken[file as usize] |= 1 << u8::from(waits);
        }
        waits
    }

    fn add_to_task(&mut self, utid: u32, dur: i64, waits: bool) {
        if utid as usize >= self.tasks.len() {
            self.tasks.resize(utid as usize + 1, TaskIo::default());
        }
        let task = &mut self.tasks[utid as usize];
        let sum = if waits { &mut task.waiting } else { &mut task.io };
        *sum = sum.saturating_add(dur);
    }

    fn add_interval(&mut self, ts: i64, end_ts: i64, dur: i64, waits: bool) {
        if ts == UNKNOWN && end_ts == UNKNOWN {
            return;
        }
        self.has_intervals = true;
        let from = if ts == UNKNOWN { end_ts.saturating_sub(dur) } else { ts };
        let to = if end_ts == UNKNOWN { ts.saturating_add(dur) } else { end_ts };
        if waits && self.file.is_none() {
            self.file = Some(self.any.clone());
        }
        self.any.add(from, to);
        if let Some(file) = self.file.as_mut().filter(|_| !waits) {
            file.add(from, to);
        }
    }

    /// Returns whether the sums use enough memory that the caller should call [`IoTimes::shrink`].
    pub fn is_large(&self) -> bool {
        self.any.is_large() || self.file.as_ref().is_some_and(Union::is_large)
    }

    /// Frees memory. `begun` holds the start times of the calls that have not ended, in ascending order.
    pub fn shrink(&mut self, begun: &[i64]) {
        [Some(&mut self.any), self.file.as_mut()].into_iter().flatten().for_each(|union| union.shrink(begun));
    }

    /// Returns the times of the run and of its tasks. `files` is the tracker's table at the end. `None` if no
    /// call has a duration or the times cannot be computed exactly; readers then use the events.
    pub fn finish(mut self, files: &[FileEntry], tasks: usize) -> (Option<IoTime>, Vec<TaskIo>) {
        let turned = |(&taken, file): (&u8, &FileEntry)| {
            taken & !(1 << u8::from(is_waited_for(file.kind, Direction::Neither as u8))) != 0
        };
        if !self.has_durations || self.taken.iter().zip(files).any(turned) {
            return (None, Vec::new());
        }
        self.tasks.resize(tasks, TaskIo::default());
        let file = self.file.as_ref().unwrap_or(&self.any).total();
        let (Some(any), Some(file), true) = (self.any.total(), file, self.has_intervals) else {
            return (None, self.tasks);
        };
        (Some(IoTime { any, file }), self.tasks)
    }
}

#[cfg(test)]
mod tests;
