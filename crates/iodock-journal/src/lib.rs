//! The journal: the file that a live recording writes while it runs.
//!
//! A Parquet file without its footer is unreadable, so a recorder can't write one: it appends frames to a
//! journal, each with its own checksum, and everything that was flushed before a crash, a full disk or a
//! power cut remains readable. When the recording ends (or when a store left by a crash is next opened)
//! [`JournalReader`] passes the records to the same pipeline as any log.
//!
//! The format, for other back ends: `docs/explanation/journal.md`.

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
