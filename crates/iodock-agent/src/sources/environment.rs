//! Reads environments of processes in separate threads. The kernel takes a memory lock of the process for
//! that. A process that hangs in a page fault of a dead file system holds this lock for ever.

use super::is_gone;
use super::jobs::{self, Job};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Only this much of a longer environment is read.
const LONGEST_BYTES: u64 = 1 << 20;
/// Time limit for one environment, within the deadline.
const PATIENCE: Duration = Duration::from_millis(500);
/// Each stuck read blocks a thread until its process continues. After this number, no more are read.
const MOST_STUCK: usize = 4;

/// The result of reading an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Said(Said),
    /// The process has ended.
    Gone,
}

/// Empty if the environment may not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub job: Option<Job>,
    /// See [`jobs::names_of_environment`].
    pub names: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The results for all environments.
#[derive(Debug, Default)]
pub struct Answers {
    /// In the order of the request, up to the first that was not read. Files that did not answer have an
    /// empty result.
    pub said: Vec<Answer>,
    pub stuck: Vec<PathBuf>,
    /// Set if no thread could be started.
    pub error: Option<io::Error>,
}

/// Reads environments for at most `budget`. One that hangs is skipped.
pub fn ask(paths: &[PathBuf], budget: Duration) -> Answers {
    let until = Instant::now() + budget;
    let patience = PATIENCE.min(budget / (2 * MOST_STUCK as u32));
    let mut answers = Answers::default();
    while answers.said.len() < paths.len() && answers.stuck.len() < MOST_STUCK && Instant::now() < until {
        let rest = &paths[answers.said.len()..];
        match read(rest.to_vec(), patience, until) {
            Ok(found) => answers.said.extend(found),
            Err(error) => {
                answers.error = Some(error);
                break;
            }
        }
        if let Some(path) = paths.get(answers.said.len()).filter(|_| Instant::now() < until) {
            answers.stuck.push(path.clone());
            answers.said.push(Answer::Said(Said::default()));
        }
    }
    answers
}

/// Reads those that answer within `patience` each. Errors: no thread can be started.
fn read(paths: Vec<PathBuf>, patience: Duration, until: Instant) -> io::Result<Vec<Answer>> {
    let found: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let (done, is_done) = channel::<()>();
    let answers = Arc::downgrade(&found);
    // The thread is never joined, since it may hang for ever. Its end of the channel is dropped when it
    // finishes.
    let run = move || {
        let _done = done;
        answer(&paths, &answers);
    };
    thread::Builder::new().name("environments".into()).spawn(run)?;
    let mut before = 0;
    loop {
        let is_late = is_done.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_late || found.len() == before || Instant::now() >= until {
            return Ok(std::mem::take(&mut *found));
        }
        before = found.len();
    }
}

/// Stops when the answers are no longer needed.
fn answer(paths: &[PathBuf], answers: &Weak<Mutex<Vec<Answer>>>) {
    let mut buffer = Vec::new();
    for path in paths {
        let said = said_in(path, &mut buffer);
        let Some(answers) = answers.upgrade() else { return };
        answers.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }
}

fn said_in(path: &Path, buffer: &mut Vec<u8>) -> Answer {
    buffer.clear();
    match File::open(path).and_then(|file| file.take(LONGEST_BYTES).read_to_end(buffer)) {
        Ok(_) => {
            let names = jobs::names_of_environment(buffer);
            Answer::Said(Said { job: jobs::of_environment(buffer), names })
        }
        Err(error) if is_gone(&error) => Answer::Gone,
        Err(_) => Answer::Said(Said::default()),
    }
}
