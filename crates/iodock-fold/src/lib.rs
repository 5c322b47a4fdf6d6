//! Stored events, folded: what rules ask of all events of a run, counted in one pass over the columns that it
//! takes.
//!
//! The SQL engine can answer the same (`src/iodock/program/relations/profile.py` says it in SQL, and a test compares
//! both), but it makes a vector of each column first and looks up a group once for each sum. A [`Folding`] reads
//! row groups on two threads. Where there are many groups it gives them in several tables, so that it holds no more
//! than those of a row group; whoever takes these adds up groups of the same key. Events that are not as iodock
//! writes them (types, nulls, numbers that can't be) are refused: SQL says what they are.

mod batch;
mod error;
mod folding;
mod groups;
mod known;
mod quiet;
mod table;
mod transfers;
mod uses;

pub use batch::{Batch, Kind, Wanted};
pub use error::FoldError;
pub use folding::{Fold, Folding};
pub use table::{Column, Table, Values};
pub use transfers::Transfers;
pub use uses::Uses;
