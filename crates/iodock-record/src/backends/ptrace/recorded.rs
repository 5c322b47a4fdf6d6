//! Determines by number which calls are recorded.

use iodock_event::numbers_x86_64::NUMBERS;
use iodock_event::CallId;

/// The architecture x86-64, as linux/audit.h numbers it.
pub const AUDIT_ARCH: u32 = 0xC000_003E;
/// Size of tables that are indexed by call number. All numbers in use are smaller.
pub const TABLE_SIZE: usize = 512;

/// Returns call ids by number. `None` means that the call is not recorded.
pub fn recorded_calls() -> Vec<Option<CallId>> {
    let mut table = vec![None; TABLE_SIZE];
    for &(number, name) in NUMBERS {
        let id = CallId::intern(name.as_bytes()).filter(|id| id.spec().is_recorded());
        table[number as usize] = id;
    }
    table
}
