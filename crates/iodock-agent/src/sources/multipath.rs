//! Reads which paths of multipath devices (device mapper) exist and work. It reads /sys, because `multipath
//! -ll` may hang together with a path. The state of a path is that of its SCSI device
//! (Documentation/ABI/testing/sysfs-bus-scsi-devices; drivers/scsi/scsi_sysfs.c, sdev_states) or its NVMe
//! controller.

use super::Reading;
use crate::events::{Seen, Sight};
use crate::sample::{printable, Entry, Names, Quantity};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const SOURCE: &str = "multipath";
/// States in which a SCSI device or NVMe controller accepts requests.
const WORKING: [&[u8]; 2] = [b"running", b"live"];

pub fn read(reading: &Reading) {
    let block = reading.root().join("sys/block");
    for (name, folder) in reading.folders(&block) {
        if !name.as_bytes().starts_with(b"dm-") {
            continue;
        }
        let uuid = reading.word(&folder.join("dm/uuid")).unwrap_or_default();
        if uuid.starts_with(b"mpath-") {
            map(reading, &name.to_string_lossy(), &folder, &block);
        }
    }
}

fn map(reading: &Reading, device: &str, folder: &Path, block: &Path) {
    let known = reading.word(&folder.join("dm/name")).filter(|name| !name.is_empty());
    let target = known.map_or_else(|| device.to_owned(), |name| printable(&name));
    let (mut working, mut others) = (BTreeSet::new(), BTreeMap::new());
    for (path, _) in reading.folders(&folder.join("slaves")) {
        let state =
            reading.word(&block.join(&path).join("device/state")).unwrap_or_else(|| b"unknown".to_vec());
        let path = printable(path.as_bytes());
        match WORKING.contains(&&state[..]) {
            true => drop(working.insert(path)),
            false => drop(others.insert(path, printable(&state))),
        }
    }
    report(reading, &target, (working.len() + others.len()) as u64, working.len() as u64);
    let sight = Sight::Parts { working, others, lost: "path-lost", back: "path-back" };
    reading.see(Seen { source: SOURCE, file_system: String::new(), target, aspect: "paths", sight });
}

fn report(reading: &Reading, target: &str, all: u64, running: u64) {
    let (mut names, mut entry) = (Names::default(), Entry::default());
    for (name, value) in [("paths", all), ("paths_running", running)] {
        if let Some(name) = names.intern(name.as_bytes()) {
            let _ = entry.push(name, Quantity::Level, value);
        }
    }
    reading.entries(SOURCE, ("", target), &names, [&entry]);
}
