//! Readers of trace logs, which convert lines to [`iodock_event::Batch`]es of records.
//!
//! A format is a folder in this crate and an entry in [`FORMATS`]. It returns its confidence that a log has
//! this format ([`LogFormat::confidence`]). It reads the log in two steps: it parses chunks of whole lines in
//! parallel ([`LogReader::parse`]), then it joins in order the parts that cross the borders of chunks
//! ([`LogReader::settle`]). [`open_log`] combines these steps, and first removes text that terminals, mails
//! and containers added to a log. This crate does not know how the records are used. [`refused`] recognises
//! logs of other tools, so that a message can name the tool.

mod escapes;
mod format;
mod input;
mod line_range;
mod pasted;
mod places;
mod runs;
mod sniff;
mod splitter;
mod stream;

pub mod freebsd_truss;
pub mod ltrace;
pub mod perf_trace;
pub mod refused;
pub mod strace;
pub mod strace_table;
pub mod truss;

pub use format::{Chunk, Head, LineRange, Lines, LogFormat, LogReader, LogSource, ReadOptions};
pub use input::Input;
pub use sniff::{is_format, open_input, open_log};
pub use stream::start;

/// All formats that iodock reads. Their order does not matter, because the format with the highest confidence
/// reads the log.
pub static FORMATS: &[&dyn LogFormat] = &[
    &strace::Strace,
    &truss::Truss,
    &freebsd_truss::FreebsdTruss,
    &perf_trace::PerfTrace,
    &ltrace::Ltrace,
    &strace_table::StraceTable { wall_clock: false },
    &strace_table::StraceTable { wall_clock: true },
];
