//! Runs a worker process, from its start to its end.

use crate::calls::{failed, failed_of, numbered, Ended};
use crate::plan::{Pattern, Phase, Step};
use crate::shared::{Control, Shared, Slot};
use crate::worker::{now, now_of, Position, Timer, Work, Worker};
use crate::{folders, patterns};
use std::os::fd::RawFd;

/// Parameters of a worker process.
pub struct Task<'a> {
    pub step: &'a Step,
    pub phases: &'a [Phase],
    pub position: Position,
    pub tree: RawFd,
    pub source: &'a [u8],
    pub source_slack: usize,
    pub buffer: &'a mut [u8],
}

/// Runs all phases in a worker. If the worker ends early, its slot contains the reason.
pub fn live(task: Task, shared: &Shared) {
    let slot = shared.own_slot(task.position.local as usize);
    match carry_out(task, shared.control(), slot) {
        Ok(()) => {}
        Err(Ended::Stopped) => shared.control().stop(),
        Err(Ended::Failed(code, what)) => {
            slot.error = code;
            let length = what.len().min(slot.what.len());
            slot.what[..length].copy_from_slice(&what.as_bytes()[..length]);
            shared.control().stop();
        }
    }
}

fn carry_out(task: Task, control: &Control, slot: &mut Slot) -> Result<(), Ended> {
    let Task { step, phases, position, tree, source, source_slack, buffer } = task;
    let name = numbered(b'w', u64::from(position.index));
    // SAFETY: the descriptor is open, and the name is a C string.
    if unsafe { libc::mkdirat(tree, name.as_ptr(), 0o700) } != 0 {
        return Err(failed("mkdir"));
    }
    let folder =
        folders::open_directory(tree, &name).map_err(|error| failed_of(&error, "open of a folder"))?;
    let limit_ns = (step.limit_seconds * 1e9) as u64;
    let mut worker = Worker { position, tree, folder, source, source_slack, buffer, control };
    let mut work: Box<dyn Work> = match &step.pattern {
        Pattern::Data(data) => Box::new(patterns::data::Files::new(data)),
        Pattern::Metadata(metadata) => Box::new(patterns::metadata::Items::new(metadata)),
        Pattern::Mixed(mixed) => Box::new(patterns::mixed::Mixture::new(mixed, position.index)),
    };
    for at in 0..phases.len() {
        let (record, others) = slot.records[at..].split_first_mut().expect("a record for each phase");
        work.prepare(&mut worker, at, record)?;
        if !control.arrive_and_wait(at as u32, position.on_rank) {
            return Err(Ended::Stopped);
        }
        let cpu = now_of(libc::CLOCK_PROCESS_CPUTIME_ID);
        let start = now();
        let mut timer = Timer::start(record, control, start, limit_ns);
        let done = work.run(&mut worker, at, &mut timer, others);
        record.start_ns = start;
        record.end_ns = now();
        record.cpu_ns = now_of(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu;
        done?;
        work.finish(&mut worker, at)?;
    }
    drop(worker);
    // SAFETY: the descriptor is open, and the name is a C string. A folder that can't be removed here is
    // reported when the engine removes the whole tree.
    unsafe { libc::unlinkat(tree, name.as_ptr(), libc::AT_REMOVEDIR) };
    Ok(())
}
