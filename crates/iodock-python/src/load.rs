//! iodock-load: the engine of the check-up, which runs in a separate process, and its queries.

use crate::doorway::through;
use crate::errors::native_error;
use iodock_load::{Event, Latencies, LoadError, Plan, Roots, Under};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Executes `plan` (JSON) and writes events, one JSON per line, to standard output. For a process that does
/// nothing else: it forks, takes over the signals that request the end, and ends early when standard input is
/// closed.
#[pyfunction]
#[pyo3(signature = (plan))]
fn load_engine(py: Python<'_>, plan: &str) -> PyResult<()> {
    let plan = plan_of(plan)?;
    // The GIL is kept: a thread that could take it would make forking unsafe.
    let _ = py;
    iodock_load::run(&plan, &mut |event: &Event| {
        let line = serde_json::to_string(event).unwrap_or_default();
        // A reader that has gone has closed standard input too, and the engine detects that.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    });
    Ok(())
}

fn plan_of(text: &str) -> PyResult<Plan> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("no plan: {error}")))
}

/// Bytes and inodes that `plan` (JSON) may need at one time.
#[pyfunction]
#[pyo3(signature = (plan))]
fn load_need(plan: &str) -> PyResult<(u64, u64)> {
    let need = iodock_load::need_of(&plan_of(plan)?);
    Ok((need.bytes, need.inodes))
}

/// What is available to this user in `directory`, None if there is no limit: free bytes and inodes, then
/// those of quotas.
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

/// The layers below the file system of `directory`, as far as this machine's memory is concerned: `devices`,
/// `memory` or `perhaps`, and why.
#[pyfunction]
#[pyo3(signature = (directory))]
fn load_under(directory: PathBuf) -> (&'static str, Option<String>) {
    match Roots::default().under(&directory) {
        Under::Devices => ("devices", None),
        Under::Memory(why) => ("memory", Some(why)),
        Under::Perhaps(why) => ("perhaps", Some(why)),
    }
}

/// Removes trees in `directory` that check-ups of this user left behind: returns removed paths, (path, why)
/// kept, and files in them that are not ours.
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

/// Merges latencies (each the JSON from the engine) and returns their JSON.
#[pyfunction]
#[pyo3(signature = (several))]
fn load_merge(several: Vec<String>) -> PyResult<String> {
    let mut merged = Latencies::default();
    for one in &several {
        merged.merge(&latencies_of(one)?);
    }
    serde_json::to_string(&merged).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Nanoseconds that these shares of all operations do not exceed, within 1 %; None without operations.
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
