//! Paths, names of targets and units, which all readers of Lustre's files use.

use super::{Reading, Target};
use crate::sample::{printable, Quantity};
use iodock_counters::lustre_stats::PLACES;
use iodock_counters::numbers::leading;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

/// Returns the files `KIND/*/FILE` sorted, with each target once.
pub fn targets(reading: &Reading, kind: &str, file: &str) -> Vec<Target> {
    let mut found = BTreeMap::new();
    for place in PLACES {
        for (name, folder) in reading.folders(&reading.root().join(place).join(kind)) {
            let path = folder.join(file);
            if !found.contains_key(&name) && reading.is_there(&path) {
                let text = printable(name.as_bytes());
                found.insert(name, Target { path, file_system: file_system(&text).to_string(), name: text });
            }
        }
    }
    found.into_values().collect()
}

/// Returns the file system of a target: `lfs` for `lfs-OST0001`, `lfs-MDT0000`, `lfs-OST0001-osc-ffff8800`,
/// and for llite's `lfs-ffff8800`.
pub fn file_system(target: &str) -> &str {
    let end = target.find("-OST").or_else(|| target.find("-MDT")).or_else(|| target.rfind('-'));
    end.map_or(target, |end| &target[..end])
}

/// Unit of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub quantity: Quantity,
    /// Factor that converts the sum to bytes or microseconds.
    pub factor: u64,
}

impl Unit {
    pub const REQUESTS: Unit = Unit { quantity: Quantity::Amount, factor: 1 };

    /// Returns the unit with this name: `bytes`, `usec(s)`, `sec(s)`. Other names are plain counts: `reqs`,
    /// `regs` (a spelling of some releases), `bufs`, `pages`. Returns `None` if the text is not a word.
    pub fn named(text: &[u8]) -> Option<Unit> {
        let (quantity, factor) = match text {
            b"" => return None,
            b"bytes" => (Quantity::Bytes, 1),
            b"usec" | b"usecs" => (Quantity::Time, 1),
            b"msec" | b"msecs" => (Quantity::Time, 1_000),
            b"sec" | b"secs" => (Quantity::Time, 1_000_000),
            _ => return Some(Unit::REQUESTS),
        };
        Some(Unit { quantity, factor })
    }
}

/// Parses a number such as `512`, `4K` or `1M`, and returns the text after it.
pub fn scaled(text: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = leading(text)?;
    let shift = match rest.first() {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        _ => return Some((number, rest)),
    };
    Some((number.checked_mul(1 << shift)?, &rest[1..]))
}

/// Removes the parameter's name, such as `mds.MDS.mdt.stats=`, with which `lctl get_param` begins each file.
/// Other lines are unchanged.
pub fn without_parameter(line: &[u8]) -> &[u8] {
    match memchr::memchr(b'=', line) {
        Some(end) if line[..end].contains(&b'.') && !line[..end].iter().any(u8::is_ascii_whitespace) => {
            line[end + 1..].trim_ascii_start()
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_found_in_a_target_name() {
        for target in ["lfs-OST0001", "lfs-MDT0000", "lfs-OST0001-osc-ffff8800", "lfs-ffff8800", "lfs"] {
            assert_eq!(file_system(target), "lfs");
        }
    }

    #[test]
    fn a_parameter_name_before_a_value_is_removed() {
        assert_eq!(without_parameter(b"mds.MDS.mdt_io.stats=snapshot_time 5"), b"snapshot_time 5");
        assert_eq!(without_parameter(b"mdt.fs-MDT0000.md_stats="), b"");
        assert_eq!(without_parameter(b"open 5 samples [usecs]"), b"open 5 samples [usecs]");
    }
}
