//! Detects events. Sources report what they see ([`Seen`]). [`memory`] compares it with earlier observations,
//! including those of the previous agent, and reports each change once.

mod kinds;
pub mod memory;
mod quiet;

pub use kinds::{Kind, KINDS};

use std::collections::{BTreeMap, BTreeSet};

/// The state of one target as a source read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub source: &'static str,
    /// See [`crate::sample::Sample`].
    pub file_system: String,
    pub target: String,
    /// The property: `members`, `link`. Together with source, file system and target it identifies the
    /// observation.
    pub aspect: &'static str,
    pub sight: Sight,
}

/// The current state, and the kind of event if it changed. Kinds are names in [`KINDS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// One of several states.
    State {
        /// A different level is a different state.
        level: String,
        kind: &'static str,
        text: String,
        /// Is it also reported if the earlier state is unknown, such as an array that is degraded when the
        /// agent starts?
        is_told_at_first: bool,
    },
    /// The parts of a target that work and those that do not, each with a description.
    Parts {
        working: BTreeSet<String>,
        others: BTreeMap<String, String>,
        lost: &'static str,
        back: &'static str,
    },
    /// A speed, for which more is better.
    Speed { value: u64, unit: &'static str, slower: &'static str, faster: &'static str },
    /// A counter of errors called `name`. Growth below `least` between two rounds is ignored.
    Errors { kind: &'static str, name: String, value: u64, least: u64 },
}

/// Events from a log, and the position up to which it was read. Both are recorded, or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRead {
    pub events: Vec<iodock_samples::event::Event>,
    /// The log, and the position in it.
    pub log: String,
    pub position: String,
}
