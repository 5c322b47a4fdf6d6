//! Which back end records a program, and why that one.

use super::{bpf, rewrite, Backend, BACKENDS};
use crate::error::{RecordError, Refusal};
use crate::launch::Program;

/// Why a back end was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user named it.
    Asked,
    /// It is the cheapest, and sees this program.
    Cheapest,
    /// The cheapest can't be used on this machine.
    Machine,
    /// The program loads no library.
    Static,
    /// A program that makes its calls itself, past libc.
    Go,
    /// A program for another machine than x86-64 with 64 bits.
    Foreign,
    /// The program has a C library of its own.
    OtherLibc,
    /// The program gains privileges, and loads no library of others then.
    Privileged,
    /// Processes that run already.
    Running,
}

impl Reason {
    /// As in the manifest, `captured.why`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Asked => "asked",
            Reason::Cheapest => "cheapest",
            Reason::Machine => "machine",
            Reason::Static => "static",
            Reason::Go => "go",
            Reason::Foreign => "foreign",
            Reason::OtherLibc => "other-libc",
            Reason::Privileged => "privileged",
            Reason::Running => "running",
        }
    }
}

/// A back end and the reason to take it.
#[derive(Clone, Copy)]
pub struct Choice {
    pub backend: &'static dyn Backend,
    pub reason: Reason,
}

/// The back end called `name`, if it works here.
///
/// # Errors
/// None has that name, or this machine or user can't use it.
pub fn named(name: &str) -> Result<&'static dyn Backend, RecordError> {
    let found = BACKENDS.iter().find(|backend| backend.name() == name);
    let backend = *found.ok_or_else(|| RecordError::Refused(unknown(name)))?;
    backend.is_available().map(|()| backend).map_err(RecordError::Refused)
}

/// The back end for `program`: `auto` takes the cheapest that sees its calls. `rewrite` would see nothing of
/// some programs, and then another is taken even if it was asked for.
pub fn for_program(name: &str, program: &Program) -> Result<Choice, RecordError> {
    if !matches!(name, "auto" | "rewrite") {
        return named(name).map(|backend| Choice { backend, reason: Reason::Asked });
    }
    let rewriting = named("rewrite");
    let reason = match (&rewriting, rewrite::blind_to(&program.path)) {
        (_, Some(reason)) => reason,
        (Err(_), None) if name == "auto" => Reason::Machine,
        (_, None) if name == "auto" => Reason::Cheapest,
        (_, None) => Reason::Asked,
    };
    match reason {
        Reason::Cheapest | Reason::Asked => rewriting.map(|backend| Choice { backend, reason }),
        _ => from_outside().map(|backend| Choice { backend, reason }),
    }
}

/// The back end for processes that run already, or for a cgroup.
pub fn for_running(name: &str, group: bool) -> Result<Choice, RecordError> {
    if name != "auto" {
        return named(name).map(|backend| Choice { backend, reason: Reason::Asked });
    }
    let backend = if group { named("bpf") } else { named("ptrace").or_else(|_| named("bpf")) };
    backend.map(|backend| Choice { backend, reason: Reason::Running })
}

/// The cheapest that needs nothing of the program.
fn from_outside() -> Result<&'static dyn Backend, RecordError> {
    match named("bpf") {
        Ok(backend) if bpf::is_let_in() => Ok(backend),
        _ => named("ptrace"),
    }
}

fn unknown(name: &str) -> Refusal {
    let known: Vec<&str> = BACKENDS.iter().map(|backend| backend.name()).collect();
    Refusal::new(format!("no back end is called {name}"), format!("choose auto or {}", known.join(", ")))
}
