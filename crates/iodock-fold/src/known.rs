//! Numbers that may be unknown.

use iodock_event::{NONE, UNKNOWN};

/// A file's number; none is [`NONE`].
pub fn id_of(value: i64) -> u32 {
    if value == UNKNOWN {
        NONE
    } else {
        value as u32
    }
}

/// Adds a known value. A sum beyond 64 bits stays at the limit, and the table is rejected.
pub fn add(sum: &mut i64, value: i64) {
    let before = if *sum == UNKNOWN { 0 } else { *sum };
    let after = before.saturating_add(value);
    *sum = if value == UNKNOWN { *sum } else { after };
}

/// `value`, or `other` if it is not known.
pub fn first_known(value: i64, other: i64) -> i64 {
    if value == UNKNOWN {
        other
    } else {
        value
    }
}
