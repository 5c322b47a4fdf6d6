//! The machine's name, read like everything else by a thread that may hang.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// HOST_NAME_MAX of Linux, with room.
const LONGEST_BYTES: u64 = 256;

/// A question that is on its way.
pub struct Question(Receiver<io::Result<String>>);

impl Question {
    /// What is the name of the machine whose files lie below `root`?
    pub fn ask(root: PathBuf) -> Question {
        let (answer, answered) = channel();
        // Without a thread nobody answers, and that is told like any silence.
        let _ = thread::Builder::new().name("host".into()).spawn(move || answer.send(name(&root)));
        Question(answered)
    }

    /// Waits for `patience` from `begin`; without an answer the name is empty. Errors: there is no such root.
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
