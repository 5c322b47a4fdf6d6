//! The last reading of every entry of every target, and the growth that the next one shows.

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

/// A target that was not read for this long is forgotten, ns.
const FORGOTTEN: i64 = 7 * 86_400 * 1_000_000_000;
/// Time after which a sender is forgotten: an agent that was away for longer must send all data.
const FORGOTTEN_SENDER: i64 = 60 * 86_400 * 1_000_000_000;
/// Slurm does not start a requeued job for two minutes, until its credential has expired (`cred_expire` of
/// slurm.conf(5)), ns.
const REQUEUED: i64 = 120 * 1_000_000_000;

/// Everything that must be known about the past to compute growth from the next batch.
#[derive(Default, Serialize, Deserialize)]
pub struct Readings {
    senders: HashMap<SenderId, Sender>,
    targets: HashMap<SenderTarget, Target>,
    steps: Steps,
}

/// The state of a sender.
#[derive(Default, Serialize, Deserialize)]
struct Sender {
    /// The time of its last batch.
    heard: i64,
    applied: u64,
    dropped: u64,
    wants_full: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Target {
    /// Time at which it was last read to its end, after a full reading: unknown owners did not exist then. ns
    /// since the epoch by the agent's clock.
    time: Option<i64>,
    /// Readings are missing; until the next full one nothing is exact.
    is_unsure: bool,
    /// Time of its last data, by the same clock.
    heard: i64,
    names: Vec<String>,
    entries: HashMap<Owner, Last>,
    pieces: Option<Pieces>,
}

/// A reading that is not complete yet.
#[derive(Serialize, Deserialize)]
struct Pieces {
    time: i64,
    next: u32,
    /// The owners present, for a full reading.
    seen: HashSet<Owner>,
}

/// An entry as last read.
#[derive(Default, Serialize, Deserialize)]
struct Last {
    /// Sorted by metric.
    values: Vec<(Metric, u64)>,
    start_time: Option<i64>,
    updated: Option<i64>,
}

impl Readings {
    /// Converts the state of a store without steps.
    ///
    /// # Errors
    /// It is damaged.
    pub fn without_steps(bytes: &[u8]) -> Result<Readings, postcard::Error> {
        let (senders, targets) = postcard::from_bytes(bytes)?;
        Ok(Readings { senders, targets, steps: Steps::default() })
    }

    /// The last batch received from that sender, 0 if there is none.
    pub fn applied(&self, sender: &SenderId) -> u64 {
        self.senders.get(sender).map_or(0, |sender| sender.applied)
    }

    /// Every sender and its last batch.
    pub fn all_applied(&self) -> impl Iterator<Item = (&SenderId, u64)> {
        self.senders.iter().map(|(id, sender)| (id, sender.applied))
    }

    pub fn receipt(&self, sender: &SenderId) -> Receipt {
        let sender = self.senders.get(sender);
        Receipt { kept: sender.map_or(0, |it| it.applied), full: sender.is_none_or(|it| it.wants_full) }
    }

    /// The number of names in a batch that would be new here, see [`work::Work::names`].
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

    /// Adds the content of a batch to `rows`; nothing if it was received before.
    pub fn apply(&mut self, batch: &Batch, rows: &mut Rows) {
        let sender = self.senders.entry(SenderId::of(batch)).or_default();
        if batch.sequence <= sender.applied {
            return;
        }
        // The first batches of this spool are unknown here; they may have gone to another collector.
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
        // Totals of steps come first: they include what samples of the same round show of those steps.
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

    /// Each entry is the total of a step that has ended, and is complete.
    fn take_totals(&mut self, place: &SenderTarget, part: &Part, rows: &mut Rows) {
        let numbers: Vec<Name> = (0..part.names.len()).map(Name::numbered).collect();
        // A part was checked on arrival.
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

    /// Forgets what was not read for a week before `now`, ns since the epoch.
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
        // An agent's clock that was set back must not produce intervals that end before they begin.
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

    /// Notes a piece. If it does not follow the previous one, it shows nothing about entries that it lacks.
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

    /// Owners that are missing after a full reading.
    fn end(&self, part: &Part) -> Vec<Owner> {
        let Some(pieces) = self.pieces.as_ref().filter(|_| part.full) else { return Vec::new() };
        self.entries.keys().filter(|owner| !pieces.seen.contains(*owner)).cloned().collect()
    }

    /// The growth of each counter of an entry, and whether it is complete and exact. VALUES: the entry's,
    /// sorted.
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
            // In the first reading of a target, counters may be old, so no growth is reported.
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
                // Ended processes left the sum, so it grew by at least the difference.
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
        // A missing value is zero: the counters started again.
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
                // It was read in pieces whose last one never came, so the time is recent.
                time: time.unwrap_or(now),
            }),
            (None, Some(time)) => Before::Absent { time },
            (None, None) => Before::Unread,
        }
    }

    /// For sums that fall: the part of the owners' growth that is new. A process that waited for an ended one
    /// takes over its count, so losses are subtracted from others' gains.
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

    /// This target's numbers for a part's names.
    fn numbers(&mut self, texts: &[String]) -> Vec<Name> {
        let mut names = self.interned();
        // Only a malicious sender has too many; then one name represents the rest.
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

/// For a job's cgroup, which begins at 0 with the job and ends with it. No other job has its name, and a
/// requeued job begins at least [`REQUEUED`] later.
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

    /// Whether nothing can have been counted between the last reading and the entry's end.
    fn is_whole(&self, time: i64, end: i64) -> bool {
        let last = Reading { value: 0, start_time: self.start_time, updated: self.updated, time };
        matches!(Expiry::default().last_growth(&last, end), Growth::Exact(_))
    }
}

/// An entry's values with this target's numbers of names, sorted.
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
