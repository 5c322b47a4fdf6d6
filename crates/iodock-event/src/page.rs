//! What a live recording knows of the page cache: which pages of which files tasks brought in.

use crate::{Text, NO_FD};

/// A file as the page cache knows it: the device number of its file system (or, of a block device's own pages, of the
/// device), as the kernel has it, and its inode number there. Not what stat(2) shows on btrfs and overlayfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIdentity {
    pub device: u32,
    pub inode: u64,
}

impl FileIdentity {
    /// Bits of the kernel's device numbers that are the minor number.
    const MINOR_BITS: u32 = 20;

    pub fn new(major: u32, minor: u32, inode: u64) -> FileIdentity {
        FileIdentity { device: major << Self::MINOR_BITS | minor, inode }
    }

    pub fn major(self) -> u32 {
        self.device >> Self::MINOR_BITS
    }

    pub fn minor(self) -> u32 {
        self.device & ((1 << Self::MINOR_BITS) - 1)
    }
}

/// Which file that is, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub tid: u32,
    /// ns since the epoch; [`crate::UNKNOWN`]: from the beginning.
    pub time: i64,
    pub file: FileIdentity,
    /// A descriptor of the task that is open on it; [`NO_FD`] if none tells.
    pub fd: i32,
    /// Its name, seen from the task's working directory. With neither, pages of it came in.
    pub name: Text,
}

impl Identity {
    pub fn of(file: FileIdentity, tid: u32, time: i64) -> Identity {
        Identity { tid, time, file, fd: NO_FD, name: Text::NONE }
    }
}

/// Why pages came into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCause {
    /// To be read.
    Read,
    /// A write made them; what was there before is read only where it covers a part of them.
    Written,
    /// A request of asynchronous I/O, of which the kernel does not say here what it does; a write on a file system that
    /// keeps its files on another one.
    Unclear,
}

/// Pages of one file, one after the other, that a task brought into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// When the first came, and when the last; ns since the epoch.
    pub ts: i64,
    pub end: i64,
    pub tid: u32,
    pub file: FileIdentity,
    pub cause: PageCause,
    /// Where in the file the first page begins, and the length of all; bytes.
    pub offset: i64,
    pub bytes: i64,
}
