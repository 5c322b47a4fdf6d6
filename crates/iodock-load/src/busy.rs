//! Measures other activity on the machine during a step: load average, processors, other programs.
//!
//! The sources are proc_loadavg(5), proc_stat(5), proc_pid_stat(5) and proc_pid_io(5). The engine reads them
//! before it forks the workers and after the workers have ended, so that this takes no measured time.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Number of programs that each list names.
const NAMED: usize = 3;
const MOST_PROCESSES: usize = 20_000;
/// PF_KTHREAD in Linux's include/linux/sched.h. Kernel threads do not count as other programs, because they
/// may work for the check-up, for example by writing out its data.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Part of the command line of every engine and worker. Such processes are other ranks of this check-up and
/// do not count as other programs.
const ENGINE: &[u8] = b"load_engine";

/// Other activity on the machine. `None` means unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Load average over the last minute, read at the end of the step.
    pub load_average: Option<f64>,
    /// Share of all processors' time that was user and system time of other programs.
    pub others_cpu_share: Option<f64>,
    /// Share of all processors' time that the hypervisor gave to other virtual machines.
    pub steal_share: Option<f64>,
    /// Other programs by processor time, the busiest first. Programs that ended before the step ended are
    /// missing.
    pub by_cpu: Option<Vec<CpuUser>>,
    /// Other programs by I/O, the busiest first. For programs of other users only root can read this.
    pub by_io: Option<Vec<IoUser>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuUser {
    pub name: String,
    /// Number of processors that the program used on average: 1 means one processor all the time.
    pub processors: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoUser {
    pub name: String,
    /// Bytes per second that the program read from and wrote to devices.
    pub bytes_per_s: f64,
}

/// Time of all processors since boot, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Processors {
    total: u64,
    programs: u64,
    steal: u64,
}

#[derive(Clone, Debug)]
struct Process {
    start: u64,
    name: String,
    ticks: u64,
    /// Clock ticks of the process and of the children that it has waited for.
    all_ticks: u64,
    io_bytes: Option<u64>,
    is_ours: bool,
    is_kernel: bool,
}

/// State of the machine at one moment.
pub struct Moment {
    proc: PathBuf,
    at: Instant,
    started_tick: Option<u64>,
    processors: Option<Processors>,
    processes: HashMap<u32, Process>,
}

impl Moment {
    pub fn now() -> Self {
        Moment::of(Path::new("/proc"))
    }

    fn of(proc: &Path) -> Self {
        let processors = fs::read_to_string(proc.join("stat")).ok().as_deref().and_then(processors_in);
        let uptime = fs::read_to_string(proc.join("uptime")).ok();
        let seconds = uptime.as_deref().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        Moment {
            proc: proc.to_owned(),
            at: Instant::now(),
            started_tick: seconds.map(|seconds| (seconds * ticks_per_s()) as u64),
            processors,
            processes: processes(proc),
        }
    }

    /// Returns the activity of other programs since this moment.
    pub fn until_now(&self) -> Busy {
        let now = Moment::of(&self.proc);
        let seconds = now.at.duration_since(self.at).as_secs_f64();
        let average = fs::read_to_string(self.proc.join("loadavg")).ok();
        let mut busy = self.until(&now, seconds);
        busy.load_average = average.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
        busy
    }

    fn until(&self, now: &Moment, seconds: f64) -> Busy {
        let mut busy = Busy::default();
        let mut known_ticks = 0;
        let mut by_cpu: HashMap<&str, u64> = HashMap::new();
        let mut by_io: HashMap<&str, u64> = HashMap::new();
        let mut io_is_known = false;
        for (number, process) in &now.processes {
            let before = self.processes.get(number).filter(|before| before.start == process.start);
            if before.is_none() && self.started_tick.is_some_and(|tick| process.start + 1 < tick) {
                // The process existed at the first moment but could not be read, so its earlier activity is
                // unknown.
                continue;
            }
            if process.is_ours || process.is_kernel {
                known_ticks += process.all_ticks.saturating_sub(before.map_or(0, |one| one.all_ticks));
                continue;
            }
            let ticks = process.ticks.saturating_sub(before.map_or(0, |one| one.ticks));
            *by_cpu.entry(&process.name).or_default() += ticks;
            if let Some(bytes) = process.io_bytes {
                io_is_known = true;
                let earlier = before.map_or(Some(0), |one| one.io_bytes);
                *by_io.entry(&process.name).or_default() +=
                    earlier.map_or(0, |one| bytes.saturating_sub(one));
            }
        }
        if let (Some(then), Some(later)) = (self.processors, now.processors) {
            let total = later.total.saturating_sub(then.total);
            if total > 0 {
                let programs = later.programs.saturating_sub(then.programs).saturating_sub(known_ticks);
                busy.others_cpu_share = Some((programs as f64 / total as f64).min(1.0));
                busy.steal_share = Some(later.steal.saturating_sub(then.steal) as f64 / total as f64);
            }
        }
        if seconds > 0.0 {
            let rate = |ticks: u64| ticks as f64 / ticks_per_s() / seconds;
            let users = by_cpu.into_iter().map(|(name, ticks)| (name.to_owned(), rate(ticks)));
            busy.by_cpu = Some(most(users).map(|(name, processors)| CpuUser { name, processors }).collect());
            let users = by_io.into_iter().map(|(name, bytes)| (name.to_owned(), bytes as f64 / seconds));
            let users = most(users).map(|(name, bytes_per_s)| IoUser { name, bytes_per_s });
            busy.by_io = io_is_known.then(|| users.collect());
        }
        busy
    }
}

/// Returns the largest users in descending order, without those whose value is 0.
fn most(users: impl Iterator<Item = (String, f64)>) -> impl Iterator<Item = (String, f64)> {
    let mut users: Vec<_> = users.filter(|user| user.1 > 0.0).collect();
    users.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    users.into_iter().take(NAMED)
}

impl Busy {
    /// Adds the activity on another rank or machine, and keeps the busiest programs.
    pub fn merge(&mut self, other: &Busy) {
        let larger = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        self.load_average = larger(self.load_average, other.load_average);
        self.others_cpu_share = larger(self.others_cpu_share, other.others_cpu_share);
        self.steal_share = larger(self.steal_share, other.steal_share);
        let pairs = |users: &[CpuUser]| -> Vec<_> {
            users.iter().map(|user| (user.name.clone(), user.processors)).collect()
        };
        self.by_cpu = merged(self.by_cpu.as_deref().map(pairs), other.by_cpu.as_deref().map(pairs))
            .map(|users| users.into_iter().map(|(name, processors)| CpuUser { name, processors }).collect());
        let pairs = |users: &[IoUser]| -> Vec<_> {
            users.iter().map(|user| (user.name.clone(), user.bytes_per_s)).collect()
        };
        self.by_io = merged(self.by_io.as_deref().map(pairs), other.by_io.as_deref().map(pairs))
            .map(|users| users.into_iter().map(|(name, bytes_per_s)| IoUser { name, bytes_per_s }).collect());
    }
}

type Users = Vec<(String, f64)>;

fn merged(one: Option<Users>, other: Option<Users>) -> Option<Users> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let mut largest: HashMap<&str, f64> = HashMap::new();
    for (name, value) in one.iter().chain(other) {
        let known = largest.entry(name).or_default();
        *known = known.max(*value);
    }
    Some(most(largest.into_iter().map(|(name, value)| (name.to_owned(), value))).collect())
}

fn ticks_per_s() -> f64 {
    // SAFETY: sysconf accesses no memory of the caller.
    (unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).max(1) as f64
}

/// Parses the first line of /proc/stat. User time includes guest time, and iowait counts as idle.
fn processors_in(text: &str) -> Option<Processors> {
    let fields = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, ..] = ticks[..] else { return None };
    // Time for interrupts is left out, because many interrupts are caused by the check-up itself.
    Some(Processors {
        total: ticks.iter().take(8).fold(0, |sum, &one| sum.saturating_add(one)),
        programs: user.saturating_add(nice).saturating_add(system),
        steal: ticks.get(7).copied().unwrap_or(0),
    })
}

fn processes(proc: &Path) -> HashMap<u32, Process> {
    let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own_name = fs::read(proc.join(own.to_string()).join("comm")).unwrap_or_default();
    numbers
        .take(MOST_PROCESSES)
        .filter_map(|number| {
            let folder = proc.join(number.to_string());
            let mut process = process_in(&fs::read(folder.join("stat")).ok()?)?;
            let may_be_ours = process.name.as_bytes() == own_name.trim_ascii_end();
            process.is_ours = number == own
                || number == parent
                || (may_be_ours
                    && fs::read(folder.join("cmdline"))
                        .is_ok_and(|line| line.windows(ENGINE.len()).any(|part| part == ENGINE)));
            if !process.is_ours && !process.is_kernel {
                process.io_bytes = fs::read_to_string(folder.join("io")).ok().as_deref().and_then(io_in);
            }
            Some((number, process))
        })
        .collect()
}

/// Parses one line of /proc/PID/stat. The name may contain blanks and brackets; it ends at the last bracket.
fn process_in(line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The first field after the name is field 3 of proc_pid_stat(5).
    let at = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks = at(14)?.saturating_add(at(15)?);
    // This number is signed in the kernel, and negative if the counter is damaged.
    let children = at(16).unwrap_or(0).saturating_add(at(17).unwrap_or(0));
    Some(Process {
        start: at(22)?,
        name,
        ticks,
        all_ticks: ticks.saturating_add(children),
        io_bytes: None,
        is_ours: false,
        is_kernel: at(9)? & KERNEL_THREAD != 0,
    })
}

fn io_in(text: &str) -> Option<u64> {
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(of("read_bytes:")?.saturating_add(of("write_bytes:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, ticks: u64, io_bytes: Option<u64>) -> Process {
        Process {
            start: 5,
            name: name.into(),
            ticks,
            all_ticks: ticks,
            io_bytes,
            is_ours: false,
            is_kernel: false,
        }
    }

    fn moment(processors: Processors, processes: Vec<(u32, Process)>) -> Moment {
        Moment {
            proc: "/proc".into(),
            at: Instant::now(),
            started_tick: Some(100),
            processors: Some(processors),
            processes: processes.into_iter().collect(),
        }
    }

    #[test]
    fn cpu_shares_exclude_the_measuring_processes() {
        let before = moment(
            Processors { total: 1000, programs: 100, steal: 10 },
            vec![
                (1, process("cc1", 10, Some(0))),
                (2, process("me", 50, None)),
                (3, process("kworker", 5, None)),
            ],
        );
        let mut ours = process("me", 90, None);
        ours.is_ours = true;
        let mut kernel = process("kworker", 15, None);
        kernel.is_kernel = true;
        let mut fresh = process("cc1", 20, Some(1 << 20));
        fresh.start = 150;
        let now = moment(
            Processors { total: 1400, programs: 260, steal: 30 },
            vec![(1, process("cc1", 60, Some(3 << 20))), (2, ours), (3, kernel), (4, fresh)],
        );
        let busy = before.until(&now, 2.0);
        // Programs used 160 ticks, of which 40 belong to this check-up and 10 to kernel threads.
        assert_eq!(busy.others_cpu_share, Some(110.0 / 400.0));
        assert_eq!(busy.steal_share, Some(0.05));
        let expected = 70.0 / ticks_per_s() / 2.0;
        assert_eq!(busy.by_cpu, Some(vec![CpuUser { name: "cc1".into(), processors: expected }]));
        assert_eq!(busy.by_io, Some(vec![IoUser { name: "cc1".into(), bytes_per_s: (2 << 20) as f64 }]));
    }

    #[test]
    fn unreadable_loads_are_unknown() {
        let nowhere = Moment::of(Path::new("/nowhere"));
        let busy = nowhere.until_now();
        assert_eq!((busy.load_average, busy.others_cpu_share, busy.steal_share), (None, None, None));
        assert_eq!(busy.by_io, None);
        assert_eq!(processors_in("cpu 1"), None);
        assert_eq!(processors_in("intr 5"), None);
        assert_eq!(io_in("rchar: 1\n"), None);
    }

    #[test]
    fn process_names_with_blanks_and_brackets_are_read() {
        let line = b"7 (a) R b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 11 22 3 4 20 0 1 0 777 1 1";
        let found = process_in(line).unwrap();
        assert_eq!(
            (found.name.as_str(), found.ticks, found.all_ticks, found.start),
            ("a) R b (c)", 33, 40, 777)
        );
        assert!(!found.is_kernel);
        assert!(process_in(b"7 (a").is_none());
        assert!(process_in(b"").is_none());
    }

    #[test]
    fn the_load_of_this_machine_is_read() {
        let busy = Moment::now().until_now();
        assert!(busy.load_average.is_some());
        assert!(Moment::now().processes[&std::process::id()].is_ours);
    }

    #[test]
    fn the_busiest_of_several_machines_is_reported() {
        let busy = |share, name: &str, processors| Busy {
            others_cpu_share: share,
            by_cpu: Some(vec![CpuUser { name: name.into(), processors }]),
            ..Busy::default()
        };
        let mut first = busy(None, "a", 0.5);
        first.merge(&busy(Some(0.25), "b", 1.0));
        first.merge(&Busy::default());
        assert_eq!(first.others_cpu_share, Some(0.25));
        let names: Vec<_> = first.by_cpu.unwrap().into_iter().map(|user| user.name).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(first.by_io, None);
    }
}
