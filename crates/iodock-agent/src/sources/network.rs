//! Network interfaces of hardware, and bonds of them: /sys/class/net (Documentation/ABI/testing/sysfs-class-net and
//! sysfs-class-net-statistics).

use super::Reading;
use crate::events::{Seen, Sight};
use crate::sample::{printable, Entry, Names, Quantity};
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
/// Of those, what is an event when it grows. Not what is dropped: that happens wherever a packet is not for this machine.
const ERRORS: [&str; 2] = ["rx_errors", "tx_errors"];
/// Of /usr/include/linux/if.h: somebody switched the interface on.
const IFF_UP: u64 = 1;

pub fn read(reading: &Reading) {
    for (name, folder) in reading.folders(&reading.root().join("sys/class/net")) {
        // Bridges, tunnels and those of containers have no device, and come and go.
        if reading.is_there(&folder.join("device")) || reading.is_there(&folder.join("bonding")) {
            interface(reading, &printable(name.as_bytes()), &folder);
        }
    }
}

fn interface(reading: &Reading, target: &str, folder: &Path) {
    let (mut names, mut entry) = (Names::default(), Entry::default());
    let see = |aspect, sight| {
        let (file_system, target) = (String::new(), target.to_owned());
        reading.see(Seen { source: SOURCE, file_system, target, aspect, sight });
    };
    let mut push = |name: &str, quantity, value| {
        names.intern(name.as_bytes()).and_then(|name| entry.push(name, quantity, value))
    };
    for (name, quantity) in COUNTERS {
        let Some(value) = reading.number(&folder.join("statistics").join(name)) else { continue };
        let _ = push(name, quantity, value);
        if let Some(aspect) = ERRORS.into_iter().find(|error| *error == name) {
            see(aspect, Sight::Errors { kind: "link-errors", name: name.into(), value, least: 1 });
        }
    }
    if let Some(value) = reading.number(&folder.join("carrier_changes")) {
        let _ = push("carrier_changes", Quantity::Count, value);
        let name = "carrier_changes".to_owned();
        see("carrier_changes", Sight::Errors { kind: "link-flapped", name, value, least: 2 });
    }
    let is_up = reading.word(&folder.join("operstate")).map(|state| state == b"up");
    if let Some(is_up) = is_up {
        let _ = push("up", Quantity::Level, u64::from(is_up));
        see("link", link(is_up, reading.word(&folder.join("flags")).as_deref()));
    }
    // A link that is down has none, or -1.
    if let Some(value) = reading.number(&folder.join("speed")).filter(|_| is_up != Some(false)) {
        let _ = push("speed_mbit_per_second", Quantity::Level, value);
        see("speed", Sight::Speed { value, unit: "Mbit/s", slower: "link-slower", faster: "link-faster" });
    }
    reading.entries(SOURCE, ("", target), &names, [&entry]);
}

/// One that was down when the agent came may have no cable: that is no news.
fn link(is_up: bool, flags: Option<&[u8]>) -> Sight {
    let flags = flags.and_then(|flags| std::str::from_utf8(flags).ok());
    let flags = flags.and_then(|flags| u64::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
    let (level, kind, text) = match flags {
        _ if is_up => ("up", "link-up", "the link is up"),
        Some(flags) if flags & IFF_UP == 0 => ("off", "link-off", "the interface is switched off"),
        _ => ("down", "link-down", "the link is down"),
    };
    Sight::State { level: level.into(), kind, text: text.into(), is_told_at_first: false }
}
