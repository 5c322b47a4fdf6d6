//! `manifest.json`, the description of a store. Reading and writing a manifest keeps keys that this version
//! does not know.

use crate::checksum;
use crate::error::StoreError;
use iodock_event::{Clock, Losses};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Version of the tables and the manifest. Readers of version N+1 can open stores of version N.
pub const SCHEMA_VERSION: u64 = 1;
pub(crate) const MANIFEST: &str = "manifest.json";

type Others = Map<String, Value>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The tables contain everything that was recorded or read.
    #[default]
    Complete,
    /// The store is being recorded, or a crash left it in this state. The journal contains the data.
    Recording,
    /// The data is in tables, but the recording ended without being closed.
    Cut,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    pub schema: u64,
    pub state: State,
    pub writer: String,
    /// Time of creation, ns since the epoch.
    pub created_ns: i64,
    pub captured: Captured,
    pub host: Host,
    pub hosts: Vec<HostClock>,
    pub ranks: Option<u32>,
    /// The batch job, if the scheduler set its environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// Zero point of the time stamps: `epoch`, `day`, `relative` or `none`.
    pub clock: String,
    /// Earliest start and latest end, ns. The writer of events fills them in if they are `None`.
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    pub source: Source,
    /// Time in I/O calls, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// Number of rows of each table. The writer fills them in when it completes the store.
    pub tables: BTreeMap<String, u64>,
    /// Checksum of each file of a table, by the file's name in the store; empty if the store was written
    /// without checksums.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub checksums: BTreeMap<String, String>,
    pub losses: Vec<LossEntry>,
    /// Progress of the recording; present only if the recording was read before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<InProgress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder: Option<Recorder>,
    #[serde(flatten)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Captured {
    /// Tracer or back end: `strace`, `truss`, `ptrace` ...
    pub how: String,
    /// Reason why the recorder chose the back end: `asked`, `cheapest`, `static` ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub command: Vec<String>,
    pub logs: Vec<String>,
    pub exit_status: Option<i32>,
    pub exit_signal: Option<String>,
    pub working_directory: Option<String>,
    pub wall_ns: Option<i64>,
    /// Whether page faults in mapped files were recorded: `recorded`, `not-needed` (the program mapped no
    /// data file), `refused` (by the system) or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<String>,
    /// Whether loads into the page cache were recorded: `recorded`, or `not-shown` if the kernel does not
    /// report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<String>,
    #[serde(flatten)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    pub name: Option<String>,
    pub kernel: Option<String>,
    pub cpus: Option<u32>,
    #[serde(flatten)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Name of the scheduler: `slurm`, `pjm`, `pbs`, ...
    pub scheduler: String,
    pub id: String,
    pub name: Option<String>,
    pub nodes: Option<u32>,
    #[serde(flatten)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostClock {
    pub name: String,
    /// Estimated correction of this host's time stamps, ns. If there are several hosts, `None` means that it
    /// is not known.
    pub clock_offset_ns: Option<i64>,
    #[serde(flatten)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    pub lines: u64,
    pub calls: u64,
    pub unfinished: u64,
    pub orphans: u64,
    /// Whether at least one call has a duration.
    pub durations: bool,
    pub signals: BTreeMap<String, u64>,
    #[serde(flatten)]
    pub others: Others,
}

/// Time in ns during which at least one task was in an I/O call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Io {
    pub any_ns: i64,
    /// Time in calls that did not wait for another process, the network or a person.
    pub file_ns: i64,
    #[serde(flatten)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossEntry {
    pub name: String,
    pub count: u64,
    pub cure: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<LossPlace>,
    #[serde(flatten)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossPlace {
    pub file: String,
    pub line: u64,
    pub sample: String,
}

/// Progress of a recording at the time when it was read. Times are in ns since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InProgress {
    pub since_ns: Option<i64>,
    /// Time up to which the calls are complete.
    pub until_ns: Option<i64>,
    pub read_ns: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorder {
    pub written_bytes: u64,
    /// Whether the store was on the network or parallel file system that the program used.
    pub on_measured_file_system: bool,
    #[serde(flatten)]
    pub others: Others,
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest {
            schema: SCHEMA_VERSION,
            state: State::Complete,
            writer: concat!("iodock ", env!("CARGO_PKG_VERSION")).into(),
            created_ns: now_ns(),
            captured: Captured::default(),
            host: Host::default(),
            hosts: Vec::new(),
            ranks: None,
            job: None,
            clock: Clock::Epoch.name().into(),
            first_ts: None,
            last_ts: None,
            source: Source::default(),
            io: None,
            tables: BTreeMap::new(),
            checksums: BTreeMap::new(),
            losses: Vec::new(),
            in_progress: None,
            recorder: None,
            others: Others::new(),
        }
    }
}

fn now_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| since.as_nanos().try_into().ok()).unwrap_or(0)
}

impl LossEntry {
    /// Converts losses to the form of the manifest, sorted by the name of their kind.
    pub fn from_losses(losses: &Losses) -> Vec<LossEntry> {
        let entry = |(&kind, &count): (&iodock_event::LossKind, &u64)| {
            let place = losses.first.get(&kind);
            let first = place.map(|place| LossPlace {
                file: place.file.clone(),
                line: place.line,
                sample: place.sample.clone(),
            });
            LossEntry {
                name: kind.name().into(),
                count,
                cure: kind.cure().into(),
                first,
                others: Others::new(),
            }
        };
        losses.counts.iter().map(entry).collect()
    }
}

impl Manifest {
    /// Reads `folder/manifest.json`. Returns an error for a manifest that was modified or has a newer schema.
    pub fn read(folder: &Path) -> Result<Manifest, StoreError> {
        let path = folder.join(MANIFEST);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => return Err(unreadable(folder, &path, error)),
        };
        let damaged = |what: String| StoreError::Damaged { path: path.clone(), what };
        if checksum::is_whole(&bytes) == Some(false) {
            return Err(damaged(checksum::DIFFERS.into()));
        }
        let mut value: Value =
            serde_json::from_slice(&bytes).map_err(|error| damaged(format!("cannot be read: {error}")))?;
        let Some(schema) = value.get("schema").and_then(Value::as_u64) else {
            return Err(damaged("is not the manifest of a store: it has no schema".into()));
        };
        if schema > SCHEMA_VERSION {
            let writer = value.get("writer").and_then(Value::as_str).unwrap_or("iodock").to_string();
            return Err(StoreError::Newer { path: folder.into(), schema, writer });
        }
        value.as_object_mut().and_then(|members| members.remove("checksum"));
        serde_json::from_value(value).map_err(|error| damaged(format!("cannot be read: {error}")))
    }

    /// Writes `folder/manifest.json`. Writes it under another name and renames it, so that it is never
    /// incomplete.
    pub fn write(&self, folder: &Path) -> Result<(), StoreError> {
        let path = folder.join(MANIFEST);
        let temporary = folder.join(format!("{MANIFEST}.partial-{}", std::process::id()));
        let write = || {
            let mut file = std::fs::File::create(&temporary)?;
            file.write_all(checksum::sealed(&serde_json::to_string_pretty(self)?).as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            let _ = std::fs::remove_file(&temporary);
            StoreError::io(&path, error, 0)
        })
    }
}

fn unreadable(folder: &Path, path: &Path, error: std::io::Error) -> StoreError {
    let path_or = |why: &str| StoreError::NotAStore { path: folder.into(), why: why.into() };
    match error.kind() {
        std::io::ErrorKind::NotFound if folder.is_dir() => path_or("is not a store: it has no manifest.json"),
        std::io::ErrorKind::NotFound => StoreError::Missing { path: folder.into() },
        std::io::ErrorKind::NotADirectory => path_or("is a file, not a store"),
        _ => StoreError::io(path, error, 0),
    }
}
