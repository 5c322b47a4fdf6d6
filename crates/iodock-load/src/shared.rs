//! Memory that the engine shares with its workers: a start barrier, a stop request, and the results of each
//! worker.

use crate::histogram::Histogram;
use crate::plan::MOST_PHASES;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// State that all processes read. Zeroed memory is a valid initial state.
#[repr(C, align(64))]
pub struct Control {
    /// Number of phases that may run; `STOP` ends all workers.
    go: AtomicU32,
    /// Number of arrivals at barriers, over all workers and phases.
    arrived: AtomicU32,
    stop: AtomicU32,
}

const STOP: u32 = u32::MAX;

/// Cached pages of the files before a worker read them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Pages {
    pub looked_at: u64,
    pub in_memory: u64,
    pub direct: u64,
}

/// Work of one worker in one phase.
#[repr(C)]
pub struct Record {
    pub start_ns: u64,
    pub end_ns: u64,
    pub operations: u64,
    pub bytes: u64,
    pub cpu_ns: u64,
    /// Whether the time limit stopped the phase: 1 or 0.
    pub limited: u64,
    pub pages: Pages,
    pub histogram: Histogram,
}

/// Part of the memory to which only one worker writes.
#[repr(C, align(64))]
pub struct Slot {
    /// errno of a failure, or 0.
    pub error: i32,
    /// Text that describes the failure.
    pub what: [u8; 64],
    pub records: [Record; MOST_PHASES],
}

/// The complete mapping, which forked processes share.
pub struct Shared {
    base: *mut u8,
    length: usize,
    workers: usize,
}

impl Shared {
    /// Maps memory for the workers.
    ///
    /// # Errors
    /// Fails if there is not enough memory.
    pub fn new(workers: usize) -> io::Result<Self> {
        let length = size_of::<Control>() + workers * size_of::<Slot>();
        let base = map_anonymous(length, libc::MAP_SHARED)?;
        Ok(Shared { base, length, workers })
    }

    pub fn control(&self) -> &Control {
        // SAFETY: the mapping begins with a Control, for which zeroes are valid, and which has only atomic
        // fields.
        unsafe { &*self.base.cast::<Control>() }
    }

    fn slot_pointer(&self, worker: usize) -> *mut Slot {
        assert!(worker < self.workers);
        // SAFETY: the slot is within the mapping, which has room for all of them; Control's size is a
        // multiple of 64.
        unsafe { self.base.add(size_of::<Control>()).cast::<Slot>().add(worker) }
    }

    /// Returns a worker's slot, for reading after the worker has ended or reached the next barrier.
    pub fn slot(&self, worker: usize) -> &Slot {
        // SAFETY: zeroes are a valid slot, and the barrier or the process's end orders its writes before this
        // read.
        unsafe { &*self.slot_pointer(worker) }
    }

    /// Returns a worker's own slot, for writing.
    #[allow(clippy::mut_from_ref)]
    pub fn own_slot(&self, worker: usize) -> &mut Slot {
        // SAFETY: only the worker with this number calls this, once, in its own process.
        unsafe { &mut *self.slot_pointer(worker) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `new` created the mapping, and no borrow of it exists any more.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// Maps zeroed memory. `sharing` is MAP_SHARED or MAP_PRIVATE.
pub fn map_anonymous(length: usize, sharing: i32) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = sharing | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses an unused address range for a new anonymous mapping.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), length.max(1), protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base.cast())
}

impl Control {
    /// Reports that a worker is ready for phase `phase`, and waits for its start. Returns `false` if the
    /// worker must stop.
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

    /// Waits at most `patience` until all workers are ready for `phase`. Returns whether they are.
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

    /// Requests that all workers end after their current operation.
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
    // SAFETY: the word is in the mapping, and the kernel only reads the word and the time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, time) };
}

fn wake(word: &AtomicU32) {
    // SAFETY: the word is in the mapping, and the kernel only uses its address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
