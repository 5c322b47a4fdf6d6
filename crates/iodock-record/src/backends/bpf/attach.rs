//! Attaches to running processes, or to all of a cgroup.

use super::follow::{Following, Purpose};
use super::group::Group;
use super::keeper::Keeper;
use super::launch::refused;
use super::round::Watch;
use crate::backends::Ended;
use crate::clock::Clock;
use crate::control::Control;
use crate::error::{plain, RecordError, Refusal};
use iodock_bpf::plans::Plans;
use iodock_bpf::programs::Programs;
use iodock_journal::JournalWriter;
use std::path::Path;

pub fn processes(
    pids: &[u32],
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Result<Ended, RecordError> {
    follow(Purpose::Attached, pids, journal, clock, control)
}

pub fn group(
    path: &Path,
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Result<Ended, RecordError> {
    let group = Group::find(path).map_err(RecordError::Refused)?;
    follow(Purpose::Group(group), &[], journal, clock, control)
}

fn follow(
    purpose: Purpose,
    pids: &[u32],
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Result<Ended, RecordError> {
    let plans = Plans::of_this_machine();
    let mut programs = Programs::load(&plans.plans).map_err(|error| refused(&error))?;
    programs.attach().map_err(|error| refused(&error))?;
    let (keeper, queue) = Keeper::new(journal, control, &plans, (clock.epoch(), programs.shows_pages))?;
    let watch = Watch::new(control, &plans, clock.epoch());
    let mut following = Following::new(&programs, (watch, queue), clock, control, purpose);
    for &pid in pids {
        following.attach(pid).map_err(|error| {
            let message = format!("process {pid} can't be followed: {}", plain(&error));
            RecordError::Refused(Refusal::new(message, "ps -e lists the processes that run"))
        })?;
    }
    let followed = following.run(keeper, || {});
    Ok(followed.told(journal))
}
