//! Reads pressure stall information: how long tasks waited for a resource. Averages are left out, because
//! they follow from the growth of the totals in any interval.

use super::Reading;
use crate::lines::Faults;
use crate::sample::{Entry, Names, Quantity};
use iodock_counters::pressure;

pub fn read(reading: &Reading) {
    let (mut names, mut all) = (Names::default(), Faults::default());
    for resource in ["io", "cpu", "memory"] {
        let path = reading.root().join("proc/pressure").join(resource);
        let mut entry = Entry::default();
        // Kernels with psi=0 have these files, but reading them fails.
        let faults = reading.lines(&path, |line, faults| {
            let read = who_waited(line, &mut entry, &mut names);
            read.unwrap_or_else(|| faults.unreadable());
        });
        let Some(faults) = faults else { continue };
        all.absorb(faults, &path);
        reading.entries("pressure", ("", resource), &names, [&entry]);
    }
    if all.lines > 0 {
        reading.faults("pressure", all);
    }
}

fn who_waited(line: &[u8], entry: &mut Entry, names: &mut Names) -> Option<()> {
    let line = pressure::line(line)?;
    entry.push(names.intern(line.who)?, Quantity::Time, line.total_us)
}
