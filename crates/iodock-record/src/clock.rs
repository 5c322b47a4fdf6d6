//! Provides time stamps: nanoseconds since the epoch that never decrease.

use iodock_preload::session::{self, Session};

/// The monotonic clock with a fixed offset to the epoch. Setting the system's clock during a recording does
/// not affect it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    offset: i64,
}

impl Clock {
    pub fn start() -> Self {
        // The two clocks are read several times. The pair with the shortest time between the readings is
        // used.
        let offset = (0..5)
            .map(|_| {
                let before = read(libc::CLOCK_MONOTONIC);
                let real = read(libc::CLOCK_REALTIME);
                let after = read(libc::CLOCK_MONOTONIC);
                (after - before, real - (before + (after - before) / 2))
            })
            .min()
            .map_or(0, |(_, offset)| offset);
        Clock { offset }
    }

    /// Returns the offset from the monotonic clock to the epoch, in ns.
    pub fn epoch(&self) -> i64 {
        self.offset
    }

    /// Returns the time in ns since the epoch.
    #[inline]
    pub fn now(&self) -> i64 {
        read(libc::CLOCK_MONOTONIC) + self.offset
    }
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` has room for the result, and these two clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns the session's clock and the recorder's clock, read at nearly the same time.
pub(crate) fn pair(session: &Session, clock: &Clock) -> (u64, i64) {
    let pairs = (0..16).map(|_| {
        let before = clock.now();
        let ticks = session::ticks();
        let after = clock.now();
        (after - before, ticks >> session.time_shift, before + (after - before) / 2)
    });
    pairs.min().map_or((0, 0), |(_, units, time)| (units, time))
}
