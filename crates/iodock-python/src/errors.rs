//! Every error of the Rust crates as one Python exception: its text says what happened, its `hint` what to do.

use iodock_import::ImportError;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

pyo3::create_exception!(
    _native,
    NativeError,
    PyException,
    "What went wrong below Python; `hint` (str or None) says what to do, `usage` whether the question was wrong."
);

/// A `NativeError` with its attributes.
pub fn native_error(py: Python<'_>, message: String, hint: &str, usage: bool) -> PyErr {
    let error = NativeError::new_err(message);
    let value = error.value(py);
    let hint = (!hint.is_empty()).then_some(hint);
    match value.setattr("hint", hint).and_then(|()| value.setattr("usage", usage)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// An import's error; cancelling is what Ctrl-C does.
pub fn import_error(py: Python<'_>, error: &ImportError) -> PyErr {
    match error {
        ImportError::Cancelled => PyKeyboardInterrupt::new_err(()),
        ImportError::Usage { .. } => native_error(py, error.to_string(), error.hint(), true),
        ImportError::Source(_) | ImportError::Store { .. } => {
            native_error(py, error.to_string(), error.hint(), false)
        }
    }
}
