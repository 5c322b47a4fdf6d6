//! Converts Darshan logs to stores of profiles (`docs/decisions/0041`). Each record becomes a profile;
//! nothing is summed over ranks or files.

mod bins;
mod columns;
mod job;
pub mod light;
mod names;
mod side;

use crate::import::{ImportOptions, ImportSummary};
use crate::pipeline::Progress;
use crate::ImportError;
use columns::{nanoseconds, Columns};
use iodock_darshan::{Counted, Limits, Log, Record, Region, Written};
use iodock_event::{Clock, FirstLoss, LossKind, Losses, SourceError, Tables};
use iodock_store::{
    Captured, LossEntry, Manifest, ProfileRow, ProfileTables, RankShare, Source, StoreOptions, StoreWriter,
};
pub use job::{job_of, JobRow};
use names::{mounts_of, Files};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Imports one Darshan log, or its text form, into a new store.
///
/// # Errors
/// Nothing in the log can be read, the store cannot be written, or the import was cancelled. In these cases
/// nothing of the store is left.
pub fn import_darshan(
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<ImportSummary, ImportError> {
    let path = &options.logs.logs[0];
    let log = Log::open(Path::new(path), Limits::default()).map_err(|error| source_error(path, &error))?;
    let mut writer =
        StoreWriter::create(&options.store, StoreOptions { force: options.force, complete: false })?;
    let files = Files::of(&log);
    let mounts = mounts_of(&log);
    if !mounts.is_empty() {
        writer.write_mounts(&mounts, None)?;
    }
    let told = Told::of(&log, &files);
    let mut profiles = 0;
    for counted in &log.counted {
        check(cancel)?;
        profiles += told.write(counted, writer.profiles()?)?;
    }
    side::write(&told, writer.profiles()?, cancel)?;
    let bytes = std::fs::metadata(path).map_or(0, |about| about.len());
    progress(Progress { bytes, total_bytes: Some(bytes), calls: 0 });
    let losses = losses_of(path, &log);
    let manifest = manifest_of(path, &log, &losses);
    let count = files.table.len() as u64;
    let tables = Tables { files: files.table.clone(), ..Tables::default() };
    Ok(ImportSummary {
        store: writer.finish(&tables, manifest)?,
        formats: vec![format_name(&log).into()],
        files: count,
        profiles: Some(profiles),
        losses,
        ..ImportSummary::default()
    })
}

pub(super) fn check(cancel: &AtomicBool) -> Result<(), ImportError> {
    match cancel.load(Ordering::Relaxed) {
        true => Err(ImportError::Cancelled),
        false => Ok(()),
    }
}

fn source_error(path: &str, error: &iodock_darshan::Error) -> ImportError {
    ImportError::Source(SourceError {
        file: path.into(),
        line: None,
        message: error.fault.to_string(),
        hint: error.fault.hint().into(),
    })
}

/// A log, and the facts about the job that its rows need.
pub(super) struct Told<'a> {
    pub log: &'a Log,
    pub files: &'a Files,
    job: Option<String>,
    /// Start of the job, ns since the epoch.
    start: Option<i64>,
    ranks: Option<i32>,
    hosts: FxHashMap<i64, &'a str>,
}

impl<'a> Told<'a> {
    fn of(log: &'a Log, files: &'a Files) -> Told<'a> {
        let job = log.job.as_ref();
        let traced = log.traced.iter().flat_map(|traced| &traced.files);
        Told {
            log,
            files,
            job: job.map(|job| job.id.to_string()),
            start: job.and_then(|job| moment(job.start)),
            ranks: job.and_then(|job| i32::try_from(job.processes).ok()),
            hosts: traced.map(|file| (file.rank, file.host.as_str())).collect(),
        }
    }

    /// Converts seconds since the job's start to ns since the epoch.
    pub fn at(&self, seconds: f64) -> Option<i64> {
        self.start?.checked_add(nanoseconds(seconds)?)
    }

    fn write(&self, counted: &Counted, tables: &mut ProfileTables) -> Result<u64, ImportError> {
        let Some(columns) = Columns::of(counted) else { return Ok(0) };
        for name in counted.layout.counters.iter().chain(&counted.layout.fractions) {
            tables.field(columns.interface, name)?;
        }
        for record in counted.records() {
            let profile = self.profile(columns, counted, record, tables)?;
            let shared = record.rank().is_none();
            let is_other = |name: &str| !columns.has(name, shared) && !bins::is_bin(columns, name);
            for (name, value) in record.counters().filter(|&(name, value)| value != 0 && is_other(name)) {
                tables.counter(profile, name, Some(value), None)?;
            }
            for (name, value) in record.fractions().filter(|&(name, value)| value != 0.0 && is_other(name)) {
                tables.counter(profile, name, None, Some(value))?;
            }
            for bin in bins::bins_of(columns, counted, record) {
                tables.bin(profile, &bin)?;
            }
        }
        Ok(counted.len() as u64)
    }

    fn profile(
        &self,
        columns: &Columns,
        counted: &Counted,
        record: Record,
        tables: &mut ProfileTables,
    ) -> Result<u32, ImportError> {
        let shared = record.rank().is_none();
        let none = ([RankShare::default(); 2], [None; 2]);
        let of_ranks = || (columns.shares(counted, record), columns.variances(counted, record));
        let ([fastest, slowest], [variance_bytes, variance_time_s2]) = if shared { of_ranks() } else { none };
        let [first_ts, last_ts] = self.span(record);
        let estimated = estimated(columns, self.log, counted, record);
        Ok(tables.profile(&ProfileRow {
            job: self.job.as_deref(),
            host: record.rank().and_then(|rank| self.hosts.get(&rank).copied()),
            rank: record.rank().and_then(|rank| i32::try_from(rank).ok()),
            ranks: if shared { self.ranks } else { Some(1) },
            upid: None,
            file: self.files.number(record.id()),
            pattern: None,
            files: Some(1),
            parent_file: record.file().map(|file| self.files.number(file)),
            interface: columns.interface,
            counts: columns.counts(counted, record),
            first_ts,
            last_ts,
            fastest,
            slowest,
            variance_bytes,
            variance_time_s2,
            estimated: &estimated,
        })?)
    }

    /// Returns the first and the last time in the record. A time stamp of 0 means that the operation did not
    /// happen.
    fn span(&self, record: Record) -> [Option<i64>; 2] {
        let stamps = record.fractions().filter(|(name, _)| name.ends_with("_TIMESTAMP"));
        let times: Vec<f64> =
            stamps.map(|(_, value)| value).filter(|value| value.is_finite() && *value > 0.0).collect();
        let first = times.iter().copied().reduce(f64::min);
        let last = times.iter().copied().reduce(f64::max);
        [first, last].map(|time| self.at(time?))
    }
}

const TIMES: [&str; 5] = ["read_time_ns", "write_time_ns", "meta_time_ns", "first_ts", "last_ts"];

/// Returns the columns that are estimates in this record instead of exact counts or times.
fn estimated(columns: &Columns, log: &Log, counted: &Counted, record: Record) -> Vec<&'static str> {
    let mut names = Vec::new();
    if log.written == Written::Text {
        names.extend(TIMES);
    }
    // Darshan before 3.1.1 could set the time of the first write wrongly.
    if columns.interface == "mpi-io" && counted.version == Some(1) {
        names.extend(["write_time_ns", "first_ts"]);
    }
    // In this case the counters of POSIX include bytes and times of C streams.
    if columns.counter("FOPENS", counted, record).is_some_and(|opens| opens > 0) {
        names.extend(["read_bytes", "written_bytes", "read_time_ns", "write_time_ns", "meta_time_ns"]);
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn moment(time: iodock_darshan::Time) -> Option<i64> {
    time.s.checked_mul(1_000_000_000)?.checked_add(time.ns.unwrap_or(0)).filter(|&ns| ns > 0)
}

fn format_name(log: &Log) -> &'static str {
    match log.written {
        Written::Text => "darshan-parser",
        Written::Binary { .. } => "darshan",
    }
}

fn losses_of(path: &str, log: &Log) -> Losses {
    let mut losses = Losses::default();
    for loss in &log.losses {
        let Some(kind) = LossKind::ALL.iter().copied().find(|kind| kind.name() == loss.kind.name()) else {
            continue;
        };
        losses.add(kind, loss.count);
        let line = if let Region::Line(line) = loss.region { line } else { 0 };
        let place = || FirstLoss { file: path.into(), line, sample: loss.region.to_string() };
        losses.first.entry(kind).or_insert_with(place);
    }
    losses
}

fn manifest_of(path: &str, log: &Log, losses: &Losses) -> Manifest {
    let job = log.job.as_ref();
    let command = job.and_then(|job| job.command.as_deref()).unwrap_or_default();
    let mut source = Source::default();
    let mut tell = |name: &str, text: &str| {
        source.others.insert(name.into(), text.into());
    };
    tell("darshan_format", &log.format);
    if let Some((_, version)) =
        job.into_iter().flat_map(|job| &job.metadata).find(|(key, _)| key == "lib_ver")
    {
        tell("darshan_version", version);
    }
    if let Some(job) = job {
        tell("job", &job.id.to_string());
    }
    Manifest {
        captured: Captured {
            how: format_name(log).into(),
            command: command.split(' ').filter(|word| !word.is_empty()).map(String::from).collect(),
            logs: vec![path.into()],
            wall_ns: job.and_then(|job| nanoseconds(job.run_time_s())),
            ..Captured::default()
        },
        ranks: job.and_then(|job| u32::try_from(job.processes).ok()),
        clock: Clock::Epoch.name().into(),
        first_ts: job.and_then(|job| moment(job.start)),
        last_ts: job.and_then(|job| moment(job.end)),
        source,
        losses: LossEntry::from_losses(losses),
        ..Manifest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loss_of_darshan_has_the_same_cure_in_iodock() {
        for kind in iodock_darshan::LossKind::ALL {
            let known = LossKind::ALL.iter().find(|known| known.name() == kind.name());
            assert_eq!(known.map(|known| known.cure()), Some(kind.cure()), "{}", kind.name());
        }
    }
}
