//! Records with ptrace: the program stops twice at every call, at its beginning and at its end. At calls that
//! are not recorded it continues immediately.
//!
//! A seccomp filter could avoid the stops at other calls, but is not used: the program could not continue
//! without its tracer, because the kernel then answers each filtered call with ENOSYS. See docs/decisions.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod decode;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod environment;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod recorded;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod records;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod request;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod requests;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod session;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod taking;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tasks;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use {requests::Requests, session::serve};

use super::{Backend, Ended, Target};
use crate::clock::Clock;
use crate::control::Control;
use crate::error::{RecordError, Refusal};
use iodock_journal::JournalWriter;

pub struct PtraceBackend;

impl Backend for PtraceBackend {
    fn name(&self) -> &'static str {
        "ptrace"
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn is_available(&self) -> Result<(), Refusal> {
        crate::doctor::ptrace_refusal().map_or(Ok(()), Err)
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn is_available(&self) -> Result<(), Refusal> {
        Err(unsupported())
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn run(
        &self,
        target: Target,
        journal: &mut JournalWriter,
        clock: &Clock,
        control: &Control,
    ) -> Result<Ended, RecordError> {
        session::run(target, journal, clock, control)
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn run(&self, _: Target, _: &mut JournalWriter, _: &Clock, _: &Control) -> Result<Ended, RecordError> {
        Err(RecordError::Refused(unsupported()))
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn unsupported() -> Refusal {
    Refusal::new(
        "live recording works on x86-64 Linux only so far",
        "record with strace -f -ttt -T -o LOG and import the log: iodock import LOG",
    )
}
