//! Reads counters of NFS mounts: /proc/self/mountstats. Bind mounts, and exports that share a superblock in
//! the kernel, show the same counters. They have the same device number in mountinfo, so they are counted
//! once.

use super::{Parsed, Reading};
use crate::lines::{each_line, Faults};
use crate::sample::{printable, Entry, Names, Quantity};
use iodock_counters::mountinfo::{Devices, Meeting};
use iodock_counters::mountstats::{self, Line, Operation};
use std::io::{self, Read};

const BYTES: [&str; 6] = ["read", "write", "direct_read", "direct_write", "server_read", "server_write"];

/// A mount with its device, mount point and counters.
#[derive(Debug, Default)]
pub struct Mount {
    pub device: String,
    pub mount_point: String,
    pub entry: Entry,
}

pub fn read(reading: &Reading) {
    let path = reading.root().join("proc/self/mountstats");
    let mut names = Names::default();
    let mut mounts = Mounts { devices: devices(reading), ..Mounts::default() };
    let faults = reading.lines(&path, |line, faults| mounts.line(line, &mut names, faults));
    let Some(faults) = faults else { return };
    reading.faults("mountstats", faults);
    mounts.keep();
    for mount in &mounts.found {
        let names_of = (mount.device.as_str(), mount.mount_point.as_str());
        reading.entries("mountstats", names_of, &names, [&mount.entry]);
    }
}

fn devices(reading: &Reading) -> Devices {
    let mut devices = Devices::default();
    reading.lines(&reading.root().join("proc/self/mountinfo"), |line, _| devices.add(line));
    devices
}

/// Parses the file, for tools that read all formats in the same way. Fails if the file cannot be read.
pub fn parse(input: &mut dyn Read, parsed: &mut Parsed) -> io::Result<()> {
    let mut mounts = Mounts::default();
    each_line(input, parsed.faults, |line, faults| mounts.line(line, parsed.names, faults))?;
    mounts.keep();
    mounts.found.iter().for_each(|mount| (parsed.entry)(&mount.entry, parsed.names));
    Ok(())
}

/// Mount to which the next lines belong.
#[derive(Debug, Default)]
enum Current {
    #[default]
    NotNfs,
    /// The counters of this mount were already read at another mount point.
    Again,
    Mount(Box<Mount>, Meeting),
    /// The mount is unknown, because the line with its name is damaged.
    Orphaned,
}

#[derive(Debug, Default)]
struct Mounts {
    devices: Devices,
    found: Vec<Mount>,
    current: Current,
}

impl Mounts {
    fn line(&mut self, line: &[u8], names: &mut Names, faults: &mut Faults) {
        match mountstats::line(line) {
            Line::Mount(mount) => self.begin(&mount),
            Line::OtherMount(mount_point) => {
                self.keep();
                self.devices.meet(mount_point);
            }
            Line::UnreadableMount => {
                faults.unreadable();
                self.keep();
                self.current = Current::Orphaned;
            }
            line => self.counters(line, names, faults),
        }
    }

    fn begin(&mut self, mount: &mountstats::Mount) {
        self.keep();
        self.current = match self.devices.meet(mount.mount_point) {
            Meeting::Again => Current::Again,
            meeting => {
                let (device, mount_point) = (printable(mount.device), printable(mount.mount_point));
                let mount = Mount { device, mount_point, entry: Entry::default() };
                Current::Mount(Box::new(mount), meeting)
            }
        };
    }

    fn counters(&mut self, line: Line, names: &mut Names, faults: &mut Faults) {
        match (&mut self.current, line) {
            (Current::Mount(mount, _), line) => {
                let read = counters(line, &mut mount.entry, names);
                read.unwrap_or_else(|| faults.unreadable());
            }
            (Current::Orphaned, Line::Bytes(_) | Line::Operation(_)) => faults.orphaned += 1,
            _ => {}
        }
    }

    /// Stores the complete mount. Without mountinfo, two mounts of one device with equal numbers count as
    /// one. If one device is mounted twice at one mount point, the later one, which programs see, replaces
    /// the earlier one.
    fn keep(&mut self) {
        let Current::Mount(mount, meeting) = std::mem::take(&mut self.current) else { return };
        let is_known = |known: &Mount| known.device == mount.device && known.entry == mount.entry;
        if meeting == Meeting::Unknown && self.found.iter().any(is_known) {
            return;
        }
        self.found.retain(|known| known.device != mount.device || known.mount_point != mount.mount_point);
        self.found.push(*mount);
    }
}

fn counters(line: Line, entry: &mut Entry, names: &mut Names) -> Option<()> {
    match line {
        Line::Bytes(values) => {
            for (name, value) in BYTES.iter().zip(values) {
                entry.push(names.intern(name.as_bytes())?, Quantity::Bytes, value)?;
            }
        }
        Line::Operation(operation) if operation.numbers[0] > 0 => one(&operation, entry, names)?,
        Line::Unreadable => return None,
        _ => {}
    }
    Some(())
}

/// Adds an operation's counters. `READ` has the count and the total time; `READ/queue` and `READ/response`
/// have parts of this time.
fn one(operation: &Operation, entry: &mut Entry, names: &mut Names) -> Option<()> {
    let mut name = |suffix: &str| {
        let text = [operation.name.to_ascii_lowercase(), suffix.as_bytes().to_vec()].concat();
        names.intern(&text)
    };
    // The line `bytes` also has a counter `read`. Its quantity is bytes, so the two differ.
    let [count, sent, timeouts, .., queue, response, total, errors] = operation.numbers;
    let whole = name("")?;
    entry.push(whole, Quantity::Count, count)?;
    entry.push(whole, Quantity::Time, total.saturating_mul(1000))?;
    entry.push(name("/queue")?, Quantity::Time, queue.saturating_mul(1000))?;
    entry.push(name("/response")?, Quantity::Time, response.saturating_mul(1000))?;
    for (suffix, value) in
        [("/again", sent.saturating_sub(count)), ("/timeout", timeouts), ("/error", errors)]
    {
        if value > 0 {
            entry.push(name(suffix)?, Quantity::Count, value)?;
        }
    }
    Some(())
}
