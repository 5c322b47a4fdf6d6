//! The monitoring agent. On servers and clients it reads which job causes which I/O.
//!
//! Each source is a file in [`sources`]. All sources produce [`sample::Entry`]s, of which [`ranking`] keeps
//! the largest and the exact sum of the rest. [`collection`] reads all sources once, each in its own thread
//! with a deadline, and [`exposition`] writes the result as OpenMetrics text. [`rounds`] repeats this at an
//! interval: [`batches`] of changes and [`events`] go into a [`spool`], and from there to the collector.

pub mod batches;
pub mod clock;
pub mod collection;
pub mod events;
pub mod exposition;
pub mod host;
pub mod json;
pub mod lines;
pub mod logs;
pub mod notes;
pub mod push;
pub mod ranking;
pub mod rounds;
pub mod serving;
pub mod sources;
pub mod spool;

pub use iodock_samples::sample;
