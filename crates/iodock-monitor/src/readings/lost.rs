//! Handles processes that have ended. The process that waited for them takes over their counts, which must
//! not count twice.
//!
//! A reading of all processes takes time. If a process ends during it, its counts may be missing in that
//! reading, because its parent was read before. The parent contains them in the next reading. So the
//! collector keeps a loss for two readings, until it appears as a gain.

use super::{Last, Target};
use crate::falling::Share;
use iodock_samples::batch::Part;
use iodock_samples::sample::{Metric, Owner};
use std::collections::HashSet;

/// Returns a special owner for the losses that [`Target::expect_end`] adds. Agents never send it.
fn ended_steps() -> Owner {
    Owner { command: b"steps that have ended".into(), ..Owner::default() }
}

/// Returns a special owner for losses of the previous reading that have not appeared as gains. Agents never
/// send it.
fn lost_before() -> Owner {
    Owner { command: b"processes that had ended".into(), ..Owner::default() }
}

/// Losses from earlier data, in addition to those that a reading itself shows.
pub(super) struct Lost {
    steps: Last,
    before: Last,
}

impl Lost {
    pub(super) fn values(&self) -> impl Iterator<Item = (Metric, u64)> + '_ {
        self.steps.values.iter().chain(&self.before.values).copied()
    }
}

impl Target {
    /// Removes the kept losses from the entries, so that the entries contain only real owners.
    pub(super) fn take_lost(&mut self) -> Lost {
        let mut take = |owner| self.entries.remove(&owner).unwrap_or_default();
        Lost { steps: take(ended_steps()), before: take(lost_before()) }
    }

    /// Keeps losses that no gain contains for the next reading, or for the next piece of this reading.
    pub(super) fn keep_lost(&mut self, lost: &Lost, share: &Share, is_last_piece: bool) {
        let still_unclaimed = |(metric, all, unclaimed): (Metric, u64, u64)| {
            let old = if is_last_piece { lost.before.value(metric) } else { 0 };
            let value = unclaimed.min(all.saturating_sub(old));
            (value > 0).then_some((metric, value))
        };
        let values: Vec<_> = share.unclaimed().filter_map(still_unclaimed).collect();
        if !values.is_empty() {
            self.entries.insert(lost_before(), Last { values, ..Last::default() });
        }
    }

    /// Returns the known owners that are missing in a full reading of one piece.
    pub(super) fn unlisted(&self, part: &Part) -> Vec<Owner> {
        if !part.full || part.piece > 0 || !part.last {
            return Vec::new();
        }
        let listed: HashSet<&Owner> = part.entries.iter().map(|entry| &entry.owner).collect();
        self.entries.keys().filter(|owner| !listed.contains(owner)).cloned().collect()
    }

    /// Handles the end of a step of which the samples contain only a part. The process that waited for
    /// slurmstepd (init) takes over the rest, which must not count twice. The total may arrive before the
    /// reading that shows the step's end, or before init waits. `values` are the step's total. `sampled` are
    /// the parts of these values that samples contained, or `None` if there were no samples.
    pub(super) fn expect_end(
        &mut self,
        owner: &Owner,
        part: &Part,
        values: &[(Metric, u64)],
        sampled: Option<&[u64]>,
    ) {
        let is_step = |known: &&Owner| known.job == owner.job && known.session == owner.session;
        let seen_as: Vec<Owner> = self.entries.keys().filter(is_step).cloned().collect();
        let lost = sampled.filter(|_| seen_as.is_empty());
        // Without a kept loss, init's gain has already arrived, and another process has the rest.
        if self.time.is_none() || (lost.is_some() && !self.entries.contains_key(&lost_before())) {
            return;
        }
        let numbers = self.numbers(&part.names);
        let numbered = |metric: Metric| Metric { operation: numbers[metric.operation.number()], ..metric };
        let mut ended = self.entries.remove(&ended_steps()).unwrap_or_default();
        let seen = |metric| {
            let lasts = seen_as.iter().filter_map(|owner| self.entries.get(owner));
            lasts.map(|last| last.value(metric)).fold(0, u64::saturating_add)
        };
        for &(metric, value) in values {
            let metric = numbered(metric);
            let unseen = value.saturating_sub(seen(metric)).saturating_add(ended.value(metric));
            ended.values.retain(|(known, _)| *known != metric);
            ended.values.push((metric, unseen));
        }
        ended.values.sort_unstable_by_key(|(metric, _)| *metric);
        self.entries.insert(ended_steps(), ended);
        // The step's total includes its losses, so they need not be expected a second time.
        for (&(metric, _), &sampled) in values.iter().zip(lost.unwrap_or_default()) {
            self.take_from_lost(numbered(metric), sampled);
        }
    }

    fn take_from_lost(&mut self, metric: Metric, of_step: u64) {
        let lost = self.entries.get_mut(&lost_before()).into_iter().flat_map(|lost| &mut lost.values);
        for (_, value) in lost.filter(|(known, _)| *known == metric) {
            *value = value.saturating_sub(of_step);
        }
    }
}
