//! Reads the counters of InfiniBand and RoCE ports: /sys/class/infiniband
//! (Documentation/ABI/stable/sysfs-class-infiniband).

use super::link::Link;
use super::Reading;
use crate::sample::{printable, Quantity};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const SOURCE: &str = "infiniband";
/// Unit in bytes of port_xmit_data and similar counters, which count words.
const WORD_BYTES: u64 = 4;
const DATA: [&str; 2] = ["port_rcv_data", "port_xmit_data"];
/// Counters whose growth is an event, with the kind of the event.
const ERRORS: [(&str, &str); 6] = [
    ("symbol_error", "symbol-errors"),
    ("link_error_recovery", "link-errors"),
    ("link_downed", "link-flapped"),
    ("port_rcv_errors", "link-errors"),
    ("local_link_integrity_errors", "link-errors"),
    ("excessive_buffer_overrun_errors", "link-errors"),
];
/// Largest number of counters of a port. Ports have about 60 in both folders, but a damaged tree may have any
/// number.
const MOST_COUNTERS: usize = 256;

pub fn read(reading: &Reading) {
    for (device, folder) in reading.folders(&reading.root().join("sys/class/infiniband")) {
        for (port, folder) in reading.folders(&folder.join("ports")) {
            let target = format!("{}/{}", printable(device.as_bytes()), printable(port.as_bytes()));
            self::port(reading, target, &folder);
        }
    }
}

fn port(reading: &Reading, target: String, folder: &Path) {
    let mut port = Link::new(reading, SOURCE, target);
    for path in counters(reading, folder) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        // In ports without performance counters these files contain `N/A (no PMA)`.
        let Some(value) = reading.number(&path) else { continue };
        match DATA.contains(&name) {
            true => port.value(name, Quantity::Bytes, value.saturating_mul(WORD_BYTES)),
            false => port.value(name, Quantity::Count, value),
        }
        if let Some((aspect, kind)) = ERRORS.into_iter().find(|(error, _)| *error == name) {
            port.errors(aspect, kind, value, 1);
        }
    }
    let Some(state) = reading.word(&folder.join("state")) else { return port.tell() };
    let physical = reading.word(&folder.join("phys_state")).unwrap_or_default();
    let is_up = state.ends_with(b"ACTIVE");
    port.state(is_up, described(is_up, &printable(&state), &printable(&physical)));
    let rate = reading.word(&folder.join("rate")).filter(|_| is_up);
    if let Some(value) = rate.and_then(|rate| megabits(&rate)) {
        port.speed(value);
    }
    port.tell();
}

/// Returns the sorted paths of the files with counters.
fn counters(reading: &Reading, folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["counters", "hw_counters"].into_iter().flat_map(|name| reading.files(&folder.join(name))).collect();
    // `lifespan` is the time for which the driver caches values. It is writable, and not a counter.
    found.retain(|path| path.file_name().is_some_and(|name| name != "lifespan"));
    found.truncate(MOST_COUNTERS);
    found
}

/// Returns level, kind of event and text for a port with states such as `4: ACTIVE` and `5: LinkUp`.
fn described(is_up: bool, state: &str, physical: &str) -> (&'static str, &'static str, String) {
    let (level, kind) = if is_up { ("up", "link-up") } else { ("down", "link-down") };
    (level, kind, format!("port state {state}, physical {physical}"))
}

/// Parses a rate such as `100 Gb/sec (4X EDR)` or `2.5 Gb/sec (1X)`.
fn megabits(rate: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(rate).ok()?;
    let gigabits: f64 = text.split(' ').next()?.parse().ok()?;
    (0.0..1e9).contains(&gigabits).then_some((gigabits * 1000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_rates_are_parsed_and_invalid_ones_refused() {
        assert_eq!(megabits(b"100 Gb/sec (4X EDR)"), Some(100_000));
        assert_eq!(megabits(b"2.5 Gb/sec (1X)"), Some(2500));
        for bad in [&b""[..], b"NaN Gb/sec", b"-1 Gb/sec", b"inf", b"1e300 Gb", b"\xff"] {
            assert_eq!(megabits(bad), None);
        }
    }
}
