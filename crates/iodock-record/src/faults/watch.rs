//! Starts watching processes, and keeps which processes are watched.

use super::records::{self, Happened};
use super::ring::Ring;
use super::{abi, paths, proc};
use crate::process;
use abi::Event;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;

/// Sizes in bytes of a CPU's ring buffer and of all of them. The kernel allows every user RING_BYTES per CPU
/// (kernel.perf_event_mlock_kb). With many CPUs the buffers are smaller.
const RING_BYTES: usize = 512 << 10;
const ALL_RINGS_BYTES: usize = 32 << 20;
const LEAST_RING_BYTES: usize = 16 << 10;

/// Number in place of an event's for a page that was present when watching began. Such pages are listed among
/// the faults.
pub const PRESENT: u64 = u64::MAX;

#[derive(Default)]
pub struct Watch {
    pub rings: Vec<Ring>,
    /// Numbers of the events that count major faults.
    pub majors: HashSet<u64>,
    /// Records from the ring buffers, in the order of each buffer. They must be sorted before further
    /// processing.
    pub pending: Vec<(i64, Happened)>,
    /// Reason why page faults can't be sampled here.
    pub refusal: Option<String>,
    families: Vec<Family>,
    processes: HashMap<u32, Process>,
    processors: Vec<i32>,
}

/// A watched process, and all tasks that inherited its events.
struct Family {
    events: Vec<OwnedFd>,
    living: usize,
}

struct Process {
    family: usize,
    threads: usize,
}

pub fn page_size() -> u64 {
    // SAFETY: sysconf accesses no memory of the caller.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Returns the time of CLOCK_MONOTONIC in ns, as in the kernel's records.
pub fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` has room for the result, and this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

impl Watch {
    /// Watches `pid` and all its threads, unless it is watched already. Returns whether it is watched now.
    pub fn begin(&mut self, pid: u32) -> bool {
        if self.opens(pid) {
            self.note_what_is_there(pid);
        }
        self.processes.contains_key(&pid)
    }

    /// Watches a process that is about to execute its first program. Its present maps are those of the
    /// recorder, so they are not recorded.
    pub fn begin_before_exec(&mut self, pid: u32) {
        self.opens(pid);
    }

    /// Opens the events of a process. Returns whether watching begins now.
    fn opens(&mut self, pid: u32) -> bool {
        if self.rings.is_empty() {
            if let Err(error) = self.open_rings() {
                self.refuse(&error);
                return false;
            }
        }
        self.drain();
        if self.processes.contains_key(&pid) {
            return false;
        }
        let family = self.families.len();
        self.families.push(Family { events: Vec::new(), living: 0 });
        if let Err(error) = self.open_all(pid, family) {
            self.families[family].events.clear();
            // If the process has ended, this does not mean that the system refuses to sample.
            if error.raw_os_error() != Some(libc::ESRCH) {
                self.refuse(&error);
            }
            return false;
        }
        true
    }

    fn refuse(&mut self, error: &io::Error) {
        self.rings.clear();
        self.refusal = Some(crate::error::plain(error));
    }

    fn open_rings(&mut self) -> io::Result<()> {
        allow_many_files();
        self.processors = proc::processors();
        let share = (ALL_RINGS_BYTES / self.processors.len()).max(LEAST_RING_BYTES);
        let most = usize::min(RING_BYTES, 1 << share.ilog2());
        for &cpu in &self.processors {
            self.rings.push(open_ring(cpu, most)?);
        }
        Ok(())
    }

    /// Opens the events of all threads. This is repeated until the list contains no new thread, because a
    /// thread that an unwatched one creates in the meantime is not watched.
    fn open_all(&mut self, pid: u32, family: usize) -> io::Result<()> {
        let mut watched = BTreeSet::new();
        loop {
            let threads = process::threads(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
            let new: Vec<u32> = threads.into_iter().filter(|tid| !watched.contains(tid)).collect();
            let inherited: HashSet<u32> = self.drain_births();
            let mut opened = false;
            for tid in new {
                watched.insert(tid);
                if !inherited.contains(&tid) {
                    self.open(tid, family)?;
                    let process = self.processes.entry(pid).or_insert(Process { family, threads: 0 });
                    process.threads += 1;
                    self.families[family].living += 1;
                    opened = true;
                }
            }
            if !opened {
                return Ok(());
            }
        }
    }

    fn open(&mut self, tid: u32, family: usize) -> io::Result<()> {
        for (index, &cpu) in self.processors.iter().enumerate() {
            for event in [Event::MinorFaults, Event::MajorFaults] {
                let opened = match abi::open_faults(event, tid, cpu, true) {
                    Err(error) if is_forbidden(&error) => abi::open_faults(event, tid, cpu, false)?,
                    opened => opened?,
                };
                abi::send_to(&opened, &self.rings[index].event)?;
                if event == Event::MajorFaults {
                    self.majors.insert(abi::id(&opened)?);
                }
                abi::enable(&opened)?;
                self.families[family].events.push(opened);
            }
        }
        Ok(())
    }

    /// Records the existing maps, and for files of data also the pages that are present.
    fn note_what_is_there(&mut self, pid: u32) {
        let (now, page) = (now(), page_size());
        let maps = proc::maps(pid);
        let runs = |line: &&proc::Line| line.protection & libc::PROT_EXEC as u64 != 0;
        let programs: HashSet<Vec<u8>> = maps.iter().filter(runs).map(|line| line.path.clone()).collect();
        for line in maps {
            let is_data = !programs.contains(&line.path)
                && paths::file_of(&line.path).is_some_and(|file| !paths::belongs_to_programs(file));
            let present = if is_data { proc::present(pid, &line, page) } else { Vec::new() };
            self.pending.push((now, Happened::Found(line.into_map(pid))));
            let touched = |address| Happened::Fault { event: PRESENT, pid, tid: pid, address };
            self.pending.extend(present.into_iter().map(|address| (now, touched(address))));
        }
    }

    /// Moves the records of all ring buffers to `pending`.
    pub fn drain(&mut self) {
        let from = self.pending.len();
        for ring in &mut self.rings {
            ring.drain(|record| self.pending.extend(records::parse(record)));
        }
        let mut lives: Vec<(i64, Happened)> = self.pending[from..]
            .iter()
            .filter(|(_, happened)| matches!(happened, Happened::Fork { .. } | Happened::Exit { .. }))
            .cloned()
            .collect();
        lives.sort_by_key(|&(time, _)| time);
        lives.into_iter().for_each(|(_, happened)| self.note(&happened));
    }

    /// Drains the ring buffers, and returns the threads that have inherited the events.
    fn drain_births(&mut self) -> HashSet<u32> {
        let from = self.pending.len();
        self.drain();
        let births = self.pending[from..].iter().filter_map(|(_, happened)| match happened {
            Happened::Fork { tid, .. } => Some(*tid),
            _ => None,
        });
        births.collect()
    }

    fn note(&mut self, happened: &Happened) {
        match *happened {
            Happened::Fork { pid, parent, .. } => {
                let Some(family) = self.processes.get(&parent).map(|process| process.family) else { return };
                self.processes.entry(pid).or_insert(Process { family, threads: 0 }).threads += 1;
                self.families[family].living += 1;
            }
            Happened::Exit { pid, .. } => {
                let Some(process) = self.processes.get_mut(&pid) else { return };
                process.threads -= 1;
                let family = process.family;
                if process.threads == 0 {
                    self.processes.remove(&pid);
                }
                let family = &mut self.families[family];
                family.living -= 1;
                if family.living == 0 {
                    family.events.clear();
                }
            }
            _ => {}
        }
    }
}

/// Opens a ring buffer that is as large as the system allows, up to `most` bytes.
fn open_ring(cpu: i32, most: usize) -> io::Result<Ring> {
    let mut bytes = most;
    loop {
        match Ring::open(cpu, bytes) {
            Err(error) if is_forbidden(&error) && bytes > LEAST_RING_BYTES => bytes /= 2,
            opened => return opened,
        }
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

/// Raises the limit of open files, because each thread needs two descriptors per CPU. The recorded program
/// was started before and keeps its own limit.
fn allow_many_files() {
    // SAFETY: both calls access only this structure.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
