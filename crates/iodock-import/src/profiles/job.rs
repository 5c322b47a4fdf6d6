//! Reads the information about the job as a whole from a Darshan log, without making a store. Lists of
//! thousands of logs use it.

use super::{columns::nanoseconds, columns::Columns, losses_of, moment, source_error};
use crate::ImportError;
use iodock_darshan::{Counted, Limits, Log, Module, Record};
use iodock_event::Losses;
use rustc_hash::FxHashSet;
use std::path::Path;

/// A job. Unknown values are `None`.
#[derive(Clone, Debug, Default)]
pub struct JobRow {
    pub job: Option<String>,
    pub user_id: Option<i64>,
    /// Command with its arguments, as far as Darshan keeps them.
    pub command: Option<String>,
    pub processes: Option<i64>,
    /// Start of the job, ns since the epoch.
    pub start_ns: Option<i64>,
    pub run_time_ns: Option<i64>,
    /// Bytes through POSIX and C streams, which all higher interfaces use.
    pub read_bytes: Option<i64>,
    pub written_bytes: Option<i64>,
    /// Time in MPI-IO, and for files that are not used by MPI-IO in POSIX and C streams, summed over all
    /// processes.
    pub io_time_ns: Option<i64>,
    /// Number of different files that Darshan counted.
    pub files: Option<u64>,
    pub losses: Losses,
}

/// Reads the job and its counters; skips single accesses, heatmaps and layouts.
///
/// # Errors
/// Nothing in the log can be read.
pub fn job_of(path: &str) -> Result<JobRow, ImportError> {
    let log =
        Log::open(Path::new(path), Limits::without_details()).map_err(|error| source_error(path, &error))?;
    let job = log.job.as_ref();
    let ground: Vec<&Counted> =
        [Module::POSIX, Module::STDIO].iter().filter_map(|&one| log.module(one)).collect();
    Ok(JobRow {
        job: job.map(|job| job.id.to_string()),
        user_id: job.map(|job| job.uid),
        command: job.and_then(|job| job.command.clone()),
        processes: job.map(|job| job.processes),
        start_ns: job.and_then(|job| moment(job.start)),
        run_time_ns: job.and_then(|job| nanoseconds(job.run_time_s())),
        read_bytes: sum(&ground, |_, _, counts| Some(counts.read_bytes)),
        written_bytes: sum(&ground, |_, _, counts| Some(counts.written_bytes)),
        io_time_ns: io_time(&log, &ground),
        files: (!log.counted.is_empty()).then(|| files(&log)),
        losses: losses_of(path, &log),
    })
}

/// Returns the time in I/O. For each file only the highest interface counts, because its time includes that
/// of the lower ones.
fn io_time(log: &Log, ground: &[&Counted]) -> Option<i64> {
    let upper = log.module(Module::MPI_IO);
    let passed: FxHashSet<u64> =
        upper.iter().flat_map(|module| module.records()).map(|record| record.id()).collect();
    let modules: Vec<&Counted> = ground.iter().copied().chain(upper).collect();
    sum(&modules, |module, record, counts| {
        let is_below = module.module != Module::MPI_IO && passed.contains(&record.id());
        (!is_below).then(|| {
            let times = [counts.read_time_ns?, counts.write_time_ns?, counts.meta_time_ns?];
            times.into_iter().try_fold(0, i64::checked_add)
        })
    })
}

/// Returns the sum of `value` over all records. Returns `None` if there are no records or a value is unknown.
fn sum(
    modules: &[&Counted],
    value: impl Fn(&Counted, Record, &iodock_store::Counts) -> Option<Option<i64>>,
) -> Option<i64> {
    let mut records = modules.iter().filter_map(|module| Some((Columns::of(module)?, *module))).peekable();
    records.peek()?;
    records.try_fold(0, |sum: i64, (columns, module)| {
        let mut values =
            module.records().filter_map(|record| value(module, record, &columns.counts(module, record)));
        values.try_fold(sum, |sum, value| sum.checked_add(value?))
    })
}

/// Returns the number of files. Data sets and variables are not counted, because they are parts of files.
fn files(log: &Log) -> u64 {
    let of_files = log.counted.iter().filter(|one| !matches!(one.module, Module::H5D | Module::PNETCDF_VAR));
    let different: FxHashSet<u64> =
        of_files.flat_map(|one| one.records().map(|record| record.id())).collect();
    different.len() as u64
}
