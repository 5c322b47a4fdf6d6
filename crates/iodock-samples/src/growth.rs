//! How much a counter grew between two readings, when its entry may have vanished and begun anew in between.
//!
//! Lustre removes a job's entry once it was idle for `job_cleanup_interval`; it begins again at zero when the
//! job comes back. Where entries tell when they began (`start_time`, 2.15), a new beginning is known; without
//! it only a smaller value shows one, and a larger one may hide it. Each answer is exact or a lower bound, and
//! says which. What an administrator's `job_stats=clear` or a server's reboot destroys between two readings
//! was never seen by anybody; where the entry was in use shortly before, the answer is a lower bound.

/// One counter of one entry, as it was read. Times in ns since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub value: u64,
    /// The server's clock, as `updated`.
    pub start_time: Option<i64>,
    pub updated: Option<i64>,
    /// This machine's clock.
    pub time: i64,
}

/// What the reading before said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The file was not read before: whatever the counter shows may be old.
    Unread,
    /// The file was read at that time, and the entry was not there.
    Absent {
        time: i64,
    },
    Present(Reading),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    Exact(u64),
    /// It grew by this or more.
    AtLeast(u64),
}

impl Growth {
    /// The amount that is certain.
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

/// How long an entry is idle, at least, before it is removed, ns. An underestimate costs exactness, never truth.
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
            // In a shorter time no entry can come, go idle, vanish and come again.
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

    /// What an entry grew from its last reading to its removal, which was noticed at `time`.
    pub fn last_growth(self, last: &Reading, time: i64) -> Growth {
        // It was idle for that long before it went, so all it did had been read.
        Growth::exact_if(time - last.time < self.idle_ns && !self.was_busy(last, time), 0)
    }

    /// Whether the old entry went because it was idle, its last value read.
    fn expired_between(self, before: &Reading, start: i64) -> bool {
        before.time >= start - self.idle_ns && !self.was_busy(before, start)
    }

    /// Whether the entry was used so shortly before that it can't have been removed for being idle.
    fn was_busy(self, before: &Reading, time: i64) -> bool {
        before.updated.is_some_and(|updated| time - updated < self.idle_ns)
    }

    fn without_start(self, before: &Reading, now: &Reading) -> Growth {
        match now.value.checked_sub(before.value) {
            // Used shortly before and read again soon: it had no time to vanish.
            Some(grown) => Growth::exact_if(self.was_busy(before, now.time), grown),
            None => Growth::AtLeast(now.value),
        }
    }
}

/// A fall within one entry is damage: nothing can be said.
fn same_entry(before: &Reading, now: &Reading) -> Growth {
    now.value.checked_sub(before.value).map_or(Growth::AtLeast(0), Growth::Exact)
}

#[cfg(test)]
mod tests;
