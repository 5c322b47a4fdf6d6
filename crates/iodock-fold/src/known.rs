//! Functions for numbers that may be unknown.

use iodock_event::{NONE, UNKNOWN};

/// Returns the number of a file; [`NONE`] if there is no file.
pub fn id_of(value: i64) -> u32 {
    if value == UNKNOWN {
        NONE
    } else {
        value as u32
    }
}

/// Adds a known value to a sum. A sum beyond 64 bits stays at the largest number, and the table is then
/// rejected.
pub fn add(sum: &mut i64, value: i64) {
    let before = if *sum == UNKNOWN { 0 } else { *sum };
    let after = before.saturating_add(value);
    *sum = if value == UNKNOWN { *sum } else { after };
}

/// Returns `value`, or `other` if `value` is unknown.
pub fn first_known(value: i64, other: i64) -> i64 {
    if value == UNKNOWN {
        other
    } else {
        value
    }
}
