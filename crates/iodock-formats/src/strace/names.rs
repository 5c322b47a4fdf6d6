//! Maps the names of calls to ids with one multiplication and two comparisons, which is faster than the
//! general table of names.

use iodock_event::calls::CALLS;
use iodock_event::CallId;
use std::sync::OnceLock;

const SLOTS: usize = 4096;
const EMPTY: u16 = u16::MAX;

/// A name and its hash key. For names of up to 16 bytes, the key holds the whole name.
#[derive(Clone, Copy)]
struct Slot {
    ends: (u64, u64),
    length: u16,
    id: u16,
}

/// Length of the longest name that is identified by its first and last eight bytes.
const SHORT: usize = 16;

/// A hash table with open addressing for the known names.
struct Names {
    slots: Box<[Slot]>,
}

/// Returns the id of a call; `None` when the table of names is full.
#[inline]
pub fn call_id(name: &[u8]) -> Option<CallId> {
    known_call(name).or_else(|| CallId::intern(name))
}

/// Returns the id of a call that iodock knows, by any of its names.
#[inline]
pub fn known_call(name: &[u8]) -> Option<CallId> {
    known(name).or_else(|| other_name(name))
}

/// Prefixes that strace puts before calls of another ABI: MIPS (`n64_read`), OSF/1 on Alpha (`osf_stat`),
/// IRIX. They are from the tables linux/*/syscallent*.h of strace 4.5.18 to 7.2.
const ABI_PREFIXES: &[&[u8]] =
    &[b"o32_", b"n32_", b"n64_", b"osf_", b"svr4_", b"sysv_", b"bsd43_", b"posix_"];
/// Suffix of calls that x32 programs make in the same way as 64-bit programs.
const ABI_SUFFIX: &[u8] = b"#64";

/// Returns the id of a call by the name that some architecture gives it.
#[cold]
fn other_name(name: &[u8]) -> Option<CallId> {
    let plain = name.strip_suffix(ABI_SUFFIX).unwrap_or(name);
    let plain = ABI_PREFIXES.iter().find_map(|&prefix| plain.strip_prefix(prefix)).unwrap_or(plain);
    // OSF/1 also has old versions of its own calls, such as osf_old_open.
    let plain = if name.starts_with(b"osf_old_") { &plain[b"old_".len()..] } else { plain };
    known(plain).filter(|_| plain.len() < name.len())
}

/// Returns the id of a name in [`CALLS`].
#[inline]
fn known(name: &[u8]) -> Option<CallId> {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(Names::new).find(name)
}

impl Names {
    fn new() -> Names {
        const { assert!(CALLS_FIT) };
        let mut slots = vec![Slot { ends: (0, 0), length: 0, id: EMPTY }; SLOTS].into_boxed_slice();
        for (id, spec) in CALLS.iter().enumerate() {
            let name = spec.name.as_bytes();
            // In strace, llseek is Linux's own call, whose third argument receives the result. In truss, the
            // call returns the result.
            let id = if name == b"llseek" { index_of("_llseek").unwrap_or(id) } else { id };
            let ends = ends(name);
            let mut slot = hash(ends, name.len());
            while slots[slot].id != EMPTY {
                slot = (slot + 1) % SLOTS;
            }
            slots[slot] = Slot { ends, length: name.len() as u16, id: id as u16 };
        }
        Names { slots }
    }

    #[inline]
    fn find(&self, name: &[u8]) -> Option<CallId> {
        let ends = ends(name);
        let mut slot = hash(ends, name.len());
        loop {
            let Slot { ends: found, length, id } = self.slots[slot];
            if id == EMPTY {
                return None;
            }
            let same = found == ends && length as usize == name.len();
            if same && (name.len() <= SHORT || CALLS[id as usize].name.as_bytes() == name) {
                return Some(CallId(id));
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

fn index_of(name: &str) -> Option<usize> {
    CALLS.iter().position(|spec| spec.name == name)
}

/// The table always has an empty slot, at which a search stops.
const CALLS_FIT: bool = SLOTS > 2048;

/// Returns the first and the last eight bytes of a name; four bytes each for a shorter name; the whole name
/// if it is very short.
#[inline]
fn ends(name: &[u8]) -> (u64, u64) {
    match name.len() {
        8.. => (word(&name[..8]), word(&name[name.len() - 8..])),
        4..=7 => (half(&name[..4]), half(&name[name.len() - 4..])),
        _ => (name.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)), 0),
    }
}

#[inline]
fn hash((first, last): (u64, u64), length: usize) -> usize {
    let mixed = (first ^ last.rotate_left(29) ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 52) as usize
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

#[inline]
fn half(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u32::from_le_bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_call_name_is_found() {
        assert!(CALLS.len() * 2 < SLOTS);
        for (id, spec) in CALLS.iter().enumerate().filter(|(_, spec)| spec.name != "llseek") {
            assert_eq!(known(spec.name.as_bytes()), Some(CallId(id as u16)), "{}", spec.name);
        }
        assert_eq!(known(b"rea"), None);
        assert_eq!(known(b""), None);
        let added = call_id(b"syscall_0x1b5").unwrap();
        assert_eq!(added.name(), "syscall_0x1b5");
    }

    #[test]
    fn call_names_of_other_abis_are_found() {
        for (name, same) in [
            ("n64_read", "read"),
            ("o32__llseek", "_llseek"),
            ("osf_stat", "stat"),
            ("osf_old_open", "open"),
            ("osf_statfs64", "statfs64"),
            ("osf_getdirentries", "getdirentries"),
            ("preadv2#64", "preadv2"),
            ("llseek", "_llseek"),
        ] {
            assert_eq!(call_id(name.as_bytes()).unwrap().name(), same, "{name}");
            assert_eq!(call_id(name.as_bytes()), call_id(same.as_bytes()), "{name}");
        }
        for own in ["osf_table", "posix_fadvise", "n64_"] {
            assert_eq!(call_id(own.as_bytes()).unwrap().name(), own);
        }
    }
}
