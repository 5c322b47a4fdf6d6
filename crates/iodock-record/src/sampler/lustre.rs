//! Lustre clients' counters: one `stats` file per mounted file system.

use super::push;
use iodock_event::{Sample, SampleKind};
use std::fs;
use std::path::Path;

/// Old and new places of llite's statistics.
const PLACES: [&str; 3] = ["proc/fs/lustre/llite", "sys/kernel/debug/lustre/llite", "sys/fs/lustre/llite"];

/// Lines like `read_bytes 1391 samples [bytes] 0 4194304 2147483648`: name, count, unit, min, max, sum.
pub fn llite(root: &Path, now: i64, samples: &mut Vec<Sample>) {
    for place in PLACES {
        let Ok(folder) = fs::read_dir(root.join(place)) else { continue };
        for entry in folder.flatten() {
            let target = entry.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(entry.path().join("stats")).unwrap_or_default();
            for line in text.lines() {
                counters(line, &target, now, samples);
            }
        }
    }
}

fn counters(line: &str, target: &str, now: i64, samples: &mut Vec<Sample>) {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [name, count, "samples", rest @ ..] = fields.as_slice() else { return };
    let Ok(count) = count.parse::<f64>() else { return };
    let unit = rest.first().map_or("", |unit| unit.trim_matches(['[', ']']));
    let sum = rest.get(3).and_then(|sum| sum.parse::<f64>().ok());
    let operation = name.trim_end_matches("_bytes");
    push(samples, now, ("llite", target, &format!("{operation}_count")), count, SampleKind::Counter);
    let suffix = match unit {
        "bytes" => "bytes",
        "usec" | "usecs" => "us",
        _ => return,
    };
    if let Some(sum) = sum {
        push(samples, now, ("llite", target, &format!("{operation}_{suffix}")), sum, SampleKind::Counter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_counts_of_a_fake_tree() {
        let root = std::env::temp_dir().join(format!("iodock-llite-{}", std::process::id()));
        let folder = root.join("proc/fs/lustre/llite/scratch-ffff8800");
        fs::create_dir_all(&folder).expect("a folder");
        let text = "snapshot_time 1510782606.45 secs.usecs\n\
                    read_bytes 1391 samples [bytes] 0 4194304 2147483648\n\
                    open 12 samples [usec] 1 9 40 200\nioctl 3 samples [regs]\n";
        fs::write(folder.join("stats"), text).expect("a file");
        let mut samples = Vec::new();
        llite(&root, 5, &mut samples);
        fs::remove_dir_all(&root).expect("removed");
        let value =
            |metric: &str| samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value);
        assert_eq!(value("read_bytes"), Some(2147483648.0));
        assert_eq!(value("read_count"), Some(1391.0));
        assert_eq!(value("open_us"), Some(40.0));
        assert_eq!(value("ioctl_count"), Some(3.0));
        assert_eq!(samples.len(), 5);
    }
}
