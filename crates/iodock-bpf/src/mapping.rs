//! Maps memory that is shared with the kernel: the memory of a BPF map, or of a file.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

pub struct Mapping {
    address: NonNull<u8>,
    pub length: usize,
}

// SAFETY: a mapping is plain memory. The accessors below are atomic or state their requirements.
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
        // SAFETY: the kernel chooses an unused address range for the new mapping, and the descriptor is open.
        let address = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0) };
        match NonNull::new(address.cast::<u8>()).filter(|_| address != libc::MAP_FAILED) {
            Some(address) => Ok(Mapping { address, length }),
            None => Err(io::Error::last_os_error()),
        }
    }

    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length);
        // SAFETY: the word is inside the mapping and aligned, as the assertion checks.
        unsafe { AtomicU64::from_ptr(self.address.as_ptr().add(at).cast()) }
    }

    pub fn half(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.length);
        // SAFETY: the half word is inside the mapping and aligned, as the assertion checks.
        unsafe { AtomicU32::from_ptr(self.address.as_ptr().add(at).cast()) }
    }

    /// Returns words that their writer has finished and will not change until the reader gives the space
    /// back.
    ///
    /// # Safety
    /// The caller must ensure that the writer does not change these words during the borrow.
    #[inline]
    pub unsafe fn words(&self, at: usize, count: usize) -> &[u64] {
        assert!(at.is_multiple_of(8) && at + count * 8 <= self.length);
        std::slice::from_raw_parts(self.address.as_ptr().add(at).cast(), count)
    }
}

/// Contents of a file: mapped if its file system supports that, else read.
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
            // SAFETY: the slice is the whole mapping, and the file does not change.
            Contents::Mapped(map) => unsafe { std::slice::from_raw_parts(map.address.as_ptr(), map.length) },
            Contents::Read(bytes) => bytes,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping and unmaps it only once.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.length) };
    }
}
