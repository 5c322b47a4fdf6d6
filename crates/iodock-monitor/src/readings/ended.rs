//! Processes that have ended: who waited for them has what they did, and must not get it a second time.

use super::Target;
use iodock_samples::batch::Part;
use iodock_samples::sample::{Metric, Owner};
use std::collections::HashSet;

/// The owner of [`Target::expect_end`]; no agent sends it of processes.
pub(super) fn ended_steps() -> Owner {
    Owner { command: b"steps that have ended".into(), ..Owner::default() }
}

impl Target {
    /// Who is no more there after a full reading in one piece.
    pub(super) fn unlisted(&self, part: &Part) -> Vec<Owner> {
        if !part.full || part.piece > 0 || !part.last {
            return Vec::new();
        }
        let listed: HashSet<&Owner> = part.entries.iter().map(|entry| &entry.owner).collect();
        self.entries.keys().filter(|owner| !listed.contains(owner)).cloned().collect()
    }

    /// A step of an owner's has ended, of which these samples showed only a part: the rest is with the process that
    /// waited for slurmstepd (init), and must not count there a second time. Until the next reading it is an
    /// entry of nobody, which is then lost. VALUES: the step's total.
    pub(super) fn expect_end(
        &mut self,
        owner: &Owner,
        part: &Part,
        values: &[(Metric, u64)],
        was_sampled: bool,
    ) {
        let is_step = |known: &&Owner| known.job == owner.job && known.session == owner.session;
        let live: Vec<Owner> = self.entries.keys().filter(is_step).cloned().collect();
        // It had gone before its total came: that is with whoever it was given to.
        if self.time.is_none() || (live.is_empty() && was_sampled) {
            return;
        }
        let numbers = self.numbers(&part.names);
        let mut ended = self.entries.remove(&ended_steps()).unwrap_or_default();
        for &(metric, value) in values {
            let metric = Metric { operation: numbers[metric.operation.number()], ..metric };
            let seen = live.iter().filter_map(|owner| self.entries.get(owner));
            let seen: u64 = seen.map(|last| last.value(metric)).fold(0, u64::saturating_add);
            let unseen = value.saturating_sub(seen).saturating_add(ended.value(metric));
            ended.values.retain(|(known, _)| *known != metric);
            ended.values.push((metric, unseen));
        }
        ended.values.sort_unstable_by_key(|(metric, _)| *metric);
        self.entries.insert(ended_steps(), ended);
    }
}
