//! A plan: steps, each of which is an I/O pattern that a number of processes execute in phases.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A complete plan for the engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The folder in which the engine creates its tree.
    pub directory: PathBuf,
    /// The ranks that execute the plan together; None for a single process.
    #[serde(default)]
    pub job: Option<Job>,
    pub steps: Vec<Step>,
}

/// This rank among those that mpirun or srun started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub rank: u32,
    pub size: u32,
    /// Equal for all ranks of the job, and different for any other current job.
    pub key: String,
    /// Ranks on one machine: each rank reads what the rank this number further on wrote.
    #[serde(default = "one")]
    pub per_node: u32,
    /// The calling process synchronises the ranks through MPI: see `Event::Barrier`.
    #[serde(default)]
    pub met_outside: bool,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Returned with the result.
    pub id: u64,
    /// Number of processes on each rank.
    pub processes: u32,
    /// After this time a phase ends, with what was done so far.
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

/// Files written and read from start to end: phases write, read, reread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// For each process.
    pub files: u64,
    pub file_bytes: u64,
    pub request_bytes: u64,
    /// Bypasses the client's cache.
    #[serde(default)]
    pub direct: bool,
    /// fsync before each close, included in the time of writing.
    #[serde(default = "yes")]
    pub sync: bool,
    /// One file for all processes, each of which writes its own block.
    #[serde(default)]
    pub shared: bool,
    /// Read a second time, from the cache.
    #[serde(default)]
    pub reread: bool,
}

fn yes() -> bool {
    true
}

/// Directories and empty files are created, examined and removed, each process in its own folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metadata {
    /// Files, and directories, of each process.
    pub items: u64,
    /// Directories too, not only files.
    #[serde(default = "yes")]
    pub directories: bool,
}

/// Operations on whole files in a random order, on the process's own files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mixed {
    /// Files of each process at the start.
    pub files: u64,
    /// Each file has one of these sizes.
    pub sizes_bytes: Vec<u64>,
    pub request_bytes: u64,
    /// Bytes that an append adds.
    pub append_bytes: u64,
    /// Operations of each process.
    pub operations: u64,
    pub seed: u64,
    pub weights: Weights,
    /// fsync before closing a written file.
    #[serde(default)]
    pub sync: bool,
}

/// Relative frequency of each operation.
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
    /// Name in results; None if the phase is not measured.
    pub operation: Option<&'static str>,
    /// Whether data are moved, so that their source or destination is reported.
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

/// Only a barrier: when all data are written, those of other ranks are examined and dropped from the cache.
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

/// The largest number of phases of a pattern.
pub const MOST_PHASES: usize = 8;

impl Pattern {
    /// In order. A mixed workload has one phase, whose operations are measured separately.
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

    /// Bytes and inodes that one process may use at one time.
    pub fn need(&self) -> (u64, u64) {
        match self {
            Pattern::Data(data) => {
                let each = data.file_bytes.div_ceil(4096).saturating_mul(4096);
                (data.files.saturating_mul(each), data.files + 1)
            }
            // An empty directory takes a block on many file systems.
            Pattern::Metadata(metadata) => (metadata.items.saturating_mul(4096), metadata.items + 2),
            Pattern::Mixed(mixed) => {
                let largest = mixed.sizes_bytes.iter().max().copied().unwrap_or(0);
                let files = mixed.files.saturating_mul(2);
                let grown = mixed.append_bytes.saturating_mul(mixed.operations / files.max(1) + 8);
                (files.saturating_mul(largest.saturating_add(grown).div_ceil(4096) * 4096), files + 2)
            }
        }
    }

    /// Whether written data are synced within the measured time, and whether they bypass the page cache.
    pub fn writes(&self) -> (bool, bool) {
        match self {
            Pattern::Data(data) => (data.sync, data.direct),
            Pattern::Metadata(_) => (false, false),
            Pattern::Mixed(mixed) => (mixed.sync, false),
        }
    }

    /// The largest single request.
    pub fn request_bytes(&self) -> u64 {
        match self {
            Pattern::Data(data) => data.request_bytes,
            Pattern::Metadata(_) => 0,
            Pattern::Mixed(mixed) => mixed.request_bytes,
        }
    }

    /// Why the plan cannot be executed.
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
