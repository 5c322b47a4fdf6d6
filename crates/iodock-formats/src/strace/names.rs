//! Call names to ids, faster than the general table: one multiplication and two comparisons.

use iodock_event::calls::CALLS;
use iodock_event::CallId;
use std::sync::OnceLock;

const SLOTS: usize = 4096;
const EMPTY: u16 = u16::MAX;

/// A name, and what it is hashed from: up to 16 bytes that is all of it.
#[derive(Clone, Copy)]
struct Slot {
    ends: (u64, u64),
    length: u16,
    id: u16,
}

/// The longest name that its ends tell.
const SHORT: usize = 16;

/// Open addressing over the known names.
struct Names {
    slots: Box<[Slot]>,
}

/// The id of a call; `None` when the table of names is full.
#[inline]
pub fn call_id(name: &[u8]) -> Option<CallId> {
    match known(name) {
        Some(id) => Some(id),
        None => CallId::intern(name),
    }
}

/// The id of a name that is in [`CALLS`].
#[inline]
pub fn known(name: &[u8]) -> Option<CallId> {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(Names::new).find(name)
}

impl Names {
    fn new() -> Names {
        const { assert!(CALLS_FIT) };
        let mut slots = vec![Slot { ends: (0, 0), length: 0, id: EMPTY }; SLOTS].into_boxed_slice();
        for (id, spec) in CALLS.iter().enumerate() {
            let name = spec.name.as_bytes();
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

/// There is always an empty slot to stop at.
const CALLS_FIT: bool = SLOTS > 2048;

/// The first and last eight bytes, or four of a shorter name, or all of a very short one.
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
    fn every_known_name_is_found() {
        assert!(CALLS.len() * 2 < SLOTS);
        for (id, spec) in CALLS.iter().enumerate() {
            assert_eq!(known(spec.name.as_bytes()), Some(CallId(id as u16)), "{}", spec.name);
        }
        assert_eq!(known(b"rea"), None);
        assert_eq!(known(b""), None);
        let added = call_id(b"syscall_0x1b5").unwrap();
        assert_eq!(added.name(), "syscall_0x1b5");
    }
}
