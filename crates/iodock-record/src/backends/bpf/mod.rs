//! Records inside the kernel, for root, with BPF programs at the tracepoints of system calls (`iodock_bpf`).
//!
//! This back end records every call of every program, including static ones, and stops no program. Recorded
//! programs continue if the recorder ends.

mod allowed;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod attach;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod first;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod follow;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod group;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod keeper;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod launch;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod names;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod notes;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod round;

pub use allowed::{is_let_in, refusal as availability};

use super::{Backend, Ended, Target};
use crate::clock::Clock;
use crate::control::Control;
use crate::error::{RecordError, Refusal};
use iodock_journal::JournalWriter;

pub struct BpfBackend;

impl Backend for BpfBackend {
    fn name(&self) -> &'static str {
        "bpf"
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn is_available(&self) -> Result<(), Refusal> {
        allowed::refusal().map_or(Ok(()), Err)
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
        match target {
            Target::Launch(program) => launch::run(*program, journal, clock, control),
            Target::Attach(pids) => attach::processes(&pids, journal, clock, control),
            Target::Group(path) => attach::group(&path, journal, clock, control),
        }
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn run(&self, _: Target, _: &mut JournalWriter, _: &Clock, _: &Control) -> Result<Ended, RecordError> {
        Err(RecordError::Refused(unsupported()))
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn unsupported() -> Refusal {
    Refusal::new("recording by bpf works on x86-64 Linux only so far", "choose --backend ptrace")
}
