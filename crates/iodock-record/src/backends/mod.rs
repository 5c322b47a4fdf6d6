//! The back ends. Each is a folder here and a line in [`BACKENDS`].

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
    /// These running processes.
    Attach(Vec<u32>),
    /// All processes of this cgroup, now and later.
    Group(PathBuf),
}

/// How the recorded program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramExit {
    Code(i32),
    Signal(i32),
    /// The process continues (attach), or its end was not recorded.
    #[default]
    Running,
}

/// Result of a recording.
#[derive(Debug, Default)]
pub struct Ended {
    pub exit: ProgramExit,
    /// Why records could not be stored while the program went on: a full disk.
    pub failure: Option<String>,
    pub losses: Losses,
    /// Processes that had to be killed because they can't continue without the recorder.
    pub killed: u32,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// One way of recording.
pub trait Backend: Sync {
    /// Name for `--backend NAME`.
    fn name(&self) -> &'static str;
    /// Whether it works on this machine, for this user.
    fn is_available(&self) -> Result<(), Refusal>;
    /// Records until the target has ended or `control` requests the end. Runs on a separate thread; only that
    /// thread writes `journal`.
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

/// Error of a back end that follows processes but no cgroups.
fn no_groups() -> RecordError {
    RecordError::Refused(Refusal::new("only bpf can record a cgroup", "record as root with --backend bpf"))
}
