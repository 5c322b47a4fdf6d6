//! The journal: the file that a live recording writes while it runs.
//!
//! A Parquet file without its footer is unreadable, so a recorder can't write one while it runs. Instead it
//! appends frames to a journal, each with its own checksum. Everything that it flushed before a crash or a
//! full disk remains readable. When the recording ends, or when a store without tables is opened after a
//! crash, [`JournalReader`] passes the records to the same pipeline as any log.
//!
//! `docs/explanation/journal.md` describes the format for authors of other back ends.

mod decode;
mod encode;
mod faults;
mod fields;
mod frame;
mod meta;
mod reader;
mod side;
mod wire;
mod writer;

pub use encode::DataCall;
pub use frame::{MAGIC, VERSION};
pub use meta::{Closing, JournalMeta};
pub use reader::JournalReader;
pub use writer::{JournalError, JournalWriter};
