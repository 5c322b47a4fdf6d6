//! Memory shared with the kernel: a BPF map's, or a file's.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

pub struct Mapping {
    address: NonNull<u8>,
    pub length: usize,
}

// SAFETY: plain memory; the accessors below are atomic or state their requirements.
unsafe impl Send for Mapping {}

impl Mapping {
    pub fn new(map: BorrowedFd<'_>, length: usize, writable: bool) -> io::Result<Mapping> {
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        Mapping::make(map, length.next_multiple_of(4096), access, libc::MAP_SHARED)
    }

    fn make(
        file: BorrowedFd<'_>,
        length: usize,
        access: libc::c_int,
        flags: libc::c_int,
    ) -> io::Result<Mapping> {
        // SAFETY: a new mapping of a descriptor that is open.
        let address = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0) };
        match NonNull::new(address.cast::<u8>()).filter(|_| address != libc::MAP_FAILED) {
            Some(address) => Ok(Mapping { address, length }),
            None => Err(io::Error::last_os_error()),
        }
    }

    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length);
        // SAFETY: inside the mapping, aligned.
        unsafe { AtomicU64::from_ptr(self.address.as_ptr().add(at).cast()) }
    }

    pub fn half(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.length);
        // SAFETY: inside the mapping, aligned.
        unsafe { AtomicU32::from_ptr(self.address.as_ptr().add(at).cast()) }
    }

    /// Words that their writer has finished and will not touch until it is notified that they were read.
    ///
    /// # Safety
    /// This must be the case.
    #[inline]
    pub unsafe fn words(&self, at: usize, count: usize) -> &[u64] {
        assert!(at.is_multiple_of(8) && at + count * 8 <= self.length);
        std::slice::from_raw_parts(self.address.as_ptr().add(at).cast(), count)
    }
}

/// A file's contents: mapped if its file system supports that, else read.
pub enum Contents {
    Mapped(Mapping),
    Read(Vec<u8>),
}

impl Contents {
    pub fn of(path: &str) -> io::Result<Contents> {
        let file = File::open(path)?;
        let length = file.metadata()?.len() as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        match Mapping::make(file.as_fd(), length, libc::PROT_READ, flags) {
            Ok(mapped) if length > 0 => Ok(Contents::Mapped(mapped)),
            _ => fs::read(path).map(Contents::Read),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: inside the mapping, of a file that does not change.
            Contents::Mapped(map) => unsafe { std::slice::from_raw_parts(map.address.as_ptr(), map.length) },
            Contents::Read(bytes) => bytes,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, unmapped once.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.length) };
    }
}
