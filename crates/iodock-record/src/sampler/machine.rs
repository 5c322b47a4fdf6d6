//! Reads counters of disks, NFS mounts, pressure, load and processes from files below /proc.

use super::batch::Batch;
use super::readers::Ask;
use iodock_counters::diskstats;
use iodock_counters::mountinfo::{self, Devices, Meeting};
use iodock_counters::mountstats::{self, Line};
use iodock_counters::numbers::{finite, leading, words};
use iodock_counters::pressure::line as pressure_line;
use iodock_counters::process_io::{line as process_io_line, FIELDS};
use iodock_event::{Mount, Sample, SampleKind};
use std::fs;
use std::path::Path;

/// Names of the fields after the device name in /proc/diskstats (Documentation/admin-guide/iostats.rst), and
/// factors. Sectors have 512 bytes on every disk.
const DISK_FIELDS: [(&str, f64); 11] = [
    ("reads", 1.0),
    ("reads_merged", 1.0),
    ("read_bytes", 512.0),
    ("read_time_ms", 1.0),
    ("writes", 1.0),
    ("writes_merged", 1.0),
    ("written_bytes", 512.0),
    ("write_time_ms", 1.0),
    ("in_flight", 1.0),
    ("busy_time_ms", 1.0),
    ("queue_time_ms", 1.0),
];

pub fn disks(ask: &Ask, batch: &mut Batch) {
    let text = batch.content(&ask.root.join("proc/diskstats"));
    for line in batch.lines(&text) {
        let Some(line) = batch.read(diskstats::line(line)) else { continue };
        let name = String::from_utf8_lossy(line.name);
        if name.starts_with("ram") || name.starts_with("loop") {
            continue;
        }
        for ((metric, unit), &value) in DISK_FIELDS.iter().zip(line.values()) {
            let kind = if *metric == "in_flight" { SampleKind::Gauge } else { SampleKind::Counter };
            batch.push(ask.now, ("diskstats", &name, metric), value as f64 * unit, kind);
        }
    }
}

/// Reads /proc/pressure/*: the share of time in which some or all tasks waited
/// (Documentation/accounting/psi.rst).
pub fn pressure(ask: &Ask, batch: &mut Batch) {
    for resource in ["io", "cpu", "memory"] {
        let text = batch.content(&ask.root.join("proc/pressure").join(resource));
        for line in batch.lines(&text) {
            let Some(line) = batch.read(pressure_line(line)) else { continue };
            let who = String::from_utf8_lossy(line.who);
            if let Some(average) = line.average_10s_percent {
                let metric = format!("{who}_10s_percent");
                batch.push(ask.now, ("pressure", resource, &metric), average, SampleKind::Gauge);
            }
            let metric = format!("{who}_us");
            batch.push(ask.now, ("pressure", resource, &metric), line.total_us as f64, SampleKind::Counter);
        }
    }
}

/// Reads /proc/loadavg, such as `0.20 0.18 0.12 1/80 11206`.
pub fn load(ask: &Ask, batch: &mut Batch) {
    let text = batch.content(&ask.root.join("proc/loadavg"));
    let line = batch.lines(&text).next().unwrap_or_default();
    let mut fields = words(line);
    if let Some(value) = fields.next().and_then(|value| batch.read(finite(value))) {
        batch.push(ask.now, ("loadavg", "", "load_1min"), value, SampleKind::Gauge);
    }
    let running = fields.nth(2).and_then(|field| leading(field)).map(|(count, _)| count);
    if let Some(value) = running {
        batch.push(ask.now, ("loadavg", "", "running_tasks"), value as f64, SampleKind::Gauge);
    }
}

/// Names of the numbers in the line `bytes` of an NFS mount: first those that programs requested, then those
/// exchanged with the server.
const NFS_BYTES: [&str; 6] = [
    "read_bytes",
    "written_bytes",
    "direct_read_bytes",
    "direct_written_bytes",
    "server_read_bytes",
    "server_written_bytes",
];
/// Positions and names of the numbers of an operation in `per-op statistics`.
const NFS_OPERATION: [(usize, &str); 4] =
    [(0, "count"), (5, "queue_ms"), (6, "response_ms"), (7, "total_ms")];

/// Reads NFS mounts from /proc/self/mountstats. Mounts that share their counters, according to mountinfo, are
/// counted once.
pub fn nfs(ask: &Ask, batch: &mut Batch) {
    let text = batch.content(&ask.root.join("proc/self/mountstats"));
    let mut devices = Devices::default();
    // Most machines have no NFS mounts and do not need the mount table.
    if text.windows(10).any(|part| part == b"fstype nfs") {
        devices = Devices::read(&batch.content(&ask.root.join("proc/self/mountinfo")));
    }
    let mut mount = None;
    for line in batch.lines(&text) {
        match mountstats::line(line) {
            Line::Mount(found) => {
                let is_new = devices.meet(found.mount_point) != Meeting::Again;
                mount = is_new.then(|| String::from_utf8_lossy(found.mount_point));
            }
            Line::OtherMount(mount_point) => {
                devices.meet(mount_point);
                mount = None;
            }
            Line::UnreadableMount => {
                batch.unreadable += 1;
                mount = None;
            }
            Line::Unreadable => batch.unreadable += 1,
            line => {
                if let Some(target) = &mount {
                    nfs_counters(&line, target, ask.now, batch);
                }
            }
        }
    }
}

fn nfs_counters(line: &Line, target: &str, now: i64, batch: &mut Batch) {
    let mut counter = |metric: &str, value: u64| {
        batch.push(now, ("mountstats", target, metric), value as f64, SampleKind::Counter)
    };
    match line {
        Line::Bytes(values) => {
            NFS_BYTES.iter().zip(values).for_each(|(metric, value)| counter(metric, *value));
        }
        Line::Operation(one) if one.numbers[0] > 0 => {
            let operation = String::from_utf8_lossy(one.name).to_ascii_lowercase();
            NFS_OPERATION.iter().for_each(|&(index, metric)| {
                counter(&format!("{operation}_{metric}"), one.numbers[index]);
            });
        }
        _ => {}
    }
}

/// Reads the counters of every process that is being recorded.
pub fn processes(ask: &Ask, batch: &mut Batch) {
    for &pid in &ask.processes {
        process_io(&ask.root.join("proc"), pid, ask.now, &mut batch.samples);
    }
}

/// Reads /proc/PID/io: operations of a process and of the children that it has waited for.
pub fn process_io(proc_folder: &Path, pid: u32, now: i64, samples: &mut Vec<Sample>) {
    let mut batch = Batch::default();
    let text = batch.content(&proc_folder.join(pid.to_string()).join("io"));
    let target = pid.to_string();
    for line in batch.lines(&text) {
        if let Some((field, value)) = process_io_line(line) {
            let names = ("process_io", target.as_str(), FIELDS[field].1);
            batch.push(now, names, value as f64, SampleKind::Counter);
        }
    }
    samples.append(&mut batch.samples);
}

/// Adds the bytes that a process moved between memory and devices, from the kernel's blocks of 512 bytes
/// (getrusage(2)). For most short processes this is zero, which is not recorded.
pub fn process_blocks(pid: u32, read: i64, written: i64, now: i64, samples: &mut Vec<Sample>) {
    let mut batch = Batch::default();
    for (metric, blocks) in [("read_device_bytes", read), ("written_device_bytes", written)] {
        if blocks > 0 {
            let target = pid.to_string();
            batch.push(now, ("process_io", &target, metric), blocks as f64 * 512.0, SampleKind::Counter);
        }
    }
    samples.append(&mut batch.samples);
}

/// Returns the mount table (proc_pid_mountinfo(5)).
pub fn mounts(root: &Path) -> Vec<Mount> {
    let text = fs::read(root.join("proc/self/mountinfo")).unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let found = mountinfo::line(line)?;
    let text = |name: &[u8]| String::from_utf8_lossy(&mountinfo::unescaped(name)).into_owned();
    Some(Mount {
        mount_point: text(found.point),
        options: String::from_utf8_lossy(found.options).into_owned(),
        fs_type: String::from_utf8_lossy(found.fs_type).into_owned(),
        source: text(found.source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_lines_are_read() {
        let line = b"36 35 98:0 / /mnt\\040a rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue";
        let mount = mount(line).expect("a mount");
        assert_eq!((mount.mount_point.as_str(), mount.fs_type.as_str()), ("/mnt a", "ext4"));
        assert_eq!((mount.source.as_str(), mount.options.as_str()), ("/dev/sda1", "rw,noatime"));
    }

    #[test]
    fn mounts_that_share_counters_count_once() {
        let root = std::env::temp_dir().join(format!("iodock-nfs-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/self")).expect("a folder");
        let mount = |point: &str, read: u64| {
            format!("device srv:/x mounted on {point} with fstype nfs4 statvers=1.1\n\tbytes: {read} 2 0 0 3 4 1 1\n")
        };
        let stats = [
            mount("/x", 1000),
            mount("/bind", 1001),
            mount("/y", 7),
            "device damag\n\tbytes: 9 9 9 9 9 9\n".into(),
        ];
        fs::write(root.join("proc/self/mountstats"), stats.concat()).expect("a file");
        let mounts = [("/x", 42), ("/bind", 42), ("/y", 43)];
        let mounts = mounts.map(|(point, minor)| format!("36 35 0:{minor} / {point} rw - nfs4 srv:/x rw\n"));
        fs::write(root.join("proc/self/mountinfo"), mounts.concat()).expect("a file");
        let mut batch = Batch::default();
        nfs(&Ask { root: root.clone(), now: 1, processes: Vec::new() }, &mut batch);
        fs::remove_dir_all(&root).expect("removed");
        let read = batch.samples.iter().filter(|sample| sample.metric == "read_bytes");
        let read: Vec<_> = read.map(|sample| (sample.target.as_ref(), sample.value)).collect();
        assert_eq!((read, batch.unreadable), (vec![("/x", 1000.0), ("/y", 7.0)], 1));
    }

    #[test]
    fn only_finite_numbers_are_samples() {
        let root = std::env::temp_dir().join(format!("iodock-finite-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/pressure")).expect("a folder");
        fs::write(root.join("proc/loadavg"), "inf 1 1 1/80 5\n").expect("a file");
        fs::write(root.join("proc/pressure/io"), "some avg10=NaN avg60=0 avg300=0 total=7\nfull av")
            .expect("a file");
        let mut samples = Vec::new();
        super::super::sample(&root, 1, &mut samples);
        fs::remove_dir_all(&root).expect("removed");
        let found: Vec<_> = samples.iter().map(|sample| (sample.metric.as_ref(), sample.value)).collect();
        assert_eq!(found, [("some_us", 7.0), ("running_tasks", 1.0)]);
    }

    #[test]
    fn counters_of_this_machine_are_read() {
        let mut samples = Vec::new();
        super::super::sample(Path::new("/"), 1, &mut samples);
        process_io(Path::new("/proc"), std::process::id(), 1, &mut samples);
        assert!(samples.iter().any(|sample| sample.source == "loadavg"));
        assert!(samples.iter().any(|sample| sample.metric == "read_call_bytes"));
    }
}
