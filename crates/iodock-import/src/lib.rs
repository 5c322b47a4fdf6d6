//! The pipeline for logs and recordings. Data flow from sources to the tracker, the coverage and the store.
//!
//! [`import`] makes a store from logs. [`finish_recording`] makes the tables of a recording from its journal.
//! Both call [`run`]: the format's threads parse, one thread tracks, and the store's thread encodes.

mod beside;
mod error;
mod executables;
mod faults;
mod following;
mod idle;
mod import;
mod join;
mod logs;
mod meanwhile;
mod merge;
mod mounts;
mod pages;
mod parts;
mod pipeline;
mod places;
mod profiles;
mod ranks;
mod recording;
mod stacks;
mod symbolize;
mod tasks;

pub use error::ImportError;
pub use following::{CallSeen, FileSeen, Following, Seen, Sums};
pub use import::{import, ImportOptions, ImportSummary};
pub use iodock_darshan::is_darshan;
pub use iodock_formats::LineRange;
pub use join::{merge_stores, Clocks, Merged};
pub use logs::{format_names, open_logs, LogOptions, Opened};
pub use meanwhile::Meanwhile;
pub use merge::Stream;
pub use pipeline::{run, EventSink, Imported, Progress};
pub use places::{place_logs, LogPlace};
pub use profiles::{job_of, JobRow};
pub use recording::{finish_recording, is_in_progress, read_in_progress};
pub use symbolize::{symbolize, Symbolized, Unknown, WithoutLines};
