//! Reads counters of Lustre clients: one `stats` file per mounted file system.

use super::batch::{is_gone, Batch};
use super::readers::Ask;
use iodock_counters::lustre_stats::{self, PLACES};
use iodock_event::SampleKind;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, ReadDir};
use std::path::Path;

/// Parses lines such as `read_bytes 1391 samples [bytes] 0 4194304 2147483648`: name, count, unit, min, max,
/// sum. A mount that appears under an old and a new path is counted once.
pub fn llite(ask: &Ask, batch: &mut Batch) {
    let (mut met, mut hidden) = (BTreeSet::new(), None);
    for place in PLACES {
        let path = ask.root.join(place).join("llite");
        match fs::read_dir(&path) {
            Ok(folder) => mounts(folder, &mut met, ask.now, batch),
            Err(error) => hidden = hidden.or(Some((path, error)).filter(|(_, error)| !is_gone(error))),
        }
    }
    // Only root may read /sys/kernel/debug. This matters only if a Lustre is mounted.
    if let Some((path, error)) = hidden.filter(|_| met.is_empty() && is_mounted(&ask.root)) {
        batch.refuse(&path, &error);
    }
}

fn mounts(folder: ReadDir, met: &mut BTreeSet<OsString>, now: i64, batch: &mut Batch) {
    for entry in folder.flatten() {
        let (name, path) = (entry.file_name(), entry.path().join("stats"));
        if let Err(error) = fs::metadata(&path) {
            batch.refuse(&path, &error);
        } else if met.insert(name.clone()) {
            stats(&path, &name.to_string_lossy(), now, batch);
        }
    }
}

fn is_mounted(root: &Path) -> bool {
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    mounts.contains(" - lustre ")
}

fn stats(path: &Path, target: &str, now: i64, batch: &mut Batch) {
    let text = batch.content(path);
    for line in batch.lines(&text) {
        let is_time = [&b"snapshot_time"[..], b"start_time", b"elapsed_time"];
        if !is_time.iter().any(|name| line.starts_with(name)) {
            if let Some(line) = batch.read(lustre_stats::line(line)) {
                counters(&line, target, now, batch);
            }
        }
    }
}

/// Adds the counters of a line. `read_bytes` becomes `read_bytes` and `read_bytes_count`. `read`, another
/// counter in newer releases, becomes `read_us` and `read_count`.
fn counters(line: &lustre_stats::Line, target: &str, now: i64, batch: &mut Batch) {
    let name = String::from_utf8_lossy(line.name);
    let mut counter = |metric: &str, value: u64| {
        batch.push(now, ("llite", target, metric), value as f64, SampleKind::Counter);
    };
    counter(&format!("{name}_count"), line.samples);
    let Some(sum) = line.sum else { return };
    match line.unit {
        b"bytes" if name.ends_with("_bytes") => counter(&name, sum),
        b"bytes" => counter(&format!("{name}_bytes"), sum),
        b"usec" | b"usecs" => counter(&format!("{name}_us"), sum),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("iodock-llite-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        root
    }

    fn read(root: &Path) -> Batch {
        let mut batch = Batch::default();
        llite(&Ask { root: root.into(), now: 5, processes: Vec::new() }, &mut batch);
        batch
    }

    fn value(batch: &Batch, metric: &str) -> Option<f64> {
        let mut found = batch.samples.iter().filter(|sample| sample.metric == metric);
        let value = found.next().map(|sample| sample.value);
        assert!(found.next().is_none(), "{metric} twice");
        value
    }

    const STATS: &str = "snapshot_time 1510782606.45 secs.usecs\n\
        read_bytes 1391 samples [bytes] 0 4194304 2147483648\nread 7 samples [usecs] 1 9 40 200\n\
        open 12 samples [usec] 1 9 40 200\nioctl 3 samples [regs]\nopen 9 samp";

    #[test]
    fn two_counters_of_one_operation_are_kept_separately() {
        let root = tree("apart", &[("proc/fs/lustre/llite/scratch-ffff8800/stats", STATS)]);
        let batch = read(&root);
        fs::remove_dir_all(&root).expect("removed");
        assert_eq!(value(&batch, "read_bytes"), Some(2147483648.0));
        assert_eq!(value(&batch, "read_bytes_count"), Some(1391.0));
        assert_eq!((value(&batch, "read_count"), value(&batch, "read_us")), (Some(7.0), Some(40.0)));
        assert_eq!(value(&batch, "open_us"), Some(40.0));
        assert_eq!(value(&batch, "ioctl_count"), Some(3.0));
        // The last line is cut and counts as unreadable.
        assert_eq!((batch.samples.len(), batch.unreadable), (7, 1));
    }

    #[test]
    fn a_file_system_mounted_twice_counts_once() {
        let places = ["proc/fs/lustre", "sys/kernel/debug/lustre"];
        let files = places.map(|place| format!("{place}/llite/lfs-ff/stats"));
        let root = tree("once", &files.each_ref().map(|file| (file.as_str(), STATS)));
        let batch = read(&root);
        fs::remove_dir_all(&root).expect("removed");
        assert_eq!(value(&batch, "open_count"), Some(12.0));
    }

    #[test]
    fn unreadable_lustre_counters_are_reported_if_mounted() {
        let mounts = "36 35 0:42 / /lfs rw - lustre mgs:/lfs rw\n";
        let root = tree("refused", &[("proc/self/mountinfo", mounts)]);
        fs::create_dir_all(root.join("sys/kernel/debug")).expect("a folder");
        // A link to itself causes an error also for root, unlike a missing permission.
        std::os::unix::fs::symlink("lustre", root.join("sys/kernel/debug/lustre")).expect("a link");
        let refused = read(&root).refused;
        // Other files that can be read do not hide the error.
        fs::create_dir_all(root.join("proc/fs/lustre/llite/b")).expect("a folder");
        std::os::unix::fs::symlink("stats", root.join("proc/fs/lustre/llite/b/stats")).expect("a link");
        let of_one = read(&root).refused;
        fs::remove_dir_all(root.join("proc/fs")).expect("removed");
        fs::write(root.join("proc/self/mountinfo"), "36 35 8:1 / / rw - ext4 /dev/sda rw\n")
            .expect("written");
        let quiet = read(&root).refused;
        fs::remove_dir_all(&root).expect("removed");
        assert!(of_one.is_some_and(|(path, _)| path.ends_with("b/stats")));
        assert!(refused.is_some_and(|(path, _)| path.ends_with("debug/lustre/llite")) && quiet.is_none());
    }
}
