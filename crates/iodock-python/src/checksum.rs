//! Exposes iodock-store to Python: checksums of files and manifests, and the shape of a table's file.

use crate::doorway::through;
use iodock_store::checksum;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Returns the checksum of a whole file, in the form that manifests contain. Raises OSError.
#[pyfunction]
fn file_checksum(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let sum = through(py, None, |door| checksum::of_file(&path, &|| door.cancel.load(Ordering::Relaxed)))??;
    sum.ok_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Returns the JSON object `document` (text) with its own checksum added as last member.
#[pyfunction]
fn sealed_document(document: &str) -> String {
    checksum::sealed(document)
}

/// Returns whether a document is unchanged since `sealed_document`; None if it contains no checksum of
/// itself.
#[pyfunction]
fn is_whole_document(document: &[u8]) -> Option<bool> {
    checksum::is_whole(document)
}

/// Returns the number of rows and the names of the columns of a table's file; None if its footer cannot be
/// read.
#[pyfunction]
fn table_shape(py: Python<'_>, path: PathBuf) -> Option<(i64, Vec<String>)> {
    py.detach(|| iodock_store::shape(&path).ok())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(file_checksum, module)?)?;
    module.add_function(wrap_pyfunction!(table_shape, module)?)?;
    module.add_function(wrap_pyfunction!(sealed_document, module)?)?;
    module.add_function(wrap_pyfunction!(is_whole_document, module)?)
}
