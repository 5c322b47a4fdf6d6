//! Schedules rounds at multiples of the interval, so that the rounds of all machines coincide. Each machine
//! adds a small delay, so that they do not all write and send at the same moment.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Largest delay. It is also limited to a tenth of the interval.
const LATEST: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    interval: Duration,
    offset: Duration,
}

impl Pace {
    /// Computes the delay from the host name, so that it is always the same on one machine.
    pub fn new(interval: Duration, host: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        host.hash(&mut hasher);
        let share = (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64;
        Pace { interval, offset: LATEST.min(interval / 10).mul_f64(share) }
    }

    /// Returns the time until the next round. `now` is the time since the epoch.
    pub fn pause(&self, now: Duration) -> Duration {
        let since = now.saturating_sub(self.offset).as_nanos() % self.interval.as_nanos().max(1);
        self.interval.saturating_sub(Duration::from_nanos(since as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_spread_their_readings_within_the_same_round() {
        let interval = Duration::from_secs(10);
        let next = |host: &str, now: f64| {
            let now = Duration::from_secs_f64(now);
            (now + Pace::new(interval, host).pause(now)).as_secs_f64()
        };
        let all: Vec<f64> = (0..100).map(|node| next(&format!("node{node}"), 1_700_000_003.0)).collect();
        assert!(all.iter().all(|at| (1_700_000_010.0..1_700_000_011.0).contains(at)), "{all:?}");
        assert!(all.iter().any(|at| *at < 1_700_000_010.2) && all.iter().any(|at| *at > 1_700_000_010.8));
        assert_eq!(next("node1", 1_700_000_003.0), next("node1", 1_700_000_008.0));
        // Exactly at the time of a round, the pause is a whole interval.
        let at = Pace::new(interval, "a").offset + Duration::from_secs(1_700_000_010);
        assert_eq!(Pace::new(interval, "a").pause(at), interval);
    }
}
