//! Reader of Darshan logs: the counters of a job's files, its accesses (DXT) and its heatmaps.
//!
//! [`Log::open`] reads a binary log (format 3.00 to 3.41, which Darshan 3.0 to 3.5 write; either byte order;
//! zlib, bzip2 or none) or the text of `darshan-parser`. Records keep the log's values: a counter that the
//! version of a module lacks does not exist, and a record of all ranks (rank -1) stays one record. Unreadable
//! parts become a [`Loss`]; all intact parts are kept.
//!
//! The format is Darshan's own (<https://github.com/darshan-hpc/darshan>, `include/darshan-log-format.h`,
//! `include/darshan-*-log-format.h`, and `darshan-util/darshan-*-logutils.c` for records of earlier
//! versions).

mod accesses;
mod binary;
mod counted;
mod error;
mod heatmap;
mod job;
mod known;
mod log;
mod loss;
mod lustre;
mod module;
mod names;
mod order;
mod text;

pub use accesses::{Access, Direction, Traced, TracedFile};
pub use binary::{Compression, Limits};
pub use counted::{Counted, Layout, Record};
pub use error::{Error, Fault};
pub use heatmap::Heatmap;
pub use job::{Job, Mount, Time};
pub use known::is_darshan;
pub use log::{Log, Written};
pub use loss::{Loss, LossKind, Region};
pub use lustre::{Component, LustreFile};
pub use module::Module;
pub use names::Names;
pub use order::ByteOrder;
