//! The page faults that a live recording sees in mapped files.

/// How the recorder learned that a page is in a task's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FaultKind {
    /// A page fault whose page was already in the page cache.
    Minor = 0,
    /// A page fault that had to wait until the kernel had read the page.
    Major = 1,
    /// No page fault occurred, because the page was in the task's memory before recording began.
    Present = 2,
}

impl FaultKind {
    pub fn from_number(number: u8) -> Option<FaultKind> {
        [FaultKind::Minor, FaultKind::Major, FaultKind::Present].get(usize::from(number)).copied()
    }
}

/// A part of a process's memory to which a file is mapped, as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMap {
    pub pid: u32,
    /// Time at which the map was created, ns since the epoch; [`crate::UNKNOWN`] if that was before recording
    /// began.
    pub time: i64,
    pub start: u64,
    /// Length of the map, bytes.
    pub length: u64,
    /// Offset in the file at which the map begins, bytes.
    pub offset: u64,
    pub path: Vec<u8>,
}

/// The first access of a task to one page of a file. Accesses that cause no page fault are not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// Time of the fault, ns since the epoch.
    pub ts: i64,
    pub tid: u32,
    /// Number of the [`FileMap`], counted over all maps of the recorder.
    pub map: u32,
    /// Offset of the page in the file, bytes.
    pub offset: i64,
    pub kind: FaultKind,
}

/// Maps and page faults in their order. Maps are numbered across batches.
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
