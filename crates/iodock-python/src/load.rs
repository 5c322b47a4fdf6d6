//! Exposes iodock-load to Python: the engine of the check-up, which runs in a separate process, and its
//! queries.

use crate::doorway::through;
use crate::errors::native_error;
use iodock_load::{Event, Latencies, LoadError, Plan, Roots, Under};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Executes `plan` (JSON) and writes events to standard output, one JSON object per line. The calling process
/// must do nothing else: the engine forks, handles the signals that request its end, and ends early when its
/// standard input is closed.
#[pyfunction]
#[pyo3(signature = (plan))]
fn load_engine(py: Python<'_>, plan: &str) -> PyResult<()> {
    let plan = plan_of(plan)?;
    // The function keeps the GIL. If another thread could take it, forking would be unsafe.
    let _ = py;
    iodock_load::run(&plan, &mut |event: &Event| {
        let line = serde_json::to_string(event).unwrap_or_default();
        // If the reader of the output has ended, writing fails. Its end also closed standard input, which the
        // engine detects.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    });
    Ok(())
}

fn plan_of(text: &str) -> PyResult<Plan> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("no plan: {error}")))
}

/// Returns the number of bytes and inodes that `plan` (JSON) may need at one time.
#[pyfunction]
#[pyo3(signature = (plan))]
fn load_need(plan: &str) -> PyResult<(u64, u64)> {
    let need = iodock_load::need_of(&plan_of(plan)?);
    Ok((need.bytes, need.inodes))
}

/// Returns what this user may still use in `directory`: free bytes and inodes of the file system, then those
/// of the user's quotas. A value is None if there is no limit.
#[pyfunction]
#[pyo3(signature = (directory))]
fn load_free(py: Python<'_>, directory: PathBuf) -> PyResult<[Option<u64>; 4]> {
    let found = std::fs::File::open(&directory).and_then(|folder| {
        let fd = folder.as_raw_fd();
        iodock_load::free(fd).map(|free| (free, iodock_load::quota(fd)))
    });
    let failed = |error| load_error(py, &LoadError::system(directory.display(), &error));
    let (free, quota) = found.map_err(failed)?;
    Ok([free.bytes, free.inodes, quota.bytes, quota.inodes])
}

/// Returns whether data in `directory` are stored on `devices`, in this machine's `memory`, or `perhaps` in
/// memory, and the reason. It examines the layers below the file system.
#[pyfunction]
#[pyo3(signature = (directory))]
fn load_under(directory: PathBuf) -> (&'static str, Option<String>) {
    match Roots::default().under(&directory) {
        Under::Devices => ("devices", None),
        Under::Memory(why) => ("memory", Some(why)),
        Under::Perhaps(why) => ("perhaps", Some(why)),
    }
}

/// Removes trees in `directory` that earlier check-ups of this user left. Returns the removed paths, the kept
/// ones as (path, reason), and the files in them that no check-up wrote.
#[pyfunction]
#[pyo3(signature = (directory, *, force=false))]
fn load_clean<'py>(py: Python<'py>, directory: PathBuf, force: bool) -> PyResult<Bound<'py, PyDict>> {
    let cleaned = through(py, None, |_| iodock_load::clean(&directory, force))?;
    let cleaned = cleaned.map_err(|error| load_error(py, &error))?;
    let dictionary = PyDict::new(py);
    dictionary.set_item("removed", cleaned.removed)?;
    dictionary.set_item("kept", cleaned.kept)?;
    dictionary.set_item("foreign", cleaned.foreign)?;
    Ok(dictionary)
}

/// Merges latencies, each given as the JSON of the engine, and returns their JSON.
#[pyfunction]
#[pyo3(signature = (several))]
fn load_merge(several: Vec<String>) -> PyResult<String> {
    let mut merged = Latencies::default();
    for one in &several {
        merged.merge(&latencies_of(one)?);
    }
    serde_json::to_string(&merged).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns for each quantile the latency in ns that this share of the operations does not exceed, within 1 %;
/// None if there are no operations.
#[pyfunction]
#[pyo3(signature = (latencies, quantiles))]
fn load_quantiles(latencies: &str, quantiles: Vec<f64>) -> PyResult<Vec<Option<f64>>> {
    let latencies = latencies_of(latencies)?;
    Ok(quantiles.into_iter().map(|quantile| latencies.quantile(quantile)).collect())
}

fn latencies_of(text: &str) -> PyResult<Latencies> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("no latencies: {error}")))
}

fn load_error(py: Python<'_>, error: &LoadError) -> PyErr {
    native_error(py, error.to_string(), &error.hint, 1)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(load_engine, module)?)?;
    module.add_function(wrap_pyfunction!(load_need, module)?)?;
    module.add_function(wrap_pyfunction!(load_free, module)?)?;
    module.add_function(wrap_pyfunction!(load_under, module)?)?;
    module.add_function(wrap_pyfunction!(load_clean, module)?)?;
    module.add_function(wrap_pyfunction!(load_merge, module)?)?;
    module.add_function(wrap_pyfunction!(load_quantiles, module)?)
}
