//! Recording inside the kernel: programs on the tracepoints of system calls and of tasks' births and ends,
//! which write to one buffer for each CPU; their loader; the reader of the buffers; and the conversion of
//! records to calls when the recording has ended ([`calls`]).
//!
//! The programs (native/, C) know no call by name: data ([`plans`]) says what is recorded of each. They are
//! compiled ahead of time into `recorder.bpf.o`, which the loader adapts to the running kernel.

pub mod calls;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod error;
pub mod format;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kernel;
pub mod lives;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod mapping;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod object;
pub mod plans;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod programs;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod reader;
pub mod record;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod types;
