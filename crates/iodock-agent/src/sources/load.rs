//! Reads the load: the number of tasks that run or wait for a processor or a disk (/proc/loadavg,
//! proc_loadavg(5)).

use super::Reading;
use crate::sample::{Entry, Names, Quantity};
use iodock_counters::numbers::{finite, leading, words};

pub fn read(reading: &Reading) {
    let (mut names, mut entry) = (Names::default(), Entry::default());
    let path = reading.root().join("proc/loadavg");
    let faults = reading.lines(&path, |line, faults| {
        levels(line, &mut entry, &mut names).unwrap_or_else(|| faults.unreadable());
    });
    let Some(faults) = faults else { return };
    reading.faults("load", faults);
    if !entry.values.is_empty() {
        reading.entries("load", ("", "load"), &names, [&entry]);
    }
}

/// Parses a line `0.20 0.18 0.12 1/80 11206`: the mean of the last minute, in hundredths as in sysstat, and
/// the number of running tasks.
fn levels(line: &[u8], entry: &mut Entry, names: &mut Names) -> Option<()> {
    let mut fields = words(line);
    let load = finite(fields.next()?).filter(|load| (0.0..1e9).contains(load))?;
    let (runnable, _) = leading(fields.nth(2)?)?;
    entry.push(names.intern(b"load1_percent")?, Quantity::Level, (load * 100.0).round() as u64)?;
    entry.push(names.intern(b"runnable")?, Quantity::Level, runnable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &[u8]) -> Option<Vec<u64>> {
        let mut entry = Entry::default();
        levels(line, &mut entry, &mut Names::default())?;
        Some(entry.values.iter().map(|(_, value)| *value).collect())
    }

    #[test]
    fn the_load_is_read_in_hundredths() {
        assert_eq!(of(b"0.29 0.18 0.12 3/80 11206"), Some(vec![29, 3]));
        for line in
            [&b""[..], b"inf 1 1 1/80 5", b"-1 1 1 1/80 5", b"1e300 1 1 1/80 5", b"0.2 0.1", b"0.2 1 1 x 5"]
        {
            assert_eq!(of(line), None);
        }
    }
}
