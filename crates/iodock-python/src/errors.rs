//! Converts every error of the Rust crates to one Python exception. Its text describes the error, and its
//! `hint` says what the user can do.

use iodock_import::ImportError;
use iodock_record::RecordError;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

pyo3::create_exception!(
    _native,
    NativeError,
    PyException,
    "What went wrong below Python; `hint` (str or None) says what to do, `usage` whether the question was wrong,\
     `exit_status` what the command line should end with; of a recording `in_the_way`: a store that is there can't make way."
);

/// Makes a `NativeError` with its attributes. Exit status 2 means wrong usage.
pub fn native_error(py: Python<'_>, message: String, hint: &str, exit_status: i32) -> PyErr {
    let error = NativeError::new_err(message);
    let value = error.value(py);
    let hint = (!hint.is_empty()).then_some(hint);
    let set = value
        .setattr("hint", hint)
        .and_then(|()| value.setattr("usage", exit_status == 2))
        .and_then(|()| value.setattr("exit_status", exit_status));
    set.err().unwrap_or(error)
}

/// Converts the error of a recording that could not start. The exit statuses 126 and 127 have the same
/// meaning as in a shell.
pub fn record_error(py: Python<'_>, error: &RecordError) -> PyErr {
    let made = native_error(py, error.to_string(), error.hint(), error.exit_status());
    let in_the_way = matches!(error, RecordError::InTheWay(_));
    made.value(py).setattr("in_the_way", in_the_way).err().unwrap_or(made)
}

/// Converts an error of an import. A cancelled import becomes the exception that Ctrl-C raises.
pub fn import_error(py: Python<'_>, error: &ImportError) -> PyErr {
    match error {
        ImportError::Cancelled => PyKeyboardInterrupt::new_err(()),
        ImportError::Usage { .. } => native_error(py, error.to_string(), error.hint(), 2),
        ImportError::Source(_) | ImportError::Store { .. } => {
            native_error(py, error.to_string(), error.hint(), 1)
        }
    }
}
