//! A file mapped for reading: a library is read in few places, and copied at most once.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

pub struct Mapping {
    start: *mut libc::c_void,
    bytes: usize,
    identity: u64,
    state: u64,
}

impl Mapping {
    /// # Errors
    /// It can't be mapped, or is empty.
    pub fn of(file: &File) -> io::Result<Mapping> {
        let about = file.metadata()?;
        let bytes = about.len() as usize;
        // SAFETY: a new mapping, of a descriptor that is open.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let identity = identity(&about);
        let state = [about.ctime() as u64, about.ctime_nsec() as u64].into_iter().fold(identity, mix);
        Ok(Mapping { start, bytes, identity, state })
    }

    /// Reads the parts that are not in the page cache, in large reads if the kernel and the file system
    /// support them: processes that map the file later then get large pages (20 places of libc's text in
    /// pages of 4 KiB: 92 microseconds, in large pages 15 to 30). The advice only affects speed.
    pub fn read_in_large_pieces(&self) {
        // SAFETY: the mapping is the recorder's own, and this advice does not change its contents.
        let advise = |advice| unsafe { libc::madvise(self.start, self.bytes, advice) } == 0;
        advise(libc::MADV_HUGEPAGE);
        // Linux before 5.14 has but the second.
        let _ = advise(libc::MADV_POPULATE_READ) || advise(libc::MADV_WILLNEED);
    }

    /// Identifies the file and its version: `is_same_file` in native/patch.c computes the same.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The same, but also detects a change after which the old times were restored.
    pub fn state(&self) -> u64 {
        self.state
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ hash >> 32
}

fn identity(about: &Metadata) -> u64 {
    let told = [about.dev(), about.ino(), about.size(), about.mtime() as u64, about.mtime_nsec() as u64];
    told.into_iter().fold(0, mix)
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping lives as long as `self`. (Truncating a library in use kills the programs that use it, this one too.)
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing of it is lent out any more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
