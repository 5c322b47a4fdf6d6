//! Disks, NFS mounts, pressure, load, processes: files below /proc.

use super::push;
use iodock_event::{Mount, Sample, SampleKind};
use std::fs;
use std::path::Path;

/// /proc/diskstats (Documentation/admin-guide/iostats.rst), fields after the name. Sectors are 512 bytes
/// whatever the disk has.
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

pub fn disks(root: &Path, now: i64, samples: &mut Vec<Sample>) {
    for line in fs::read_to_string(root.join("proc/diskstats")).unwrap_or_default().lines() {
        let mut fields = line.split_whitespace().skip(2);
        let Some(name) = fields.next() else { continue };
        if name.starts_with("ram") || name.starts_with("loop") {
            continue;
        }
        for ((metric, unit), value) in DISK_FIELDS.iter().zip(fields) {
            let kind = if *metric == "in_flight" { SampleKind::Gauge } else { SampleKind::Counter };
            if let Ok(value) = value.parse::<f64>() {
                push(samples, now, ("diskstats", name, metric), value * unit, kind);
            }
        }
    }
}

/// /proc/pressure/*: share of time in which some or all tasks waited (Documentation/accounting/psi.rst).
pub fn pressure(root: &Path, now: i64, samples: &mut Vec<Sample>) {
    for resource in ["io", "cpu", "memory"] {
        let text = fs::read_to_string(root.join("proc/pressure").join(resource)).unwrap_or_default();
        for line in text.lines() {
            let mut fields = line.split_whitespace();
            let Some(who) = fields.next() else { continue };
            for (name, value) in fields.filter_map(|field| field.split_once('=')) {
                let Ok(value) = value.parse::<f64>() else { continue };
                let (metric, kind) = match name {
                    "total" => (format!("{who}_us"), SampleKind::Counter),
                    "avg10" => (format!("{who}_10s_percent"), SampleKind::Gauge),
                    _ => continue,
                };
                push(samples, now, ("pressure", resource, &metric), value, kind);
            }
        }
    }
}

pub fn load(root: &Path, now: i64, samples: &mut Vec<Sample>) {
    let text = fs::read_to_string(root.join("proc/loadavg")).unwrap_or_default();
    let mut fields = text.split_whitespace();
    if let Some(value) = fields.next().and_then(|value| value.parse().ok()) {
        push(samples, now, ("loadavg", "", "load_1min"), value, SampleKind::Gauge);
    }
    let running = fields.nth(2).and_then(|field| field.split('/').next()?.parse().ok());
    if let Some(value) = running {
        push(samples, now, ("loadavg", "", "running_tasks"), value, SampleKind::Gauge);
    }
}

/// The bytes line of an NFS mount's statistics: what programs asked for, then what went to the server.
const NFS_BYTES: [&str; 6] = [
    "read_bytes",
    "written_bytes",
    "direct_read_bytes",
    "direct_written_bytes",
    "server_read_bytes",
    "server_written_bytes",
];
/// An operation's numbers in `per-op statistics`.
const NFS_OPERATION: [(usize, &str); 4] =
    [(0, "count"), (5, "queue_ms"), (6, "response_ms"), (7, "total_ms")];

/// /proc/self/mountstats, NFS mounts only.
pub fn nfs(root: &Path, now: i64, samples: &mut Vec<Sample>) {
    let text = fs::read_to_string(root.join("proc/self/mountstats")).unwrap_or_default();
    let mut mount: Option<&str> = None;
    for line in text.lines() {
        if line.starts_with("device ") {
            mount = nfs_mount(line);
            continue;
        }
        let (Some(target), Some((name, values))) = (mount, line.trim().split_once(':')) else { continue };
        let values: Vec<f64> = values.split_whitespace().map_while(|value| value.parse().ok()).collect();
        if name == "bytes" {
            for (metric, &value) in NFS_BYTES.iter().zip(&values) {
                push(samples, now, ("mountstats", target, metric), value, SampleKind::Counter);
            }
        } else if values.len() >= 8
            && values[0] > 0.0
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        {
            let operation = name.to_ascii_lowercase();
            for (index, metric) in NFS_OPERATION {
                let metric = format!("{operation}_{metric}");
                push(samples, now, ("mountstats", target, &metric), values[index], SampleKind::Counter);
            }
        }
    }
}

fn nfs_mount(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(" mounted on ")?;
    let (mount, kind) = rest.split_once(" with fstype ")?;
    kind.starts_with("nfs").then_some(mount)
}

/// /proc/PID/io: what a process and its children that it has waited for did.
pub fn process_io(proc_folder: &Path, pid: u32, now: i64, samples: &mut Vec<Sample>) {
    let Ok(text) = fs::read_to_string(proc_folder.join(pid.to_string()).join("io")) else { return };
    let target = pid.to_string();
    for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        let metric = match name {
            "rchar" => "read_call_bytes",
            "wchar" => "written_call_bytes",
            "syscr" => "read_calls",
            "syscw" => "write_calls",
            "read_bytes" => "read_device_bytes",
            "write_bytes" => "written_device_bytes",
            "cancelled_write_bytes" => "cancelled_write_bytes",
            _ => continue,
        };
        if let Ok(value) = value.parse() {
            push(samples, now, ("process_io", &target, metric), value, SampleKind::Counter);
        }
    }
}

/// What a process moved between memory and devices, in the kernel's blocks of 512 bytes (getrusage(2)).
/// Of most short processes that is nothing, which is not said.
pub fn process_blocks(pid: u32, read: i64, written: i64, now: i64, samples: &mut Vec<Sample>) {
    for (metric, blocks) in [("read_device_bytes", read), ("written_device_bytes", written)] {
        if blocks > 0 {
            let names = ("process_io", pid.to_string(), metric);
            push(samples, now, (names.0, &names.1, names.2), blocks as f64 * 512.0, SampleKind::Counter);
        }
    }
}

/// The mount table (proc_pid_mountinfo(5)).
pub fn mounts(root: &Path) -> Vec<Mount> {
    let text = fs::read(root.join("proc/self/mountinfo")).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let (mut place, mut kind) = (place.split(' ').skip(4), kind.split(' '));
    let (mount_point, options) = (place.next()?, place.next()?);
    Some(Mount {
        mount_point: unescape(mount_point),
        options: options.into(),
        fs_type: kind.next()?.into(),
        source: unescape(kind.next()?),
    })
}

/// Blanks and backslashes are written as `\040`.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_lines_are_read() {
        let line = "36 35 98:0 / /mnt\\040a rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue";
        let mount = mount(line).expect("a mount");
        assert_eq!((mount.mount_point.as_str(), mount.fs_type.as_str()), ("/mnt a", "ext4"));
        assert_eq!((mount.source.as_str(), mount.options.as_str()), ("/dev/sda1", "rw,noatime"));
    }

    #[test]
    fn this_machine_can_be_sampled() {
        let mut samples = Vec::new();
        super::super::sample(Path::new("/"), 1, &mut samples);
        process_io(Path::new("/proc"), std::process::id(), 1, &mut samples);
        assert!(samples.iter().any(|sample| sample.source == "loadavg"));
        assert!(samples.iter().any(|sample| sample.metric == "read_call_bytes"));
    }
}
