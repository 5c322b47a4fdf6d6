//! Reads counters of MooseFS clients from `.stats`, which mfsmount provides at the root of each mount, and
//! the number of the mount's unanswered requests from the kernel's FUSE. The format is that of mfsmount
//! 3.0.117.
//!
//! mfsmount also counts the reading of `.stats` itself: a few operations each time, none of which reaches the
//! master.

use super::{Parsed, Reading};
use crate::lines::{each_line, Faults};
use crate::sample::{printable, Entry, Names, Quantity};
use iodock_counters::mountinfo::{self, Device};
use iodock_counters::numbers::whole;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const SOURCE: &str = "mfs_mount";
/// Beginning of the source of a mount, such as `mfs#10.0.0.1:9421`.
const PREFIX: &[u8] = b"mfs#";
/// Counters that are renamed to general names, so that users need not know MooseFS.
const RENAMED: [(&[u8], &[u8], Quantity); 6] = [
    (b"fuse_ops", b"operations", Quantity::Count),
    (b"master.packets_sent", b"requests", Quantity::Count),
    (b"master.packets_received", b"answers", Quantity::Count),
    (b"master.bytes_sent", b"request_bytes", Quantity::Bytes),
    (b"master.bytes_received", b"answer_bytes", Quantity::Bytes),
    (b"master.reconnects", b"reconnects", Quantity::Count),
];
/// Operations that a cache answered. Other cached operations are also counted under their own name.
const CACHED: [&[u8]; 3] = [b"lookup.cached", b"readlink.cached", b"getattr-cached"];

/// A mount of MooseFS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub device: Device,
    /// Address and port of the master.
    pub master: String,
    pub mount_point: PathBuf,
}

pub fn read(reading: &Reading) {
    let mut met = BTreeSet::new();
    let mut mounts = Vec::new();
    reading.lines(&reading.root().join("proc/self/mountinfo"), |line, _| {
        // Bind mounts have the same device and are skipped.
        mounts.extend(mount(line).filter(|mount| met.insert(mount.device)));
    });
    let mut all = Faults::default();
    for mount in &mounts {
        one(reading, mount, &mut all);
    }
    if all.lines > 0 {
        reading.faults(SOURCE, all);
    }
}

fn one(reading: &Reading, mount: &Mount, all: &mut Faults) {
    let (mut names, mut entry, mut faults) = (Names::default(), Entry::default(), Faults::default());
    // Reading this file does not access the file system itself.
    let connection = format!("sys/fs/fuse/connections/{}/waiting", mount.device.1);
    let waiting = reading.number(&reading.root().join(connection));
    let path = below(reading.root(), &mount.mount_point).join(".stats");
    let Some(mut file) = reading.open(&path) else { return };
    if let Err(error) = values(&mut file, &mut entry, &mut names, &mut faults) {
        reading.refuse(&path, &error);
    }
    all.absorb(faults, &path);
    if let (Some(waiting), Some(name)) = (waiting, names.intern(b"waiting")) {
        entry.push(name, Quantity::Level, waiting);
    }
    let place = printable(mount.mount_point.as_os_str().as_bytes());
    reading.entries(SOURCE, (&mount.master, &place), &names, [&entry]);
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Parses the file as one entry, for tools that read all formats in the same way. Fails if the file cannot be
/// read.
pub fn parse(input: &mut dyn Read, parsed: &mut Parsed) -> io::Result<()> {
    let mut entry = Entry::default();
    values(input, &mut entry, parsed.names, parsed.faults)?;
    (parsed.entry)(&entry, parsed.names);
    Ok(())
}

fn values(input: &mut dyn Read, entry: &mut Entry, names: &mut Names, faults: &mut Faults) -> io::Result<()> {
    each_line(input, faults, |line, faults| {
        value(line, entry, names).unwrap_or_else(|| faults.unreadable());
    })
}

/// Parses a line such as `fuse_ops.lookup: 7`, or for a level `master.usec_ping: [238]`. Returns `None` if it
/// has another form.
fn value(line: &[u8], entry: &mut Entry, names: &mut Names) -> Option<()> {
    let colon = line.windows(2).position(|pair| pair == b": ")?;
    let (key, text) = (&line[..colon], &line[colon + 2..]);
    let level = text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]"));
    // Levels that are differences between clocks may be negative.
    let digits = level.and_then(|level| level.strip_prefix(b"-")).or(level).unwrap_or(text);
    let number = whole(digits)?;
    if key == b"master.usec_ping" && level.is_some() {
        return entry.push(names.intern(b"ping_us")?, Quantity::Level, number);
    }
    if level.is_some() {
        return Some(());
    }
    if let Some((_, name, quantity)) = RENAMED.iter().find(|(known, ..)| *known == key) {
        return entry.push(names.intern(name)?, *quantity, number);
    }
    let Some(operation) = key.strip_prefix(b"fuse_ops.") else { return Some(()) };
    let is_part = operation.contains(&b'.') || operation == b"getattr-cached";
    if is_part && !CACHED.contains(&operation) {
        return Some(());
    }
    let name = if is_part {
        [b"cached/", operation.split(|byte| b".-".contains(byte)).next()?].concat()
    } else {
        operation.to_vec()
    };
    entry.push(names.intern(&name)?, Quantity::Count, number)
}

/// Parses a line of mountinfo. Returns `None` for mounts of other file systems.
pub fn mount(line: &[u8]) -> Option<Mount> {
    let found = mountinfo::line(line)?;
    let (device, source) = (mountinfo::number(found.device)?, mountinfo::unescaped(found.source));
    let server = source.strip_prefix(PREFIX)?;
    // The source of a mounted subfolder has a path, as in `mfs#10.0.0.1:9421/projects`.
    let server = &server[..server.iter().position(|&byte| byte == b'/').unwrap_or(server.len())];
    let mount_point = PathBuf::from(OsStr::from_bytes(&mountinfo::unescaped(found.point)));
    (!server.is_empty()).then(|| Mount { device, master: printable(server), mount_point })
}
