//! What is kept of a recording while it runs: the buffers' records as they are, in a file beside the journal;
//! and the reading of it afterwards, as records in the order in which calls ended.

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

/// The ending of such a file's name.
pub const ENDING: &str = "calls";
