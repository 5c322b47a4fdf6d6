//! Exposes iodock-record to Python: starts programs or attaches to them, and records them.

use crate::doorway::{through, Door};
use crate::errors::record_error;
use iodock_import::Meanwhile;
use iodock_record::backends::{Backend, ProgramExit, BACKENDS};
use iodock_record::faults::Mode;
use iodock_record::{
    AttachOptions, Interfaces, Light, RankSet, RecordError, RecordOptions, RecordOutcome, Stacks, Whole,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;

/// Holds a store's folder, so that no other recorder replaces it.
#[pyclass(frozen)]
struct StoreHold {
    folder: Mutex<Option<File>>,
}

#[pymethods]
impl StoreHold {
    fn release(&self) {
        if let Ok(mut folder) = self.folder.lock() {
            *folder = None;
        }
    }
}

/// Runs `command` and records it into `store`. During this time Rust code handles the signals that request
/// the end, and passes them on to the program. Returns a dictionary: store, kept, elsewhere, made_folder,
/// backend, reason, exit_code, exit_signal, must_finish, warnings, failure, written_bytes, killed, hold. No
/// other recorder replaces the store until `hold` is released.
#[pyfunction]
#[pyo3(signature = (command, store, *, backend="auto".to_owned(), force=false, page_faults="auto".to_owned(), complete=false, light=None, ranks=None, interfaces="auto".to_owned(), stacks="auto".to_owned()))]
#[allow(clippy::too_many_arguments)]
fn record(
    py: Python<'_>,
    command: Vec<OsString>,
    store: PathBuf,
    backend: String,
    force: bool,
    page_faults: String,
    complete: bool,
    light: Option<(u64, u64)>,
    ranks: Option<(String, bool)>,
    interfaces: String,
    stacks: String,
) -> PyResult<Bound<'_, PyDict>> {
    let mut options = RecordOptions::new(command, store);
    options.backend = backend;
    options.force = force;
    options.page_faults = mode(&page_faults)?;
    options.complete = complete;
    let unknown = || format!("interfaces is one of {}", Interfaces::NAMES.map(|(name, _)| name).join(", "));
    options.interfaces =
        Interfaces::from_name(&interfaces).ok_or_else(|| PyValueError::new_err(unknown()))?;
    let unknown = || format!("stacks is one of auto, {}", Stacks::NAMES.map(|(name, _)| name).join(", "));
    options.stacks = match stacks.as_str() {
        "auto" => None,
        name => Some(Stacks::from_name(name).ok_or_else(|| PyValueError::new_err(unknown()))?),
    };
    options.light = light.map(|(memory, first)| Light { memory, first });
    options.whole = ranks.map(|(ranks, counts_unranked)| whole(&ranks, counts_unranked)).transpose()?;
    options.begun = Some(Meanwhile::begin);
    run(py, |door| {
        let recorded = iodock_record::record(&options, door.cancel.clone());
        if !recorded.as_ref().is_ok_and(|outcome| outcome.must_finish) {
            Meanwhile::give_up();
        }
        recorded
    })
}

fn whole(ranks: &str, counts_unranked: bool) -> PyResult<Whole> {
    let unknown = || PyValueError::new_err("ranks are numbers and ranges of them: 0,7,96-103");
    let ranks = RankSet::parse(ranks).ok_or_else(unknown)?;
    if ranks.ranges().len() > Whole::RANGES_MOST {
        return Err(PyValueError::new_err(format!("at most {} ranges of ranks", Whole::RANGES_MOST)));
    }
    Ok(Whole { ranks, counts_unranked })
}

/// Creates a store for programs that count their own calls. The caller starts them with the returned
/// environment variables. No process of iodock runs during this time. Returns store and variables.
#[pyfunction]
fn begin_counting(
    py: Python<'_>,
    store: PathBuf,
    memory: u64,
    first: u64,
) -> PyResult<(PathBuf, Vec<(&'static str, OsString)>)> {
    let begun = iodock_record::begin_counting(&store, Light { memory, first });
    let begun = begun.map_err(|error| record_error(py, &error))?;
    let text = |(name, value)| (name, std::os::unix::ffi::OsStringExt::from_vec(value));
    Ok((begun.store, begun.variables.into_iter().map(text).collect()))
}

/// Records the running processes `pids`, or all processes of the cgroup `group`, until they end or a stop
/// signal arrives. Returns the same as `record`.
#[pyfunction]
#[pyo3(signature = (pids, store, *, backend="auto".to_owned(), force=false, group=None, page_faults="auto".to_owned()))]
fn attach(
    py: Python<'_>,
    pids: Vec<u32>,
    store: PathBuf,
    backend: String,
    force: bool,
    group: Option<PathBuf>,
    page_faults: String,
) -> PyResult<Bound<'_, PyDict>> {
    let mut options = AttachOptions::new(pids, store);
    options.group = group;
    options.backend = backend;
    options.force = force;
    options.page_faults = mode(&page_faults)?;
    run(py, |door| iodock_record::attach(&options, door.cancel.clone()))
}

fn mode(name: &str) -> PyResult<Mode> {
    let unknown = || format!("page_faults is one of {}", Mode::NAMES.map(|(name, _)| name).join(", "));
    Mode::from_name(name).ok_or_else(|| PyValueError::new_err(unknown()))
}

fn run<'py>(
    py: Python<'py>,
    work: impl FnOnce(&Door) -> Result<RecordOutcome, RecordError> + Send,
) -> PyResult<Bound<'py, PyDict>> {
    let outcome = through(py, None, work)?.map_err(|error| record_error(py, &error))?;
    let (code, signal) = match outcome.exit {
        ProgramExit::Code(code) => (Some(code), None),
        ProgramExit::Signal(signal) => (None, Some(signal)),
        ProgramExit::Running => (None, None),
    };
    let dictionary = PyDict::new(py);
    dictionary.set_item("store", outcome.store.into_os_string())?;
    dictionary.set_item("kept", outcome.way.kept.map(PathBuf::into_os_string))?;
    dictionary.set_item("elsewhere", outcome.way.elsewhere)?;
    dictionary.set_item("made_folder", outcome.way.made.map(PathBuf::into_os_string))?;
    dictionary.set_item("backend", outcome.backend)?;
    dictionary.set_item("reason", outcome.reason.name())?;
    dictionary.set_item("exit_code", code)?;
    dictionary.set_item("exit_signal", signal)?;
    dictionary.set_item("must_finish", outcome.must_finish)?;
    dictionary.set_item("warnings", outcome.warnings)?;
    dictionary.set_item("failure", outcome.failure)?;
    dictionary.set_item("written_bytes", outcome.written_bytes)?;
    dictionary.set_item("killed", outcome.killed)?;
    dictionary.set_item("hold", StoreHold { folder: Mutex::new(outcome.folder) })?;
    Ok(dictionary)
}

/// Returns the rank that a launcher gave to this process, or None.
#[pyfunction]
fn launched_rank() -> Option<i32> {
    iodock_record::rank_of_this_process().0
}

/// Returns each back end, and the reason if this user cannot use it on this machine.
#[pyfunction]
fn backends() -> Vec<(&'static str, Option<String>)> {
    let refusal = |backend: &&dyn Backend| backend.is_available().err().map(|refusal| refusal.message);
    BACKENDS.iter().map(|backend| (backend.name(), refusal(backend))).collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StoreHold>()?;
    module.add_function(wrap_pyfunction!(backends, module)?)?;
    module.add_function(wrap_pyfunction!(launched_rank, module)?)?;
    module.add_function(wrap_pyfunction!(record, module)?)?;
    module.add_function(wrap_pyfunction!(begin_counting, module)?)?;
    module.add_function(wrap_pyfunction!(attach, module)?)
}
