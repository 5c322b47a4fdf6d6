//! Imports logs into a store.

use crate::logs::{open_logs, LogOptions, Opened};
use crate::pipeline::{run, EventSink, Imported, Progress};
use crate::profiles::import_darshan;
use crate::stacks::{look_up, Modules};
use crate::ImportError;
use iodock_event::{shown, EventColumns, Losses};
use iodock_store::{Captured, HostClock, Io, LossEntry, Manifest, Source, State, StoreOptions, StoreWriter};
use iodock_tracker::DEFAULT_COVERAGE_BYTES;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The logs to import, and the store to make.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    pub logs: LogOptions,
    /// The store's folder. It must not exist unless `force` is set.
    pub store: PathBuf,
    /// Whether to replace an existing store.
    pub force: bool,
    /// Memory limit for the sets of bytes that were read and written before, bytes.
    pub coverage_bytes: usize,
}

impl ImportOptions {
    pub fn new(logs: LogOptions, store: PathBuf) -> Self {
        ImportOptions { logs, store, force: false, coverage_bytes: DEFAULT_COVERAGE_BYTES }
    }
}

/// Result of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportSummary {
    pub store: PathBuf,
    /// Names of the formats found. For recordings, the back end, such as `ptrace`.
    pub formats: Vec<String>,
    pub lines: u64,
    pub calls: u64,
    pub files: u64,
    pub processes: u64,
    /// Number of profiles, if the source has counters by process and file; `None` if it has calls.
    pub profiles: Option<u64>,
    /// Whether a recording was not closed, so that its last second may be missing.
    pub cut: bool,
    /// Number of calls of a recording whose rows were made while its program ran.
    pub meanwhile: u64,
    pub losses: Losses,
}

/// Imports logs into a new store. Calls `progress` after every few ten thousand calls. Setting `cancel` ends
/// the import.
///
/// # Errors
/// A log cannot be read (the error names file and line), the store cannot be written, or the import was
/// cancelled. In these cases nothing of the store is left.
pub fn import(
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<ImportSummary, ImportError> {
    if is_darshan(&options.logs)? {
        return import_darshan(options, progress, cancel);
    }
    let opened = open_logs(&options.logs)?;
    let writer = StoreWriter::create(&options.store, StoreOptions { force: options.force, complete: false })?;
    let mut manifest = manifest_of(&opened, &options.logs);
    let mut sink = StoreSink { writer };
    let mut imported =
        run(opened.streams, opened.tracker, options.coverage_bytes, &mut sink, progress, cancel)?;
    imported.losses.merge(&opened.losses);
    let stacks = &imported.tracked.tables.stacks;
    look_up(stacks, Modules::AsNamed, None, &mut sink.writer, &mut imported.losses);
    fill_manifest(&mut manifest, &imported);
    let totals: Vec<_> = imported.totals.values().copied().collect();
    sink.writer.write_totals(&totals)?;
    let mut summary = summary_of(&imported);
    summary.formats = opened.formats.iter().map(|name| name.to_string()).collect();
    summary.store = sink.writer.finish(&imported.tracked.tables, manifest)?;
    Ok(summary)
}

/// Returns whether the log to import is a Darshan log. An import accepts only a single Darshan log, because
/// another one describes another job and needs another store.
fn is_darshan(logs: &LogOptions) -> Result<bool, ImportError> {
    let asked = logs.format.is_none();
    let Some(found) = logs.logs.iter().find(|log| asked && iodock_darshan::is_darshan(Path::new(log))) else {
        return Ok(false);
    };
    let usage = |message: String, hint: &str| Err(ImportError::Usage { message, hint: hint.into() });
    if logs.logs.len() > 1 {
        let message = format!("{found} is a log of Darshan, which makes a store of its own");
        return usage(message, "import it alone; iodock import *.darshan makes a store of each");
    }
    if logs.lines.is_some() || logs.rank_from.is_some() || !logs.working_directories.is_empty() {
        let message =
            format!("{found} is a log of Darshan: --lines, --rank-from and --cwd are for logs of calls");
        return usage(message, "leave them out: a log of Darshan has all ranks and absolute names");
    }
    Ok(true)
}

/// Passes events to the store.
struct StoreSink {
    writer: StoreWriter,
}

impl EventSink for StoreSink {
    fn write(&mut self, columns: EventColumns) -> Result<EventColumns, ImportError> {
        Ok(self.writer.write_events(columns)?.unwrap_or_default())
    }
}

fn manifest_of(opened: &Opened, logs: &LogOptions) -> Manifest {
    let directory = logs.working_directories.first();
    Manifest {
        state: State::Complete,
        captured: Captured {
            how: opened.formats.join("+"),
            logs: logs.logs.clone(),
            working_directory: directory.map(|name| shown(name).into_owned()),
            ..Captured::default()
        },
        hosts: opened
            .hosts
            .iter()
            .map(|name| HostClock { name: name.clone(), clock_offset_ns: Some(0), ..HostClock::default() })
            .collect(),
        ranks: opened.ranks.and_then(|ranks| u32::try_from(ranks).ok()),
        clock: opened.clock.name().into(),
        ..Manifest::default()
    }
}

/// Adds the counts of the pipeline to the manifest.
pub(crate) fn fill_manifest(manifest: &mut Manifest, imported: &Imported) {
    manifest.source = Source {
        lines: imported.counts.lines,
        calls: imported.calls,
        unfinished: imported.counts.unfinished,
        orphans: imported.counts.orphans,
        durations: imported.durations,
        signals: imported.counts.signals.clone(),
        ..Source::default()
    };
    manifest.io = imported.io.map(|io| Io { any_ns: io.any, file_ns: io.file, ..Io::default() });
    manifest.losses = LossEntry::from_losses(&imported.losses);
}

pub(crate) fn summary_of(imported: &Imported) -> ImportSummary {
    let tables = &imported.tracked.tables;
    ImportSummary {
        lines: imported.counts.lines,
        calls: imported.calls,
        files: tables.files.len() as u64,
        processes: tables.tasks.len() as u64,
        losses: imported.losses.clone(),
        ..ImportSummary::default()
    }
}
