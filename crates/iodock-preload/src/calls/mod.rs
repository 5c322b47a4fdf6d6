//! Stores the data of a running recording, and converts them afterwards. During the run the raw bytes of
//! chunks are copied to a file next to the journal. Afterwards they become records in the order in which
//! calls ended.

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

/// File name extension of a file of raw calls.
pub const ENDING: &str = "calls";
/// File name extension of the journal with calls that were traced during the same recording.
pub const TRACED_ENDING: &str = "traced";
