//! Chooses the back end that records a program, and gives the reason.

use super::reach::{blind_to, own_calls};
use super::reason::Reason;
use super::{bpf, Backend, BACKENDS};
use crate::error::{RecordError, Refusal};
use crate::launch::may_open;
use crate::program::Program;

/// A back end, and the reason for choosing it.
#[derive(Clone, Copy)]
pub struct Choice {
    pub backend: &'static dyn Backend,
    pub reason: Reason,
}

impl Choice {
    /// Checks that the back end can count calls.
    ///
    /// # Errors
    /// Fails if the back end can only record calls and not count them.
    pub fn allow_light(self) -> Result<(), RecordError> {
        if self.backend.name() == "rewrite" {
            return Ok(());
        }
        let name = self.backend.name();
        let message = match self.reason {
            Reason::Asked => format!("--backend {name} can't count calls in place of recording them"),
            _ => "calls of this program can't be counted from inside: it is static, gains rights, makes calls past libc, or rewriting is not possible here".into(),
        };
        Err(RecordError::Refused(Refusal::new(message, "record it without --light and --ranks")))
    }

    /// Checks that the back end can record stacks.
    ///
    /// # Errors
    /// Fails if the back end can't determine the places in the program from which calls come.
    pub fn allow_stacks(self) -> Result<(), RecordError> {
        if self.backend.name() == "rewrite" {
            return Ok(());
        }
        let name = self.backend.name();
        let message = match self.reason {
            Reason::Asked => format!("--backend {name} can't tell where calls come from"),
            _ => "where calls of this program come from can't be seen from inside: it is static, gains rights, makes calls past libc, or rewriting is not possible here".into(),
        };
        Err(RecordError::Refused(Refusal::new(
            message,
            "record it without --stacks, or read a log of strace -k",
        )))
    }
}

/// Returns the back end with this name.
///
/// # Errors
/// Fails if there is no back end with this name, or if this machine or user can't use it.
pub fn named(name: &str) -> Result<&'static dyn Backend, RecordError> {
    let found = BACKENDS.iter().find(|backend| backend.name() == name);
    let backend = *found.ok_or_else(|| RecordError::Refused(unknown(name)))?;
    backend.is_available().map(|()| backend).map_err(RecordError::Refused)
}

/// Chooses the back end for `program`. `auto` means the cheapest one that can record its calls. If `rewrite`
/// would record nothing of the program, another one is used even if the user requested `rewrite`.
pub fn for_program(name: &str, program: &Program) -> Result<Choice, RecordError> {
    if !matches!(name, "auto" | "rewrite") {
        return named(name).map(|backend| Choice { backend, reason: Reason::Asked });
    }
    let rewriting = named("rewrite");
    let reason = match (&rewriting, blind_to(&program.path)) {
        (_, Some(reason)) => reason,
        (Err(_), None) if name == "auto" => Reason::Machine,
        (_, None) if name == "auto" => Reason::Cheapest,
        (_, None) => Reason::Asked,
    };
    if reason == Reason::Cheapest {
        if let Some(choice) = past_libc(program) {
            return Ok(choice);
        }
    }
    match reason {
        Reason::Cheapest | Reason::Asked => rewriting.map(|backend| Choice { backend, reason }),
        _ => from_outside().map(|backend| Choice { backend, reason }),
    }
}

/// Returns another back end for a program that makes calls without libc. `None` if there are no such calls or
/// no such back end here.
fn past_libc(program: &Program) -> Option<Choice> {
    let own = own_calls(program);
    let reason = if own.without_libc { Reason::NoLibc } else { Reason::OwnCalls };
    let backend = (own.without_libc || own.calls.io || own.calls.rings).then(from_outside)?.ok()?;
    // Many programs contain calls of io_uring that they rarely use. These calls alone do not justify stopping
    // the program at each call, so they count only with bpf.
    let is_worth_it = own.without_libc || own.calls.io || backend.name() == "bpf";
    is_worth_it.then_some(Choice { backend, reason })
}

/// Returns the back end for `auto` if `rewrite` could not start.
pub fn without_buffers() -> Result<Choice, RecordError> {
    from_outside().map(|backend| Choice { backend, reason: Reason::NoBuffers })
}

/// Returns the back end for running processes, or for a cgroup.
pub fn for_running(name: &str, group: bool) -> Result<Choice, RecordError> {
    if name != "auto" {
        return named(name).map(|backend| Choice { backend, reason: Reason::Asked });
    }
    let backend = if group { named("bpf") } else { named("ptrace").or_else(|_| named("bpf")) };
    backend.map(|backend| Choice { backend, reason: Reason::Running })
}

/// Number of descriptors that the bpf back end needs for programs, tables and buffers.
const BPF_DESCRIPTORS: usize = 64;

/// Returns the cheapest back end that needs no library inside the program.
fn from_outside() -> Result<&'static dyn Backend, RecordError> {
    match named("bpf") {
        Ok(backend) if bpf::is_let_in() && may_open(BPF_DESCRIPTORS).is_ok() => Ok(backend),
        _ => named("ptrace"),
    }
}

fn unknown(name: &str) -> Refusal {
    let known: Vec<&str> = BACKENDS.iter().map(|backend| backend.name()).collect();
    Refusal::new(format!("no back end is called {name}"), format!("choose auto or {}", known.join(", ")))
}
