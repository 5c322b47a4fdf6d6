//! Storage of a recording while it runs: the chunks' raw bytes, not decoded, in a file next to the journal;
//! and the conversion afterwards to records in the order in which calls ended.

mod births;
mod counted;
mod file;
mod keep;
mod offers;
mod records;
mod source;
mod streams;
mod tables;
mod times;
mod usages;

pub use file::{CallsFile, CallsWriter, Lost};
pub use keep::Keeper;
pub use records::Ending;
pub use source::{count_lost, is_counted_in, recover, CallsSource, Counts};
pub use usages::Usages;

/// Ending of the name of a file of raw calls.
pub const ENDING: &str = "calls";
/// Ending of the name of the journal with calls that were traced at the same time.
pub const TRACED_ENDING: &str = "traced";
