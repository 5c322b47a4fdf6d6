//! Runs long work for Python. During the work the GIL is released, Ctrl-C sets a cancel flag, and progress is
//! reported.

use crate::errors::native_error;
use iodock_import::Progress;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Interval at which Python's signal handlers run and progress is reported.
const TURN: Duration = Duration::from_millis(50);

/// State shared by the working thread and the waiting thread.
#[derive(Default)]
pub struct Door {
    pub cancel: Arc<AtomicBool>,
    progress: Mutex<Progress>,
}

impl Door {
    /// Stores the progress, which Python receives at the next interval.
    pub fn note(&self, progress: Progress) {
        if let Ok(mut noted) = self.progress.lock() {
            *noted = progress;
        }
    }

    fn noted(&self) -> Progress {
        self.progress.lock().map(|noted| *noted).unwrap_or_default()
    }
}

/// Runs `work` on a separate thread, without the GIL.
///
/// # Errors
/// A signal handler raised an exception (such as `KeyboardInterrupt`), which is returned when the work has
/// ended; `tell` raised an exception; or the work panicked (`NativeError`).
pub fn through<T: Send>(
    py: Python<'_>,
    tell: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Door) -> T + Send,
) -> PyResult<T> {
    let door = Door::default();
    let (done, ended) = mpsc::channel();
    let mut raised = None;
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work(&door);
            // The receiver still exists, because it waits for this message, so sending cannot fail.
            let _ = done.send(());
            result
        });
        let mut ended = ended;
        loop {
            let (back, turn) = py.detach(move || {
                let turn = ended.recv_timeout(TURN);
                (ended, turn)
            });
            ended = back;
            match turn {
                Err(RecvTimeoutError::Timeout) => take_turn(py, tell, &door, &mut raised),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if worker.is_finished() {
                break;
            }
        }
        py.detach(|| worker.join())
    });
    match (raised, result) {
        (Some(error), _) => Err(error),
        (None, Ok(value)) => Ok(value),
        (None, Err(panic)) => Err(native_error(py, panic_text(&*panic), "please report this", 1)),
    }
}

fn take_turn(py: Python<'_>, tell: Option<&Bound<'_, PyAny>>, door: &Door, raised: &mut Option<PyErr>) {
    let told = py.check_signals().and_then(|()| match tell {
        Some(tell) if raised.is_none() => {
            let now = door.noted();
            tell.call1((now.bytes, now.total_bytes, now.calls)).map(|_| ())
        }
        _ => Ok(()),
    });
    if let Err(error) = told {
        door.cancel.store(true, Ordering::Relaxed);
        raised.get_or_insert(error);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("iodock has a bug: {}", text.unwrap_or("panic"))
}
