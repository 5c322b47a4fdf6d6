//! Reads the time of all processors together (/proc/stat, proc_stat(5)) and the machine's uptime
//! (/proc/uptime). They show whether a file server works or waits: during a stall its processors are idle.

use super::Reading;
use crate::lines::Faults;
use crate::sample::{Entry, Names, Quantity};
use iodock_counters::numbers::{finite, whole, words};

/// Names of the fields in the line `cpu`. Fields for guests follow in the file; their time is also included
/// in `user`.
const KINDS: [&[u8]; 8] = [b"user", b"nice", b"system", b"idle", b"iowait", b"irq", b"softirq", b"steal"];
/// Length of a tick in microseconds: the kernel always reports hundredths of a second (USER_HZ).
const TICK_US: u64 = 10_000;

pub fn read(reading: &Reading) {
    let (mut names, mut entry, mut all) = (Names::default(), Entry::default(), Faults::default());
    let path = reading.root().join("proc/stat");
    let read = reading.lines(&path, |line, faults| {
        if line.starts_with(b"cpu ") && times(line, &mut entry, &mut names).is_none() {
            faults.unreadable();
        }
    });
    if let Some(faults) = read {
        all.absorb(faults, &path);
    }
    let path = reading.root().join("proc/uptime");
    let read = reading.lines(&path, |line, faults| {
        uptime(line, &mut entry, &mut names).unwrap_or_else(|| faults.unreadable());
    });
    if let Some(faults) = read {
        all.absorb(faults, &path);
    }
    if all.lines > 0 {
        reading.faults("cpu", all);
    }
    if !entry.values.is_empty() {
        reading.entries("cpu", ("", "cpu"), &names, [&entry]);
    }
}

/// Parses the line `cpu`. Kernels before 2.6.11 have no `steal`, which is then left out.
fn times(line: &[u8], entry: &mut Entry, names: &mut Names) -> Option<()> {
    let ticks: Option<Vec<u64>> = words(line).skip(1).take(KINDS.len()).map(whole).collect();
    let ticks = ticks.filter(|ticks| ticks.len() >= 4)?;
    for (kind, ticks) in KINDS.iter().zip(ticks) {
        entry.push(names.intern(kind)?, Quantity::Time, ticks.saturating_mul(TICK_US))?;
    }
    Some(())
}

fn uptime(line: &[u8], entry: &mut Entry, names: &mut Names) -> Option<()> {
    let seconds = finite(words(line).next()?).filter(|seconds| (0.0..1e12).contains(seconds))?;
    entry.push(names.intern(b"uptime_s")?, Quantity::Level, seconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(read: fn(&[u8], &mut Entry, &mut Names) -> Option<()>, line: &[u8]) -> Option<Vec<u64>> {
        let mut entry = Entry::default();
        read(line, &mut entry, &mut Names::default())?;
        Some(entry.values.iter().map(|(_, value)| *value).collect())
    }

    #[test]
    fn cpu_ticks_are_converted_to_microseconds() {
        let line = b"cpu  100 2 30 4000 50 6 7 8 90 0";
        let expected = [100, 2, 30, 4000, 50, 6, 7, 8].map(|ticks: u64| ticks * 10_000).to_vec();
        assert_eq!(of(times, line), Some(expected));
        assert_eq!(of(times, b"cpu 1 2 3 4").map(|found| found.len()), Some(4));
        for line in [&b"cpu "[..], b"cpu 1 2 3", b"cpu 1 2 x 4", b"cpu -1 2 3 4"] {
            assert_eq!(of(times, line), None);
        }
    }

    #[test]
    fn uptime_is_read_in_whole_seconds() {
        assert_eq!(of(uptime, b"350735.47 234388.90"), Some(vec![350_735]));
        for line in [&b""[..], b"x", b"-1 2", b"inf 1"] {
            assert_eq!(of(uptime, line), None);
        }
    }
}
