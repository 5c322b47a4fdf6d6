//! Keeps the last reading of every entry of every target, and computes the growth from it to the next
//! reading.

mod lost;

use crate::falling::Share;
use crate::interval::Interval;
use crate::rows::{EventRow, LossRow, NameRow, Rows};
use crate::sender::{SenderId, SenderTarget};
use crate::steps::{self, Steps};
use crate::work;
use iodock_samples::batch::{Batch, JobName, Part, Receipt};
use iodock_samples::event::Event;
use iodock_samples::growth::{Before, Expiry, Growth, Reading};
use iodock_samples::sample::{Entry, Evidence, Metric, Name, Names, Owner, Quantity, Trend};
use lost::Lost;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Time in ns after which a target that was not read is forgotten.
const FORGOTTEN: i64 = 7 * 86_400 * 1_000_000_000;
/// Time in ns after which a sender that sent nothing is forgotten. Its agent must then send all data again.
const FORGOTTEN_SENDER: i64 = 60 * 86_400 * 1_000_000_000;
/// Shortest time in ns between two runs of a requeued job: Slurm waits two minutes, until the job's
/// credential has expired (`cred_expire` of slurm.conf(5)).
const REQUEUED: i64 = 120 * 1_000_000_000;

/// All past data that are needed to compute growth from the next batch.
#[derive(Default, Serialize, Deserialize)]
pub struct Readings {
    senders: HashMap<SenderId, Sender>,
    targets: HashMap<SenderTarget, Target>,
    steps: Steps,
}

/// State of a sender.
#[derive(Default, Serialize, Deserialize)]
struct Sender {
    /// Time of the sender's last batch.
    heard: i64,
    applied: u64,
    dropped: u64,
    wants_full: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Target {
    /// Time of the last complete reading, if a full reading has arrived: owners without an entry did not
    /// exist then. In ns since the epoch by the agent's clock.
    time: Option<i64>,
    /// Whether readings are missing. Until the next full reading no growth is exact.
    is_unsure: bool,
    /// Time of the last data of the target, ns since the epoch by the agent's clock.
    heard: i64,
    names: Vec<String>,
    entries: HashMap<Owner, Last>,
    pieces: Option<Pieces>,
}

/// State of a reading whose pieces have not all arrived.
#[derive(Serialize, Deserialize)]
struct Pieces {
    time: i64,
    next: u32,
    /// Owners in the pieces so far, if the reading is full.
    seen: HashSet<Owner>,
}

/// An entry as last read.
#[derive(Default, Serialize, Deserialize)]
struct Last {
    /// Values sorted by metric.
    values: Vec<(Metric, u64)>,
    start_time: Option<i64>,
    updated: Option<i64>,
}

impl Readings {
    /// Reads the state of an older version, which has no job steps.
    ///
    /// # Errors
    /// Fails if the state is damaged.
    pub fn without_steps(bytes: &[u8]) -> Result<Readings, postcard::Error> {
        let (senders, targets) = postcard::from_bytes(bytes)?;
        Ok(Readings { senders, targets, steps: Steps::default() })
    }

    /// Returns the number of the last batch that this sender sent, or 0 if there is none.
    pub fn applied(&self, sender: &SenderId) -> u64 {
        self.senders.get(sender).map_or(0, |sender| sender.applied)
    }

    /// Returns every sender with the number of its last batch.
    pub fn all_applied(&self) -> impl Iterator<Item = (&SenderId, u64)> {
        self.senders.iter().map(|(id, sender)| (id, sender.applied))
    }

    pub fn receipt(&self, sender: &SenderId) -> Receipt {
        let sender = self.senders.get(sender);
        Receipt { kept: sender.map_or(0, |it| it.applied), full: sender.is_none_or(|it| it.wants_full) }
    }

    /// Returns how much the new names in a batch count (see [`work::Work::names`]).
    pub fn new_names(&self, batch: &Batch) -> u64 {
        let is_known = self.senders.contains_key(&SenderId::of(batch));
        let sender = if is_known { 0 } else { work::weight(batch.host.len()) };
        let of_part = |part: &Part| {
            let target = self.targets.get(&SenderTarget::of(batch, part));
            let owners = part.entries.iter().map(|entry| &entry.owner);
            let is_new = |owner: &&Owner| !target.is_some_and(|target| target.entries.contains_key(*owner));
            let owners: u64 = owners.filter(is_new).map(work::weight_of_owner).sum();
            owners + if target.is_some() { 0 } else { work::weight_of_target(part) }
        };
        let job_names = batch.job_names.iter().map(work::weight_of_job_name).sum::<u64>();
        sender + job_names + batch.parts.iter().map(of_part).sum::<u64>()
    }

    /// Adds the content of a batch to `rows`. Adds nothing if the batch arrived before.
    pub fn apply(&mut self, batch: &Batch, rows: &mut Rows) {
        let sender = self.senders.entry(SenderId::of(batch)).or_default();
        if batch.sequence <= sender.applied {
            return;
        }
        // This spool's earlier batches never arrived here. They may have gone to another collector, so they
        // are no loss.
        let missing = if sender.applied == 0 { 0 } else { batch.sequence - sender.applied - 1 };
        sender.note(batch, missing, rows);
        if missing > 0 {
            let sender = SenderId::of(batch);
            let targets = self.targets.iter_mut().filter(|(place, _)| place.is_of(&sender));
            targets.for_each(|(_, target)| target.is_unsure = true);
        }
        let event_row = |event: &Event| EventRow { host: batch.host.clone(), event: event.clone() };
        rows.events.extend(batch.events.iter().map(event_row));
        let name_row =
            |named: &JobName| NameRow { time: batch.time, host: batch.host.clone(), named: named.clone() };
        rows.names.extend(batch.job_names.iter().map(name_row));
        // Totals of steps come first, because they include the samples of the same round.
        let (totals, others): (Vec<_>, Vec<_>) =
            batch.parts.iter().partition(|part| part.source == steps::SOURCE);
        totals.into_iter().for_each(|part| self.take_totals(&SenderTarget::of(batch, part), part, rows));
        for part in others {
            let place = SenderTarget::of(batch, part);
            let target = match self.targets.get_mut(&place) {
                Some(target) => target,
                None => self.targets.entry(place.clone()).or_default(),
            };
            let known = rows.jobs.len();
            target.take(&place, part, rows);
            if part.source == steps::SAMPLES {
                self.steps.sampled(known, &mut rows.jobs);
            }
        }
    }

    /// Processes totals of job steps that have ended. Each entry is the complete total of one step.
    fn take_totals(&mut self, place: &SenderTarget, part: &Part, rows: &mut Rows) {
        let numbers: Vec<Name> = (0..part.names.len()).map(Name::numbered).collect();
        // This can't fail, because the part was checked when it arrived.
        let Ok(names) = part.interned() else { return };
        for entry in &part.entries {
            let values = here(entry, &numbers);
            let Some(settled) = self.steps.settle(place, part.time, entry, &names, &values) else { continue };
            let samples = SenderTarget { source: steps::SAMPLES.into(), ..place.clone() };
            if let Some(target) = self.targets.get_mut(&samples) {
                target.expect_end(&entry.owner, part, &values, settled.sampled.as_deref());
            }
            rows.jobs.push(settled.row);
        }
    }

    /// Forgets targets and senders from which nothing arrived for a long time before `now`, in ns since the
    /// epoch.
    pub fn forget_old(&mut self, now: i64) {
        self.targets.retain(|_, target| now.saturating_sub(target.heard) < FORGOTTEN);
        self.senders.retain(|_, sender| now.saturating_sub(sender.heard) < FORGOTTEN_SENDER);
        self.steps.forget_old(now, FORGOTTEN, FORGOTTEN_SENDER);
    }
}

impl Sender {
    fn note(&mut self, batch: &Batch, missing: u64, rows: &mut Rows) {
        let is_full = !batch.parts.is_empty() && batch.parts.iter().all(|part| part.full);
        let began = self.applied == 0;
        self.wants_full = (self.wants_full || missing > 0 || began) && !is_full;
        (self.applied, self.heard) = (batch.sequence, batch.time);
        let dropped = batch.dropped.saturating_sub(std::mem::replace(&mut self.dropped, batch.dropped));
        let mut lose = |name: &str, source: &str, target: &str, count: u64, detail: &str| {
            rows.losses.push(LossRow {
                time: batch.time,
                host: batch.host.clone(),
                name: name.into(),
                source: source.into(),
                target: target.into(),
                count,
                detail: detail.into(),
            });
        };
        if dropped.max(missing) > 0 {
            lose(
                "dropped-batches",
                "spool",
                "",
                dropped.max(missing),
                "no room in the agent's spool, or they went to another collector",
            );
        }
        for loss in &batch.losses {
            lose(&loss.name, &loss.source, &loss.target, loss.count, &loss.detail);
        }
    }
}

impl Target {
    fn take(&mut self, place: &SenderTarget, part: &Part, rows: &mut Rows) {
        self.heard = part.time;
        self.follow(part);
        let numbers = self.numbers(&part.names);
        let names = self.interned();
        // If the agent's clock was set back, an interval would end before it begins.
        let begin = self.time.map_or(part.time, |time| time.min(part.time));
        let lost = self.take_lost();
        let share = self.share_of_falling(part, &numbers, &lost);
        let mut grown = Vec::new();
        for (at, entry) in part.entries.iter().enumerate() {
            let values = here(entry, &numbers);
            let is_exact = self.growth(entry, &values, part, &mut grown) && !self.is_unsure;
            share.iter().for_each(|share| share.apply(at, &mut grown));
            let interval = Interval { place, begin, end: part.time, is_exact };
            interval.put(&names, entry, &grown, rows);
            interval.put_levels(&names, entry, &values, rows);
            self.keep(entry, values);
        }
        let unlisted = if part.last { self.end(part) } else { Vec::new() };
        for owner in part.gone.iter().chain(&unlisted) {
            let Some(last) = self.entries.remove(owner) else { continue };
            let is_whole = !self.is_unsure && self.time.is_some_and(|time| last.is_whole(time, part.time));
            if !is_whole && part.trend == Trend::Grows {
                let entry = Entry { owner: owner.clone(), ..Entry::default() };
                let interval = Interval { place, begin, end: part.time, is_exact: false };
                interval.put(&names, &entry, &[], rows);
            }
        }
        if let Some(share) = share {
            self.keep_lost(&lost, &share, part.last);
        }
        if part.last && self.pieces.take().is_some() && (part.full || self.time.is_some()) {
            self.time = Some(part.time);
            self.is_unsure &= !part.full;
        }
    }

    /// Records a piece of a reading. If a piece before it is missing, the reading stays incomplete, and an
    /// entry that it lacks does not count as gone.
    fn follow(&mut self, part: &Part) {
        if part.piece == 0 {
            self.pieces = Some(Pieces { time: part.time, next: 0, seen: HashSet::new() });
        }
        let follows = |pieces: &Pieces| pieces.time == part.time && pieces.next == part.piece;
        self.pieces = self.pieces.take().filter(follows);
        if let Some(pieces) = &mut self.pieces {
            pieces.next += 1;
            if part.full {
                pieces.seen.extend(part.entries.iter().map(|entry| entry.owner.clone()));
            }
        }
    }

    /// Returns the known owners that are missing in a complete full reading.
    fn end(&self, part: &Part) -> Vec<Owner> {
        let Some(pieces) = self.pieces.as_ref().filter(|_| part.full) else { return Vec::new() };
        self.entries.keys().filter(|owner| !pieces.seen.contains(*owner)).cloned().collect()
    }

    /// Computes the growth of each counter of an entry, and returns whether all of it is exact. `values` are
    /// the entry's values, sorted by metric.
    fn growth(
        &self,
        entry: &Entry,
        values: &[(Metric, u64)],
        part: &Part,
        grown: &mut Vec<(Metric, u64)>,
    ) -> bool {
        grown.clear();
        let last = self.entries.get(&entry.owner);
        if last.is_none() && self.time.is_none() {
            // In the first reading of a target, counters may contain old I/O, so no growth is reported.
            return true;
        }
        let mut is_exact = true;
        let mut add = |metric: Metric, value: u64| {
            if metric.quantity == Quantity::Level {
                return;
            }
            let now =
                Reading { value, start_time: entry.start_time, updated: entry.updated, time: part.time };
            let growth = match part.trend {
                Trend::Grows if entry.owner.evidence == Evidence::Cgroup => {
                    same_cgroup(last.map(|last| last.value(metric)), value, self.time, part.time)
                }
                Trend::Grows => Expiry::default().growth(self.before(last, metric, part.time), &now),
                // Processes that ended have left the sum, so it grew by at least the difference.
                Trend::Falls => {
                    Growth::AtLeast(value.saturating_sub(last.map_or(0, |last| last.value(metric))))
                }
            };
            is_exact &= matches!(growth, Growth::Exact(_));
            if growth.certain() > 0 {
                grown.push((metric, growth.certain()));
            }
        };
        values.iter().for_each(|&(metric, value)| add(metric, value));
        // A missing value is zero, because the counters started again.
        let is_gone = |metric: &Metric| find(values, *metric).is_none();
        let before = last.iter().flat_map(|last| &last.values).map(|(metric, _)| *metric);
        before.filter(is_gone).for_each(|metric| add(metric, 0));
        is_exact
    }

    fn before(&self, last: Option<&Last>, metric: Metric, now: i64) -> Before {
        match (last, self.time) {
            (Some(last), time) => Before::Present(Reading {
                value: last.value(metric),
                start_time: last.start_time,
                updated: last.updated,
                // Without a complete reading, this entry is from a piece of a recent incomplete one.
                time: time.unwrap_or(now),
            }),
            (None, Some(time)) => Before::Absent { time },
            (None, None) => Before::Unread,
        }
    }

    /// Returns the gains of owners in sums that fall, without the losses of others. A process that waited for
    /// one that ended takes over its count, so losses are subtracted from the gains of other owners.
    fn share_of_falling(&self, part: &Part, numbers: &[Name], lost: &Lost) -> Option<Share> {
        if part.trend != Trend::Falls || self.time.is_none() {
            return None;
        }
        let mut share = Share::default();
        for (at, entry) in part.entries.iter().enumerate() {
            let (values, last) = (here(entry, numbers), self.entries.get(&entry.owner));
            for &(metric, value) in &values {
                share.add(at, metric, last.map_or(0, |last| last.value(metric)), value);
            }
        }
        let unlisted = self.unlisted(part);
        let gone = part.gone.iter().chain(&unlisted).filter_map(|owner| self.entries.get(owner));
        let of_gone = gone.flat_map(|last| last.values.iter().copied());
        of_gone.chain(lost.values()).for_each(|(metric, value)| share.lose(metric, value));
        share.match_losses();
        Some(share)
    }

    fn keep(&mut self, entry: &Entry, values: Vec<(Metric, u64)>) {
        let last = match self.entries.get_mut(&entry.owner) {
            Some(last) => last,
            None => self.entries.entry(entry.owner.clone()).or_default(),
        };
        *last = Last { values, start_time: entry.start_time, updated: entry.updated };
    }

    /// Returns this target's numbers for the names in a part.
    fn numbers(&mut self, texts: &[String]) -> Vec<Name> {
        let mut names = self.interned();
        // Only a malicious sender has too many names. The first name then represents the rest.
        let number = |text: &String| names.intern(text.as_bytes()).unwrap_or_default();
        let numbers = texts.iter().map(number).collect();
        self.names = names.texts().map(str::to_owned).collect();
        numbers
    }

    fn interned(&self) -> Names {
        let mut names = Names::default();
        for text in &self.names {
            names.intern(text.as_bytes());
        }
        names
    }
}

/// Computes the growth of a job's cgroup. Its counters begin at 0 with the job, and it ends with the job. No
/// other job has its name, and a requeued job begins at least [`REQUEUED`] later.
fn same_cgroup(before: Option<u64>, now: u64, read: Option<i64>, time: i64) -> Growth {
    let grown = now.checked_sub(before.unwrap_or(0));
    let is_same = read.is_some_and(|read| time - read < REQUEUED);
    match grown {
        Some(grown) if is_same || before.is_none() => Growth::Exact(grown),
        Some(grown) => Growth::AtLeast(grown),
        None => Growth::AtLeast(now),
    }
}

impl Last {
    fn value(&self, metric: Metric) -> u64 {
        find(&self.values, metric).unwrap_or(0)
    }

    /// Returns whether nothing can have been counted between the last reading and the removal of the entry.
    fn is_whole(&self, time: i64, end: i64) -> bool {
        let last = Reading { value: 0, start_time: self.start_time, updated: self.updated, time };
        matches!(Expiry::default().last_growth(&last, end), Growth::Exact(_))
    }
}

/// Returns an entry's values with this target's numbers of names, sorted by metric.
fn here(entry: &Entry, numbers: &[Name]) -> Vec<(Metric, u64)> {
    let number = |&(metric, value): &(Metric, u64)| {
        (Metric { operation: numbers[metric.operation.number()], ..metric }, value)
    };
    let mut values: Vec<_> = entry.values.iter().map(number).collect();
    values.sort_unstable_by_key(|(metric, _)| *metric);
    values
}

fn find(values: &[(Metric, u64)], metric: Metric) -> Option<u64> {
    let at = values.binary_search_by_key(&metric, |(known, _)| *known).ok()?;
    Some(values[at].1)
}

#[cfg(test)]
mod tests;
