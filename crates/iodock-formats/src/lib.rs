//! Readers of trace logs: they turn lines into [`iodock_event::Batch`]es of records.
//!
//! A format is a folder here and a line in [`FORMATS`]. It rates how certain it is that a log is its own
//! ([`LogFormat::confidence`]) and reads the log in two steps: chunks of whole lines in parallel
//! ([`LogReader::parse`]), then what crosses chunk borders in order ([`LogReader::settle`]). [`open_log`]
//! combines these parts, and first removes what terminals, mails and containers added to a log. This crate
//! does not know how the records are used. Logs of other tools are recognised by [`refused`], so that a
//! message can name them.

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

/// All formats that iodock reads. Their order does not matter: the most confident one reads the log.
pub static FORMATS: &[&dyn LogFormat] = &[
    &strace::Strace,
    &truss::Truss,
    &freebsd_truss::FreebsdTruss,
    &perf_trace::PerfTrace,
    &ltrace::Ltrace,
    &strace_table::StraceTable { wall_clock: false },
    &strace_table::StraceTable { wall_clock: true },
];
