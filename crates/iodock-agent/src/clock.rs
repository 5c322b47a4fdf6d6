//! The current time.

use std::time::{SystemTime, UNIX_EPOCH};

/// ns since the epoch, by this machine's clock.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}
