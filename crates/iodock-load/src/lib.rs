//! The benchmark engine. It executes plans of I/O patterns, and returns the bytes and latencies of each
//! operation.
//!
//! The engine is a process of its own. It forks worker processes for each step. A barrier starts the workers
//! at the same time, and each records every operation in a histogram. All files are in a tree that the engine
//! creates and tags, and that it removes however the run ends.

mod busy;
mod cache;
mod calls;
mod engine;
mod error;
mod folders;
mod histogram;
mod meet;
mod patterns;
mod plan;
mod removal;
mod result;
mod shared;
mod signals;
mod space;
mod task;
mod tree;
mod under;
mod worker;

pub use busy::Busy;
pub use cache::Cache;
pub use engine::{need_of, run};
pub use error::{Kind, LoadError};
pub use histogram::{bounds_of, bucket_of, Latencies};
pub use plan::{Data, Job, Metadata, Mixed, Pattern, Plan, Step, Weights};
pub use result::{Done, Event, Span, StepResult};
pub use space::{free, quota, Free, Need};
pub use tree::{clean, Cleaned};
pub use under::{Roots, Under};
