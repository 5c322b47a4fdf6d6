//! The monitoring agent: reads who does what to the file system, on servers and on clients.
//!
//! Each source is a file in [`sources`]; all give [`sample::Entry`]s, of which [`ranking`] keeps the heaviest
//! and the exact sum of the rest. [`collection`] reads all sources once, each in a thread of its own with a
//! deadline, and [`exposition`] shows the result as OpenMetrics text. [`rounds`] are made at an interval: [`batches`]
//! of what changed go into a [`spool`], and from there to the collector; so do [`events`].

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
