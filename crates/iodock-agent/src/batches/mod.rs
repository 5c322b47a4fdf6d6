//! Packs the changes of each target in a round into batches for the collector. A batch is limited in size, so
//! that a busy server's first round is never completely in memory. `iodock_samples::batch` defines a batch.

mod changes;
mod owners;
#[cfg(test)]
mod tests;

pub use changes::{Comparison, Ended, Known};

use crate::sample::Trend;
use crate::spool::Spool;
use iodock_samples::batch::{Batch, JobName, Loss, Part, MOST_EVENTS, MOST_JOB_NAMES};
use iodock_samples::event::Event;
use iodock_samples::frame;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Approximate size of a batch in bytes, before compression.
const BATCH_BYTES: usize = 256 << 10;
/// Largest number of losses per round, so that a damaged machine does not fill the spool with them.
const MOST_LOSSES: usize = 100;
/// Number of rounds after which a target that has disappeared is forgotten.
const FORGOTTEN: u64 = 1000;

/// Source, file system and target.
type Key = (String, String, String);

fn key(part: &Part) -> Key {
    (part.source.clone(), part.file_system.clone(), part.target.clone())
}

/// Builds batches from rounds and puts them into the spool.
pub struct Batches {
    host: String,
    spool: Arc<Spool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of the open round, or of the last one.
    number: u64,
    is_open: bool,
    time: i64,
    full: u64,
    parts: Vec<Part>,
    weight: usize,
    job_names: Vec<JobName>,
    /// States of targets between readings. A target that is being read is absent, so its state is lost if the
    /// source hangs.
    known: BTreeMap<Key, Known>,
}

/// A round, to which sources add their readings.
#[derive(Clone)]
pub struct Round {
    batches: Arc<Batches>,
    number: u64,
    /// Number of full rounds that were requested so far.
    full: u64,
}

impl Batches {
    pub fn new(host: String, spool: Arc<Spool>) -> Self {
        Batches { host, spool, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a round. `time` is in ns since the epoch.
    pub fn begin(self: &Arc<Self>, time: i64) -> Round {
        let mut state = self.state();
        let full = self.spool.wish().begin();
        (state.number, state.is_open, state.time, state.full) = (state.number + 1, true, time, full);
        Round { batches: Arc::clone(self), number: state.number, full }
    }

    /// Ends the round. Each round makes at least one batch, because the collector must also know that nothing
    /// changed.
    pub fn end(&self, mut losses: Vec<Loss>, events: Vec<Event>) {
        losses.truncate(MOST_LOSSES);
        let events = within_limit(events);
        let mut state = self.state();
        let sequence = self.flush(&mut state, losses, events);
        state.is_open = false;
        self.spool.wish().end(state.full, sequence);
        let number = state.number;
        state.known.retain(|_, known| known.round + FORGOTTEN > number);
    }

    /// Puts a batch into the spool and returns its number.
    fn flush(&self, state: &mut State, losses: Vec<Loss>, events: Vec<Event>) -> u64 {
        let sequence = self.spool.number();
        let batch = Batch {
            spool: self.spool.id(),
            sequence,
            host: self.host.clone(),
            time: state.time,
            dropped: self.spool.lost(),
            parts: std::mem::take(&mut state.parts),
            losses,
            events,
            job_names: std::mem::take(&mut state.job_names),
        };
        state.weight = 0;
        match frame::encode(&batch) {
            Some(frame) => self.spool.put(sequence, frame),
            None => self.spool.lose(1),
        }
        sequence
    }
}

/// Merges the events beyond the limit of a batch into one, so that all are counted.
fn within_limit(mut events: Vec<Event>) -> Vec<Event> {
    let more = events.split_off(events.len().min(MOST_EVENTS - 1));
    if let Some(first) = more.first() {
        let count = more.iter().fold(0, |sum: u64, event| sum.saturating_add(event.count));
        let text = format!("more events than are told: {}", more.len());
        let (kind, target) = ("more-events".into(), String::new());
        events.push(Event { kind, target, count, text, ..first.clone() });
    }
    events
}

impl Round {
    /// Begins a reading of a target. Returns `None` if the round is over or already has a reading of this
    /// target.
    pub fn compare(&self, source: &str, place: (&str, &str), trend: Trend, time: i64) -> Option<Comparison> {
        let (source, (file_system, target)) = (source.to_owned(), place);
        let (file_system, target) = (file_system.to_owned(), target.to_owned());
        let part = Part { source, file_system, target, trend, time, ..Part::default() };
        let mut state = self.batches.state();
        if !state.is_open || state.number != self.number {
            return None;
        }
        let known = state.known.remove(&key(&part)).unwrap_or_default();
        if known.round == self.number {
            state.known.insert(key(&part), known);
            return None;
        }
        drop(state);
        Some(Comparison::new(known, self.clone(), part))
    }

    /// Returns the number of full rounds that were requested so far.
    pub fn full(&self) -> u64 {
        self.full
    }

    /// Adds the name of a job. Returns `false` if the round is over or its batch has the maximum number of
    /// names.
    pub fn name(&self, name: JobName) -> bool {
        let mut state = self.batches.state();
        let is_taken = state.is_open && state.number == self.number && state.job_names.len() < MOST_JOB_NAMES;
        if is_taken {
            state.job_names.push(name);
        }
        is_taken
    }

    /// Returns the number of the last batch that was made.
    pub fn made(&self) -> u64 {
        self.batches.spool.made()
    }

    /// Returns the number of the last batch up to which all are safe on the disk, or permanently lost.
    pub fn safe(&self) -> u64 {
        self.batches.spool.safe()
    }

    /// Adds a piece to the round. Returns `false` if the round is over.
    fn take(&self, part: Part, weight: usize) -> bool {
        let mut state = self.batches.state();
        let is_taken = state.is_open && state.number == self.number;
        if is_taken {
            state.parts.push(part);
            state.weight += weight;
            if state.weight >= BATCH_BYTES {
                self.batches.flush(&mut state, Vec::new(), Vec::new());
            }
        }
        is_taken
    }

    fn put_back(&self, part: &Part, known: Known) {
        self.batches.state().known.insert(key(part), known);
    }
}
