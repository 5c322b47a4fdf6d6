//! Options and results of a recording.

use crate::backends::reason::Reason;
use crate::backends::ProgramExit;
use crate::error::Refusal;
use crate::faults::Mode;
use crate::naming::Way;
use crate::sampler::Settings;
use iodock_event::Losses;
use iodock_preload::light::{Light, Whole};
use iodock_preload::session::Stacks;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Options for running a command.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Folder that the recorder creates.
    pub store: PathBuf,
    /// Whether an existing store is replaced.
    pub force: bool,
    /// Name of a back end, or `auto`.
    pub backend: String,
    pub sampling: Settings,
    /// Says when page faults in mapped files are recorded.
    pub page_faults: Mode,
    /// Whether calls before the library is loaded in a program are recorded, too.
    pub complete: bool,
    /// Set if calls are counted and not recorded.
    pub light: Option<Light>,
    /// Ranks whose calls are recorded although others' are only counted.
    pub whole: Option<Whole>,
    /// Whether calls of interfaces, such as MPI-IO, are recorded, too.
    pub interfaces: Interfaces,
    /// Which stacks of calls the back end `rewrite` records. `None` means up to the innermost line of the
    /// program itself, if that back end records the calls.
    pub stacks: Option<Stacks>,
    /// Function that is called with the store's folder when the back end `rewrite` begins to record calls.
    pub begun: Option<fn(&Path)>,
}

/// Says when the back end `rewrite` records calls of interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interfaces {
    /// If the program uses MPI, or starts programs that use it.
    #[default]
    Auto,
    Always,
    /// As `Always`, and also calls of stdio.
    Stdio,
    Never,
}

impl Interfaces {
    pub const NAMES: [(&'static str, Interfaces); 4] = [
        ("auto", Interfaces::Auto),
        ("always", Interfaces::Always),
        ("stdio", Interfaces::Stdio),
        ("never", Interfaces::Never),
    ];

    pub fn from_name(name: &str) -> Option<Interfaces> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, how)| how)
    }
}

impl RecordOptions {
    pub fn new(command: Vec<OsString>, store: PathBuf) -> Self {
        RecordOptions {
            command,
            store,
            force: false,
            backend: "auto".into(),
            sampling: Settings::default(),
            page_faults: Mode::default(),
            complete: false,
            light: None,
            whole: None,
            interfaces: Interfaces::default(),
            stacks: None,
            begun: None,
        }
    }
}

/// Options for recording running processes.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    pub pids: Vec<u32>,
    /// A cgroup to record instead of processes: its folder, its name, or `slurm:JOBID`.
    pub group: Option<PathBuf>,
    pub store: PathBuf,
    pub force: bool,
    pub backend: String,
    pub sampling: Settings,
    /// Says when page faults in mapped files are recorded.
    pub page_faults: Mode,
}

impl AttachOptions {
    pub fn new(pids: Vec<u32>, store: PathBuf) -> Self {
        AttachOptions {
            pids,
            group: None,
            store,
            force: false,
            backend: "auto".into(),
            sampling: Settings::default(),
            page_faults: Mode::default(),
        }
    }
}

/// Result of a completed recording.
#[derive(Debug)]
pub struct RecordOutcome {
    pub store: PathBuf,
    /// Describes how the store got its name.
    pub way: Way,
    /// Back end that recorded the program, and the reason for choosing it.
    pub backend: &'static str,
    pub reason: Reason,
    /// How the program ended. The caller ends in the same way.
    pub exit: ProgramExit,
    /// Whether this process must make the tables (`iodock_import::finish_recording`). If several ranks share
    /// a store, the last one to end must do this.
    pub must_finish: bool,
    pub losses: Losses,
    /// Warnings for the user, in sentences.
    pub warnings: Vec<String>,
    /// Reason why the recording stopped early while the program continued, such as a full disk, and what to
    /// do about it.
    pub failure: Option<String>,
    /// Number of bytes that the recorder itself wrote.
    pub written_bytes: u64,
    /// Number of processes that were killed because they could not continue without the recorder.
    pub killed: u32,
    /// Descriptor of the store's folder with its lock. While it is open, no other recorder replaces the store
    /// (--force). The process that makes the tables must keep it open until then.
    pub folder: Option<File>,
}

impl RecordOutcome {
    /// Adds a warning that says why a cheaper back end could not start.
    pub(crate) fn warned_of(mut self, refusal: Refusal) -> Self {
        self.warnings.insert(0, refusal.message);
        self
    }
}
