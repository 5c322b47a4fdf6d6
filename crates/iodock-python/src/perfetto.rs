//! Exposes iodock-perfetto to Python: calls as packets of a trace.

use iodock_perfetto::{Call, Writer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

const COLUMNS: usize = 13;

/// Writes calls as packets. `files` contains the numbers and names of the files that have tracks.
#[pyclass(frozen)]
struct PerfettoCalls {
    writer: Mutex<Writer>,
}

#[pymethods]
impl PerfettoCalls {
    #[new]
    fn new(files: Vec<(i64, String)>) -> PerfettoCalls {
        PerfettoCalls { writer: Mutex::new(Writer::new(files)) }
    }

    /// Returns the packets of a batch of calls. Columns are numbers of 64 bits, in the order of the fields of
    /// `Call`.
    fn packets<'py>(&self, py: Python<'py>, columns: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyBytes>> {
        let columns: [PyBackedBytes; COLUMNS] =
            columns.try_into().map_err(|_| PyValueError::new_err(format!("needs {COLUMNS} columns")))?;
        let columns = columns.each_ref().map(|column| column.as_chunks::<8>().0);
        let rows = columns[0].len();
        if columns.iter().any(|column| column.len() != rows) {
            return Err(PyValueError::new_err("columns differ in length"));
        }
        let mut out = Vec::with_capacity(rows * 200);
        py.detach(|| {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            for row in 0..rows {
                writer.write(&call(&columns.map(|column| i64::from_ne_bytes(column[row]))), &mut out);
            }
        });
        Ok(PyBytes::new(py, &out))
    }
}

fn call(values: &[i64; COLUMNS]) -> Call {
    let &[ts, duration, thread, call, class, file, bytes, offset, requested, result, errno, stack, counted] =
        values;
    let is_counted = counted != 0;
    Call {
        ts,
        duration,
        thread,
        call,
        class,
        file,
        bytes,
        offset,
        requested,
        result,
        errno,
        stack,
        is_counted,
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PerfettoCalls>()
}
