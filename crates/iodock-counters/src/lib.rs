//! Parses lines of the kernel's and Lustre's counter files, for the recorder's sampler and the agent.
//!
//! Each module reads one line of one format: bytes in, numbers out, no I/O. The caller decides on its meaning
//! (names, units, which lines are errors).

pub mod diskstats;
pub mod lustre_stats;
pub mod mountinfo;
pub mod mountstats;
pub mod numbers;
pub mod pressure;
pub mod process_io;
