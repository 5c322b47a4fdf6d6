//! What a live recording knows about the page cache: which pages of which files were loaded by tasks.

use crate::{Text, NO_FD};

/// A file as the page cache identifies it: the kernel's device number of its file system (or of the block
/// device, for the device's own pages) and its inode number there. On btrfs and overlayfs, stat(2) shows
/// different numbers.
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

/// The file that an identity belongs to, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub tid: u32,
    /// ns since the epoch; [`crate::UNKNOWN`]: from the beginning.
    pub time: i64,
    pub file: FileIdentity,
    /// A descriptor of the task that refers to it; [`NO_FD`] if there is none.
    pub fd: i32,
    /// Name of the file, relative to the task's working directory. If both are missing, only its pages were
    /// seen.
    pub name: Text,
}

impl Identity {
    pub fn of(file: FileIdentity, tid: u32, time: i64) -> Identity {
        Identity { tid, time, file, fd: NO_FD, name: Text::NONE }
    }
}

/// The reason why pages entered the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCause {
    /// To be read.
    Read,
    /// A write created them. Their earlier content is read only if the write covers a part of them.
    Written,
    /// An asynchronous request whose direction the kernel does not show here, or a write on a file system
    /// that stores its files on another one.
    Unclear,
}

/// Adjacent pages of one file that a task brought into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// Times at which the first and the last page came; ns since the epoch.
    pub ts: i64,
    pub end: i64,
    pub tid: u32,
    pub file: FileIdentity,
    pub cause: PageCause,
    /// Offset of the first page in the file, and the length of all pages; bytes.
    pub offset: i64,
    pub bytes: i64,
}
