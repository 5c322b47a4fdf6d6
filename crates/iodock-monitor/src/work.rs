//! Measures the work that batches cause in a collector, which limits the work per sender.

use iodock_samples::batch::{Batch, JobName, Part};
use iodock_samples::sample::Owner;
use std::ops::AddAssign;

/// Number of characters of a name that count as one more name.
const LETTERS: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Uncompressed bytes of batches.
    pub bytes: u64,
    /// Number of entries and their values, losses, events and names of jobs.
    pub values: u64,
    /// Number of new names that the collector stores: owners, targets, senders and names of jobs. A long name
    /// counts as several.
    pub names: u64,
}

impl Work {
    /// Returns whether any of these amounts reaches its limit in `most`.
    pub fn is_spent(&self, most: &Work) -> bool {
        self.bytes >= most.bytes || self.values >= most.values || self.names >= most.names
    }

    /// Returns the work of a batch without names. These are counted by `Readings::new_names`, because new
    /// names differ from those already known.
    pub fn of(batch: &Batch) -> Work {
        let entries = batch.parts.iter().flat_map(|part| &part.entries);
        let values: usize = entries.map(|entry| 1 + entry.values.len()).sum();
        let told = batch.parts.len() + batch.losses.len() + batch.events.len() + batch.job_names.len();
        Work { values: (values + told) as u64, ..Work::default() }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Work) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.values = self.values.saturating_add(more.values);
        self.names = self.names.saturating_add(more.names);
    }
}

/// Returns the number of names as which a name of this length counts.
pub fn weight(letters: usize) -> u64 {
    1 + (letters / LETTERS) as u64
}

pub fn weight_of_owner(owner: &Owner) -> u64 {
    weight(owner.job.len() + owner.user.len() + owner.session.len() + owner.command.len())
}

pub fn weight_of_job_name(named: &JobName) -> u64 {
    weight(named.job.len() + named.user.len() + named.name.len())
}

pub fn weight_of_target(part: &Part) -> u64 {
    weight(part.source.len() + part.file_system.len() + part.target.len())
}
