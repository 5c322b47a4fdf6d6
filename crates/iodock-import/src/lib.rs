//! The one pipeline that logs and recordings take: sources -> tracker -> coverage -> store.

mod error;
mod logs;
mod merge;
mod pipeline;
mod places;

pub use error::ImportError;
pub use logs::{open_logs, LogOptions, Opened};
pub use merge::Stream;
pub use pipeline::{run, EventSink, Imported, Progress};
pub use places::{place_logs, LogPlace};
