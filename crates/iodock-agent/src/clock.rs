//! Reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time of this machine's clock in ns since the epoch.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}
