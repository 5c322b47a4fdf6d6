//! Exposes iodock-import to Python: makes stores from logs, and tables from recordings' journals.

use crate::doorway::through;
use crate::errors::import_error;
use iodock_import::{ImportOptions, ImportSummary, LineRange, LogOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Imports `logs` (paths; `-` is standard input) into a new store at `store`. Of a single log, `lines`
/// (first, last) selects the lines. Calls `progress(bytes, total, calls)` about twenty times a second.
/// Returns a dictionary: store, formats, lines, calls, files, processes, profiles, cut, meanwhile, losses
/// [(name, count, cure)].
#[pyfunction]
#[pyo3(signature = (logs, store, *, format=None, working_directories=Vec::new(), rank_from=None, lines=None, force=false, coverage_bytes=None, progress=None))]
#[allow(clippy::too_many_arguments)]
fn import_logs<'py>(
    py: Python<'py>,
    logs: Vec<String>,
    store: PathBuf,
    format: Option<String>,
    working_directories: Vec<Vec<u8>>,
    rank_from: Option<String>,
    lines: Option<(u64, Option<u64>)>,
    force: bool,
    coverage_bytes: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let lines = lines.map(|(first, last)| LineRange { first, last });
    let logs = LogOptions { logs, format, working_directories, rank_from, lines, ..LogOptions::default() };
    let mut options = ImportOptions::new(logs, store);
    options.force = force;
    options.coverage_bytes = coverage_bytes.unwrap_or(options.coverage_bytes);
    let imported = through(py, progress.as_ref(), |door| {
        iodock_import::import(&options, &mut |now| door.note(now), &door.cancel)
    })?;
    as_dictionary(py, &imported.map_err(|error| import_error(py, &error))?)
}

/// Converts the journal that a recorder left in `store` to tables. Returns the same as `import_logs`.
#[pyfunction]
#[pyo3(signature = (store, *, progress=None))]
fn finish_recording<'py>(
    py: Python<'py>,
    store: PathBuf,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let finished = through(py, progress.as_ref(), |door| {
        iodock_import::finish_recording(&store, &mut |now| door.note(now), &door.cancel)
    })?;
    as_dictionary(py, &finished.map_err(|error| import_error(py, &error))?)
}

/// Makes a new store at `into` from the data that the recording in progress at `store` has flushed so far.
/// Does not change `store`. Returns the same as `import_logs`, or None if no recording is in progress.
#[pyfunction]
#[pyo3(signature = (store, into, *, progress=None))]
fn read_in_progress<'py>(
    py: Python<'py>,
    store: PathBuf,
    into: PathBuf,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let read = through(py, progress.as_ref(), |door| {
        iodock_import::read_in_progress(&store, &into, &mut |now| door.note(now), &door.cancel)
    })?;
    let read = read.map_err(|error| import_error(py, &error))?;
    read.map(|summary| as_dictionary(py, &summary)).transpose()
}

/// Makes a store at `into` from the finished stores `parts` of one run. Returns the same as `import_logs`,
/// and `ranks` (number with a part, and number in the run or None) and `clocks` (for each host its name,
/// offset in ns or None, largest error in ns or None, and number of calls compared).
#[pyfunction]
#[pyo3(signature = (parts, into, *, force=false, progress=None))]
fn merge_stores<'py>(
    py: Python<'py>,
    parts: Vec<PathBuf>,
    into: PathBuf,
    force: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let merged = through(py, progress.as_ref(), |door| {
        iodock_import::merge_stores(&parts, &into, force, &mut |now| door.note(now), &door.cancel)
    })?;
    let merged = merged.map_err(|error| import_error(py, &error))?;
    let dictionary = as_dictionary(py, &merged.summary)?;
    let clocks = merged.clocks.into_iter();
    let clocks: Vec<_> =
        clocks.map(|clock| (clock.host, clock.offset_ns, clock.within_ns, clock.calls)).collect();
    dictionary.set_item("clocks", clocks)?;
    dictionary.set_item("ranks", merged.ranks)?;
    Ok(dictionary)
}

/// Returns whether a recorder is active in the folder of a store.
#[pyfunction]
#[pyo3(signature = (store))]
fn is_in_progress(store: PathBuf) -> bool {
    iodock_import::is_in_progress(&store.join("journal"))
}

/// Returns whether the file `log` is a Darshan log or its text. Each Darshan log needs a store of its own.
#[pyfunction]
#[pyo3(signature = (log))]
fn is_darshan(py: Python<'_>, log: PathBuf) -> bool {
    py.detach(|| iodock_import::is_darshan(&log))
}

fn as_dictionary<'py>(py: Python<'py>, summary: &ImportSummary) -> PyResult<Bound<'py, PyDict>> {
    let losses: Vec<_> =
        summary.losses.counts.iter().map(|(kind, &count)| (kind.name(), count, kind.cure())).collect();
    let dictionary = PyDict::new(py);
    dictionary.set_item("store", summary.store.as_os_str())?;
    dictionary.set_item("formats", &summary.formats)?;
    dictionary.set_item("lines", summary.lines)?;
    dictionary.set_item("calls", summary.calls)?;
    dictionary.set_item("files", summary.files)?;
    dictionary.set_item("processes", summary.processes)?;
    dictionary.set_item("profiles", summary.profiles)?;
    dictionary.set_item("cut", summary.cut)?;
    dictionary.set_item("meanwhile", summary.meanwhile)?;
    dictionary.set_item("losses", losses)?;
    Ok(dictionary)
}

/// Returns the files in the folder of a store that iodock did not write, or the path of the manifest if that
/// is missing.
#[pyfunction]
#[pyo3(signature = (store))]
fn foreign_in_store(store: PathBuf) -> PyResult<Vec<PathBuf>> {
    Ok(iodock_store::own::foreign(&store)?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(import_logs, module)?)?;
    module.add_function(wrap_pyfunction!(is_darshan, module)?)?;
    module.add_function(wrap_pyfunction!(finish_recording, module)?)?;
    module.add_function(wrap_pyfunction!(read_in_progress, module)?)?;
    module.add_function(wrap_pyfunction!(is_in_progress, module)?)?;
    module.add_function(wrap_pyfunction!(merge_stores, module)?)?;
    module.add_function(wrap_pyfunction!(foreign_in_store, module)?)
}
