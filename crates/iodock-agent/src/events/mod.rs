//! What happened since the round before. Sources say what they see ([`Seen`]); [`memory`] compares it with what was
//! seen before, also by the agent before this one, and tells what changed, each change once.

mod kinds;
pub mod memory;
mod quiet;

pub use kinds::{Kind, KINDS};

use std::collections::{BTreeMap, BTreeSet};

/// What a source sees of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub source: &'static str,
    /// See [`crate::sample::Sample`].
    pub file_system: String,
    pub target: String,
    /// What of it: `members`, `link`. With source, file system and target it is one thing.
    pub aspect: &'static str,
    pub sight: Sight,
}

/// How it is now, and what it is called when that is new. Kinds are names of [`KINDS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// One of several states.
    State {
        /// Another one is another state.
        level: String,
        kind: &'static str,
        text: String,
        /// Also told where nobody knows what was before: an array that is degraded when the agent comes.
        is_told_at_first: bool,
    },
    /// The parts of a target that work, and those that don't, with what is said of each.
    Parts {
        working: BTreeSet<String>,
        others: BTreeMap<String, String>,
        lost: &'static str,
        back: &'static str,
    },
    /// The more the better.
    Speed { value: u64, unit: &'static str, slower: &'static str, faster: &'static str },
    /// A counter of errors, `name`; growth of less than `least` between two rounds is none.
    Errors { kind: &'static str, name: String, value: u64, least: u64 },
}

/// Events of a log, and up to where it is read now: both or none of them count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRead {
    pub events: Vec<iodock_samples::event::Event>,
    /// Which log, and the position in it.
    pub log: String,
    pub position: String,
}
