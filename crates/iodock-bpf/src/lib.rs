//! Records calls inside the kernel. BPF programs run at the tracepoints of system calls and of beginnings and
//! ends of tasks, and write records to one buffer per CPU. This crate loads these programs, reads the
//! buffers, and converts the records to calls when the recording has ended ([`calls`]).
//!
//! The programs (native/, in C) contain no names of calls: a table ([`plans`]) says how each call is
//! recorded. They are compiled ahead of time into `recorder.bpf.o`, which the loader adapts to the running
//! kernel.

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
