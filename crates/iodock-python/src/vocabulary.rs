//! Exposes the tables of calls, losses and formats, so that `iodock explain` and the generated reference
//! always agree with them.

use iodock_event::{calls, LossKind};
use pyo3::prelude::*;

/// Returns every call that iodock knows as (name, family, class).
#[pyfunction]
fn known_calls() -> Vec<(&'static str, &'static str, &'static str)> {
    calls::CALLS.iter().map(|call| (call.name, call.family, call.class.name())).collect()
}

/// Returns every kind of loss as (name, cure).
#[pyfunction]
fn known_losses() -> Vec<(&'static str, &'static str)> {
    LossKind::ALL.iter().map(|kind| (kind.name(), kind.cure())).collect()
}

/// Returns the names of log formats that can be imported.
#[pyfunction]
fn known_formats() -> Vec<&'static str> {
    iodock_import::format_names()
}

/// Returns the calls at which a live recorder stops a program. It stops at mmap only if the call has a
/// descriptor.
#[pyfunction]
fn recorded_calls() -> Vec<&'static str> {
    calls::CALLS.iter().filter(|call| call.is_recorded()).map(|call| call.name).collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(known_calls, module)?)?;
    module.add_function(wrap_pyfunction!(known_losses, module)?)?;
    module.add_function(wrap_pyfunction!(known_formats, module)?)?;
    module.add_function(wrap_pyfunction!(recorded_calls, module)?)
}
