//! Determines by number which calls are recorded.

use iodock_event::numbers_x86_64::NUMBERS;
use iodock_event::CallId;

/// x86-64 of linux/audit.h.
pub const AUDIT_ARCH: u32 = 0xC000_003E;
/// One more than the highest number in use, for tables by number.
pub const TABLE_SIZE: usize = 512;

/// Call ids by number; `None` for calls that are not recorded.
pub fn recorded_calls() -> Vec<Option<CallId>> {
    let mut table = vec![None; TABLE_SIZE];
    for &(number, name) in NUMBERS {
        let id = CallId::intern(name.as_bytes()).filter(|id| id.spec().is_recorded());
        table[number as usize] = id;
    }
    table
}
