//! A round of readings as an agent's spool stores it and sends it to the collector.
//!
//! Values are the counters themselves, not their growth. A batch that arrives twice changes nothing, and a
//! lost batch loses only one point in time. A part that is not `full` contains only changes since the
//! previous batch. If batches were dropped or another collector takes over, the next batch must be full:
//! [`Receipt::full`] requests it.

use crate::event::Event;
use crate::sample::{Entry, Name, Names, Owner, Quantity, Trend};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the layout below. Version 1 had no events, and version 2 no names of jobs. Batches of any other
/// version are refused.
pub const VERSION: u16 = 3;

/// Name of the HTTP header with which an agent sends its current time, ns since the epoch, in each push and
/// each answer to a pull. A batch cannot contain this time, because the spool may have stored it for days.
pub const TIME_HEADER: &str = "iodock-time";

/// Random number that identifies the sender. The agent creates it with its spool, so a new spool counts as a
/// new sender.
pub type SpoolId = [u8; 16];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub spool: SpoolId,
    /// Number of the batch within the spool: 1, 2, 3 ... It continues when the agent restarts.
    pub sequence: u64,
    pub host: String,
    /// Start of the round, ns since the epoch by the agent's clock. A round may be divided into several
    /// batches.
    pub time: i64,
    /// Number of batches lost since the spool was created, because they were refused or damaged or there was
    /// no room.
    pub dropped: u64,
    pub parts: Vec<Part>,
    /// Losses of the whole round. Only its last batch contains them.
    pub losses: Vec<Loss>,
    /// Events since the previous round. Only the last batch of the round contains them.
    pub events: Vec<Event>,
    /// Names of jobs that the agent learnt since the previous round; in a full reading, all known names.
    pub job_names: Vec<JobName>,
}

/// A reading of one target, or a piece of it. A reading with many entries is divided into pieces, which
/// several batches contain in order.
///
/// For receivers: pieces of one reading have the same `time` and are numbered 0, 1, 2 ... A reading is
/// complete when all its pieces have arrived. An entry that a complete reading lacks is unchanged, or gone if
/// the reading is `full`. An entry that is new in it was absent at the previous reading. If the last piece
/// never arrives, the reading stays incomplete: its entries are valid, and all others are unknown. Another
/// reading of the target, or a gap in the sequence, ends an incomplete reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Fields with the same names in [`crate::sample::Sample`] have the same meaning.
    pub source: String,
    pub file_system: String,
    pub target: String,
    pub trend: Trend,
    /// Time of reading, ns since the epoch by the agent's clock.
    pub time: i64,
    /// Whether the pieces of this reading together contain all entries. Entries in none of them are gone.
    pub full: bool,
    /// Number of this piece within the reading, from 0.
    pub piece: u32,
    /// Whether this is the last piece of the reading.
    pub last: bool,
    /// Names of the operations in `entries`.
    pub names: Vec<String>,
    /// Changed entries, each with all its values. A value that the entry of a job lacks is zero.
    pub entries: Vec<Entry>,
    /// Owners that the previous reading contained and that are gone. Empty for a full reading.
    pub gone: Vec<Owner>,
}

impl Part {
    /// Builds a full reading without an owner from operations, quantities ([`Quantity::named`]) and values.
    /// Returns `None` if a quantity or a name is invalid, or if there are too many values.
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

/// The name that a user gives to a job. An [`Owner`] does not contain it, because an owner must stay the same
/// when the name is learnt later.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobName {
    pub job: Vec<u8>,
    /// User of the process that had the name. The name applies only to jobs of this user.
    pub user: Vec<u8>,
    pub name: Vec<u8>,
}

/// Something that could not be read. docs/explanation/agent.md has a table of losses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub name: String,
    pub source: String,
    pub target: String,
    pub count: u64,
    pub detail: String,
}

/// The collector's answer to a push, encoded as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Number of the last batch up to which the collector has stored all of the sender's batches safely. 0
    /// means none.
    pub kept: u64,
    /// Whether the next batch must be full, because the collector lacks an earlier one.
    pub full: bool,
}

/// Why bytes are not a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    Layout(postcard::Error),
    Name(String),
    Operation,
    Values(usize),
    /// Number of losses, events or names of jobs, or of bytes in an id or text, above the limit.
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
        // Serialising a batch into a growing buffer can't fail.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Decodes bytes from any sender.
    ///
    /// # Errors
    /// Fails if the bytes are not a batch, or not one that an agent sends.
    pub fn decode(bytes: &[u8]) -> Result<Batch, Unreadable> {
        let batch: Batch = postcard::from_bytes(bytes).map_err(Unreadable::Layout)?;
        batch.check()?;
        Ok(batch)
    }

    /// Decodes bytes of an agent or spool of an older version, at most [`VERSION`].
    ///
    /// # Errors
    /// Fails like [`Batch::decode`].
    pub fn decode_version(mut bytes: Vec<u8>, version: u16) -> Result<Batch, Unreadable> {
        // Each version appends a list to the layout, and an empty list is encoded as one zero byte.
        bytes.resize(bytes.len() + usize::from(VERSION - version.min(VERSION)), 0);
        Batch::decode(&bytes)
    }
}

/// Largest number of losses in a batch. Agents send at most 100.
const MOST_LOSSES: usize = 1000;
/// Largest number of events in a batch. Agents send fewer.
pub const MOST_EVENTS: usize = 1000;
/// Largest number of job names in a batch. Agents send fewer.
pub const MOST_JOB_NAMES: usize = 1000;
/// Longest id or name in bytes. Linux limits strings in an environment to the same length.
const LONGEST_ID: usize = 128 << 10;

/// Longest job name in bytes. Slurm, PBS and PJM limit names to fewer bytes, but environments may contain any
/// text.
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
    /// Returns the names, for use with [`Names::text`].
    ///
    /// # Errors
    /// Fails if a name is invalid or repeated.
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
