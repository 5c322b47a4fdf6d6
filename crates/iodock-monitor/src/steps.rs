//! Totals of job steps, taken by a scheduler's plugin at their end, compared with samples of their processes.
//! Only the part of a total that samples lack becomes a row, so that both together are the total
//! (docs/decisions/0013-a-steps-total-minus-its-samples.md).

use crate::columns::{self, COLUMNS};
use crate::rows::JobRow;
use crate::sender::{SenderId, SenderTarget};
use iodock_samples::sample::{Entry, Metric, Names};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The source of totals, and of the samples that they complete.
pub const SOURCE: &str = "slurm_step";
pub const SAMPLES: &str = "process_io";
/// A requeued job has the same step number again; this number of runs is distinguished.
const MOST_RUNS: usize = 8;

/// Steps with recent samples or a recent total.
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
    /// The sum of samples since the last total, by the column's name.
    sampled: HashMap<String, u64>,
    /// Runs whose totals arrived, the last one at the end.
    runs: Vec<Run>,
    /// ns since the epoch, by the agent's clock.
    heard: i64,
}

#[derive(Serialize, Deserialize)]
struct Run {
    began: i64,
    ended: i64,
}

/// A total that had not arrived before.
pub struct Settled {
    /// The part of the total that samples lacked, even if it is 0: the row shows that the step has ended, and
    /// that both together are its total. Not exact if samples had more.
    pub row: JobRow,
    /// The sampled amounts of the total's values, in order; `None`: there were no samples.
    pub sampled: Option<Vec<u64>>,
}

impl StepId {
    /// `None` if it is not a step.
    fn of(place: &SenderTarget, owner: &iodock_samples::sample::Owner) -> Option<StepId> {
        let sender = || SenderId { spool: place.spool, host: place.host.clone() };
        let is_step = owner.has_job() && !owner.session.is_empty();
        is_step.then(|| StepId { sender: sender(), job: owner.job.clone(), step: owner.session.clone() })
    }
}

impl Steps {
    /// Notes what the rows from `first` on show of steps, and removes those whose step's total has already
    /// arrived.
    pub fn sampled(&mut self, first: usize, rows: &mut Vec<JobRow>) {
        let new = rows.split_off(first);
        rows.extend(new.into_iter().filter(|row| self.note(row)));
    }

    /// Takes in a row. Returns whether the row is kept.
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

    /// Adds a step's total; `None` if it has already arrived. VALUES: the entry's. TIME: of its reading, by
    /// the agent's clock.
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
        // A clock that was set in between must not produce intervals that end before they begin, or in the
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

    /// Forgets steps without data for this long before `now`, ended or not. All in ns.
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

    /// The part of a total that samples lack, and whether they showed no more than the total.
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

    /// For one of a total's values.
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
