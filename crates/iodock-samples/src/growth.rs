//! The growth of a counter between two readings, if its entry may have disappeared and started again in
//! between.
//!
//! Lustre removes a job's entry after it was idle for `job_cleanup_interval`; it starts again at zero when
//! the job returns. If entries have a start time (`start_time`, 2.15), a new start is visible. Without it
//! only a smaller value shows one, and a larger value may hide it. Each answer is exact or a lower bound, and
//! says which. What `job_stats=clear` or a server's reboot destroys between two readings is unknown; if the
//! entry was active shortly before, the answer is a lower bound.

/// One counter of one entry as read. Times in ns since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub value: u64,
    /// Start time by the server's clock, like `updated`.
    pub start_time: Option<i64>,
    pub updated: Option<i64>,
    /// Time of the reading by this machine's clock.
    pub time: i64,
}

/// The result of the previous reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The file was not read before, so the counter's value may be old.
    Unread,
    /// The file was read at that time, and the entry did not exist.
    Absent {
        time: i64,
    },
    Present(Reading),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    Exact(u64),
    /// It grew by at least this.
    AtLeast(u64),
}

impl Growth {
    /// The certain amount.
    pub fn certain(self) -> u64 {
        match self {
            Growth::Exact(value) | Growth::AtLeast(value) => value,
        }
    }

    fn exact_if(is_exact: bool, value: u64) -> Growth {
        match is_exact {
            true => Growth::Exact(value),
            false => Growth::AtLeast(value),
        }
    }
}

/// The minimum idle time before an entry is removed, ns. If it is too low, results are less exact but still
/// correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    pub idle_ns: i64,
}

impl Default for Expiry {
    /// Half of Lustre's default of 600 s for `job_cleanup_interval`, for sites that lowered it.
    fn default() -> Self {
        Expiry { idle_ns: 300_000_000_000 }
    }
}

impl Expiry {
    /// Growth from `before` to `now`.
    pub fn growth(self, before: Before, now: &Reading) -> Growth {
        match before {
            Before::Unread => Growth::AtLeast(0),
            // In a shorter time no entry can appear, become idle, disappear and appear again.
            Before::Absent { time } => Growth::exact_if(now.time - time < self.idle_ns, now.value),
            Before::Present(before) => match (before.start_time, now.start_time) {
                (Some(first), Some(second)) if first == second => same_entry(&before, now),
                (_, Some(start)) if before.start_time.is_some() => {
                    Growth::exact_if(self.expired_between(&before, start), now.value)
                }
                _ => self.without_start(&before, now),
            },
        }
    }

    /// The growth of an entry from its last reading to its removal, which was noticed at `time`.
    pub fn last_growth(self, last: &Reading, time: i64) -> Growth {
        // It was idle for that long before its removal, so all its activity had been read.
        Growth::exact_if(time - last.time < self.idle_ns && !self.was_busy(last, time), 0)
    }

    /// Whether the old entry was removed because it was idle, with its last value read.
    fn expired_between(self, before: &Reading, start: i64) -> bool {
        before.time >= start - self.idle_ns && !self.was_busy(before, start)
    }

    /// Whether the entry was used so recently that it cannot have been removed for being idle.
    fn was_busy(self, before: &Reading, time: i64) -> bool {
        before.updated.is_some_and(|updated| time - updated < self.idle_ns)
    }

    fn without_start(self, before: &Reading, now: &Reading) -> Growth {
        match now.value.checked_sub(before.value) {
            // It was used shortly before and read again soon, so it had no time to disappear.
            Some(grown) => Growth::exact_if(self.was_busy(before, now.time), grown),
            None => Growth::AtLeast(now.value),
        }
    }
}

/// A fall within one entry means damage, so nothing is known.
fn same_entry(before: &Reading, now: &Reading) -> Growth {
    now.value.checked_sub(before.value).map_or(Growth::AtLeast(0), Growth::Exact)
}

#[cfg(test)]
mod tests;
