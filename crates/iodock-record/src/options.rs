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

/// Running a command.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// The folder to create.
    pub store: PathBuf,
    /// Replace an existing store.
    pub force: bool,
    /// `auto`, or a back end's name.
    pub backend: String,
    pub sampling: Settings,
    /// When page faults in mapped files are recorded.
    pub page_faults: Mode,
    /// Also record calls before a recorder inside a program is loaded.
    pub complete: bool,
    /// Counters instead of calls.
    pub light: Option<Light>,
    /// Ranks whose calls are recorded nevertheless.
    pub whole: Option<Whole>,
    /// Whether calls of interfaces, such as MPI-IO, are recorded too.
    pub interfaces: Interfaces,
    /// Where calls come from, by the back end `rewrite`. `None`: up to the innermost own line, if that back
    /// end records the calls.
    pub stacks: Option<Stacks>,
    /// Called with the store's folder when calls begin to be recorded into it by the back end `rewrite`.
    pub begun: Option<fn(&Path)>,
}

/// When calls of interfaces are recorded, by the back end `rewrite`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interfaces {
    /// If the program has MPI, or starts programs that have it.
    #[default]
    Auto,
    Always,
    Never,
}

impl Interfaces {
    pub const NAMES: [(&'static str, Interfaces); 3] =
        [("auto", Interfaces::Auto), ("always", Interfaces::Always), ("never", Interfaces::Never)];

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

/// Recording running processes.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    pub pids: Vec<u32>,
    /// Instead of processes: a cgroup, by its folder, its name or as `slurm:JOBID`.
    pub group: Option<PathBuf>,
    pub store: PathBuf,
    pub force: bool,
    pub backend: String,
    pub sampling: Settings,
    /// When page faults in mapped files are recorded.
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

/// A completed recording.
#[derive(Debug)]
pub struct RecordOutcome {
    pub store: PathBuf,
    /// How it got its name.
    pub way: Way,
    /// The back end that recorded it, and the reason for it.
    pub backend: &'static str,
    pub reason: Reason,
    /// The program's own end, to be passed on.
    pub exit: ProgramExit,
    /// This process has to make the tables (`iodock_import::finish_recording`). Of several ranks in one
    /// store, the last to end has to.
    pub must_finish: bool,
    pub losses: Losses,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// Recording stopped early (full disk) while the program went on: why, and what to do.
    pub failure: Option<String>,
    /// Bytes that the recorder itself wrote.
    pub written_bytes: u64,
    /// Processes killed because they could not continue without being recorded.
    pub killed: u32,
    /// The store's folder: while this is open no other recorder replaces it (--force). The process that makes
    /// the tables must keep it open until then.
    pub folder: Option<File>,
}

impl RecordOutcome {
    /// Adds a warning why a cheaper back end could not start.
    pub(crate) fn warned_of(mut self, refusal: Refusal) -> Self {
        self.warnings.insert(0, refusal.message);
        self
    }
}
