//! Detects events. Sources report their observations ([`Seen`]). [`memory`] compares these with earlier ones,
//! including those of the previous agent, and reports each change once.

mod kinds;
pub mod memory;
mod quiet;

pub use kinds::{Kind, KINDS};

use std::collections::{BTreeMap, BTreeSet};

/// State of one target, as a source read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub source: &'static str,
    /// File system, as in [`crate::sample::Sample`].
    pub file_system: String,
    pub target: String,
    /// Property that was observed, such as `members` or `link`. Together with source, file system and target
    /// it identifies the observation.
    pub aspect: &'static str,
    pub sight: Sight,
}

/// An observed state, and the kinds of events for its changes. Kinds are names in [`KINDS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// One of several states of the target.
    State {
        /// Name of the state. A different name means a change.
        level: String,
        kind: &'static str,
        text: String,
        /// Whether the state is also reported if the earlier state is unknown, such as an array that is
        /// degraded when the agent starts.
        is_told_at_first: bool,
    },
    /// The parts of a target that work and those that do not, each with a description.
    Parts {
        working: BTreeSet<String>,
        others: BTreeMap<String, String>,
        lost: &'static str,
        back: &'static str,
    },
    /// A speed, of which a higher value is better.
    Speed { value: u64, unit: &'static str, slower: &'static str, faster: &'static str },
    /// A counter of errors called `name`. Growth below `least` between two rounds is ignored.
    Errors { kind: &'static str, name: String, value: u64, least: u64 },
}

/// Events of a log, and the position up to which it was read. The memory stores both together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRead {
    pub events: Vec<iodock_samples::event::Event>,
    /// Name of the log, and the position in it.
    pub log: String,
    pub position: String,
}
