//! The collector's intake: receives agents' batches, counts each once, and writes a store of Parquet files.
//!
//! [`Intake::take`] and [`Intake::sync`] store a batch safely in a [`journal`]. [`readings`] compute the
//! growth of counters. [`rows`] become files at each [`Intake::flush`], and the [`catalogue`] names all files
//! that count in one rename. The meaning of every column: docs/explanation/monitor-store.md.

pub mod catalogue;
mod columns;
mod disk;
mod error;
mod falling;
mod intake;
mod interval;
mod journal;
mod readings;
mod rows;
mod sender;
mod steps;
mod taking;
mod work;

pub use columns::{Counter, COUNTERS, WITHIN_OTHERS};
pub use error::MonitorError;
pub use intake::{Flushed, Intake};
pub use iodock_samples::sample::Quantity;
pub use taking::{Taken, Terms};
pub use work::Work;
