//! Exposes iodock-monitor to Python: the part of the collector that receives and stores data.

use crate::errors::native_error;
use iodock_monitor::catalogue::FileEntry;
use iodock_monitor::{Counter, Intake, MonitorError, Quantity, Taken, Terms, Work, COUNTERS, WITHIN_OTHERS};
use iodock_samples::batch::{Batch, Part};
use iodock_samples::frame;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A monitor store that this process writes. Only one process may write it at a time. Any thread may call its
/// methods.
#[pyclass(frozen)]
struct MonitorIntake(Intake);

/// Result of a push.
#[pyclass(frozen, get_all)]
struct MonitorTaken {
    /// Number of the sender's last stored batch, and whether its next batch must be full.
    kept: u64,
    full: bool,
    /// Spool (in hexadecimal) and host of the sender; empty if nothing was accepted.
    spool: String,
    host: String,
    /// Number of bytes, values and new names.
    work: (u64, u64, u64),
    /// Reason why the remaining frames were refused; `None` unless the sender caused it.
    refused: Option<String>,
    /// Whether the data name a machine that the sender may not send data for.
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

/// Table, resolution, name, smallest begin and largest end (ns since the epoch), number of rows, and whether
/// the file is already summed up.
type NewFile = (String, String, String, i64, i64, u64, bool);

#[pymethods]
impl MonitorIntake {
    #[new]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        py.detach(|| Intake::open(&folder)).map(MonitorIntake).map_err(|error| monitor_error(py, &error))
    }

    /// Receives the frames of one agent. They are on the disk after the next `sync`. `host`: the only machine
    /// whose data are accepted. `most`: number of bytes, values and new names after which no further frame is
    /// accepted. `sent`: the agent's clock when it sent the frames, ns since the epoch, if known. Raises
    /// `NativeError` if the frames could not be stored.
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

    /// Adds a row about refused data to `losses`, with the source `collector`.
    fn lose(&self, host: &str, name: &str, target: &str, count: u64, detail: &str) {
        self.0.lose(host, name, target, count, detail);
    }

    /// Writes all data received so far to the disk.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.sync()).map_err(|error| monitor_error(py, &error))
    }

    /// Writes data received since the last flush to files. Returns the numbers of rows and files.
    fn flush(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let flushed = py.detach(|| self.0.flush()).map_err(|error| monitor_error(py, &error))?;
        Ok((flushed.rows, flushed.files))
    }

    /// Returns the name in the catalogue and the path for a new file. `time` (ns since the epoch) determines
    /// its day.
    fn new_file(
        &self,
        py: Python<'_>,
        table: &str,
        resolution: &str,
        time: i64,
    ) -> PyResult<(String, PathBuf)> {
        self.0.new_file(table, resolution, time).map_err(|error| monitor_error(py, &error))
    }

    /// Changes the catalogue in one step: removes the files `replaced`, marks the files `rolled` as summed
    /// into coarser ones, and adds the files `new`.
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

    /// Returns the number of batches in the journal that were in no file, and the number of damaged bytes in
    /// it, as of opening the store.
    fn replayed(&self) -> (u64, u64) {
        (self.0.replayed().batches, self.0.replayed().torn)
    }
}

fn monitor_error(py: Python<'_>, error: &MonitorError) -> PyErr {
    native_error(py, error.to_string(), error.hint(), 1)
}

/// Returns the names of those columns of `job_io` that are counters, in their order. The columns `other` and
/// `time_us` follow them.
#[pyfunction]
fn monitor_counters() -> Vec<&'static str> {
    COUNTERS.iter().map(|(name, _)| *name).collect()
}

/// Meaning of the counter columns of `job_io`. For each column: the operations, each with `operations` or
/// `bytes`, of which the first that an entry has is used. Then: operations that are included in another one.
type Counters = (Vec<(&'static str, Vec<(&'static str, &'static str)>)>, Vec<&'static str>);

/// Returns the meaning of the counter columns; see [`Counters`].
#[pyfunction]
fn monitor_counted() -> Counters {
    let kind = |quantity| if quantity == Quantity::Bytes { "bytes" } else { "operations" };
    let counted = |&(column, sources): &Counter| {
        (column, sources.iter().map(|&(operation, quantity)| (operation, kind(quantity))).collect())
    };
    (COUNTERS.iter().map(counted).collect(), WITHIN_OTHERS.to_vec())
}

/// Source, target, and the operation, quantity and value of each counter that belongs to no job or user.
type TargetCounters = (String, String, Vec<(String, String, u64)>);

/// Makes a frame of counters that no agent read. It is one full reading at `time`, ns since the epoch;
/// `spool` has 16 bytes. Raises `ValueError` for an unknown quantity or name, or too much data for one batch.
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
