//! Counts the latencies of operations in log-linear buckets, so that any latency from 1 us to 1 h is known
//! within 1 %.
//!
//! Below 128 ns a bucket holds one value. Above, each power of two is divided into 64 buckets, and the middle
//! of a bucket is at most 1/128 from any value in it. Latencies below 1 us are equally precise. Larger
//! latencies than the last bucket's are counted in that bucket. Minimum, maximum and sum are exact.

use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 6;
const LINEAR: u64 = 2 << SUB_BITS;
/// Number of bits of the largest latency in a bucket: 2^42 ns is 73 minutes.
const LARGEST_BITS: u32 = 42;
pub const BUCKETS: usize = LINEAR as usize + ((LARGEST_BITS - SUB_BITS - 1) as usize) * (1 << SUB_BITS);

/// Returns the bucket of a latency.
pub fn bucket_of(ns: u64) -> usize {
    if ns < LINEAR {
        return ns as usize;
    }
    let exponent = 63 - ns.leading_zeros();
    let octave = exponent - SUB_BITS - 1;
    let within = (ns >> (exponent - SUB_BITS)) & ((1 << SUB_BITS) - 1);
    (LINEAR as usize + ((octave as usize) << SUB_BITS) + within as usize).min(BUCKETS - 1)
}

/// Returns the smallest latency of a bucket in nanoseconds, and the first one above it.
pub fn bounds_of(bucket: usize) -> (u64, u64) {
    if (bucket as u64) < LINEAR {
        return (bucket as u64, bucket as u64 + 1);
    }
    let above = bucket - LINEAR as usize;
    let (octave, within) = ((above >> SUB_BITS) as u32, (above & ((1 << SUB_BITS) - 1)) as u64);
    let width = 1u64 << (octave + 1);
    let low = ((1u64 << SUB_BITS) + within) * width;
    (low, low + width)
}

/// Histogram of a fixed size, suitable for shared memory. Zeroed memory is an empty histogram.
#[repr(C)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    count: u64,
    sum_ns: u64,
    max_ns: u64,
    /// Complement of the smallest latency, so that zeroed memory means that there is none.
    min_inverse_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: [0; BUCKETS], count: 0, sum_ns: 0, max_ns: 0, min_inverse_ns: 0 }
    }
}

impl Histogram {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket_of(ns)] += 1;
        self.count += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.min_inverse_ns = self.min_inverse_ns.max(!ns);
    }

    pub fn latencies(&self) -> Latencies {
        let counted = self.counts.iter().enumerate().filter(|(_, &count)| count > 0);
        Latencies {
            buckets: counted.map(|(bucket, &count)| (bucket as u32, count)).collect(),
            count: self.count,
            sum_ns: self.sum_ns,
            min_ns: !self.min_inverse_ns,
            max_ns: self.max_ns,
        }
    }
}

/// A histogram without its empty buckets, for sending, storing and merging.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Bucket and count of each bucket that is not empty, in ascending order.
    pub buckets: Vec<(u32, u64)>,
    pub count: u64,
    pub sum_ns: u64,
    /// Smallest latency. It has no meaning if `count` is 0.
    pub min_ns: u64,
    pub max_ns: u64,
}

impl Latencies {
    pub fn merge(&mut self, other: &Latencies) {
        if other.count == 0 {
            return;
        }
        let mut all = std::collections::BTreeMap::new();
        for &(bucket, count) in self.buckets.iter().chain(&other.buckets) {
            *all.entry(bucket).or_insert(0) += count;
        }
        self.buckets = all.into_iter().collect();
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Returns the latency that a share of `quantile` (0 to 1) of all operations does not exceed, within 1 %.
    /// Returns None if there are no operations.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let wanted = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for &(bucket, count) in &self.buckets {
            seen += count;
            if seen >= wanted {
                let (low, high) = bounds_of(bucket as usize);
                let middle = (low + high - 1) as f64 / 2.0;
                return Some(middle.clamp(self.min_ns as f64, self.max_ns as f64));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_values() -> impl Iterator<Item = u64> {
        // The values are a series from 1 ns to an hour, in steps of about 0.03 %.
        std::iter::successors(Some(1u64), |&ns| Some((ns + 1).max(ns + ns / 3000)))
            .take_while(|&ns| ns <= 3_600_000_000_000)
    }

    #[test]
    fn every_value_is_within_one_percent_of_the_middle_of_its_bucket() {
        for ns in spread_values() {
            let (low, high) = bounds_of(bucket_of(ns));
            assert!(low <= ns && ns < high, "{ns} in {low}..{high}");
            let middle = (low + high - 1) as f64 / 2.0;
            assert!((middle - ns as f64).abs() <= 0.01 * ns as f64, "{ns}: {middle}");
        }
    }

    #[test]
    fn buckets_have_no_gaps_between_them() {
        for bucket in 1..BUCKETS {
            assert_eq!(bounds_of(bucket - 1).1, bounds_of(bucket).0);
            assert_eq!(bucket_of(bounds_of(bucket).0), bucket);
        }
    }

    #[test]
    fn values_beyond_the_last_bucket_are_counted_in_it() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_one_percent_and_merging_changes_nothing() {
        let mut values: Vec<u64> = (0..50_000u64)
            .map(|n| 1_000 + n.wrapping_mul(6_364_136_223_846_793_005).rotate_left(20) % 9_000_000)
            .collect();
        let mut halves = [Histogram::default(), Histogram::default()];
        for (at, &ns) in values.iter().enumerate() {
            halves[at % 2].record(ns);
        }
        let mut merged = Latencies::default();
        halves.iter().for_each(|half| merged.merge(&half.latencies()));
        values.sort_unstable();
        assert_eq!((merged.min_ns, merged.max_ns), (values[0], values[values.len() - 1]));
        assert_eq!((merged.count, merged.sum_ns), (values.len() as u64, values.iter().sum()));
        for quantile in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = values[((quantile * values.len() as f64).ceil() as usize).max(1) - 1] as f64;
            let told = merged.quantile(quantile).unwrap();
            assert!((told - exact).abs() <= 0.01 * exact, "{quantile}: {told} for {exact}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Latencies::default().quantile(0.5), None);
    }
}
