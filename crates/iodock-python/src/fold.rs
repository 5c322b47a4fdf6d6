//! Exposes iodock-fold to Python: aggregates a store's events.

use crate::doorway::through;
use crate::errors::native_error;
use iodock_fold::{Column, FoldError, Folding, Table, Transfers, Uses, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of a column, Arrow's name of its type, its values as a buffer, and the validity bits if it can be
/// null.
type PyColumn<'py> = (&'static str, &'static str, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);
/// Number of rows, and the columns.
type PyTable<'py> = (usize, Vec<PyColumn<'py>>);

/// A pass over all events in `paths`. It computes the table `uses` or, if the caller passes files and their
/// places (unsigned numbers of 32 bits), the table `transfers`.
#[pyclass(frozen)]
struct EventFolding {
    folding: Kind,
    cancelled: AtomicBool,
}

enum Kind {
    Uses(Folding<Uses>),
    Transfers(Folding<Transfers>),
}

#[pymethods]
impl EventFolding {
    #[new]
    #[pyo3(signature = (paths, fold, places=None))]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        fold: &str,
        places: Option<(PyBackedBytes, PyBackedBytes)>,
    ) -> PyResult<EventFolding> {
        let folding = match (fold, places) {
            ("uses", None) => Folding::new(paths, Uses::default()).map(Kind::Uses),
            ("transfers", Some((files, places))) => {
                Transfers::by_place(&numbers(&files)?, &numbers(&places)?)
                    .and_then(|fold| Folding::new(paths, fold))
                    .map(Kind::Transfers)
            }
            _ => return Err(PyValueError::new_err(format!("no fold of these arguments: {fold}"))),
        };
        let folding = folding.map_err(|error| fold_error(py, &error))?;
        Ok(EventFolding { folding, cancelled: AtomicBool::new(false) })
    }

    /// Returns the total number of events.
    #[getter]
    fn rows(&self) -> u64 {
        match &self.folding {
            Kind::Uses(folding) => folding.rows(),
            Kind::Transfers(folding) => folding.rows(),
        }
    }

    /// Returns the next groups; None after the last. The same key may occur in several tables, but only once
    /// in each.
    fn next_table<'py>(&self, py: Python<'py>) -> PyResult<Option<PyTable<'py>>> {
        let table = through(py, None, |door| {
            let stop = || door.cancel.load(Ordering::Relaxed) || self.cancelled.load(Ordering::Relaxed);
            match &self.folding {
                Kind::Uses(folding) => folding.next_table(&stop),
                Kind::Transfers(folding) => folding.next_table(&stop),
            }
        })?;
        table.map_err(|error| fold_error(py, &error))?.map(|table| as_python(py, &table)).transpose()
    }

    /// Stops the pass. Another thread may call this.
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

fn numbers(bytes: &[u8]) -> PyResult<Vec<u32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("places are numbers of 32 bits"));
    }
    Ok(numbers.iter().map(|&bytes| u32::from_ne_bytes(bytes)).collect())
}

fn as_python<'py>(py: Python<'py>, table: &Table) -> PyResult<PyTable<'py>> {
    let column = |column: &Column| {
        let (kind, values) = match &column.values {
            Values::Int64(values) => ("int64", bytes_of(py, values, |value| value.to_ne_bytes())),
            Values::UInt32(values) => ("uint32", bytes_of(py, values, |value| value.to_ne_bytes())),
            Values::UInt16(values) => ("uint16", bytes_of(py, values, |value| value.to_ne_bytes())),
            Values::UInt8(values) => ("uint8", bytes_of(py, values, |value| value.to_ne_bytes())),
            Values::Int8(values) => ("int8", bytes_of(py, values, |value| value.to_ne_bytes())),
            Values::Float64(values) => ("double", bytes_of(py, values, |value| value.to_ne_bytes())),
        };
        let valid = column.valid.as_deref().map(|bits| PyBytes::new(py, bits));
        Ok((column.name, kind, values?, valid))
    };
    Ok((table.rows, table.columns.iter().map(column).collect::<PyResult<_>>()?))
}

fn bytes_of<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    bytes: fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, N * values.len(), |memory| {
        for (place, &value) in memory.as_chunks_mut::<N>().0.iter_mut().zip(values) {
            *place = bytes(value);
        }
        Ok(())
    })
}

fn fold_error(py: Python<'_>, error: &FoldError) -> PyErr {
    native_error(py, error.to_string(), "", 1)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<EventFolding>()
}
