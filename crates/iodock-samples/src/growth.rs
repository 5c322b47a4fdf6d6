//! Computes the growth of a counter between two readings if its entry may have disappeared and started again
//! in between.
//!
//! Lustre removes the entry of a job that was idle for `job_cleanup_interval`. The entry starts again at zero
//! when the job does more I/O. If entries have a start time (`start_time`, Lustre 2.15), a new start is
//! visible. Without it only a smaller value shows a new start, and a larger value may hide one. So each
//! result says whether it is exact or a lower bound. I/O that `job_stats=clear` or a reboot of the server
//! removes between two readings is unknown; if the entry was active shortly before, the result is a lower
//! bound.

/// One counter of one entry, as read. Times are in ns since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub value: u64,
    /// Time at which the counter started at zero, by the server's clock. `updated` is by the same clock.
    pub start_time: Option<i64>,
    pub updated: Option<i64>,
    /// Time of the reading by the agent's clock.
    pub time: i64,
}

/// The result of the previous reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The file was not read before, so the counter's value may be old.
    Unread,
    /// The file was read at this time, and the entry did not exist.
    Absent {
        time: i64,
    },
    Present(Reading),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    Exact(u64),
    /// The counter grew by at least this amount.
    AtLeast(u64),
}

impl Growth {
    /// Returns the amount by which the counter certainly grew.
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

/// Minimum idle time in ns before Lustre removes an entry. If it is set too low, results are less exact but
/// still correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    pub idle_ns: i64,
}

impl Default for Expiry {
    /// Returns half of Lustre's default of 600 s for `job_cleanup_interval`, because some sites have lowered
    /// it.
    fn default() -> Self {
        Expiry { idle_ns: 300_000_000_000 }
    }
}

impl Expiry {
    /// Returns the growth of a counter from `before` to `now`.
    pub fn growth(self, before: Before, now: &Reading) -> Growth {
        match before {
            Before::Unread => Growth::AtLeast(0),
            // In a shorter time no entry can appear, become idle, be removed and appear again.
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

    /// Returns the growth of an entry between its last reading and its removal, which was noticed at `time`.
    pub fn last_growth(self, last: &Reading, time: i64) -> Growth {
        // Lustre removes only entries that were idle for this time, so the last reading included all I/O.
        Growth::exact_if(time - last.time < self.idle_ns && !self.was_busy(last, time), 0)
    }

    /// Returns whether Lustre removed the old entry because it was idle, after its last value was read.
    fn expired_between(self, before: &Reading, start: i64) -> bool {
        before.time >= start - self.idle_ns && !self.was_busy(before, start)
    }

    /// Returns whether the entry was used so recently before `time` that Lustre can't have removed it as
    /// idle.
    fn was_busy(self, before: &Reading, time: i64) -> bool {
        before.updated.is_some_and(|updated| time - updated < self.idle_ns)
    }

    fn without_start(self, before: &Reading, now: &Reading) -> Growth {
        match now.value.checked_sub(before.value) {
            // The entry was used shortly before this reading, so Lustre had no time to remove it in between.
            Some(grown) => Growth::exact_if(self.was_busy(before, now.time), grown),
            None => Growth::AtLeast(now.value),
        }
    }
}

/// Returns the growth of an entry that existed all the time. A smaller value means damage, so the growth is
/// unknown.
fn same_entry(before: &Reading, now: &Reading) -> Growth {
    now.value.checked_sub(before.value).map_or(Growth::AtLeast(0), Growth::Exact)
}

#[cfg(test)]
mod tests;
