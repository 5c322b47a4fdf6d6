//! Memory that the engine shares with its workers: a start barrier, a stop request, and the results of each.

use crate::histogram::Histogram;
use crate::plan::MOST_PHASES;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// State that all processes read. Zeroed memory is its initial value.
#[repr(C, align(64))]
pub struct Control {
    /// The first `go` phases may run; `STOP` ends everything.
    go: AtomicU32,
    /// Arrivals at barriers, over all workers and phases.
    arrived: AtomicU32,
    stop: AtomicU32,
}

const STOP: u32 = u32::MAX;

/// The state of the cache before a worker read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Pages {
    pub looked_at: u64,
    pub in_memory: u64,
    pub direct: u64,
}

/// The work of one worker in one phase.
#[repr(C)]
pub struct Record {
    pub start_ns: u64,
    pub end_ns: u64,
    pub operations: u64,
    pub bytes: u64,
    pub cpu_ns: u64,
    /// 1 if the time limit ended it.
    pub limited: u64,
    pub pages: Pages,
    pub histogram: Histogram,
}

/// A worker's own part, to which no other process writes.
#[repr(C, align(64))]
pub struct Slot {
    /// errno of a failure, 0 if there was none.
    pub error: i32,
    /// The failure in words.
    pub what: [u8; 64],
    pub records: [Record; MOST_PHASES],
}

/// The whole mapping, which forked processes share.
pub struct Shared {
    base: *mut u8,
    length: usize,
    workers: usize,
}

impl Shared {
    /// # Errors
    /// There is not enough memory for the workers.
    pub fn new(workers: usize) -> io::Result<Self> {
        let length = size_of::<Control>() + workers * size_of::<Slot>();
        let base = map_anonymous(length, libc::MAP_SHARED)?;
        Ok(Shared { base, length, workers })
    }

    pub fn control(&self) -> &Control {
        // SAFETY: the mapping begins with a Control, zeroes are a valid one, and it has only atomics.
        unsafe { &*self.base.cast::<Control>() }
    }

    fn slot_pointer(&self, worker: usize) -> *mut Slot {
        assert!(worker < self.workers);
        // SAFETY: within the mapping, whose length has room for all slots; Control's size is a multiple of 64.
        unsafe { self.base.add(size_of::<Control>()).cast::<Slot>().add(worker) }
    }

    /// A worker's part, to be read once it has ended or reached the next barrier.
    pub fn slot(&self, worker: usize) -> &Slot {
        // SAFETY: zeroes are a valid slot; the barrier or the process's end orders its writes before this.
        unsafe { &*self.slot_pointer(worker) }
    }

    /// A worker's own part, to write.
    #[allow(clippy::mut_from_ref)]
    pub fn own_slot(&self, worker: usize) -> &mut Slot {
        // SAFETY: only the worker of this number, in its own process and once, asks for it.
        unsafe { &mut *self.slot_pointer(worker) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing of it is borrowed any more.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// Zeroed memory. `sharing`: MAP_SHARED or MAP_PRIVATE.
pub fn map_anonymous(length: usize, sharing: i32) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = sharing | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping touches nothing that exists.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), length.max(1), protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base.cast())
}

impl Control {
    /// A worker is ready for phase `phase`; `false` if it must stop instead.
    pub fn arrive_and_wait(&self, phase: u32, workers: u32) -> bool {
        let arrived = self.arrived.fetch_add(1, Ordering::AcqRel) + 1;
        if arrived == workers * (phase + 1) {
            wake(&self.arrived);
        }
        loop {
            let go = self.go.load(Ordering::Acquire);
            if go == STOP {
                return false;
            }
            if go > phase {
                return true;
            }
            wait(&self.go, go, None);
        }
    }

    /// Waits at most `patience` for all to be ready for `phase`; returns whether they are.
    pub fn all_arrived(&self, phase: u32, workers: u32, patience: Duration) -> bool {
        let arrived = self.arrived.load(Ordering::Acquire);
        if arrived >= workers * (phase + 1) {
            return true;
        }
        wait(&self.arrived, arrived, Some(patience));
        self.arrived.load(Ordering::Acquire) >= workers * (phase + 1)
    }

    pub fn start(&self, phase: u32) {
        self.go.store(phase + 1, Ordering::Release);
        wake(&self.go);
    }

    /// All workers end at their next operation.
    pub fn stop(&self) {
        self.stop.store(1, Ordering::Release);
        self.go.store(STOP, Ordering::Release);
        wake(&self.go);
        wake(&self.arrived);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }
}

fn wait(word: &AtomicU32, expected: u32, patience: Option<Duration>) {
    let time = patience.map(|patience| libc::timespec {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_nsec: patience.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word lives in the mapping; the kernel only reads it and the time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, time) };
}

fn wake(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
