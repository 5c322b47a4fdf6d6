//! A round of readings as an agent's spool stores it and sends it to the collector.
//!
//! Values are the counters themselves, not their growth: a repeated batch changes nothing, and a lost one
//! loses only a point in time. A part that is not `full` contains only changes since the previous batch.
//! After a gap (batches dropped, another collector) the next one must be full: [`Receipt::full`] requests it.

use crate::event::Event;
use crate::sample::{Entry, Name, Names, Owner, Quantity, Trend};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the layout below. Version 1 had no events, and version 2 no names of jobs; all others are
/// refused.
pub const VERSION: u16 = 3;

/// Header in which an agent sends its current time with each push and each answer to a pull: ns since the
/// epoch. A batch cannot contain it, since it may have been stored for days.
pub const TIME_HEADER: &str = "iodock-time";

/// Random, created with a spool: identifies the sender. A new spool is another sender.
pub type SpoolId = [u8; 16];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub spool: SpoolId,
    /// 1, 2, 3 ... within the spool, even if the agent restarts.
    pub sequence: u64,
    pub host: String,
    /// Start of the round, ns since the epoch by the agent's clock. A round may be several batches.
    pub time: i64,
    /// Batches lost since the spool was created: dropped for lack of room, refused, or damaged.
    pub dropped: u64,
    pub parts: Vec<Part>,
    /// Losses of the whole round, in its last batch.
    pub losses: Vec<Loss>,
    /// Events since the previous round, in the same batch.
    pub events: Vec<Event>,
    /// Names learnt since then; for a full reading, all known ones.
    pub job_names: Vec<JobName>,
}

/// A reading of one target, or a piece of it. A reading of many entries is divided, and its pieces are in
/// several batches, in order. Until the last piece, nothing is known about entries that are in no piece.
///
/// For receivers: pieces of one reading have the same `time` and are numbered 0, 1, 2 ... A reading is
/// complete when all its pieces have arrived. Entries that it lacks are then unchanged, or for a full one
/// gone; a new entry was absent at the previous reading. If the last piece never arrives, the reading is
/// incomplete: its entries are valid, and it shows nothing else. Another reading of the target, or a gap in
/// the sequence, ends it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// See [`crate::sample::Sample`].
    pub source: String,
    pub file_system: String,
    pub target: String,
    pub trend: Trend,
    /// Time of reading, ns since the epoch by the agent's clock.
    pub time: i64,
    /// For all pieces together: all entries are included, and those in no piece are gone.
    pub full: bool,
    /// Number of the piece, from 0.
    pub piece: u32,
    /// No piece follows.
    pub last: bool,
    /// Names of the operations in `entries`.
    pub names: Vec<String>,
    /// Changed entries. Each has all its values; values that a job's entry lacks are zero.
    pub entries: Vec<Entry>,
    /// Owners of the previous reading that are gone. Empty for a full one.
    pub gone: Vec<Owner>,
}

impl Part {
    /// A full reading without an owner: operation, quantity ([`Quantity::named`]) and value. `None`: no such
    /// quantity, no such name, or too many values.
    pub fn of_target(
        source: String,
        target: String,
        time: i64,
        values: Vec<(String, String, u64)>,
    ) -> Option<Part> {
        let (mut names, mut entry) = (Names::default(), Entry::default());
        for (operation, quantity, value) in values {
            entry.push(names.intern(operation.as_bytes())?, Quantity::named(&quantity)?, value)?;
        }
        let names = names.texts().map(str::to_string).collect();
        let entries = vec![entry];
        Some(Part { source, target, time, full: true, last: true, names, entries, ..Part::default() })
    }
}

/// The name that a user gives a job. It is not part of an [`Owner`], who must stay the same when the name is
/// learnt later.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobName {
    pub job: Vec<u8>,
    /// The user of the process that had the name, which counts for this user's job only.
    pub user: Vec<u8>,
    pub name: Vec<u8>,
}

/// Something that could not be read: see the table of losses in docs/explanation/agent.md.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub name: String,
    pub source: String,
    pub target: String,
    pub count: u64,
    pub detail: String,
}

/// The collector's answer to a push, as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// All of the sender's batches up to this one are stored safely. 0: none.
    pub kept: u64,
    /// The next batch must be full, because something is missing.
    pub full: bool,
}

/// Why bytes are not a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    Layout(postcard::Error),
    Name(String),
    Operation,
    Values(usize),
    /// Losses, events, names of jobs, or letters of an id or text.
    TooMany(usize),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unreadable::Layout(error) => write!(out, "not the layout of a batch: {error}"),
            Unreadable::Name(name) => write!(out, "not an operation's name, or a second time: {name:?}"),
            Unreadable::Operation => write!(out, "an operation without a name"),
            Unreadable::TooMany(count) => {
                write!(out, "too many losses, events or names of jobs, or letters of an id: {count}")
            }
            Unreadable::Values(count) => {
                write!(out, "an entry of {count} values, or one that is there twice")
            }
        }
    }
}

impl std::error::Error for Unreadable {}

impl Batch {
    pub fn encode(&self) -> Vec<u8> {
        // Into a growing buffer; serialising a batch cannot fail.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Decodes bytes from any sender.
    ///
    /// # Errors
    /// They are not a batch, or one that no agent sends.
    pub fn decode(bytes: &[u8]) -> Result<Batch, Unreadable> {
        let batch: Batch = postcard::from_bytes(bytes).map_err(Unreadable::Layout)?;
        batch.check()?;
        Ok(batch)
    }

    /// Like [`Batch::decode`], for an agent or spool of that version, at most [`VERSION`].
    ///
    /// # Errors
    /// Those of [`Batch::decode`].
    pub fn decode_version(mut bytes: Vec<u8>, version: u16) -> Result<Batch, Unreadable> {
        // Each version adds a list at its end, and an empty list is one zero byte.
        bytes.resize(bytes.len() + usize::from(VERSION - version.min(VERSION)), 0);
        Batch::decode(&bytes)
    }
}

/// Limit for a batch; agents send 100.
const MOST_LOSSES: usize = 1000;
/// Limit for a batch; agents send fewer.
pub const MOST_EVENTS: usize = 1000;
/// Limit for a batch; agents send fewer.
pub const MOST_JOB_NAMES: usize = 1000;
/// Longest id or name: Linux allows no longer string in an environment.
const LONGEST_ID: usize = 128 << 10;

/// Longest job name in bytes. Slurm, PBS and PJM allow fewer, but environments may contain any text.
pub const LONGEST_JOB_NAME: usize = 256;

fn within(limit: usize, lengths: impl IntoIterator<Item = usize>) -> Result<(), Unreadable> {
    match lengths.into_iter().find(|length| *length > limit) {
        Some(length) => Err(Unreadable::TooMany(length)),
        None => Ok(()),
    }
}

impl Batch {
    fn check(&self) -> Result<(), Unreadable> {
        within(MOST_LOSSES, [self.losses.len()])?;
        within(MOST_EVENTS, [self.events.len()])?;
        within(LONGEST_ID, [self.host.len()])?;
        for loss in &self.losses {
            within(
                LONGEST_ID,
                [&loss.name, &loss.source, &loss.target, &loss.detail].map(|text| text.len()),
            )?;
        }
        for event in &self.events {
            let texts = [&event.kind, &event.source, &event.file_system, &event.target, &event.text];
            within(LONGEST_ID, texts.map(|text| text.len()))?;
        }
        within(MOST_JOB_NAMES, [self.job_names.len()])?;
        for one in &self.job_names {
            within(LONGEST_ID, [one.job.len(), one.user.len()])?;
            within(LONGEST_JOB_NAME, [one.name.len()])?;
        }
        self.parts.iter().try_for_each(Part::check)
    }
}

impl Part {
    /// The names, for use with [`Names::text`].
    ///
    /// # Errors
    /// One is not a valid name, or is repeated.
    pub fn interned(&self) -> Result<Names, Unreadable> {
        let mut names = Names::default();
        for (at, text) in self.names.iter().enumerate() {
            let name = names.intern(text.as_bytes());
            if name != Some(Name::numbered(at)) {
                return Err(Unreadable::Name(text.chars().take(64).collect()));
            }
        }
        Ok(names)
    }

    fn check(&self) -> Result<(), Unreadable> {
        let known = self.interned()?.texts().len();
        within(LONGEST_ID, [&self.source, &self.file_system, &self.target].map(|text| text.len()))?;
        let owners = self.entries.iter().map(|entry| &entry.owner).chain(&self.gone);
        for owner in owners {
            within(LONGEST_ID, [&owner.job, &owner.user, &owner.session, &owner.command].map(|id| id.len()))?;
        }
        for entry in &self.entries {
            if entry.values.iter().any(|(metric, _)| metric.operation.number() >= known) {
                return Err(Unreadable::Operation);
            }
            if !entry.is_sound() {
                return Err(Unreadable::Values(entry.values.len()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Evidence, Metric, Quantity};

    fn batch() -> Batch {
        let mut names = Names::default();
        let read = names.intern(b"read").expect("a name");
        let owner = Owner { evidence: Evidence::Server, job: b"7\n\xff".to_vec(), ..Owner::default() };
        let values = vec![(Metric::new(read, Quantity::Bytes), u64::MAX)];
        let entry = Entry { owner: owner.clone(), values, start_time: Some(-1), updated: None };
        let names = names.texts().map(str::to_owned).collect();
        let part = Part { names, entries: vec![entry], gone: vec![owner], ..Part::default() };
        let event = Event { kind: "link-down".into(), count: 3, ..Event::default() };
        let job_names = vec![JobName { job: b"7".into(), user: b"sato".into(), name: b"<b>\n'\xff".into() }];
        let (parts, events) = (vec![part], vec![event]);
        Batch { spool: [7; 16], sequence: 1, parts, events, job_names, ..Batch::default() }
    }

    #[test]
    fn batches_of_older_agents_are_read_without_names_and_events() {
        let mut old = Batch { job_names: Vec::new(), ..batch() };
        let mut bytes = old.encode();
        assert_eq!(bytes.pop(), Some(0));
        assert_eq!(Batch::decode_version(bytes, 2), Ok(old.clone()));
        old.events = Vec::new();
        let mut bytes = old.encode();
        assert_eq!((bytes.pop(), bytes.pop()), (Some(0), Some(0)));
        assert_eq!(Batch::decode_version(bytes, 1), Ok(old.clone()));
        assert_eq!(Batch::decode_version(batch().encode(), VERSION), Ok(batch()));
        old.events = vec![Event::default(); MOST_EVENTS + 1];
        assert_eq!(Batch::decode(&old.encode()), Err(Unreadable::TooMany(MOST_EVENTS + 1)));
    }

    #[test]
    fn endless_names_are_refused() {
        let mut long = batch();
        long.job_names[0].name = vec![b'x'; LONGEST_JOB_NAME];
        assert_eq!(Batch::decode(&long.encode()), Ok(long.clone()));
        long.job_names[0].name.push(b'x');
        assert_eq!(Batch::decode(&long.encode()), Err(Unreadable::TooMany(LONGEST_JOB_NAME + 1)));
        let many = Batch { job_names: vec![JobName::default(); MOST_JOB_NAMES + 1], ..batch() };
        assert_eq!(Batch::decode(&many.encode()), Err(Unreadable::TooMany(MOST_JOB_NAMES + 1)));
    }

    #[test]
    fn a_batch_is_decoded_as_encoded() {
        assert_eq!(Batch::decode(&batch().encode()), Ok(batch()));
    }

    #[test]
    fn damaged_batches_never_panic() {
        let bytes = batch().encode();
        for end in 0..bytes.len() {
            assert!(Batch::decode(&bytes[..end]).is_err());
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let _ = Batch::decode(&changed);
            }
        }
    }

    #[test]
    fn an_operation_needs_a_name_that_occurs_once() {
        let mut nameless = batch();
        nameless.parts[0].names.clear();
        assert_eq!(Batch::decode(&nameless.encode()), Err(Unreadable::Operation));
        let mut twice = batch();
        twice.parts[0].names = vec!["read".into(), "read".into()];
        assert!(matches!(Batch::decode(&twice.encode()), Err(Unreadable::Name(_))));
    }

    #[test]
    fn a_duplicate_value_is_refused() {
        let mut twice = batch();
        let value = twice.parts[0].entries[0].values[0];
        twice.parts[0].entries[0].values.push(value);
        assert_eq!(Batch::decode(&twice.encode()), Err(Unreadable::Values(2)));
    }
}
