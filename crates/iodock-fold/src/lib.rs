//! Computes the tables that rules need from all events of a run, in one pass over the necessary columns.
//!
//! The SQL engine can compute the same tables (`src/iodock/program/relations/profile.py` defines them, and a
//! test compares both). But it first makes a vector of each column, and looks up a group once for each sum. A
//! [`Folding`] reads row groups on two threads. If there are many groups, it returns them in several tables,
//! so that it holds no more groups than those of a row group; the caller adds up groups of the same key. A
//! [`Folding`] rejects events that iodock did not write in this form (other types, nulls, impossible
//! numbers); SQL then processes them.

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
