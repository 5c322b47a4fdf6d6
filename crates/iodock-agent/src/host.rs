//! Reads the machine's name in a separate thread, because the reading may hang.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Longest host name in bytes: HOST_NAME_MAX of Linux, with a margin.
const LONGEST_BYTES: u64 = 256;

/// A host name that a thread is reading.
pub struct Question(Receiver<io::Result<String>>);

impl Question {
    /// Starts reading the name of the machine whose /proc is below `root`.
    pub fn ask(root: PathBuf) -> Question {
        let (answer, answered) = channel();
        // If no thread can be started, the caller sees no answer, as after a timeout.
        let _ = thread::Builder::new().name("host".into()).spawn(move || answer.send(name(&root)));
        Question(answered)
    }

    /// Waits for `patience` from `begin`. Without an answer, the name is empty. Fails if the root does not
    /// exist.
    pub fn answer(self, begin: Instant, patience: Duration) -> io::Result<String> {
        self.0.recv_timeout(patience.saturating_sub(begin.elapsed())).unwrap_or_else(|_| Ok(String::new()))
    }
}

fn name(root: &Path) -> io::Result<String> {
    fs::read_dir(root)?;
    let mut name = Vec::new();
    let file = File::open(root.join("proc/sys/kernel/hostname"));
    let _ = file.and_then(|file| file.take(LONGEST_BYTES).read_to_end(&mut name));
    Ok(String::from_utf8_lossy(name.trim_ascii()).into_owned())
}
