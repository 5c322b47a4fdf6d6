//! Exposes iodock-import to Python: the information of a Darshan log about its job.

use crate::errors::import_error;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns the job of a Darshan log, or of its text, as a dictionary. It contains neither single accesses nor
/// heatmaps.
#[pyfunction]
fn darshan_job<'py>(py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
    let row = py.detach(|| iodock_import::job_of(path)).map_err(|error| import_error(py, &error))?;
    let losses: Vec<_> =
        row.losses.counts.iter().map(|(kind, &count)| (kind.name(), count, kind.cure())).collect();
    let made = PyDict::new(py);
    made.set_item("job", row.job)?;
    made.set_item("user_id", row.user_id)?;
    made.set_item("command", row.command)?;
    made.set_item("processes", row.processes)?;
    made.set_item("start_ns", row.start_ns)?;
    made.set_item("run_time_ns", row.run_time_ns)?;
    made.set_item("read_bytes", row.read_bytes)?;
    made.set_item("written_bytes", row.written_bytes)?;
    made.set_item("io_time_ns", row.io_time_ns)?;
    made.set_item("files", row.files)?;
    made.set_item("losses", losses)?;
    Ok(made)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(darshan_job, module)?)
}
