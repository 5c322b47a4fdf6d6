//! Starts a program and follows it with the kernel's programs.

use super::allowed::load_refusal;
use super::follow::{Following, Purpose};
use super::keeper::Keeper;
use super::round::Watch;
use crate::backends::Ended;
use crate::clock::Clock;
use crate::control::Control;
use crate::error::{launch_error, plain, RecordError, Refusal};
use crate::launch;
use crate::program::Program;
use iodock_bpf::error::LoadError;
use iodock_bpf::plans::Plans;
use iodock_bpf::programs::Programs;
use iodock_journal::JournalWriter;
use std::io;

pub fn refused(error: &LoadError) -> RecordError {
    RecordError::Refused(load_refusal(error))
}

pub fn run(
    program: Program,
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Result<Ended, RecordError> {
    let plans = Plans::of_this_machine();
    let mut programs = Programs::load(&plans.plans).map_err(|error| refused(&error))?;
    let cant_start = |error: io::Error| {
        let message = format!("{} can't be started: {}", program.path.display(), plain(&error));
        RecordError::Refused(Refusal::new(message, "iodock doctor says what this machine allows"))
    };
    let (keeper, queue) = Keeper::new(journal, control, &plans, (clock.epoch(), programs.shows_pages))?;
    let mut child = launch::fork(&program).map_err(cant_start)?;
    let pid = child.pid as u32;
    if let Err(error) = programs.attach() {
        child.abandon();
        return Err(refused(&error));
    }
    let watch = Watch::new(control, &plans, clock.epoch());
    let purpose = Purpose::launched(child.pid);
    let mut following = Following::new(&programs, (watch, queue), clock, control, purpose);
    following.root(pid, &program.command_text());
    control.faults.about_to_execute(pid);
    let followed = following.run(keeper, || child.release());
    if let Some(error) = &followed.exec_error {
        return Err(launch_error(&program.path.to_string_lossy(), error));
    }
    Ok(followed.told(journal))
}
