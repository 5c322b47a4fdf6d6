//! Converts session time to the time of day, linearly between consecutive readings of both clocks.

pub struct Times {
    /// For each interval between readings: its beginning in units and in ns, and the ns per unit.
    lines: Vec<(u64, i64, f64)>,
    /// Index of the interval used last, because successive times are usually in the same interval.
    last: usize,
}

impl Times {
    /// Creates the conversion from readings of session time and ns since the epoch.
    pub fn new(mut clocks: Vec<(u64, i64)>) -> Times {
        clocks.sort_unstable();
        clocks.dedup_by_key(|clock| clock.0);
        let slope = |from: (u64, i64), to: (u64, i64)| (to.1 - from.1) as f64 / (to.0 - from.0) as f64;
        let pairs = clocks.windows(2).map(|pair| (pair[0].0, pair[0].1, slope(pair[0], pair[1])));
        let mut lines: Vec<_> = pairs.collect();
        if lines.is_empty() {
            lines.push(clocks.first().map_or((0, 0, 1.0), |&(units, time)| (units, time, 1.0)));
        }
        Times { lines, last: 0 }
    }

    /// Returns the time of the first reading, in units.
    pub fn begin(&self) -> u64 {
        self.lines[0].0
    }

    /// Converts a time to ns since the epoch. Times before the first reading or after the last one are
    /// extrapolated from the nearest interval.
    pub fn ns(&mut self, units: u64) -> i64 {
        let ends = |at: usize| self.lines.get(at + 1).map_or(u64::MAX, |line| line.0);
        let begins = if self.last == 0 { 0 } else { self.lines[self.last].0 };
        if units < begins || units >= ends(self.last) {
            self.last = self.lines.partition_point(|line| line.0 <= units).saturating_sub(1);
        }
        let (from, time, slope) = self.lines[self.last];
        time + (units.wrapping_sub(from) as i64 as f64 * slope) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn times_between_and_beyond_the_readings_are_converted() {
        let mut times = Times::new(vec![(100, 1000), (200, 1200), (300, 1300)]);
        assert_eq!(
            [50, 100, 150, 200, 250, 300, 400, 120].map(|at| times.ns(at)),
            [900, 1000, 1100, 1200, 1250, 1300, 1400, 1040]
        );
        assert_eq!(Times::new(vec![(100, 1000)]).ns(110), 1010);
    }
}
