//! Lines of the kernel's and Lustre's counter files, for the recorder's sampler and the agent alike.
//!
//! Each module reads one line of one format: bytes in, numbers out, no I/O. What a line means
//! for the caller (names, units, which lines are faults) is the caller's.

pub mod diskstats;
pub mod lustre_stats;
pub mod mountinfo;
pub mod mountstats;
pub mod numbers;
pub mod pressure;
pub mod process_io;
