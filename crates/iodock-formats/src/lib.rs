//! Readers of trace logs: lines in, [`iodock_event::Batch`]es of records out.
//!
//! A format is a folder here and a line in [`FORMATS`]. It says how sure it is that a log's head is its
//! own ([`LogFormat::confidence`]) and reads the log in two steps: chunks of whole lines in parallel
//! ([`LogReader::parse`]), then what crosses chunk borders in order ([`LogReader::settle`]).
//! [`open_log`] puts the parts together; nothing here knows what becomes of the records.

mod format;
mod input;
mod places;
mod sniff;
mod splitter;
mod stream;

pub mod refused;
pub mod strace;
pub mod truss;

pub use format::{Chunk, Head, Lines, LogFormat, LogReader, LogSource, ReadOptions};
pub use input::Input;
pub use sniff::open_log;
pub use stream::start;

/// Every format. Order does not matter: the most confident one reads the log.
pub static FORMATS: &[&dyn LogFormat] = &[
    &strace::Strace,
    &truss::Truss,
    &refused::AIX_TRUSS,
    &refused::BSD_TRUSS,
    &refused::KDUMP,
    &refused::LTRACE,
    &refused::PERF_TRACE,
    &refused::DTRUSS,
    &refused::DTRACE,
];
