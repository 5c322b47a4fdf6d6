//! Reads the environments of processes in separate threads. For this the kernel takes a memory lock of the
//! process. A process that hangs in a page fault of a dead file system holds this lock forever.

use super::is_gone;
use super::jobs::{self, Job};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Number of bytes of an environment that are read. The rest of a longer one is ignored.
const LONGEST_BYTES: u64 = 1 << 20;
/// Time limit for one environment, which is shorter than the round's deadline.
const PATIENCE: Duration = Duration::from_millis(500);
/// Largest number of environments that hang. Each blocks a thread until its process continues. After this
/// number no further environments are read.
const MOST_STUCK: usize = 4;

/// The result of reading an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Said(Said),
    /// The process has ended before its environment was read.
    Gone,
}

/// Job and names in an environment. Both are empty if it may not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub job: Option<Job>,
    /// Jobs and their names (see [`jobs::names_of_environment`]).
    pub names: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Results for all environments.
#[derive(Debug, Default)]
pub struct Answers {
    /// Results in the order of the request, up to the first environment that was not read. The result is
    /// empty for an environment that hung.
    pub said: Vec<Answer>,
    pub stuck: Vec<PathBuf>,
    /// Error if no thread could be started.
    pub error: Option<io::Error>,
}

/// Reads environments for at most `budget`, and skips those that hang.
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

/// Reads environments until one takes longer than `patience`. Fails if no thread can be started.
fn read(paths: Vec<PathBuf>, patience: Duration, until: Instant) -> io::Result<Vec<Answer>> {
    let found: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let (done, is_done) = channel::<()>();
    let answers = Arc::downgrade(&found);
    // The caller never joins the thread, which may hang forever. Its end of the channel is dropped when it
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

/// Reads environments, and stops when the caller has dropped the list of answers.
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
