//! The collector's intake: agents' batches in, a store of Parquet files out, each batch counted once.
//!
//! [`Intake::take`] and [`Intake::sync`] keep a batch safely in a [`journal`], [`readings`] take what counters grew,
//! [`rows`] become files at each [`Intake::flush`], and the [`catalogue`] names in one rename all files that count.
//! What every column means: docs/explanation/monitor-store.md.

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
