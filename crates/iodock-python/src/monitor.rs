//! iodock-monitor: the collector's intake.

use crate::errors::native_error;
use iodock_monitor::catalogue::FileEntry;
use iodock_monitor::{Counter, Intake, MonitorError, Quantity, Taken, Terms, Work, COUNTERS, WITHIN_OTHERS};
use iodock_samples::batch::{Batch, Part};
use iodock_samples::frame;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A monitor store that this process writes. One process at a time; its methods may be called from any thread.
#[pyclass(frozen)]
struct MonitorIntake(Intake);

/// Result of a push.
#[pyclass(frozen, get_all)]
struct MonitorTaken {
    /// The sender's last batch, and whether the next must be full.
    kept: u64,
    full: bool,
    /// Its sender; empty if nothing was accepted. The spool in hexadecimal.
    spool: String,
    host: String,
    /// Bytes, values and new names.
    work: (u64, u64, u64),
    /// Why the rest was refused; `None` unless it is the sender's error.
    refused: Option<String>,
    /// It names a machine that it may not send data for.
    is_name_refused: bool,
}

impl MonitorTaken {
    fn of(taken: Taken) -> Self {
        let Work { bytes, values, names } = taken.work;
        let (spool, host) = taken.sender.map_or_else(Default::default, |sender| {
            (sender.spool.iter().map(|byte| format!("{byte:02x}")).collect(), sender.host)
        });
        MonitorTaken {
            kept: taken.receipt.kept,
            full: taken.receipt.full,
            spool,
            host,
            work: (bytes, values, names),
            is_name_refused: matches!(taken.refused, Some(MonitorError::Name { .. })),
            refused: taken.refused.map(|error| error.to_string()),
        }
    }
}

/// Table, resolution, name, smallest begin and largest end (ns since the epoch), rows, whether it is summed up already.
type NewFile = (String, String, String, i64, i64, u64, bool);

#[pymethods]
impl MonitorIntake {
    #[new]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        py.detach(|| Intake::open(&folder)).map(MonitorIntake).map_err(|error| monitor_error(py, &error))
    }

    /// Receives the frames of one agent, which are safe after the next `sync`. `host`: accept this machine
    /// only. `most`: bytes, values and new names after which no further frame is accepted. `sent`: the
    /// agent's clock when it sent them, ns since the epoch, if given. A `NativeError` means that they could
    /// not be stored.
    #[pyo3(signature = (frames, host=None, most=None, sent=None))]
    fn take(
        &self,
        py: Python<'_>,
        frames: &[u8],
        host: Option<&str>,
        most: Option<(u64, u64, u64)>,
        sent: Option<i64>,
    ) -> PyResult<MonitorTaken> {
        let most = most.map(|(bytes, values, names)| Work { bytes, values, names });
        let taken = py.detach(|| self.0.take(frames, &Terms { host, most, sent }));
        taken.map(MonitorTaken::of).map_err(|error| monitor_error(py, &error))
    }

    /// A row of `losses` with the source `collector`: data that was refused.
    fn lose(&self, host: &str, name: &str, target: &str, count: u64, detail: &str) {
        self.0.lose(host, name, target, count, detail);
    }

    /// Syncs everything received so far to the disk.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.sync()).map_err(|error| monitor_error(py, &error))
    }

    /// Writes data received since the last flush to files: returns rows and files.
    fn flush(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let flushed = py.detach(|| self.0.flush()).map_err(|error| monitor_error(py, &error))?;
        Ok((flushed.rows, flushed.files))
    }

    /// Name in the catalogue and path of a new file; `time` (ns since the epoch) determines its day.
    fn new_file(
        &self,
        py: Python<'_>,
        table: &str,
        resolution: &str,
        time: i64,
    ) -> PyResult<(String, PathBuf)> {
        self.0.new_file(table, resolution, time).map_err(|error| monitor_error(py, &error))
    }

    /// One step: the files `replaced` are removed, `rolled` are marked as summed into coarser ones, `new` are
    /// added.
    fn replace(
        &self,
        py: Python<'_>,
        replaced: Vec<String>,
        rolled: Vec<String>,
        new: Vec<NewFile>,
    ) -> PyResult<()> {
        let entry = |(table, resolution, file, begin, end, rows, rolled): NewFile| {
            (table, resolution, FileEntry { file, begin, end, rows, rolled, checksum: None })
        };
        let new = new.into_iter().map(entry).collect();
        py.detach(|| self.0.replace(&replaced, &rolled, new)).map_err(|error| monitor_error(py, &error))
    }

    /// Batches in the journal that were in no file, and damaged bytes in it, when the store was opened.
    fn replayed(&self) -> (u64, u64) {
        (self.0.replayed().batches, self.0.replayed().torn)
    }
}

fn monitor_error(py: Python<'_>, error: &MonitorError) -> PyErr {
    native_error(py, error.to_string(), error.hint(), 1)
}

/// The columns of `job_io` with counts, in their order; `other` and `time_us` follow.
#[pyfunction]
fn monitor_counters() -> Vec<&'static str> {
    COUNTERS.iter().map(|(name, _)| *name).collect()
}

/// Meaning of each of those columns: operations and `operations` or `bytes`, of which the first that an entry
/// has is used; and operations that another one includes.
type Counters = (Vec<(&'static str, Vec<(&'static str, &'static str)>)>, Vec<&'static str>);

/// See [`Counters`].
#[pyfunction]
fn monitor_counted() -> Counters {
    let kind = |quantity| if quantity == Quantity::Bytes { "bytes" } else { "operations" };
    let counted = |&(column, sources): &Counter| {
        (column, sources.iter().map(|&(operation, quantity)| (operation, kind(quantity))).collect())
    };
    (COUNTERS.iter().map(counted).collect(), WITHIN_OTHERS.to_vec())
}

/// Source, target, and operation, quantity and value of counters without an owner.
type TargetCounters = (String, String, Vec<(String, String, u64)>);

/// A push of counters that no agent read: one full reading, `time` in ns since the epoch. `spool`: 16 bytes.
/// Errors (`ValueError`): unknown quantity or name, or too much data for one batch.
#[pyfunction]
fn monitor_frame<'py>(
    py: Python<'py>,
    spool: [u8; 16],
    sequence: u64,
    host: String,
    time: i64,
    counters: Vec<TargetCounters>,
) -> PyResult<Bound<'py, PyBytes>> {
    let part = |(source, target, values)| Part::of_target(source, target, time, values);
    let parts = counters.into_iter().map(part).collect::<Option<Vec<_>>>();
    let batch = parts.map(|parts| Batch { spool, sequence, host, time, parts, ..Batch::default() });
    let frame = batch.as_ref().and_then(frame::encode);
    frame.map(|frame| PyBytes::new(py, &frame)).ok_or_else(|| PyValueError::new_err("no batch"))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(monitor_counters, module)?)?;
    module.add_function(wrap_pyfunction!(monitor_frame, module)?)?;
    module.add_function(wrap_pyfunction!(monitor_counted, module)?)?;
    module.add_class::<MonitorTaken>()?;
    module.add_class::<MonitorIntake>()
}
