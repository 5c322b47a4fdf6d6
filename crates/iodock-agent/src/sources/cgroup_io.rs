//! Reads block I/O by cgroup (`io.stat` of cgroup v2). The numbers of a cgroup include its descendants, so
//! each branch of the tree is counted at only one level: at its job, else at its user, else at its service.

use super::{jobs, Reading};
use crate::lines::Faults;
use crate::sample::{Entry, Evidence, Names, Owner, Quantity};
use iodock_counters::numbers::{whole, words};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const PLACES: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
/// Deepest level of folders that is searched. Deeper ones belong to parts of a service.
const DEEPEST: usize = 8;

const COUNTERS: [(&[u8], &str, Quantity); 6] = [
    (b"rbytes", "read", Quantity::Bytes),
    (b"wbytes", "write", Quantity::Bytes),
    (b"rios", "read", Quantity::Count),
    (b"wios", "write", Quantity::Count),
    (b"dbytes", "discard", Quantity::Bytes),
    (b"dios", "discard", Quantity::Count),
];

#[derive(Default)]
struct Found {
    names: Names,
    faults: Faults,
    /// Entries by device. They are separate because a volume manager's device and the disks below it count
    /// the same bytes.
    devices: BTreeMap<String, Vec<Entry>>,
}

pub fn read(reading: &Reading) {
    let places = PLACES.map(|place| reading.root().join(place));
    let Some(place) = places.iter().find(|place| reading.is_there(&place.join("cgroup.controllers"))) else {
        return;
    };
    let mut found = Found::default();
    walk(reading, place, b"", 0, &mut found);
    reading.faults("cgroup_io", std::mem::take(&mut found.faults));
    for (device, entries) in &found.devices {
        let name = device_name(reading.root(), device);
        reading.entries("cgroup_io", ("", &name), &found.names, entries);
    }
}

fn walk(reading: &Reading, folder: &Path, path: &[u8], depth: usize, found: &mut Found) {
    for (name, folder) in reading.folders(folder) {
        let name = name.as_bytes();
        let path = [path, b"/", name].concat();
        match owner(&path, name) {
            Some(owner) => counters(reading, &folder, &owner, found),
            None if depth < DEEPEST => walk(reading, &folder, &path, depth + 1, found),
            None => {}
        }
    }
}

/// Returns the owner of a cgroup. `None` means that a descendant may have one.
fn owner(path: &[u8], name: &[u8]) -> Option<Owner> {
    if let Some(job) = jobs::of_path(path) {
        return Some(Owner { evidence: Evidence::Cgroup, job, ..Owner::default() });
    }
    let session = Owner { evidence: Evidence::Session, ..Owner::default() };
    let user = name.strip_prefix(b"user-").and_then(|name| name.strip_suffix(b".slice"));
    match user {
        Some(user) => Some(Owner { user: user.into(), ..session }),
        None if is_service(name) => Some(Owner { command: name.into(), ..session }),
        None => None,
    }
}

/// Returns whether the cgroup is a systemd service or scope, such as a container of docker, podman or
/// Kubernetes. Those that contain jobs are excluded.
fn is_service(name: &[u8]) -> bool {
    let is_unit = name.ends_with(b".service") || name.ends_with(b".scope");
    is_unit && name != b"pbs_jobs.service" && !name.ends_with(b"slurmstepd.scope")
}

fn counters(reading: &Reading, folder: &Path, owner: &Owner, found: &mut Found) {
    let path = folder.join("io.stat");
    let Found { names, faults, devices } = found;
    let of_file = reading.lines(&path, |text, faults| match line(text, names) {
        Some((device, mut entry)) => {
            entry.owner = owner.clone();
            devices.entry(device).or_default().push(entry);
        }
        None => faults.unreadable(),
    });
    faults.absorb(of_file.unwrap_or_default(), &path);
}

/// Parses a line `8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0`, which may also
/// contain fields of other controllers.
fn line(text: &[u8], names: &mut Names) -> Option<(String, Entry)> {
    let mut fields = words(text);
    let device = std::str::from_utf8(fields.next()?).ok()?;
    let (major, minor) = device.split_once(':')?;
    (whole(major.as_bytes()).is_some() && whole(minor.as_bytes()).is_some()).then_some(())?;
    let mut entry = Entry::default();
    for field in fields {
        let equals = field.iter().position(|&byte| byte == b'=')?;
        if let Some((_, name, quantity)) = COUNTERS.iter().find(|(known, ..)| *known == &field[..equals]) {
            entry.push(names.intern(name.as_bytes())?, *quantity, whole(&field[equals + 1..])?)?;
        }
    }
    Some((device.into(), entry))
}

/// Returns the name of a device, such as `sda` for `8:0`.
fn device_name(root: &Path, device: &str) -> String {
    let link = fs::read_link(root.join("sys/dev/block").join(device)).ok();
    let name = link.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| device.into())
}
