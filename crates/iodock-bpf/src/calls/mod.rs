//! Storage of a recording while it runs: the buffers' records unchanged, in a file next to the journal; and
//! the conversion afterwards to records in the order in which calls ended.

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
