//! Finds out whether this machine has an idle core, and enough free memory and disk space, to make tables
//! during a recording.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval at which the idle times of the cores are read.
const LOOK: Duration = Duration::from_millis(200);
/// Smallest idle time of all cores together at which tables are made, as a share of one core. The time that
/// this process itself uses counts as idle.
const LEAST_IDLE: f64 = 0.8;
/// Smallest amount of memory that must be available before tables are made, bytes.
const LEAST_MEMORY: u64 = 1 << 30;
/// Disk space that must stay free for others, bytes.
const LEAST_ROOM: u64 = 1 << 30;

/// Gives the lowest priority (nice 19) to the calling thread and the threads that it creates. They get about
/// a seventieth of the processor time of a normal thread. (`SCHED_IDLE` would be less than a third of that.
/// The thread that finishes the tables could then wait for seconds, because only root can raise such a
/// priority again.)
pub fn take_lowest_priority() -> bool {
    // SAFETY: the call takes only numbers, and affects only the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, 19) == 0 }
}

/// Blocks all signals in the calling thread, so that the recorder's own threads receive them.
pub fn hear_no_signals() {
    // SAFETY: the calls access only a local signal set, for which all zeros is a valid value.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// Returns whether enough memory is available on the machine, and in this process's cgroup if it has a limit.
pub fn has_memory() -> bool {
    let available = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    available.is_some_and(|kilobytes| kilobytes << 10 >= LEAST_MEMORY) && left_in_group() >= LEAST_MEMORY
}

/// Returns the least amount of memory left in this process's cgroup (version 2) and the cgroups above it.
/// File pages in the page cache count as free, because the kernel can drop them.
fn left_in_group() -> u64 {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(group) = text.lines().find_map(|line| line.strip_prefix("0::/")) else { return u64::MAX };
    let groups = Path::new("/sys/fs/cgroup").join(group);
    let left = |group: &Path| {
        let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let (limit, used) = (number("memory.max")?, number("memory.current")?);
        let stat = fs::read_to_string(group.join("memory.stat")).ok()?;
        let files = stat.lines().find_map(|line| line.strip_prefix("file ")?.parse::<u64>().ok())?;
        Some(limit.saturating_sub(used.saturating_sub(files)))
    };
    groups
        .ancestors()
        .filter(|group| group.starts_with("/sys/fs/cgroup"))
        .filter_map(left)
        .min()
        .unwrap_or(u64::MAX)
}

/// Returns whether the file system at `path` has room for the tables of `bytes` of calls, and still leaves
/// the reserve for others.
pub fn has_room(path: &Path, bytes: u64) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: `path` ends with NUL, and `about` is memory for the whole result.
    let about = unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &mut about) != 0 {
            return false;
        }
        about
    };
    let free = (about.f_bavail as u64).saturating_mul(about.f_frsize as u64);
    free >= LEAST_ROOM.saturating_add(bytes.saturating_mul(2))
}

/// The idle times of the cores that this process may use, as last read.
pub struct Machine {
    /// The core of each processor. Processors of the same core share its capacity.
    core_of: HashMap<usize, String>,
    looked: Instant,
    /// Idle ticks of each processor and processor time of this process, at the time of the last reading.
    idle: HashMap<usize, u64>,
    own: Duration,
    is_idle: bool,
}

impl Machine {
    /// Reads the state of the cores. Returns `None` if the process may use only one core or has a limit of
    /// processor time: making tables would then take time from the recorded program.
    pub fn look() -> Option<Machine> {
        let allowed = allowed()?;
        let is_limited = std::thread::available_parallelism().map_or(1, usize::from) < allowed.len();
        let core_of: HashMap<usize, String> = allowed.into_iter().map(|one| (one, core_of(one))).collect();
        let cores: std::collections::HashSet<&String> = core_of.values().collect();
        if is_limited || cores.len() < 2 {
            return None;
        }
        let (idle, own) = (idle_ticks()?, own_time());
        Some(Machine { core_of, looked: Instant::now(), idle, own, is_idle: false })
    }

    /// Returns whether a core would be idle if this process made no tables. The cores are read at most every
    /// `LOOK`.
    pub fn has_idle_core(&mut self) -> bool {
        let passed = self.looked.elapsed();
        if passed < LOOK {
            return self.is_idle;
        }
        let (Some(idle), own) = (idle_ticks(), own_time()) else { return false };
        let mut cores: HashMap<&str, f64> = HashMap::new();
        for (processor, core) in &self.core_of {
            let ticks = |all: &HashMap<usize, u64>| all.get(processor).copied().unwrap_or(0);
            let share = ticks(&idle).saturating_sub(ticks(&self.idle)) as f64 / ticks_in(passed);
            let least = cores.entry(core).or_insert(1.0);
            *least = least.min(share);
        }
        let unused: f64 = cores.values().sum();
        let own_share = own.saturating_sub(self.own).as_secs_f64() / passed.as_secs_f64();
        self.is_idle = unused + own_share.min(1.0) >= LEAST_IDLE;
        (self.idle, self.own, self.looked) = (idle, own, Instant::now());
        self.is_idle
    }
}

fn ticks_in(time: Duration) -> f64 {
    // SAFETY: sysconf takes only a number.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
    time.as_secs_f64() * a_second as f64
}

/// Returns the processors that this process may use.
fn allowed() -> Option<Vec<usize>> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    list(text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim())
}

/// Parses a list of numbers such as `0-3,8`.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        all.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(all)
}

/// Returns a name of the processor's core: the list of processors that share it. If the list is unknown, the
/// processor counts as a core of its own.
fn core_of(processor: usize) -> String {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    fs::read_to_string(path).map_or_else(|_| processor.to_string(), |text| text.trim().to_owned())
}

/// Returns the ticks in which each processor was idle or waited for a device.
fn idle_ticks() -> Option<HashMap<usize, u64>> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let processor = words.next()?.parse().ok()?;
        let mut numbers = words.skip(3).map(|word| word.parse::<u64>().unwrap_or(0));
        Some((processor, numbers.next()? + numbers.next()?))
    });
    Some(ticks.collect())
}

/// Returns the processor time of this process. Most of it is used by the threads that make tables.
fn own_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!((list("5"), list("")), (Some(vec![5]), None));
    }

    #[test]
    fn every_processor_that_may_be_used_has_idle_ticks() {
        let (allowed, ticks) = (allowed().unwrap(), idle_ticks().unwrap());
        assert!(!allowed.is_empty() && allowed.iter().all(|one| ticks.contains_key(one)), "{ticks:?}");
    }

    #[test]
    fn a_file_system_without_enough_room_is_known() {
        assert!(!has_room(Path::new("/"), u64::MAX / 4));
        assert!(!has_room(Path::new("/nothing/here"), 0));
    }
}
