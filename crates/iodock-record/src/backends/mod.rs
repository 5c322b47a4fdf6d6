//! Contains the back ends. Each is a folder here and a line in [`BACKENDS`].

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

/// The processes that a recording covers.
pub enum Target {
    /// A program that the recorder starts.
    Launch(Box<Program>),
    /// Processes that are running already.
    Attach(Vec<u32>),
    /// All processes of this cgroup, including later ones.
    Group(PathBuf),
}

/// How the recorded program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramExit {
    Code(i32),
    Signal(i32),
    /// The process continues after the recording (attach), or its end was not recorded.
    #[default]
    Running,
}

/// Result of a recording.
#[derive(Debug, Default)]
pub struct Ended {
    pub exit: ProgramExit,
    /// Reason why records could not be stored while the program continued, such as a full disk.
    pub failure: Option<String>,
    pub losses: Losses,
    /// Number of processes that the recorder killed, because they can't continue without it.
    pub killed: u32,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// One way of recording.
pub trait Backend: Sync {
    /// Returns the name of the back end for `--backend NAME`.
    fn name(&self) -> &'static str;
    /// Checks whether the back end works on this machine, for this user.
    fn is_available(&self) -> Result<(), Refusal>;
    /// Records until the target has ended or `control` requests the end. It runs on a separate thread. Only
    /// this thread writes `journal`.
    fn run(
        &self,
        target: Target,
        journal: &mut JournalWriter,
        clock: &Clock,
        control: &Control,
    ) -> Result<Ended, RecordError>;
}

/// All back ends.
pub static BACKENDS: &[&dyn Backend] = &[&ptrace::PtraceBackend, &rewrite::RewriteBackend, &bpf::BpfBackend];

/// Returns the error of a back end that can follow processes but not cgroups.
fn no_groups() -> RecordError {
    RecordError::Refused(Refusal::new("only bpf can record a cgroup", "record as root with --backend bpf"))
}
