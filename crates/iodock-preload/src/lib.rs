//! Recording from inside the program: a preloaded library whose stub the system-call sites of libc and the
//! dynamic linker are made to jump to, the session file that it shares with the recorder, and the reader
//! of what it writes there.
//!
//! The library (native/, C and assembly) needs no other library, uses integer registers only and makes no
//! system call while it records. All that needs thought is done here, ahead of time: which instructions
//! are safe to patch ([`sites`]), what a call's arguments are ([`shapes`]).

pub mod cache;
pub mod elf;
pub mod format;
pub mod reader;
pub mod session;
pub mod shapes;
pub mod sites;

/// The preloaded library, as a file's bytes; empty on machines it is not written for.
pub static LIBRARY: &[u8] = include_bytes!(env!("IODOCK_PRELOAD_LIBRARY"));
