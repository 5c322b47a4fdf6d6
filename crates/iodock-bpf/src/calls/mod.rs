//! Stores a recording while it runs: the buffers' records, unchanged, in a file next to the journal.
//! Afterwards, converts them to records in the order in which calls ended.

mod decode;
mod flight;
mod meta;
mod pages;
mod records;
pub mod rounds;
mod source;
mod streams;

pub use meta::meta;
pub use pages::PagesSource;
pub use records::NO_RANK;
pub use source::CallsSource;

/// File name extension of a file of raw records.
pub const ENDING: &str = "calls";
