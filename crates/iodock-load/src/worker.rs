//! Provides the environment in which a worker runs a pattern: its position, its buffers, and its timer.

use crate::calls::{failed_of, numbered, Ended};
use crate::folders;
use crate::shared::{Control, Record};
use std::os::fd::{OwnedFd, RawFd};

/// Returns the time of one of the system's clocks, in nanoseconds.
#[inline]
pub fn now_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the struct, and these clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time since this machine's boot, in nanoseconds.
#[inline]
pub fn now() -> u64 {
    now_of(libc::CLOCK_MONOTONIC)
}

/// Position of a worker among all workers.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Index of the worker among the workers of all ranks.
    pub index: u32,
    pub total: u32,
    /// Index of the worker on its rank.
    pub local: u32,
    pub on_rank: u32,
    /// Number of ranks on one machine.
    pub ranks_per_node: u32,
}

impl Position {
    /// Returns the index of the worker whose files this worker reads. With several ranks these are files of
    /// the next machine, if the launcher fills one machine after the other, as is the default.
    pub fn read_from(&self) -> u32 {
        if !self.several_ranks() {
            return self.index;
        }
        let node = self.on_rank * self.ranks_per_node.max(1);
        (self.index + if node < self.total { node } else { self.on_rank }) % self.total
    }

    pub fn several_ranks(&self) -> bool {
        self.total > self.on_rank
    }
}

/// Data with which a pattern works.
pub struct Worker<'a> {
    pub position: Position,
    pub tree: RawFd,
    /// Descriptor of the worker's own folder.
    pub folder: OwnedFd,
    /// Random bytes to write. A slice of the size of the largest request may begin at any page within the
    /// first `source_slack` bytes.
    pub source: &'a [u8],
    pub source_slack: usize,
    /// Page-aligned buffer for the largest request.
    pub buffer: &'a mut [u8],
    pub control: &'a Control,
}

impl<'a> Worker<'a> {
    /// Checks for a stop request, in loops without a timer.
    ///
    /// # Errors
    /// Fails if the engine requested a stop.
    #[inline]
    pub fn go_on(&self) -> Result<(), Ended> {
        if self.control.is_stopped() {
            return Err(Ended::Stopped);
        }
        Ok(())
    }

    /// Returns the bytes that request `number` writes. Successive requests and other processes write
    /// different bytes.
    pub fn bytes_to_write(&self, number: u64, length: usize) -> &'a [u8] {
        let pages = (self.source_slack / 4096) as u64;
        let start =
            (u64::from(self.position.index).wrapping_mul(7919).wrapping_add(number) % pages) as usize * 4096;
        &self.source[start..start + length]
    }
}

/// Measures the operations of a phase. The end of one operation is the start of the next.
pub struct Timer<'a> {
    pub record: &'a mut Record,
    control: &'a Control,
    last_ns: u64,
    deadline_ns: u64,
}

impl<'a> Timer<'a> {
    /// Starts a timer at `start_ns`, with a limit of `limit_ns`.
    pub fn start(record: &'a mut Record, control: &'a Control, start_ns: u64, limit_ns: u64) -> Self {
        Timer { record, control, last_ns: start_ns, deadline_ns: start_ns.saturating_add(limit_ns) }
    }

    /// Records that an operation ended after moving `bytes`. Returns whether there is time for another.
    ///
    /// # Errors
    /// Fails if the engine requested a stop.
    #[inline]
    pub fn done(&mut self, bytes: u64) -> Result<bool, Ended> {
        let end = now();
        self.record.histogram.record(end - self.last_ns);
        self.record.operations += 1;
        self.record.bytes += bytes;
        self.last_ns = end;
        self.go_on()
    }

    /// Excludes the time since the last operation from the next one.
    pub fn skip(&mut self) -> Result<bool, Ended> {
        self.last_ns = now();
        self.go_on()
    }

    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    #[inline]
    fn go_on(&mut self) -> Result<bool, Ended> {
        if self.control.is_stopped() {
            return Err(Ended::Stopped);
        }
        if self.last_ns >= self.deadline_ns {
            self.record.limited = 1;
            return Ok(false);
        }
        Ok(true)
    }
}

/// A pattern's work in its phases. The clock runs only during [`Work::run`].
pub trait Work {
    /// Prepares phase `at`, before its barrier.
    fn prepare(&mut self, _worker: &mut Worker, _at: usize, _record: &mut Record) -> Result<(), Ended> {
        Ok(())
    }

    /// Runs the measured part of a phase.
    fn run(
        &mut self,
        worker: &mut Worker,
        at: usize,
        timer: &mut Timer,
        others: &mut [Record],
    ) -> Result<(), Ended>;

    /// Finishes a phase after its measured part.
    fn finish(&mut self, _worker: &mut Worker, _at: usize) -> Result<(), Ended> {
        Ok(())
    }
}

/// Opens the folder of a worker, either its own or another worker's.
pub fn folder_of(worker: &Worker, index: u32) -> Result<OwnedFd, Ended> {
    let name = numbered(b'w', u64::from(index));
    folders::open_directory(worker.tree, &name).map_err(|error| failed_of(&error, "open of a folder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_reads_what_the_next_one_wrote() {
        let at = |index| Position { index, total: 6, local: index % 2, on_rank: 2, ranks_per_node: 1 };
        assert_eq!((0..6).map(|index| at(index).read_from()).collect::<Vec<_>>(), [2, 3, 4, 5, 0, 1]);
        let alone = Position { index: 1, total: 2, local: 1, on_rank: 2, ranks_per_node: 1 };
        assert_eq!(alone.read_from(), 1);
        // There are two machines with three ranks each, and each rank has two processes.
        let far = |index| Position { index, total: 12, local: index % 2, on_rank: 2, ranks_per_node: 3 };
        assert!((0..12).all(|index| far(index).read_from() / 6 != index / 6));
        // All ranks are on one machine.
        let near = Position { index: 0, total: 12, local: 0, on_rank: 2, ranks_per_node: 6 };
        assert_eq!(near.read_from(), 2);
    }
}
