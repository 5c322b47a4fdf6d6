//! Ways to see a program's calls. A back end is a folder here and a line in [`BACKENDS`].

pub mod bpf;
pub mod ptrace;
pub mod rewrite;

use crate::clock::Clock;
use crate::control::Control;
use crate::error::{RecordError, Refusal};
use crate::launch::Program;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramExit {
    Code(i32),
    Signal(i32),
    /// It runs on (attach), or it was never seen to end.
    Running,
}

/// What a back end brings home.
#[derive(Debug)]
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

/// Every back end, the preferred first.
pub static BACKENDS: &[&dyn Backend] = &[&ptrace::PtraceBackend, &rewrite::RewriteBackend, &bpf::BpfBackend];

/// The back end called `name`; `auto` takes the first that works here.
pub fn choose(name: &str) -> Result<&'static dyn Backend, RecordError> {
    if name != "auto" {
        let found = BACKENDS.iter().find(|backend| backend.name() == name);
        let backend = *found.ok_or_else(|| RecordError::Refused(unknown(name)))?;
        return backend.is_available().map(|()| backend).map_err(RecordError::Refused);
    }
    let mut first_refusal = None;
    for backend in BACKENDS {
        match backend.is_available() {
            Ok(()) => return Ok(*backend),
            Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
        }
    }
    Err(RecordError::Refused(first_refusal.unwrap_or_else(|| unknown(name))))
}

/// The back end for `program`: another than the one asked for where that would see nothing of it, and then
/// what to tell the user.
pub fn choose_for(
    name: &str,
    program: &Program,
) -> Result<(&'static dyn Backend, Option<String>), RecordError> {
    let backend = choose(name)?;
    if backend.name() != "rewrite" || rewrite::reaches(&program.path) {
        return Ok((backend, None));
    }
    let ptrace = choose("ptrace")?;
    let path = program.path.display();
    Ok((ptrace, Some(format!("{path} is static, so it loads no library of ours: recorded by ptrace"))))
}

/// A back end that follows processes, not groups of them.
fn no_groups() -> RecordError {
    RecordError::Refused(Refusal::new("only bpf can record a cgroup", "record as root with --backend bpf"))
}

fn unknown(name: &str) -> Refusal {
    let known: Vec<&str> = BACKENDS.iter().map(|backend| backend.name()).collect();
    Refusal::new(format!("no back end is called {name}"), format!("choose auto or {}", known.join(", ")))
}
