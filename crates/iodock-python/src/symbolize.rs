//! Exposes iodock-import to Python: finds functions and lines of a finished store.

use crate::errors::import_error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Looks up the sites of a store in program and debug files, which may also be in `folders`. Returns a
/// dictionary: sites, functions and lines (before, after), unknown [(module, build id, why, sites,
/// installed)].
#[pyfunction]
fn symbolize<'py>(py: Python<'py>, store: PathBuf, folders: Vec<PathBuf>) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| iodock_import::symbolize(&store, &folders));
    let found = found.map_err(|error| import_error(py, &error))?;
    let dictionary = PyDict::new(py);
    dictionary.set_item("sites", found.sites)?;
    dictionary.set_item("functions", found.functions)?;
    dictionary.set_item("lines", found.lines)?;
    let unknown = found
        .unknown
        .into_iter()
        .map(|one| (one.module, one.build_id, one.why.name(), one.sites, one.is_installed));
    dictionary.set_item("unknown", unknown.collect::<Vec<_>>())?;
    Ok(dictionary)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(symbolize, module)?)
}
