//! Compares the totals of job steps with samples of their processes. A scheduler's plugin takes the total
//! when a step ends. Only the part of a total that samples lack becomes a row, so that the rows add up to the
//! total (docs/decisions/0013-a-steps-total-minus-its-samples.md).

use crate::columns::{self, COLUMNS};
use crate::rows::JobRow;
use crate::sender::{SenderId, SenderTarget};
use iodock_samples::sample::{Entry, Metric, Names};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Names of the source of totals, and of the source of samples that the totals complete.
pub const SOURCE: &str = "slurm_step";
pub const SAMPLES: &str = "process_io";
/// Largest number of runs of a step that are distinguished. A requeued job uses the same step numbers again.
const MOST_RUNS: usize = 8;

/// Steps that have recent samples or a recent total.
#[derive(Default, Serialize, Deserialize)]
pub struct Steps(HashMap<StepId, Step>);

/// A step on a node.
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
struct StepId {
    sender: SenderId,
    job: Vec<u8>,
    step: Vec<u8>,
}

#[derive(Default, Serialize, Deserialize)]
struct Step {
    /// Sums of samples since the last total, by name of the column.
    sampled: HashMap<String, u64>,
    /// Runs whose totals have arrived, the latest last.
    runs: Vec<Run>,
    /// Time of the last data, ns since the epoch by the agent's clock.
    heard: i64,
}

#[derive(Serialize, Deserialize)]
struct Run {
    began: i64,
    ended: i64,
}

/// Result of a total that arrived for the first time.
pub struct Settled {
    /// The part of the total that samples lacked. If it is 0, the row still shows that the step has ended. It
    /// is not exact if samples contained more than the total.
    pub row: JobRow,
    /// For each value of the total, the part that samples contained. `None` if there were no samples.
    pub sampled: Option<Vec<u64>>,
}

impl StepId {
    /// Returns the step that an owner is. `None` if the owner is no step.
    fn of(place: &SenderTarget, owner: &iodock_samples::sample::Owner) -> Option<StepId> {
        let sender = || SenderId { spool: place.spool, host: place.host.clone() };
        let is_step = owner.has_job() && !owner.session.is_empty();
        is_step.then(|| StepId { sender: sender(), job: owner.job.clone(), step: owner.session.clone() })
    }
}

impl Steps {
    /// Counts the rows from index `first` on as samples of their steps. Removes rows whose step's total has
    /// already arrived.
    pub fn sampled(&mut self, first: usize, rows: &mut Vec<JobRow>) {
        let new = rows.split_off(first);
        rows.extend(new.into_iter().filter(|row| self.note(row)));
    }

    /// Counts one row. Returns whether the row is kept.
    fn note(&mut self, row: &JobRow) -> bool {
        let Some(id) = StepId::of(&row.place, &row.owner) else { return true };
        let Some(step) = self.0.get_mut(&id) else {
            if row.counters.iter().any(|value| *value > 0) {
                self.0.entry(id).or_default().add(row);
            }
            return true;
        };
        let is_over = step.runs.last().is_some_and(|run| row.begin < run.ended);
        if !is_over {
            step.add(row);
        }
        !is_over
    }

    /// Adds a step's total. Returns `None` if it has already arrived. `values` are the values of `entry`;
    /// `time` is the time of its reading by the agent's clock.
    pub fn settle(
        &mut self,
        place: &SenderTarget,
        time: i64,
        entry: &Entry,
        names: &Names,
        values: &[(Metric, u64)],
    ) -> Option<Settled> {
        let id = StepId::of(place, &entry.owner)?;
        let (began, ended) = (entry.start_time?, entry.updated?);
        let step = self.0.entry(id).or_default();
        if step.runs.iter().any(|run| run.began == began) {
            return None;
        }
        let was_sampled = !step.sampled.is_empty();
        let sampled =
            was_sampled.then(|| values.iter().map(|value| step.sampled_of(names, *value)).collect());
        let (counters, is_exact) = step.missing(names, values);
        step.end(Run { began, ended }, time);
        // If the clock was set during the step, the interval would end before it begins, or end in the
        // future.
        let end = ended.min(time);
        let row = JobRow {
            begin: began.clamp(0, end.max(0)),
            end: end.max(0),
            place: place.clone(),
            owner: entry.owner.clone(),
            is_exact,
            counters,
        };
        Some(Settled { row, sampled })
    }

    #[cfg(test)]
    pub fn known(&self) -> usize {
        self.0.len()
    }

    /// Forgets steps without data before `now`: after `ended` if their total has arrived, else after
    /// `others`. All times are in ns.
    pub fn forget_old(&mut self, now: i64, ended: i64, others: i64) {
        self.0.retain(|_, step| {
            let patience = if step.sampled.is_empty() { ended } else { others };
            now.saturating_sub(step.heard) < patience
        });
    }
}

impl Step {
    fn add(&mut self, row: &JobRow) {
        self.heard = row.end;
        for (name, value) in columns::names().zip(row.counters).filter(|(_, value)| *value > 0) {
            let sum = self.sampled.entry(name.into()).or_default();
            *sum = sum.saturating_add(value);
        }
    }

    /// Returns the part of a total that samples lack, and whether samples contained no more than the total.
    fn missing(&self, names: &Names, values: &[(Metric, u64)]) -> ([u64; COLUMNS], bool) {
        let (mut counters, mut is_exact) = ([0; COLUMNS], true);
        columns::add(names, values, &mut counters);
        for (name, counter) in columns::names().zip(&mut counters) {
            let sampled = self.sampled.get(name).copied().unwrap_or(0);
            is_exact &= sampled <= *counter;
            *counter = counter.saturating_sub(sampled);
        }
        (counters, is_exact)
    }

    /// Returns the part of one value of a total that samples contained.
    fn sampled_of(&self, names: &Names, value: (Metric, u64)) -> u64 {
        let mut counters = [0; COLUMNS];
        columns::add(names, &[value], &mut counters);
        let column = columns::names().zip(counters).find(|(_, counter)| *counter > 0);
        column.and_then(|(name, _)| self.sampled.get(name)).map_or(0, |sampled| value.1.min(*sampled))
    }

    fn end(&mut self, run: Run, time: i64) {
        self.sampled.clear();
        if self.runs.len() >= MOST_RUNS {
            self.runs.remove(0);
        }
        self.runs.push(run);
        self.runs.sort_by_key(|run| run.ended);
        self.heard = time;
    }
}

#[cfg(test)]
mod tests;
