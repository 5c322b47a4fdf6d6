//! The vocabulary's tables, so that `iodock explain` and the generated reference always agree with them.

use iodock_event::{calls, LossKind};
use pyo3::prelude::*;

/// Every call iodock knows: (name, family, class).
#[pyfunction]
fn known_calls() -> Vec<(&'static str, &'static str, &'static str)> {
    calls::CALLS.iter().map(|call| (call.name, call.family, call.class.name())).collect()
}

/// Every kind of loss: (name, cure).
#[pyfunction]
fn known_losses() -> Vec<(&'static str, &'static str)> {
    LossKind::ALL.iter().map(|kind| (kind.name(), kind.cure())).collect()
}

/// Formats of logs that can be imported.
#[pyfunction]
fn known_formats() -> Vec<&'static str> {
    iodock_import::format_names()
}

/// Calls at which a live recorder stops a program. For mmap only those with a descriptor.
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
