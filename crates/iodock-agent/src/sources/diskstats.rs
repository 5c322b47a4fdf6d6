//! Reads counters of block devices from /proc/diskstats.

use super::Reading;
use crate::sample::{printable, Entry, Names, Quantity};
use iodock_counters::diskstats::{self, SECTOR_BYTES};

/// Name and quantity of each field in the file's order, and the factor that converts it to bytes or
/// microseconds.
const FIELDS: [(&str, Quantity, u64); diskstats::FIELDS] = [
    ("read", Quantity::Count, 1),
    ("read_merged", Quantity::Count, 1),
    ("read", Quantity::Bytes, SECTOR_BYTES),
    ("read", Quantity::Time, 1000),
    ("write", Quantity::Count, 1),
    ("write_merged", Quantity::Count, 1),
    ("write", Quantity::Bytes, SECTOR_BYTES),
    ("write", Quantity::Time, 1000),
    ("in_flight", Quantity::Level, 1),
    ("busy", Quantity::Time, 1000),
    ("queued", Quantity::Time, 1000),
    ("discard", Quantity::Count, 1),
    ("discard_merged", Quantity::Count, 1),
    ("discard", Quantity::Bytes, SECTOR_BYTES),
    ("discard", Quantity::Time, 1000),
    ("flush", Quantity::Count, 1),
    ("flush", Quantity::Time, 1000),
];

pub fn read(reading: &Reading) {
    let (mut names, mut disks) = (Names::default(), Vec::new());
    let path = reading.root().join("proc/diskstats");
    let faults = reading.lines(&path, |line, faults| match disk(line, &mut names) {
        Some(disk) => disks.push(disk),
        None => faults.unreadable(),
    });
    let Some(faults) = faults else { return };
    reading.faults("diskstats", faults);
    for (name, entry) in
        disks.iter().filter(|(name, _)| !name.starts_with("ram") && !name.starts_with("loop"))
    {
        reading.entries("diskstats", ("", name), &names, [entry]);
    }
}

/// Parses the line of a disk. Returns `None` for invalid lines, and if a number of sectors exceeds the size
/// of any disk.
fn disk(line: &[u8], names: &mut Names) -> Option<(String, Entry)> {
    let line = diskstats::line(line)?;
    let mut entry = Entry::default();
    for (&(operation, quantity, factor), &value) in FIELDS.iter().zip(line.values()) {
        entry.push(names.intern(operation.as_bytes())?, quantity, value.checked_mul(factor)?)?;
    }
    Some((printable(line.name), entry))
}
