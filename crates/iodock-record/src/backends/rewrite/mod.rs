//! Records inside the program. A preloaded library rewrites the system-call sites of libc and the dynamic
//! linker, and writes each call to memory that it shares with the recorder (`iodock_preload`).
//!
//! This back end needs no privileges and never stops the program, which continues if the recorder ends. It
//! can't record static programs, nor calls of the dynamic linker before it loads the library.

mod launch;
mod living;
mod room;
mod root;
mod tracing;

use super::{Backend, Ended, Target};
use crate::clock::Clock;
use crate::control::Control;
use crate::error::{RecordError, Refusal};
use iodock_journal::JournalWriter;

pub struct RewriteBackend;

impl Backend for RewriteBackend {
    fn name(&self) -> &'static str {
        "rewrite"
    }

    fn is_available(&self) -> Result<(), Refusal> {
        if iodock_preload::LIBRARY.is_empty() {
            return Err(Refusal::new(
                "rewriting calls works on x86-64 Linux only so far",
                "choose --backend ptrace",
            ));
        }
        room::refusal().map_or(Ok(()), Err)
    }

    fn run(
        &self,
        target: Target,
        journal: &mut JournalWriter,
        clock: &Clock,
        control: &Control,
    ) -> Result<Ended, RecordError> {
        match target {
            Target::Launch(program) => launch::run(*program, journal, clock, control),
            Target::Group(_) => Err(super::no_groups()),
            Target::Attach(_) => Err(RecordError::Refused(Refusal::new(
                "a program that runs already can't be made to load a library",
                "attach with --backend ptrace",
            ))),
        }
    }
}
