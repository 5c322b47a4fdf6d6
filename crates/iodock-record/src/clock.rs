//! Time stamps: nanoseconds since the epoch that never decrease.

use iodock_preload::session::{self, Session};

/// The monotonic clock with a fixed offset to the epoch: setting the clock during the run does not affect the
/// record.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    offset: i64,
}

impl Clock {
    pub fn start() -> Self {
        // Of several pairs, the one read closest together is the best.
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

    /// Offset of the monotonic clock to the epoch, ns.
    pub fn epoch(&self) -> i64 {
        self.offset
    }

    /// ns since the epoch.
    #[inline]
    pub fn now(&self) -> i64 {
        read(libc::CLOCK_MONOTONIC) + self.offset
    }
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; these two clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The session's clock and ours, read together.
pub(crate) fn pair(session: &Session, clock: &Clock) -> (u64, i64) {
    let pairs = (0..16).map(|_| {
        let before = clock.now();
        let ticks = session::ticks();
        let after = clock.now();
        (after - before, ticks >> session.time_shift, before + (after - before) / 2)
    });
    pairs.min().map_or((0, 0), |(_, units, time)| (units, time))
}
