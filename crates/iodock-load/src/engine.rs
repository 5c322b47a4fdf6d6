//! Executes a plan: creates the tree, forks workers for each step, starts them together, and collects their
//! results.
//!
//! The engine runs in its own process with a single thread, so that forking is safe. The process ends when
//! the plan is done.

use crate::busy::Moment;
use crate::error::{Kind, LoadError};
use crate::meet::{self, Meeting};
use crate::plan::{Plan, Step};
use crate::result::{of_rank, together, Event, RankHost, StepResult};
use crate::shared::{map_anonymous, Shared};
use crate::space::{self, Need};
use crate::task::{live, Task};
use crate::tree::{self, Tree};
use crate::under::Roots;
use crate::worker::Position;
use crate::{cache, signals};
use std::io;
use std::time::{Duration, Instant};

/// Time that a worker has to end after a stop request, before the engine kills it.
const GRACE: Duration = Duration::from_millis(300);
/// Time that the engine waits for a killed worker. A worker that hangs in a system call does not end.
const MOURNING: Duration = Duration::from_secs(60);
const TURN: Duration = Duration::from_millis(10);
/// Requests begin at different offsets in the random data, up to this number of bytes. It is more than file
/// systems compress at a time, and less than a core's cache, so that reading the data takes little time.
const SOURCE_SLACK: usize = 256 << 10;

/// Returns the resources that the steps of a plan may need at one time, over all its ranks.
pub fn need_of(plan: &Plan) -> Need {
    let ranks = plan.job.as_ref().map_or(1, |job| u64::from(job.size));
    let of = |step: &Step| {
        let (bytes, inodes) = step.pattern.need();
        let processes = u64::from(step.processes) * ranks;
        Need { bytes: bytes.saturating_mul(processes), inodes: inodes.saturating_mul(processes) }
    };
    plan.steps.iter().map(of).fold(Need::default(), |most, one| Need {
        bytes: most.bytes.max(one.bytes),
        inodes: most.inodes.max(one.inodes),
    })
}

/// Executes `plan` and reports events. Removes the tree in every case.
pub fn run(plan: &Plan, tell: &mut dyn FnMut(&Event)) {
    signals::watch();
    let mut left = Vec::new();
    if let Err(error) = prepared(plan, tell, &mut left) {
        tell(&Event::Failed(error));
    }
    tell(&Event::Ended { left });
}

fn prepared(plan: &Plan, tell: &mut dyn FnMut(&Event), left: &mut Vec<String>) -> Result<(), LoadError> {
    check_plan(plan)?;
    let (tree, meeting, plan) = match &plan.job {
        Some(job) if job.size > 1 && job.rank > 0 => {
            let (tree, meeting, plan) = Meeting::join(plan, job, &mut signals::check)?;
            (tree, Some(meeting), plan)
        }
        job => {
            let job = job.as_ref().filter(|job| job.size > 1);
            check_room(plan)?;
            let tree = Tree::make(&plan.directory, job.map(meet::token_of).as_deref())?;
            let meeting = job.map(|job| Meeting::open(&tree, job, plan)).transpose();
            match meeting {
                Ok(meeting) => (tree, meeting, plan.clone()),
                Err(error) => {
                    left.extend(tree.remove());
                    return Err(error);
                }
            }
        }
    };
    let place = place_of(&tree);
    tell(&Event::Started { tree: tree.path().display().to_string(), machine: place.machine.clone() });
    let ranks_per_node = plan.job.as_ref().map_or(1, |job| job.per_node);
    let mut engine = Engine { ranks_per_node, tree, meeting, place };
    let outcome = engine.steps(&plan, tell);
    left.extend(engine.end(outcome.is_ok()));
    outcome
}

fn place_of(tree: &Tree) -> RankHost {
    let (boot, host) = (tree::boot_id(), tree::host_name());
    // If a container hides the boot id, the host name identifies the machine.
    let machine = if boot.is_empty() { host.clone() } else { boot };
    let under = Roots::default().under(tree.path());
    RankHost { machine, host, magic: cache::magic_of(tree.fd()), under }
}

fn check_plan(plan: &Plan) -> Result<(), LoadError> {
    let wrong = |step: &Step, why: &str| {
        Err(LoadError::new(Kind::Plan, format!("step {}: {why}", step.id), "correct the plan"))
    };
    for step in &plan.steps {
        if let Some(fault) = step.pattern.fault() {
            return wrong(step, fault);
        }
        if step.processes == 0 || !step.limit_seconds.is_finite() || step.limit_seconds <= 0.0 {
            return wrong(step, "processes and limit_seconds must be above 0");
        }
    }
    if std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        let hint = "start the engine in a process of its own";
        return Err(LoadError::new(Kind::Plan, "the engine can't fork beside other threads", hint));
    }
    Ok(())
}

fn check_room(plan: &Plan) -> Result<(), LoadError> {
    use std::os::fd::AsRawFd;
    let place = plan.directory.display().to_string();
    let folder = std::fs::File::open(&plan.directory).map_err(|error| LoadError::system(&place, &error))?;
    space::check(folder.as_raw_fd(), &place, need_of(plan))
}

struct Engine {
    ranks_per_node: u32,
    tree: Tree,
    meeting: Option<Meeting>,
    place: RankHost,
}

/// Forked processes that the engine has not waited for yet.
struct Children(Vec<libc::pid_t>);

impl Engine {
    fn steps(&mut self, plan: &Plan, tell: &mut dyn FnMut(&Event)) -> Result<(), LoadError> {
        let request = plan.steps.iter().map(|step| step.pattern.request_bytes()).max().unwrap_or(0);
        let source = random_bytes(request as usize + SOURCE_SLACK)?;
        for step in &plan.steps {
            signals::check()?;
            let result = self.step(step, source, tell)?;
            if let Some(result) = self.gathered(step, result, tell)? {
                tell(&Event::Step(result));
            }
        }
        Ok(())
    }

    /// Returns the results of all ranks in a step on rank 0, and None on all other ranks.
    fn gathered(
        &mut self,
        step: &Step,
        result: StepResult,
        tell: &mut dyn FnMut(&Event),
    ) -> Result<Option<StepResult>, LoadError> {
        let Some(meeting) = &mut self.meeting else { return Ok(Some(result)) };
        if meeting.rank > 0 {
            let text = serde_json::to_string(&(&self.place, &result)).unwrap_or_default();
            meeting.hand_in(result.id, &text)?;
            return meeting.barrier(tell, &mut signals::check).map(|()| None);
        }
        meeting.barrier(tell, &mut signals::check)?;
        let mut ranks = vec![(self.place.clone(), result)];
        for text in meeting.collect(step.id)? {
            let broken = |error| LoadError::new(Kind::System, format!("a rank's result: {error}"), "");
            ranks.push(serde_json::from_str(&text).map_err(broken)?);
        }
        Ok(together(step, self.ranks_per_node, ranks))
    }

    fn step(
        &mut self,
        step: &Step,
        source: &[u8],
        tell: &mut dyn FnMut(&Event),
    ) -> Result<StepResult, LoadError> {
        let (bytes, inodes) = step.pattern.need();
        let many = u64::from(step.processes);
        let need = Need { bytes: bytes.saturating_mul(many), inodes: inodes.saturating_mul(many) };
        space::check(self.tree.fd(), &self.tree.path().display().to_string(), need)?;
        let refused = |error: io::Error| LoadError::system("memory for the workers", &error);
        let shared = Shared::new(step.processes as usize).map_err(refused)?;
        let before = Moment::now();
        let mut children = Children(Vec::new());
        let done = self
            .forked(step, &shared, source, &mut children)
            .and_then(|()| self.phases(step, &shared, &mut children, tell));
        if done.is_err() {
            shared.control().stop();
        }
        children.end(done.is_err())?;
        // An error that a worker reported itself is the cause, so it comes before the error that the engine
        // noticed.
        if let Some(error) = (0..step.processes as usize).find_map(|worker| self.error_of(&shared, worker)) {
            return Err(error);
        }
        done?;
        let several_ranks = self.meeting.is_some();
        let result = of_rank(step, &shared, &self.place, several_ranks);
        Ok(StepResult { busy: before.until_now(), ..result })
    }

    fn forked(
        &self,
        step: &Step,
        shared: &Shared,
        source: &[u8],
        children: &mut Children,
    ) -> Result<(), LoadError> {
        let (rank, size) = self.meeting.as_ref().map_or((0, 1), |meeting| (meeting.rank, meeting.size));
        let phases = step.pattern.phases();
        let engine = std::process::id() as libc::pid_t;
        for local in 0..step.processes {
            let position = Position {
                index: rank * step.processes + local,
                total: size * step.processes,
                local,
                on_rank: step.processes,
                ranks_per_node: self.ranks_per_node,
            };
            // SAFETY: this process has only one thread, so the child may call any function.
            match unsafe { libc::fork() } {
                -1 => return Err(LoadError::system("fork", &io::Error::last_os_error())),
                0 => {
                    signals::leave_to_engine(engine);
                    let lived = std::panic::catch_unwind(|| {
                        let length = step.pattern.request_bytes() as usize;
                        let Ok(buffer) = map_anonymous(length, libc::MAP_PRIVATE) else { return false };
                        // SAFETY: the mapping has this length, belongs only to this process, and stays until
                        // it ends.
                        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
                        // Filling the buffer makes the kernel allocate its pages now, so that the first
                        // measured reads do not.
                        buffer.fill(1);
                        let tree = self.tree.fd();
                        let task = Task {
                            step,
                            phases: &phases,
                            position,
                            tree,
                            source,
                            source_slack: SOURCE_SLACK,
                            buffer,
                        };
                        live(task, shared);
                        true
                    });
                    // SAFETY: _exit ends the process without running destructors or flushing buffers that
                    // belong to the parent.
                    unsafe { libc::_exit(i32::from(!matches!(lived, Ok(true)))) };
                }
                child => children.0.push(child),
            }
        }
        Ok(())
    }

    /// Starts each phase at the same time for all workers of all ranks.
    fn phases(
        &mut self,
        step: &Step,
        shared: &Shared,
        children: &mut Children,
        tell: &mut dyn FnMut(&Event),
    ) -> Result<(), LoadError> {
        for at in 0..step.pattern.phases().len() as u32 {
            while !shared.control().all_arrived(at, step.processes, TURN) {
                signals::check()?;
                children.check(shared)?;
            }
            if let Some(meeting) = &mut self.meeting {
                meeting.barrier(tell, &mut || signals::check().and_then(|()| children.check(shared)))?;
            }
            shared.control().start(at);
        }
        while !children.0.is_empty() {
            signals::check()?;
            children.check(shared)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn error_of(&self, shared: &Shared, worker: usize) -> Option<LoadError> {
        let slot = shared.slot(worker);
        if slot.error == 0 {
            return None;
        }
        let what = String::from_utf8_lossy(&slot.what);
        let what = format!("{}: {}", self.tree.path().display(), what.trim_end_matches('\0'));
        Some(LoadError::system(what, &io::Error::from_raw_os_error(slot.error)))
    }

    /// Removes the tree, or with several ranks leaves this to rank 0. Returns files that could not be
    /// removed.
    fn end(self, well: bool) -> Vec<String> {
        match self.meeting {
            None => self.tree.remove(),
            Some(meeting) => {
                meeting.leave(well);
                if meeting.rank > 0 {
                    Vec::new()
                } else {
                    self.tree.remove()
                }
            }
        }
    }
}

impl Children {
    /// Forgets the workers that have ended.
    ///
    /// # Errors
    /// Fails if one of them ended unexpectedly: it was killed, or has an error in its slot.
    fn check(&mut self, shared: &Shared) -> Result<(), LoadError> {
        let mut broken = None;
        self.0.retain(|&child| {
            let mut status = 0;
            // SAFETY: the process is a child of this one, and `status` is writable.
            if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
                return true;
            }
            if status != 0 {
                broken = Some(status);
            }
            false
        });
        if let Some(status) = broken {
            let how = if libc::WIFSIGNALED(status) {
                format!("was killed by signal {}", libc::WTERMSIG(status))
            } else {
                "failed".into()
            };
            let hint = "was memory short? fewer --processes or smaller --sizes need less";
            return Err(LoadError::new(Kind::System, format!("a process of the check-up {how}"), hint));
        }
        if shared.control().is_stopped() {
            return Err(LoadError::stopped("a process of the check-up met an error"));
        }
        Ok(())
    }

    /// Waits for all workers. With `soon`, kills workers that do not end within `GRACE`.
    ///
    /// # Errors
    /// Fails if a worker does not end even when killed.
    fn end(&mut self, soon: bool) -> Result<(), LoadError> {
        let start = Instant::now();
        let mut killed = false;
        while !self.0.is_empty() {
            self.0.retain(|&child| {
                // SAFETY: the process is a child of this one, and the null pointer requests no status.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) == 0 }
            });
            if soon && !killed && start.elapsed() > GRACE {
                // SAFETY: these children were not waited for, so their numbers still belong to them.
                self.0.iter().for_each(|&child| unsafe {
                    libc::kill(child, libc::SIGKILL);
                });
                killed = true;
            }
            if start.elapsed() > MOURNING + GRACE {
                let message =
                    format!("{} processes hang in the file system and can't be ended", self.0.len());
                return Err(LoadError::new(
                    Kind::System,
                    message,
                    "iodock health clean DIR once it answers again",
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Returns incompressible bytes, which all workers that are forked later share.
fn random_bytes(length: usize) -> Result<&'static [u8], LoadError> {
    let refused = |error: io::Error| LoadError::system("memory for what is written", &error);
    let base = map_anonymous(length, libc::MAP_PRIVATE).map_err(refused)?;
    // SAFETY: the mapping has this length and is never unmapped.
    let bytes = unsafe { std::slice::from_raw_parts_mut(base, length) };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(std::process::id());
    for word in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    Ok(bytes)
}
