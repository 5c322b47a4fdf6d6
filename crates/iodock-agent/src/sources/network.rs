//! Reads counters and states of hardware network interfaces and bonds: /sys/class/net
//! (Documentation/ABI/testing/sysfs-class-net and sysfs-class-net-statistics).

use super::link::Link;
use super::Reading;
use crate::sample::{printable, Quantity};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const SOURCE: &str = "network";
const COUNTERS: [(&str, Quantity); 16] = [
    ("rx_bytes", Quantity::Bytes),
    ("tx_bytes", Quantity::Bytes),
    ("rx_packets", Quantity::Count),
    ("tx_packets", Quantity::Count),
    ("rx_errors", Quantity::Count),
    ("tx_errors", Quantity::Count),
    ("rx_dropped", Quantity::Count),
    ("tx_dropped", Quantity::Count),
    ("rx_crc_errors", Quantity::Count),
    ("rx_frame_errors", Quantity::Count),
    ("rx_fifo_errors", Quantity::Count),
    ("rx_missed_errors", Quantity::Count),
    ("rx_over_errors", Quantity::Count),
    ("tx_carrier_errors", Quantity::Count),
    ("tx_fifo_errors", Quantity::Count),
    ("collisions", Quantity::Count),
];
/// Counters whose growth is an event. Dropped packets are no event, because interfaces also drop packets for
/// other machines.
const ERRORS: [&str; 2] = ["rx_errors", "tx_errors"];
/// Flag of an interface that an administrator has enabled (linux/if.h).
const IFF_UP: u64 = 1;

pub fn read(reading: &Reading) {
    for (name, folder) in reading.folders(&reading.root().join("sys/class/net")) {
        // Bridges, tunnels and interfaces of containers have no `device`. They are skipped, because they come
        // and go.
        if reading.is_there(&folder.join("device")) || reading.is_there(&folder.join("bonding")) {
            interface(reading, printable(name.as_bytes()), &folder);
        }
    }
}

fn interface(reading: &Reading, target: String, folder: &Path) {
    let mut link = Link::new(reading, SOURCE, target);
    for (name, quantity) in COUNTERS {
        let Some(value) = reading.number(&folder.join("statistics").join(name)) else { continue };
        link.value(name, quantity, value);
        if let Some(aspect) = ERRORS.into_iter().find(|error| *error == name) {
            link.errors(aspect, "link-errors", value, 1);
        }
    }
    if let Some(value) = reading.number(&folder.join("carrier_changes")) {
        link.value("carrier_changes", Quantity::Count, value);
        link.errors("carrier_changes", "link-flapped", value, 2);
    }
    let is_up = reading.word(&folder.join("operstate")).map(|state| state == b"up");
    if let Some(is_up) = is_up {
        link.state(is_up, described(is_up, reading.word(&folder.join("flags")).as_deref()));
    }
    // If a link is down, its speed is missing or -1.
    if let Some(value) = reading.number(&folder.join("speed")).filter(|_| is_up != Some(false)) {
        link.speed(value);
    }
    link.tell();
}

fn described(is_up: bool, flags: Option<&[u8]>) -> (&'static str, &'static str, String) {
    let flags = flags.and_then(|flags| std::str::from_utf8(flags).ok());
    let flags = flags.and_then(|flags| u64::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
    let (level, kind, text) = match flags {
        _ if is_up => ("up", "link-up", "the link is up"),
        Some(flags) if flags & IFF_UP == 0 => ("off", "link-off", "the interface is switched off"),
        _ => ("down", "link-down", "the link is down"),
    };
    (level, kind, text.into())
}
