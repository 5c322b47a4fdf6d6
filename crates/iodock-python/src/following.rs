//! Exposes iodock-import to Python: follows a recording in progress.

use crate::doorway::through;
use crate::errors::import_error;
use iodock_import::{Following, ImportError, Seen, Sums};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Follows the recording in progress at `store` without changing it. Raises NativeError while nothing can be
/// read yet.
#[pyclass(frozen)]
struct RecordingFollowed {
    following: Mutex<Following>,
}

#[pymethods]
impl RecordingFollowed {
    #[new]
    fn new(py: Python<'_>, store: PathBuf) -> PyResult<RecordingFollowed> {
        let opened = through(py, None, |_| Following::open(&store))?;
        let following = Mutex::new(opened.map_err(|error| import_error(py, &error))?);
        Ok(RecordingFollowed { following })
    }

    /// Reads what the recorder has flushed since the last call. Returns a dictionary with since_ns, until_ns,
    /// calls, metadata_calls, read_bytes, written_bytes, files and by_call. The last two have at most `most`
    /// entries (name, calls, time_ns, read_bytes, written_bytes).
    fn look<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyDict>> {
        let seen: Result<Seen, ImportError> = through(py, None, |door| {
            let mut following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
            following.look(most, &door.cancel)
        })?;
        as_dictionary(py, &seen.map_err(|error| import_error(py, &error))?)
    }
}

fn as_dictionary<'py>(py: Python<'py>, seen: &Seen) -> PyResult<Bound<'py, PyDict>> {
    let row = |name: &str, sums: &Sums| {
        (name.to_owned(), sums.calls, sums.time_ns, sums.read_bytes, sums.written_bytes)
    };
    let files: Vec<_> = seen.files.iter().map(|file| row(&file.name, &file.sums)).collect();
    let by_call: Vec<_> = seen.by_call.iter().map(|call| row(&call.name, &call.sums)).collect();
    let dictionary = PyDict::new(py);
    dictionary.set_item("since_ns", seen.since_ns)?;
    dictionary.set_item("until_ns", seen.until_ns)?;
    dictionary.set_item("calls", seen.calls)?;
    dictionary.set_item("metadata_calls", seen.metadata_calls)?;
    dictionary.set_item("read_bytes", seen.read_bytes)?;
    dictionary.set_item("written_bytes", seen.written_bytes)?;
    dictionary.set_item("files", files)?;
    dictionary.set_item("by_call", by_call)?;
    Ok(dictionary)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RecordingFollowed>()
}
