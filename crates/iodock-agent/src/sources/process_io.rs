//! Reads I/O accounting of processes (/proc/PID/io), summed by job. Outside of jobs it is summed by user,
//! session and command.
//!
//! The counters of a process include the children that it has waited for. So at any moment, the sum over
//! living processes counts nothing twice. The sum can fall: if no process of a job waits for a process that
//! ends, its counters leave the job's sum.
//!
//! slurmstepd waits for the processes of its step, so its counters belong to the step, except for the I/O of
//! its own threads. A process below a slurmstepd belongs to that step, whatever its environment contains:
//! users change environments, and in the second part of a heterogeneous job, Slurm sets SLURM_JOB_ID to the
//! id of the first part.
//!
//! The agent remembers the owner of each process between rounds, because finding it costs more than reading
//! counters. Start time, command and code address show whether the process still runs the same program.

use super::environment::Answer;
use super::job_names::Naming;
use super::jobs::Job;
use super::small_file::SmallFile;
use super::stat::Life;
use super::users::{self, Users};
use super::{environment, is_gone, jobs, stat, News, Reading};
use crate::lines::Faults;
use crate::sample::{Entry, Evidence, Names, Owner, Quantity};
use iodock_counters::numbers::whole;
use iodock_counters::process_io::{self, FIELDS};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub type Values = [u64; FIELDS.len()];

/// Names for the [`FIELDS`]. `*_call` counts all data that read and write calls moved, including cached data,
/// pipes and sockets. `*_device` counts data to and from devices.
const METRICS: [(&str, Quantity); FIELDS.len()] = [
    ("read_call", Quantity::Bytes),
    ("write_call", Quantity::Bytes),
    ("read_call", Quantity::Count),
    ("write_call", Quantity::Count),
    ("read_device", Quantity::Bytes),
    ("write_device", Quantity::Bytes),
    ("cancelled_write", Quantity::Bytes),
];

/// Number of rounds in which the owner of a new process is determined again. Schedulers may move a process
/// into its job's cgroup after its start.
const NEW_ROUNDS: u32 = 3;
/// Number of rounds after which the owner of an older process is determined again. The round depends on the
/// process, so that not all are in the same one.
const ASKED_AGAIN: u64 = 6;
const STEP_DAEMON: &[u8] = b"slurmstepd";
/// Step in which Slurm runs its own `sleep` as root. It also contains the ssh sessions of users.
const EXTERN_STEP: &[u8] = b"step_extern";
/// Largest depth of the process tree that is followed.
const DEEPEST: usize = 64;

/// State that is kept between rounds. If a round hangs, its state is lost.
pub type Remembered = Arc<Mutex<Memory>>;

#[derive(Debug, Default)]
pub struct Memory {
    round: u64,
    processes: HashMap<u64, Known>,
    names: Naming,
}

#[derive(Debug)]
struct Known {
    life: Life,
    owner: Owner,
    values: Values,
    /// Number of rounds that contained this process.
    rounds: u32,
    /// Whether the environment was read.
    is_asked: bool,
    /// Whether this is a slurmstepd of Slurm, which has started a step.
    is_step_daemon: bool,
    /// Step whose slurmstepd is an ancestor of this process. The step stays the same when the process's
    /// parents end.
    step: Option<Job>,
}

pub fn read(reading: &Reading) {
    let memory = || reading.processes().lock().unwrap_or_else(PoisonError::into_inner);
    let mut before = std::mem::take(&mut *memory());
    let (round, names) = (before.round + 1, std::mem::take(&mut before.names));
    let mut all = Processes { users: Users::read(reading), before, names, ..Processes::default() };
    for (name, folder) in reading.folders(&reading.root().join("proc")) {
        if let Some(number) = whole(name.as_bytes()) {
            reading.announce(&folder);
            all.add(number, folder);
        }
    }
    all.find_steps(&reading.root().join("proc"));
    all.ask_environments(reading);
    all.give_steps_their_users();
    let mut names = std::mem::take(&mut all.names);
    names.tell(round, reading.round());
    let processes = all.report(reading);
    *memory() = Memory { round, processes, names };
}

/// A process with I/O.
struct Process {
    number: u64,
    folder: PathBuf,
    known: Known,
    /// I/O of a slurmstepd's own threads, which is left out of its counters. Zero for other processes.
    own: Values,
    /// Whether the environment should be read in this round.
    is_wanted: bool,
    /// Whether this is a process of Slurm in a job whose user is still unknown. It is reported when the user
    /// is known.
    is_withheld: bool,
}

#[derive(Default)]
struct Processes {
    before: Memory,
    names: Naming,
    found: Vec<Process>,
    users: Users,
    small: SmallFile,
    faults: Faults,
    refused: u64,
    /// Number of processes that ended during the reading. Other processes may have their ids now.
    gone: u64,
}

impl Processes {
    fn add(&mut self, number: u64, folder: PathBuf) {
        let (mut values, mut faults, path) = (Values::default(), Faults::default(), folder.join("io"));
        match self.small.read(&path) {
            Ok(text) => read_values(text, &mut values, &mut faults),
            Err(error) => self.refused += u64::from(!is_gone(&error)),
        }
        self.faults.absorb(faults, &path);
        // Kernel threads and processes without I/O are left out.
        if values.iter().all(|&value| value == 0) {
            return;
        }
        match self.known(number, &folder, values) {
            Some(known) => {
                let own = if known.is_step_daemon { self.own(&folder) } else { Values::default() };
                self.found.push(Process { number, folder, known, own, is_wanted: false, is_withheld: false });
            }
            None => self.gone += 1,
        }
    }

    /// Finds the owner of a process without reading its environment. Returns `None` if the process has ended.
    fn known(&mut self, number: u64, folder: &Path, values: Values) -> Option<Known> {
        let before = self.before.processes.remove(&number);
        let turn = (self.before.round + number).is_multiple_of(ASKED_AGAIN);
        let is_old = before.as_ref().is_some_and(|before| before.rounds >= NEW_ROUNDS);
        let before = match before {
            // If its counters did not change, an older process keeps its earlier owner without a check.
            Some(before) if is_old && !turn && before.values == values => return Some(before),
            other => other,
        };
        let stat = self.small.read(&folder.join("stat")).ok()?.to_vec();
        let life = Life::of(&stat);
        let is_same_process = |before: &&Known| life.start.is_some() && life.start == before.life.start;
        // The step stays the same if the process executes another program.
        let step = before.as_ref().filter(is_same_process).and_then(|before| before.step.clone());
        let before = before.filter(|before| life.follows(&before.life));
        let Some(before) = before else {
            let (owner, is_step_daemon) = self.owner(folder, &stat)?;
            return Some(Known { life, owner, values, rounds: 1, is_asked: false, is_step_daemon, step });
        };
        let rounds = before.rounds.saturating_add(1);
        if is_old && !turn {
            return Some(Known { values, rounds, ..before });
        }
        let (owner, is_step_daemon) = self.owner(folder, &stat)?;
        // The owner from the environment, and the owner that a slurmstepd got from its processes, are still
        // valid.
        let is_said = before.owner.evidence == Evidence::Environment;
        let is_same_step = owner.job == before.owner.job && owner.session == before.owner.session;
        let owner = match owner.evidence {
            Evidence::Session if is_said => Owner { user: owner.user, ..before.owner },
            _ if is_step_daemon && is_same_step => before.owner,
            _ => owner,
        };
        Some(Known { owner, values, rounds, is_step_daemon, ..before })
    }

    /// Returns the owner of a process, and whether it is the slurmstepd of a step.
    fn owner(&mut self, folder: &Path, stat: &[u8]) -> Option<(Owner, bool)> {
        let status = self.small.read(&folder.join("status")).ok()?;
        let is_daemon = stat::command(stat) == STEP_DAEMON && users::is_root(status);
        let user = self.users.of_status(status);
        let owned = |evidence, job: Job, user| Owner {
            evidence,
            job: job.id,
            user,
            session: job.step,
            ..Owner::default()
        };
        // The command line is read first, because the cgroup of a slurmstepd may belong to the job as a
        // whole.
        let title = if is_daemon { self.small.content(&folder.join("cmdline")) } else { &[] };
        if let Some(job) = jobs::of_title(title) {
            return Some((owned(Evidence::Scheduler, job, Vec::new()), true));
        }
        if let Some(job) = jobs::of_cgroups(self.small.content(&folder.join("cgroup"))) {
            return Some((owned(Evidence::Cgroup, job, user), false));
        }
        let session = stat::session(self.small.content(&folder.join("sessionid")), stat);
        let command = stat::command(stat).to_vec();
        Some((Owner { evidence: Evidence::Session, user, session, command, ..Owner::default() }, false))
    }

    /// Returns the I/O of a process's own threads. They are read after the process's counters, so that the
    /// difference is rather too small than too large.
    fn own(&mut self, folder: &Path) -> Values {
        let mut sum = Values::default();
        for thread in fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
            let mut values = Values::default();
            // A thread that ends during the reading is no fault, and unreadable lines in files of threads are
            // not counted.
            read_values(self.small.content(&thread.path().join("io")), &mut values, &mut Faults::default());
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value));
        }
        sum
    }

    /// Finds the step of each new process whose cgroup does not show it, by the slurmstepd above it.
    fn find_steps(&mut self, proc: &Path) {
        let places: HashMap<u64, usize> =
            self.found.iter().enumerate().map(|(at, process)| (process.number, at)).collect();
        for at in 0..self.found.len() {
            let known = &self.found[at].known;
            let is_told = known.owner.evidence == Evidence::Cgroup && !known.owner.session.is_empty();
            if known.is_step_daemon || is_told {
                continue;
            }
            if known.step.is_none() && known.rounds <= NEW_ROUNDS {
                let life = known.life.clone();
                self.found[at].known.step = self.step_above(life, proc, &places);
            }
            self.found[at].known.take_step();
        }
    }

    /// Returns the step of the nearest slurmstepd among a process's ancestors.
    fn step_above(&mut self, mut life: Life, proc: &Path, places: &HashMap<u64, usize>) -> Option<Job> {
        for _ in 0..DEEPEST {
            // Process 1 is the parent of orphans, so the search ends there.
            let number = life.parent.filter(|parent| *parent > 1)?;
            let parent = match places.get(&number) {
                Some(&at) => {
                    let known = &self.found[at].known;
                    let daemons = || Job { id: known.owner.job.clone(), step: known.owner.session.clone() };
                    let step = if known.is_step_daemon { Some(daemons()) } else { known.step.clone() };
                    (known.life.clone(), step)
                }
                // This parent is not in the list, because it has not read or written anything.
                None => {
                    let folder = proc.join(number.to_string());
                    let stat = self.small.read(&folder.join("stat")).ok()?.to_vec();
                    let is_named = stat::command(&stat) == STEP_DAEMON;
                    let owner = if is_named { self.owner(&folder, &stat) } else { None };
                    let daemon = owner.and_then(|(owner, is_daemon)| is_daemon.then_some(owner));
                    let step = daemon.map(|owner| Job { id: owner.job, step: owner.session });
                    (Life::of(&stat), step)
                }
            };
            // The parent has ended, and a process that started later has its id.
            if parent.0.start > life.start {
                return None;
            }
            if parent.1.is_some() {
                return parent.1;
            }
            life = parent.0;
        }
        None
    }

    /// Gives each slurmstepd, which runs as root, the owner of the processes that it waits for. When they
    /// end, their counters move to it, and the sum must stay the same. In a job's extern step, I/O of root is
    /// also Slurm's own and gets the job's user.
    fn give_steps_their_users(&mut self) {
        let root = self.users.of_number(b"0");
        let is_slurms = |process: &Process| {
            let owner = &process.known.owner;
            process.known.is_step_daemon || (owner.session == EXTERN_STEP && owner.user == root)
        };
        let mut users = HashMap::<Vec<u8>, Vec<u8>>::new();
        for process in self.found.iter().filter(|process| process.known.owner.has_job()) {
            let owner = &process.known.owner;
            let is_known =
                if process.known.is_step_daemon { !owner.user.is_empty() } else { !is_slurms(process) };
            let user = users.get(&owner.job);
            if is_known && user.is_none_or(|user| *user == root) {
                users.insert(owner.job.clone(), owner.user.clone());
            }
        }
        for process in self.found.iter_mut().filter(|process| is_slurms(process)) {
            match users.get(&process.known.owner.job) {
                Some(user) => process.known.owner.user.clone_from(user),
                None => process.is_withheld = true,
            }
        }
        let mut owners = HashMap::new();
        for process in self.found.iter().filter(|process| !process.known.is_step_daemon) {
            let owner = &process.known.owner;
            let is_users = users.get(&owner.job) == Some(&owner.user);
            if is_users && !owner.session.is_empty() {
                owners.entry((owner.job.clone(), owner.session.clone())).or_insert_with(|| owner.clone());
            }
        }
        for process in self.found.iter_mut().filter(|process| process.known.is_step_daemon) {
            let owner = &mut process.known.owner;
            if let Some(found) = owners.get(&(owner.job.clone(), owner.session.clone())) {
                owner.clone_from(found);
            }
        }
    }

    /// Reads the environments of processes that are not in a job's cgroup, and of some processes of jobs
    /// whose name is unknown.
    fn ask_environments(&mut self, reading: &Reading) {
        let round = self.before.round + 1;
        for process in &mut self.found {
            let is_nameless = !process.known.is_step_daemon && self.names.wants(&process.known.owner, round);
            process.is_wanted = is_nameless || process.has_no_job_yet();
        }
        let asked = self.found.iter().filter(|process| process.is_wanted);
        let paths: Vec<_> = asked.map(|process| process.folder.join("environ")).collect();
        // The other half of the remaining time is for the following steps.
        let answers = environment::ask(&paths, reading.remaining() / 2);
        let unread = paths.len() - answers.said.len();
        self.take_answers(answers.said, round);
        for path in answers.stuck {
            reading.say(News::Refused(path, "no answer; its job is not known".into()));
        }
        if unread > 0 {
            let why = answers.error.map_or(String::new(), |error| format!(" ({error})"));
            reading.say(News::Remark(format!("environments that were not read any more: {unread}{why}")));
        }
    }

    fn take_answers(&mut self, answers: Vec<Answer>, round: u64) {
        let (small, before, mut answers) = (&mut self.small, self.found.len(), answers.into_iter());
        let names = &mut self.names;
        self.found.retain_mut(|process| {
            !process.is_wanted
                || process.take(answers.next(), small, |owner, said| names.learn(owner, said, round))
        });
        self.gone += (before - self.found.len()) as u64;
    }

    /// Reports the sums, and returns the state to remember.
    fn report(self, reading: &Reading) -> HashMap<u64, Known> {
        let (mut names, mut sums) = (Names::default(), BTreeMap::<Owner, Values>::new());
        for process in self.found.iter().filter(|process| !process.is_withheld) {
            let sums = match sums.get_mut(&process.known.owner) {
                Some(sums) => sums,
                None => sums.entry(process.known.owner.clone()).or_default(),
            };
            let done = process.known.values.iter().zip(process.own);
            let done = done.map(|(value, own)| value.saturating_sub(own));
            sums.iter_mut().zip(done).for_each(|(sum, value)| *sum = sum.saturating_add(value));
        }
        let entries: Vec<Entry> =
            sums.iter().filter_map(|(owner, values)| entry(owner, values, &mut names)).collect();
        if self.faults.lines > 0 {
            reading.sums("process_io", names, &entries, self.faults);
        }
        for (count, what) in [
            (self.refused, "processes whose counters may not be read"),
            (self.gone, "processes that ended while they were read, and are left out"),
        ] {
            if count > 0 {
                reading.say(News::Remark(format!("{what}: {count}")));
            }
        }
        self.found.into_iter().map(|process| (process.number, process.known)).collect()
    }
}

impl Known {
    /// Sets the owner to the job and step of `step`.
    fn take_step(&mut self) {
        let Some(step) = &self.step else { return };
        let owner = &mut self.owner;
        if owner.evidence == Evidence::Cgroup {
            // The owner is already this job, but without a step.
            if owner.job == step.id {
                owner.session.clone_from(&step.step);
            }
            return;
        }
        let user = std::mem::take(&mut owner.user);
        let (job, session) = (step.id.clone(), step.step.clone());
        *owner = Owner { evidence: Evidence::Scheduler, job, user, session, command: Vec::new() };
    }
}

impl Process {
    fn has_no_job_yet(&self) -> bool {
        self.known.owner.evidence == Evidence::Session && !self.known.is_asked
    }

    /// Applies the content of the environment. Returns whether the process still exists. `learn` gets the
    /// owner and the names of jobs.
    fn take(
        &mut self,
        answer: Option<Answer>,
        small: &mut SmallFile,
        learn: impl FnOnce(&Owner, &[(Vec<u8>, Vec<u8>)]),
    ) -> bool {
        let is_known = !self.has_no_job_yet();
        let said = match answer {
            Some(Answer::Said(said)) => said,
            // Without an environment, a process whose owner was known is still counted, even if it has ended.
            other => return is_known || other != Some(Answer::Gone),
        };
        self.known.is_asked |= !is_known;
        let job = said.job.filter(|_| !is_known);
        let is_new = job.is_some();
        if let Some(job) = job {
            let user = std::mem::take(&mut self.known.owner.user);
            let (evidence, command) = (Evidence::Environment, Vec::new());
            self.known.owner = Owner { evidence, job: job.id, user, session: job.step, command };
        }
        if !is_new && said.names.is_empty() {
            return true;
        }
        // The environment may be that of a later process with the same id, whose job must not get these
        // bytes.
        let start = self.known.life.start;
        let is_same = small.read(&self.folder.join("stat")).is_ok_and(|stat| stat::start_time(stat) == start);
        if is_same {
            learn(&self.known.owner, &said.names);
        }
        is_same || !is_new
    }
}

/// Parses the counters of a file. If the last line has no newline, it was cut, perhaps within its number.
fn read_values(text: &[u8], values: &mut Values, faults: &mut Faults) {
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        faults.lines += 1;
        match line.strip_suffix(b"\n").and_then(process_io::line) {
            Some((field, value)) => values[field] = value,
            None => faults.unreadable(),
        }
    }
}

/// Builds an entry for this owner. The values are in the order of [`FIELDS`].
pub fn entry(owner: &Owner, values: &Values, names: &mut Names) -> Option<Entry> {
    let mut entry = Entry { owner: owner.clone(), ..Entry::default() };
    for ((operation, quantity), &value) in METRICS.iter().zip(values) {
        entry.push(names.intern(operation.as_bytes())?, *quantity, value);
    }
    Some(entry)
}
