//! Processes that have ended: who waited for them has what they did, and must not get it a second time.
//!
//! A reading of all processes takes its time. What a process did that ends meanwhile may be missing in it, as its parent
//! was read before; then the parent has it in the next. So what is lost counts as lost for two readings, until
//! somebody has gained it.

use super::{Last, Target};
use crate::falling::Share;
use iodock_samples::batch::Part;
use iodock_samples::sample::{Metric, Owner};
use std::collections::HashSet;

/// The owner of what [`Target::expect_end`] expects; no agent sends it of processes.
fn ended_steps() -> Owner {
    Owner { command: b"steps that have ended".into(), ..Owner::default() }
}

/// The owner of what was lost in the reading before, and nobody gained.
fn lost_before() -> Owner {
    Owner { command: b"processes that had ended".into(), ..Owner::default() }
}

/// What is lost beside what a reading itself shows.
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
    /// Out of the entries, which are of owners that are sent.
    pub(super) fn take_lost(&mut self) -> Lost {
        let mut take = |owner| self.entries.remove(&owner).unwrap_or_default();
        Lost { steps: take(ended_steps()), before: take(lost_before()) }
    }

    /// For the next reading, or for the next piece of this one.
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

    /// Who is no more there after a full reading in one piece.
    pub(super) fn unlisted(&self, part: &Part) -> Vec<Owner> {
        if !part.full || part.piece > 0 || !part.last {
            return Vec::new();
        }
        let listed: HashSet<&Owner> = part.entries.iter().map(|entry| &entry.owner).collect();
        self.entries.keys().filter(|owner| !listed.contains(owner)).cloned().collect()
    }

    /// A step of an owner's has ended, of which these samples showed only a part: the rest is with the process that
    /// waited for slurmstepd (init), and must not count there a second time. The total may have come with a reading
    /// that was made before the step's end, or before anybody had waited. VALUES: the step's total. SAMPLED: what samples gave
    /// of each; `None`: nothing.
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
        // Somebody has what it was seen to do since before its total came: the rest is with whoever it was given to.
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
        // What was lost of the step is part of its total, and is waited for with it.
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
