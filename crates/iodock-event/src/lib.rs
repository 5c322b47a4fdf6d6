//! The data types that all parts of iodock share.
//!
//! Every source (a log reader, a recording back end, the journal of a live recording) produces [`Record`]s,
//! collected in [`Batch`]es. The tracker turns records into [`EventColumns`], which the store writes. Nothing
//! here does I/O or depends on another crate, so even the smallest recorder can use these types.

pub mod batch;
pub mod calls;
pub mod constants;
pub mod control;
pub mod errnos;
pub mod event;
pub mod fault;
pub mod interfaces;
pub mod interner;
pub mod loss;
pub mod lwp;
pub mod numbers_x86_64;
pub mod page;
pub mod ranks;
pub mod record;
pub mod sample;
pub mod signals;
pub mod stacks;
pub mod tables;

pub use batch::{Batch, CallTotal, Fork, SourceCounts};
pub use calls::{Action, CallClass, CallId, CallSpec, Role};
pub use errnos::ErrnoId;
pub use event::{AccessPattern, Direction, EventColumns, EventRow, FileKind, Side, TaskOrigin};
pub use fault::{FaultBatch, FaultKind, FileMap, PageFault};
pub use loss::{FirstLoss, LossKind, Losses};
pub use page::{FileIdentity, Identity, PageCause, PageRun};
pub use record::{
    AsyncItem, Clock, DescriptorSnapshot, Items, Outcome, Phase, RawCall, Record, RecordSource, SourceError,
    Start, TaskEnd, Text,
};
pub use sample::{Mount, Sample, SampleKind, TaskUsage};
pub use stacks::{Frame, Site, Stacks};
pub use tables::{
    shown, ByteArena, CommandRow, CommandTable, FileEntry, FileRow, FileTable, IoTime, MountPoint, Tables,
    TaskRow,
};

/// Marks a time, duration or quantity that the source does not show.
pub const UNKNOWN: i64 = i64::MIN;
/// Marks an offset that exists but whose value the source does not show, because the argument is a pointer.
/// In contrast, [`UNKNOWN`] also covers calls without an offset.
pub const UNSHOWN_OFFSET: i64 = -1;
/// Marks a missing descriptor argument. `-1` and `AT_FDCWD` cannot have this meaning, because programs pass
/// them.
pub const NO_FD: i32 = i32::MIN;
/// The descriptor argument that means "the working directory" (Linux `AT_FDCWD`).
pub const AT_FDCWD: i32 = -100;
/// Marks a missing reference to a row of a side table, for example a call without a file.
pub const NONE: u32 = u32::MAX;
