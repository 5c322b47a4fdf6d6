//! Reads information about processes from /proc.

pub use iodock_event::ranks::rank_among;
use iodock_event::{DescriptorSnapshot, Text, UNKNOWN};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

/// An open descriptor, and the target of its link in /proc.
pub struct OpenDescriptor {
    pub snapshot: DescriptorSnapshot,
    pub target: Vec<u8>,
}

pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let folder = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Returns the thread that traces `tid`, or 0 if none does.
pub fn tracer_of(tid: u32) -> Option<u32> {
    status_field(tid, "TracerPid:")
}

/// Returns whether the process has ended and was not waited for.
pub fn is_zombie(pid: u32) -> bool {
    let status = read_short(&format!("/proc/{pid}/status")).unwrap_or_default();
    status.split(|&byte| byte == b'\n').any(|line| line.starts_with(b"State:\tZ"))
}

/// Returns whether this is a kernel thread.
pub fn is_of_kernel(pid: u32) -> bool {
    status_field(pid, "Kthread:") == Some(1)
}

pub fn tgid_of(tid: u32) -> Option<u32> {
    status_field(tid, "Tgid:")
}

/// Returns a number from /proc/TID/status. Sizes in this file are in KiB.
pub fn status_field(tid: u32, name: &str) -> Option<u32> {
    let status = String::from_utf8(read_short(&format!("/proc/{tid}/status")).ok()?).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

pub fn working_directory(pid: u32) -> Vec<u8> {
    link(&format!("/proc/{pid}/cwd"))
}

pub fn command(pid: u32) -> Vec<u8> {
    let mut text = read_short(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if text.last() == Some(&0) {
        text.pop();
    }
    text
}

fn link(path: &str) -> Vec<u8> {
    fs::read_link(path).map(|target| OsString::from(target).into_vec()).unwrap_or_default()
}

/// Returns all open descriptors of `pid`, sorted by number.
pub fn descriptors(pid: u32) -> Vec<OpenDescriptor> {
    let Ok(folder) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let mut found: Vec<OpenDescriptor> = folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .map(|fd| descriptor(pid, fd))
        .collect();
    found.sort_by_key(|open| open.snapshot.fd);
    found
}

/// Returns one descriptor of `pid`.
pub fn descriptor(pid: u32, fd: i32) -> OpenDescriptor {
    let (mut position, mut flags) = (UNKNOWN, 0);
    let info = read_short(&format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    for line in String::from_utf8_lossy(&info).lines() {
        match line.split_once(':').map(|(name, value)| (name, value.trim())) {
            Some(("pos", value)) => position = value.parse().unwrap_or(UNKNOWN),
            Some(("flags", value)) => flags = u64::from_str_radix(value, 8).unwrap_or(0),
            _ => {}
        }
    }
    let path = format!("/proc/{pid}/fd/{fd}");
    let status = fs::metadata(&path).ok();
    let snapshot = DescriptorSnapshot {
        tid: pid,
        fd,
        target: Text::NONE,
        position,
        flags,
        stat_type: status.as_ref().map_or(0, |status| ((status.mode() >> 12) & 0xf) as u8),
        stat_size: status.as_ref().map_or(UNKNOWN, |status| status.size() as i64),
    };
    OpenDescriptor { snapshot, target: link(&path) }
}

/// Length of a clock tick in ns: /proc counts processor time in hundredths of a second on every Linux.
const TICK: i64 = 10_000_000;

/// Fields of /proc/PID/stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Whether the process runs. A process whose first thread is a zombie still runs in its other threads.
    pub runs: bool,
    /// Whether a signal of job control has stopped the process.
    pub stopped: bool,
    /// Start time in clock ticks since boot.
    pub started: u64,
}

/// Initial size of the buffer in bytes. Most files of /proc are shorter.
const SHORT: usize = 4096;

/// Reads a file of /proc, which is usually short. Its size is not known before, and growing a buffer in small
/// steps would need ten calls.
pub fn read_short(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(SHORT);
    fs::File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Parses /proc/PID/stat. Returns `None` if there is no such process.
pub fn stat(pid: u32) -> Option<Stat> {
    let stat = read_short(&format!("/proc/{pid}/stat")).ok()?;
    let at = stat.iter().rposition(|&byte| byte == b')')?;
    // The name may contain any character, so fields are counted after it. The first of them is the state,
    // which has number 3 in proc(5).
    let fields: Vec<&str> = std::str::from_utf8(stat.get(at + 2..)?).ok()?.split(' ').collect();
    let (state, threads, started) = (fields.first()?, fields.get(17)?, fields.get(19)?);
    let ended = *state == "X" || (*state == "Z" && *threads == "1");
    Some(Stat { runs: !ended, stopped: *state == "T", started: started.parse().ok()? })
}

/// Returns whether all of these processes that run are stopped. False if none runs.
pub fn all_stopped(pids: impl Iterator<Item = u32>) -> bool {
    let mut running = pids.filter_map(stat).filter(|stat| stat.runs).peekable();
    running.peek().is_some() && running.all(|stat| stat.stopped)
}

/// Returns user and system time of one thread in ns. It is the scheduler's exact sum, divided in the
/// proportion of the clock ticks.
pub fn cpu_time(pid: u32, tid: u32) -> Option<(i64, i64)> {
    let total = fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    let total: i64 = total.split(' ').next()?.parse().ok()?;
    // Below one tick the proportion is unknown, and the whole time counts as user time.
    if total < TICK {
        return Some((total, 0));
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // These are fields 14 and 15. They are counted after the name, which may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (i64, i64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    if user + system == 0 {
        return Some((total, 0));
    }
    let user = (total as i128 * user as i128 / (user + system) as i128) as i64;
    Some((user, total - user))
}

/// Returns the MPI rank in the process's environment.
pub fn rank(pid: u32) -> Option<i32> {
    let environment = read_short(&format!("/proc/{pid}/environ")).ok()?;
    rank_among(environment.split(|&byte| byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_this_thread_is_read() {
        // The scheduler updates the sum when it takes the thread off its CPU.
        std::thread::sleep(std::time::Duration::from_millis(1));
        // SAFETY: these functions have no arguments and can't fail.
        let (pid, tid) = unsafe { (libc::getpid() as u32, libc::gettid() as u32) };
        let (user, system) = cpu_time(pid, tid).expect("this thread's time");
        assert!(user >= 0 && system >= 0 && user + system > 0);
    }
}
