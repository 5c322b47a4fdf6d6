//! Ways to see a program's calls. A back end is a folder here and a line in [`BACKENDS`].

pub mod bpf;
pub mod choice;
pub mod interfaces;
pub mod ptrace;
mod reach;
pub mod reason;
pub mod rewrite;

use crate::clock::Clock;
use crate::control::Control;
use crate::error::{RecordError, Refusal};
use crate::program::Program;
use iodock_event::Losses;
use iodock_journal::JournalWriter;
use std::path::PathBuf;

/// What is to be recorded.
pub enum Target {
    /// Start this program.
    Launch(Box<Program>),
    /// These processes, which run already.
    Attach(Vec<u32>),
    /// All processes of this cgroup, now and later.
    Group(PathBuf),
}

/// How the program that was recorded ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramExit {
    Code(i32),
    Signal(i32),
    /// It runs on (attach), or it was never seen to end.
    #[default]
    Running,
}

/// What a back end brings home.
#[derive(Debug, Default)]
pub struct Ended {
    pub exit: ProgramExit,
    /// What went wrong with keeping records while the program went on: a full disk.
    pub failure: Option<String>,
    pub losses: Losses,
    /// Processes that had to be killed because they can't live without the recorder.
    pub killed: u32,
    /// Things the user should be told, in words.
    pub warnings: Vec<String>,
}

/// One way of recording.
pub trait Backend: Sync {
    /// As in `--backend NAME`.
    fn name(&self) -> &'static str;
    /// Can it work on this machine, for this user?
    fn is_available(&self) -> Result<(), Refusal>;
    /// Records until the target has ended or `control` says stop. Runs on a thread of its own; `journal` is
    /// written by that thread only.
    fn run(
        &self,
        target: Target,
        journal: &mut JournalWriter,
        clock: &Clock,
        control: &Control,
    ) -> Result<Ended, RecordError>;
}

/// Every back end.
pub static BACKENDS: &[&dyn Backend] = &[&ptrace::PtraceBackend, &rewrite::RewriteBackend, &bpf::BpfBackend];

/// A back end that follows processes, not groups of them.
fn no_groups() -> RecordError {
    RecordError::Refused(Refusal::new("only bpf can record a cgroup", "record as root with --backend bpf"))
}
