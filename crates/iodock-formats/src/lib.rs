//! Readers of trace logs: lines in, [`iodock_event::Batch`]es of records out.
//!
//! A format is a folder here and a line in [`FORMATS`]. It says how sure it is that a log's head is its
//! own ([`LogFormat::confidence`]) and reads the log in two steps: chunks of whole lines in parallel
//! ([`LogReader::parse`]), then what crosses chunk borders in order ([`LogReader::settle`]).
//! [`open_log`] puts the parts together, and has what terminals, mails and containers put into a log taken out; nothing here knows what becomes of the records. Logs of other tools are
//! recognised by [`refused`], to say what they are.

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

/// Every format that is read. Order does not matter: the most confident one reads the log.
pub static FORMATS: &[&dyn LogFormat] = &[
    &strace::Strace,
    &truss::Truss,
    &freebsd_truss::FreebsdTruss,
    &perf_trace::PerfTrace,
    &ltrace::Ltrace,
    &strace_table::StraceTable { wall_clock: false },
    &strace_table::StraceTable { wall_clock: true },
];
