//! Maps a file for reading. A mapping suits libraries, of which only few parts are read.

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
    /// The file can't be mapped, or is empty.
    pub fn of(file: &File) -> io::Result<Mapping> {
        let about = file.metadata()?;
        let bytes = about.len() as usize;
        // SAFETY: the kernel chooses a free address, so the new mapping replaces no other memory.
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

    /// Reads the parts of the file that are not in the page cache, in large reads if the kernel and the file
    /// system support them. Processes that map the file later then get large pages: accesses to 20 places of
    /// libc's text take 15 to 30 microseconds, with pages of 4 KiB 92. The advice only affects speed.
    pub fn read_in_large_pieces(&self) {
        // SAFETY: the mapping is the recorder's own, and this advice does not change its contents.
        let advise = |advice| unsafe { libc::madvise(self.start, self.bytes, advice) } == 0;
        advise(libc::MADV_HUGEPAGE);
        // Linux before 5.14 supports only MADV_WILLNEED.
        let _ = advise(libc::MADV_POPULATE_READ) || advise(libc::MADV_WILLNEED);
    }

    /// Returns a hash that identifies the file and its version; `identity` in native/patch.c computes the
    /// same.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns a similar hash that also includes the time of the last status change, so that it differs even
    /// if a program has changed the file and restored its modification time.
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
        // SAFETY: the mapping exists as long as `self`. Truncation of the file would kill this process, as it
        // kills all programs that use the library.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no reference to it exists any more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
