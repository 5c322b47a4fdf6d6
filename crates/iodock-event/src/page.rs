//! The pages of files that tasks load into the page cache, as a live recording sees them.

use crate::{Text, NO_FD};

/// Identifies a file in the page cache by device number and inode number. The device is that of the file
/// system or, for a block device's own pages, the block device. On btrfs and overlayfs, stat(2) returns
/// different numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIdentity {
    pub device: u32,
    pub inode: u64,
}

impl FileIdentity {
    /// Number of bits of the minor number in the kernel's device numbers.
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

/// Links an identity in the page cache to a descriptor or a name.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub tid: u32,
    /// Time from which the link holds, ns since the epoch; [`crate::UNKNOWN`] if it holds from the beginning.
    pub time: i64,
    pub file: FileIdentity,
    /// A descriptor of the task that refers to the file; [`NO_FD`] if there is none.
    pub fd: i32,
    /// Name of the file, relative to the task's working directory. If neither descriptor nor name is known,
    /// the recorder saw only the file's pages.
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
    /// A read, or read-ahead, brought the pages in.
    Read,
    /// A write created the pages. The kernel reads their old contents only if the write covers a page
    /// partially.
    Written,
    /// The cause is unknown: an asynchronous request whose direction the kernel does not report here, or a
    /// write on a file system that stores its files on another one.
    Unclear,
}

/// Adjacent pages of one file that a task brought into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// Times at which the first and the last page entered the cache, ns since the epoch.
    pub ts: i64,
    pub end: i64,
    pub tid: u32,
    pub file: FileIdentity,
    pub cause: PageCause,
    /// Offset of the first page in the file, and total length of the pages, bytes.
    pub offset: i64,
    pub bytes: i64,
}
