//! Computes growth from sums that fall when a counted process ends, while another process may take over its
//! counts.

use iodock_samples::sample::Metric;
use std::collections::{BTreeMap, BinaryHeap};

/// The gains and losses of all owners of a reading, by metric.
#[derive(Default)]
pub struct Share(BTreeMap<Metric, Sums>);

#[derive(Default)]
struct Sums {
    /// Gains by the owner's index in the reading, after [`Share::match_losses`] without the losses
    /// assigned to them.
    gained: BTreeMap<usize, u64>,
    /// All losses; after [`Share::match_losses`] only those that it did not assign to a gain.
    lost: Vec<u64>,
    all_gained: u128,
    all_lost: u128,
    /// Sums of `gained` and of `lost` after [`Share::match_losses`].
    left: (u128, u128),
}

impl Share {
    /// Adds one counter of the owner with index `owner` in the reading.
    pub fn add(&mut self, owner: usize, metric: Metric, before: u64, now: u64) {
        if now < before {
            self.lose(metric, before - now);
        } else if now > before {
            let sums = self.0.entry(metric).or_default();
            *sums.gained.entry(owner).or_default() += now - before;
            sums.all_gained += u128::from(now - before);
        }
    }

    /// Adds the count of a process that has ended as a loss.
    pub fn lose(&mut self, metric: Metric, value: u64) {
        let sums = self.0.entry(metric).or_default();
        sums.lost.push(value);
        sums.all_lost += u128::from(value);
    }

    /// Returns each metric with its losses and the part of them that exceeds all gains.
    pub fn unclaimed(&self) -> impl Iterator<Item = (Metric, u64, u64)> + '_ {
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        let lost = self.0.iter().filter(|(_, sums)| sums.all_lost > 0);
        lost.map(move |(metric, sums)| {
            (*metric, whole(sums.all_lost), whole(sums.all_lost.saturating_sub(sums.all_gained)))
        })
    }

    /// Assigns losses to gains. Call it after all counters were added. A process that waits for another takes
    /// over its whole count, so a loss for which only one gain is large enough is subtracted from that gain.
    /// [`Share::apply`] distributes the other losses.
    pub fn match_losses(&mut self) {
        self.0.values_mut().for_each(Sums::match_losses);
    }

    /// Reduces the growth of the owner with index `owner` to the part that no loss explains.
    pub fn apply(&self, owner: usize, grown: &mut Vec<(Metric, u64)>) {
        for (metric, value) in grown.iter_mut() {
            let Some(sums) = self.0.get(metric) else { continue };
            *value = (*value).min(sums.left_of(owner));
        }
        grown.retain(|(_, value)| *value > 0);
    }
}

impl Sums {
    fn match_losses(&mut self) {
        let mut gains: BinaryHeap<(u64, usize)> =
            self.gained.iter().map(|(owner, gain)| (*gain, *owner)).collect();
        self.lost.sort_unstable_by(|one, other| other.cmp(one));
        let lost = std::mem::take(&mut self.lost);
        for loss in lost {
            let largest = gains.pop();
            let next = gains.peek().map_or(0, |(gain, _)| *gain);
            match largest {
                Some((gain, owner)) if next < loss && loss <= gain => {
                    self.gained.insert(owner, gain - loss);
                    gains.push((gain - loss, owner));
                }
                _ => {
                    self.lost.push(loss);
                    gains.extend(largest);
                }
            }
        }
        let gained = self.gained.values().map(|gain| u128::from(*gain)).sum();
        self.left = (gained, self.lost.iter().map(|loss| u128::from(*loss)).sum());
    }

    fn left_of(&self, owner: usize) -> u64 {
        let (gained, lost) = self.left;
        let (gained, new) = (gained.max(1), gained.saturating_sub(lost));
        let gain = self.gained.get(&owner).copied().unwrap_or(0);
        // In an undamaged file both factors are below 2^64. If the product overflows, no growth is certain.
        u128::from(gain).checked_mul(new).map_or(0, |product| (product / gained) as u64)
    }
}
