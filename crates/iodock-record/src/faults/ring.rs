//! A CPU's ring of records, shared with the kernel.

use super::abi;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets in the control page of the two ends of the waiting data (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const HEADER: usize = 8;

pub struct Ring {
    pub event: OwnedFd,
    /// The control page, then the data.
    memory: *mut u8,
    page: usize,
    data: usize,
}

// SAFETY: the memory is this ring's alone; only `drain` touches it, through `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// With `data` bytes, a power of two of pages.
    pub fn open(cpu: i32, data: usize) -> io::Result<Ring> {
        let event = abi::open_ring(cpu, (data / 4) as u32)?;
        // SAFETY: a new shared mapping, given back in `drop`.
        let (page, memory) = unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let memory =
                libc::mmap(std::ptr::null_mut(), page + data, access, libc::MAP_SHARED, event.as_raw_fd(), 0);
            (page, memory)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { event, memory: memory.cast(), page, data })
    }

    fn end(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the control page, aligned, and shared with the kernel as an atomic is.
        unsafe { &*self.memory.add(at).cast::<AtomicU64>() }
    }

    /// Passes each waiting record, including its header, to `take`, and frees its space.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let head = self.end(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.end(DATA_TAIL).load(Ordering::Relaxed);
        let mut whole = Vec::new();
        while tail < head {
            let at = (tail % self.data as u64) as usize;
            // SAFETY: the kernel has written up to `head` and leaves that alone until the tail moves.
            // Records begin at multiples of 8, so the header is never in two pieces.
            let data = unsafe { std::slice::from_raw_parts(self.memory.add(self.page), self.data) };
            let size = usize::from(u16::from_ne_bytes([data[at + 6], data[at + 7]]));
            if size < HEADER || size as u64 > head - tail {
                tail = head;
                break;
            }
            if at + size <= data.len() {
                take(&data[at..at + size]);
            } else {
                whole.clear();
                whole.extend_from_slice(&data[at..]);
                whole.extend_from_slice(&data[..at + size - data.len()]);
                take(&whole);
            }
            tail += size as u64;
        }
        self.end(DATA_TAIL).store(tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`.
        unsafe { libc::munmap(self.memory.cast(), self.page + self.data) };
    }
}
