//! InfiniBand and RoCE ports: /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband).

use super::Reading;
use crate::events::{Seen, Sight};
use crate::sample::{printable, Entry, Names, Quantity};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const SOURCE: &str = "infiniband";
/// port_xmit_data and its like count words of 4 bytes.
const WORD_BYTES: u64 = 4;
const DATA: [&str; 2] = ["port_rcv_data", "port_xmit_data"];
/// What is an event when it grows.
const ERRORS: [(&str, &str); 6] = [
    ("symbol_error", "symbol-errors"),
    ("link_error_recovery", "link-errors"),
    ("link_downed", "link-flapped"),
    ("port_rcv_errors", "link-errors"),
    ("local_link_integrity_errors", "link-errors"),
    ("excessive_buffer_overrun_errors", "link-errors"),
];
/// Counters of a port in both folders: some 60. A damaged tree has them without end.
const MOST_COUNTERS: usize = 256;

pub fn read(reading: &Reading) {
    for (device, folder) in reading.folders(&reading.root().join("sys/class/infiniband")) {
        for (port, folder) in reading.folders(&folder.join("ports")) {
            let target = format!("{}/{}", printable(device.as_bytes()), printable(port.as_bytes()));
            self::port(reading, &target, &folder);
        }
    }
}

fn port(reading: &Reading, target: &str, folder: &Path) {
    let (mut names, mut entry) = (Names::default(), Entry::default());
    let see = |aspect, sight| {
        let (file_system, target) = (String::new(), target.to_owned());
        reading.see(Seen { source: SOURCE, file_system, target, aspect, sight });
    };
    let mut push = |name: &str, quantity, value| {
        names.intern(name.as_bytes()).and_then(|name| entry.push(name, quantity, value))
    };
    for path in counters(reading, folder) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        // Ports without performance counters have the files, and `N/A (no PMA)` in them.
        let Some(value) = reading.number(&path) else { continue };
        let _ = match DATA.contains(&name) {
            true => push(name, Quantity::Bytes, value.saturating_mul(WORD_BYTES)),
            false => push(name, Quantity::Count, value),
        };
        if let Some((aspect, kind)) = ERRORS.into_iter().find(|(error, _)| *error == name) {
            see(aspect, Sight::Errors { kind, name: name.into(), value, least: 1 });
        }
    }
    if let Some(state) = reading.word(&folder.join("state")) {
        let physical = reading.word(&folder.join("phys_state")).unwrap_or_default();
        let is_up = state.ends_with(b"ACTIVE");
        let _ = push("up", Quantity::Level, u64::from(is_up));
        see("link", link(is_up, &printable(&state), &printable(&physical)));
        if let Some(value) =
            reading.word(&folder.join("rate")).filter(|_| is_up).and_then(|rate| megabits(&rate))
        {
            let _ = push("speed_mbit_per_second", Quantity::Level, value);
            see(
                "speed",
                Sight::Speed { value, unit: "Mbit/s", slower: "link-slower", faster: "link-faster" },
            );
        }
    }
    reading.entries(SOURCE, ("", target), &names, [&entry]);
}

/// The files of counters, sorted.
fn counters(reading: &Reading, folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["counters", "hw_counters"].into_iter().flat_map(|name| reading.files(&folder.join(name))).collect();
    // `lifespan` says how long the driver keeps values, and may be written to.
    found.retain(|path| path.file_name().is_some_and(|name| name != "lifespan"));
    found.truncate(MOST_COUNTERS);
    found
}

/// `4: ACTIVE`, `5: LinkUp`. One that was down when the agent came may have no cable.
fn link(is_up: bool, state: &str, physical: &str) -> Sight {
    let (level, kind) = if is_up { ("up", "link-up") } else { ("down", "link-down") };
    let text = format!("port state {state}, physical {physical}");
    Sight::State { level: level.into(), kind, text, is_told_at_first: false }
}

/// `100 Gb/sec (4X EDR)`, `2.5 Gb/sec (1X)`.
fn megabits(rate: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(rate).ok()?;
    let gigabits: f64 = text.split(' ').next()?.parse().ok()?;
    (0.0..1e9).contains(&gigabits).then_some((gigabits * 1000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers() {
        assert_eq!(megabits(b"100 Gb/sec (4X EDR)"), Some(100_000));
        assert_eq!(megabits(b"2.5 Gb/sec (1X)"), Some(2500));
        for bad in [&b""[..], b"NaN Gb/sec", b"-1 Gb/sec", b"inf", b"1e300 Gb", b"\xff"] {
            assert_eq!(megabits(bad), None);
        }
    }
}
