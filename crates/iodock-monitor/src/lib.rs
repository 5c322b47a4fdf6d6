//! The collector's intake: receives agents' batches, counts each once, and writes a store of Parquet files.
//!
//! [`Intake::take`] and [`Intake::sync`] store a batch safely in a [`journal`]. [`readings`] computes the
//! growth of counters. [`Intake::flush`] writes the [`rows`] into files. The [`catalogue`] lists the files
//! that belong to the store, and one rename replaces it. docs/explanation/monitor-store.md explains every
//! column.

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
