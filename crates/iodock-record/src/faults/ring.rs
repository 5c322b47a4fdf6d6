//! A CPU's ring buffer of records, which the kernel fills.

use super::abi;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets in the control page of the end and the beginning of the waiting data (`struct
/// perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const HEADER: usize = 8;

pub struct Ring {
    pub event: OwnedFd,
    /// Memory of the control page, followed by the data.
    memory: *mut u8,
    page: usize,
    data: usize,
}

// SAFETY: only this value uses the memory, and only `drain` accesses it, with `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens a CPU's ring buffer of `data` bytes, which must be a power of two of pages.
    pub fn open(cpu: i32, data: usize) -> io::Result<Ring> {
        let event = abi::open_ring(cpu, (data / 4) as u32)?;
        // SAFETY: the kernel chooses an unused address range for the mapping, which `drop` unmaps.
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
        // SAFETY: the word is within the control page and aligned, and the kernel accesses it atomically.
        unsafe { &*self.memory.add(at).cast::<AtomicU64>() }
    }

    /// Calls `take` with each waiting record, including its header, and frees its space.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let head = self.end(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.end(DATA_TAIL).load(Ordering::Relaxed);
        let mut whole = Vec::new();
        while tail < head {
            let at = (tail % self.data as u64) as usize;
            // SAFETY: the kernel has written the data up to `head`, and does not change them until the tail
            // moves. Records begin at multiples of 8, so the header is never divided.
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
        // SAFETY: `open` created this mapping, which is not used after this.
        unsafe { libc::munmap(self.memory.cast(), self.page + self.data) };
    }
}
