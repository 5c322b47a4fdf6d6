//! Environments of processes, read by threads of their own: the kernel takes a lock of the process's memory for
//! it, and a process that hangs in a page fault of a dead file system holds that lock for ever.

use super::is_gone;
use super::jobs::{self, Job};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// An environment of more than this is read in part.
const LONGEST_BYTES: u64 = 1 << 20;
/// For one environment, where the deadline allows it.
const PATIENCE: Duration = Duration::from_millis(500);
/// Each holds a thread until its process goes on; then the rest is not read.
const MOST_STUCK: usize = 4;

/// What an environment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Said(Said),
    /// The process has ended.
    Gone,
}

/// Of an environment that may not be read, nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub job: Option<Job>,
    /// See [`jobs::names_of_environment`].
    pub names: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What environments say.
#[derive(Debug, Default)]
pub struct Answers {
    /// In the order of the question, up to what was not read; nothing of a file that did not answer.
    pub said: Vec<Answer>,
    pub stuck: Vec<PathBuf>,
    /// No thread could be started.
    pub error: Option<io::Error>,
}

/// Reads environments, at most for `budget`. One that hangs is left out.
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

/// As many as answer, each within `patience`. Errors: no thread can be started.
fn read(paths: Vec<PathBuf>, patience: Duration, until: Instant) -> io::Result<Vec<Answer>> {
    let found: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let (done, is_done) = channel::<()>();
    let answers = Arc::downgrade(&found);
    // Never joined: it may hang for ever. Its end of the channel falls when it is through.
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

/// Ends when nobody wants the answers any more.
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
