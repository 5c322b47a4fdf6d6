//! Sums that fall when what they count ends, and of which others take over what was counted.

use iodock_samples::sample::Metric;
use std::collections::BTreeMap;

/// What all owners of a reading gained and lost, by metric.
#[derive(Default)]
pub struct Share {
    gained: BTreeMap<Metric, u128>,
    lost: BTreeMap<Metric, u128>,
}

impl Share {
    /// One counter of one owner.
    pub fn add(&mut self, metric: Metric, before: u64, now: u64) {
        let side = if now >= before { &mut self.gained } else { &mut self.lost };
        *side.entry(metric).or_default() += u128::from(now.abs_diff(before));
    }

    /// By metric: what was lost, and what of it nobody has gained.
    pub fn unclaimed(&self) -> impl Iterator<Item = (Metric, u64, u64)> + '_ {
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        self.lost.iter().map(move |(metric, lost)| {
            let gained = self.gained.get(metric).copied().unwrap_or(0);
            (*metric, whole(*lost), whole(lost.saturating_sub(gained)))
        })
    }

    /// Leaves of each gain its part of what nobody lost.
    pub fn apply(&self, grown: &mut Vec<(Metric, u64)>) {
        for (metric, value) in grown.iter_mut() {
            let sum = |side: &BTreeMap<Metric, u128>| side.get(metric).copied().unwrap_or(0);
            let gained = sum(&self.gained).max(1);
            let new = gained.saturating_sub(sum(&self.lost));
            // Both below 2^64 in any file that is not damaged; else nothing is certain.
            *value = u128::from(*value).checked_mul(new).map_or(0, |product| (product / gained) as u64);
        }
        grown.retain(|(_, value)| *value > 0);
    }
}
