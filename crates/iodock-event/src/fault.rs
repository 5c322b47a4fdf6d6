//! What a live recording knows of mapped files: the page faults in them.

/// How a page was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FaultKind {
    /// A fault whose page was in memory already.
    Minor = 0,
    /// A fault that had to wait for its page.
    Major = 1,
    /// No fault: the page was in the task's memory when watching began.
    Present = 2,
}

impl FaultKind {
    pub fn from_number(number: u8) -> Option<FaultKind> {
        [FaultKind::Minor, FaultKind::Major, FaultKind::Present].get(usize::from(number)).copied()
    }
}

/// A file's part in a process's memory, as the kernel shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMap {
    pub pid: u32,
    /// When it was made, ns since the epoch; [`crate::UNKNOWN`] if before the watching.
    pub time: i64,
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Where in the file it begins, bytes.
    pub offset: u64,
    pub path: Vec<u8>,
}

/// One page of a file that a task touched first, as far as the kernel had to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// ns since the epoch.
    pub ts: i64,
    pub tid: u32,
    /// Number of the [`FileMap`] among all of the recorder's.
    pub map: u32,
    /// Of the page in the file, bytes.
    pub offset: i64,
    pub kind: FaultKind,
}

/// Maps and faults in order. Maps are numbered on from those of the batches before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultBatch {
    pub maps: Vec<FileMap>,
    pub faults: Vec<PageFault>,
}

impl FaultBatch {
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty() && self.faults.is_empty()
    }
}
