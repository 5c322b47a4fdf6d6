//! Defines plans. A plan consists of steps, each of which is an I/O pattern that a number of processes
//! execute in phases.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A complete plan for the engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Folder in which the engine creates its tree.
    pub directory: PathBuf,
    /// Ranks that execute the plan together. None for a single process.
    #[serde(default)]
    pub job: Option<Job>,
    pub steps: Vec<Step>,
}

/// Position of this rank among the ranks that mpirun or srun started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub rank: u32,
    pub size: u32,
    /// Key that is equal on all ranks of the job, and different from the key of any other current job.
    pub key: String,
    /// Number of ranks on one machine. Each rank reads the files of the rank whose number is higher by this.
    #[serde(default = "one")]
    pub per_node: u32,
    /// Whether the calling process synchronises the ranks through MPI: see `Event::Barrier`.
    #[serde(default)]
    pub met_outside: bool,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Identifier that the result contains.
    pub id: u64,
    /// Number of processes on each rank.
    pub processes: u32,
    /// Time limit of a phase in seconds. At the limit the phase ends, with the work done until then.
    pub limit_seconds: f64,
    pub pattern: Pattern,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Pattern {
    Data(Data),
    Metadata(Metadata),
    Mixed(Mixed),
}

/// A pattern that writes and reads files from start to end, in the phases write, read and reread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// Number of files of each process.
    pub files: u64,
    pub file_bytes: u64,
    pub request_bytes: u64,
    /// Whether requests bypass the client's cache (O_DIRECT).
    #[serde(default)]
    pub direct: bool,
    /// Whether each file is synced (fsync) before it is closed. This is included in the time of writing.
    #[serde(default = "yes")]
    pub sync: bool,
    /// Whether all processes use one file, in which each writes its own block.
    #[serde(default)]
    pub shared: bool,
    /// Whether each file is read a second time, from the cache.
    #[serde(default)]
    pub reread: bool,
}

fn yes() -> bool {
    true
}

/// A pattern that creates, examines and removes directories and empty files. Each process uses its own
/// folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metadata {
    /// Number of files of each process, and number of its directories.
    pub items: u64,
    /// Whether the pattern includes directories.
    #[serde(default = "yes")]
    pub directories: bool,
}

/// A pattern of operations on whole files in a random order. Each process uses its own files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mixed {
    /// Number of files of each process at the start.
    pub files: u64,
    /// Sizes of files in bytes. Each file gets one of them at random.
    pub sizes_bytes: Vec<u64>,
    pub request_bytes: u64,
    /// Number of bytes that an append adds.
    pub append_bytes: u64,
    /// Number of operations of each process.
    pub operations: u64,
    pub seed: u64,
    pub weights: Weights,
    /// Whether a written file is synced (fsync) before it is closed.
    #[serde(default)]
    pub sync: bool,
}

/// Relative frequencies of the operations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Weights {
    pub create: u32,
    pub write: u32,
    pub append: u32,
    pub read: u32,
    pub delete: u32,
    pub stat: u32,
}

impl Weights {
    pub fn listed(&self) -> [u32; 6] {
        [self.create, self.write, self.append, self.read, self.delete, self.stat]
    }
}

/// One phase of a pattern, between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Name of the operation in results. None if the phase is not measured.
    pub operation: Option<&'static str>,
    /// Whether the phase moves data, whose source or destination is then reported.
    pub moves: Moves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    Nothing,
    Reads,
    Writes,
}

const fn phase(operation: &'static str, moves: Moves) -> Phase {
    Phase { operation: Some(operation), moves }
}

/// Phase that consists of a barrier only. After it, all data are written, so that each worker can examine the
/// data of other ranks and drop them from the cache.
const WRITTEN: Phase = Phase { operation: None, moves: Moves::Nothing };
const REMOVING: Phase = Phase { operation: None, moves: Moves::Nothing };

pub const MIXED_OPERATIONS: [Phase; 6] = [
    phase("create", Moves::Writes),
    phase("write", Moves::Writes),
    phase("append", Moves::Writes),
    phase("read", Moves::Reads),
    phase("delete", Moves::Nothing),
    phase("stat", Moves::Nothing),
];

/// Largest number of phases of a pattern.
pub const MOST_PHASES: usize = 8;

impl Pattern {
    /// Returns the phases in order. A mixed workload has one measured phase, whose operations are counted
    /// separately.
    pub fn phases(&self) -> Vec<Phase> {
        match self {
            Pattern::Data(data) => {
                let mut phases = vec![phase("write", Moves::Writes), WRITTEN, phase("read", Moves::Reads)];
                phases.extend(data.reread.then_some(phase("reread", Moves::Reads)));
                phases.push(REMOVING);
                phases
            }
            Pattern::Metadata(metadata) => {
                let folders = ["directory-create", "directory-stat", "directory-remove"];
                let files = ["file-create", "file-stat", "file-open", "file-remove"];
                let all = folders.iter().filter(|_| metadata.directories).chain(&files);
                all.map(|operation| phase(operation, Moves::Nothing)).collect()
            }
            Pattern::Mixed(_) => vec![phase("all", Moves::Nothing), REMOVING],
        }
    }

    /// Returns the numbers of bytes and inodes that one process may use at one time.
    pub fn need(&self) -> (u64, u64) {
        match self {
            Pattern::Data(data) => {
                let each = data.file_bytes.div_ceil(4096).saturating_mul(4096);
                (data.files.saturating_mul(each), data.files + 1)
            }
            // On many file systems an empty directory takes a block.
            Pattern::Metadata(metadata) => (metadata.items.saturating_mul(4096), metadata.items + 2),
            Pattern::Mixed(mixed) => {
                let largest = mixed.sizes_bytes.iter().max().copied().unwrap_or(0);
                let files = mixed.files.saturating_mul(2);
                let grown = mixed.append_bytes.saturating_mul(mixed.operations / files.max(1) + 8);
                (files.saturating_mul(largest.saturating_add(grown).div_ceil(4096) * 4096), files + 2)
            }
        }
    }

    /// Returns whether written data are synced within the measured time, and whether they bypass the page
    /// cache.
    pub fn writes(&self) -> (bool, bool) {
        match self {
            Pattern::Data(data) => (data.sync, data.direct),
            Pattern::Metadata(_) => (false, false),
            Pattern::Mixed(mixed) => (mixed.sync, false),
        }
    }

    /// Returns the size of the largest request.
    pub fn request_bytes(&self) -> u64 {
        match self {
            Pattern::Data(data) => data.request_bytes,
            Pattern::Metadata(_) => 0,
            Pattern::Mixed(mixed) => mixed.request_bytes,
        }
    }

    /// Returns the reason why the plan cannot be executed, if there is one.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Pattern::Data(data) if data.request_bytes == 0 || data.file_bytes == 0 || data.files == 0 => {
                Some("files, file_bytes and request_bytes must be at least 1")
            }
            Pattern::Data(data) if data.shared && data.files != 1 => Some("a shared file is one file"),
            Pattern::Metadata(metadata) if metadata.items == 0 => Some("items must be at least 1"),
            Pattern::Mixed(mixed)
                if mixed.sizes_bytes.is_empty() || mixed.request_bytes == 0 || mixed.operations == 0 =>
            {
                Some("sizes_bytes, request_bytes and operations must not be empty")
            }
            Pattern::Mixed(mixed) if mixed.weights.listed().iter().all(|&weight| weight == 0) => {
                Some("no operation has a weight")
            }
            _ => None,
        }
    }
}
