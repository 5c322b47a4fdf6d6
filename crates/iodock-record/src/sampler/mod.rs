//! Samples the state of the machine once a second, because it may explain a slow period later.
//!
//! The thread that wakes the recorder reads no file. A separate thread reads the counters (see [`readers`]),
//! because a file that does not respond may block a thread forever.

mod batch;
mod lustre;
mod machine;
mod readers;

pub use machine::{process_blocks, process_io};

use crate::clock::Clock;
use crate::control::{wake, Control};
use crate::locks::lock;
use batch::Batch;
use iodock_event::{Mount, Sample};
use readers::{Ask, Readers, Source};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the recorder is woken again after a signal or cancelling.
const PULSE: Duration = Duration::from_millis(100);
/// Time limit for reading the mount table before the program starts.
const MOUNT_PATIENCE: Duration = Duration::from_secs(2);

/// Sources, each with the name of a file for messages about it.
const SOURCES: [Source; 6] = [
    ("proc/diskstats", machine::disks),
    ("proc/pressure", machine::pressure),
    ("proc/loadavg", machine::load),
    ("proc/self/mountstats", machine::nfs),
    ("llite.*.stats", lustre::llite),
    ("proc/PID/io", machine::processes),
];

#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder that contains /proc and /sys. Tests use another one.
    pub root: PathBuf,
    pub interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { root: "/".into(), interval: Duration::from_secs(1) }
    }
}

/// Samples the machine until the recording is finished, and wakes the recorder for its flush and after
/// signals. Returns warnings about sources that did not respond or could not be read.
pub fn tick(clock: &Clock, control: &Control, settings: &Settings) -> Vec<String> {
    let mut readers = Readers::start(&SOURCES, settings, *clock, control.sample_box());
    let mut next = Instant::now();
    let mut seen = control.received();
    let mut urgent = 0;
    while !control.finished.load(SeqCst) {
        let received = control.received();
        if received != seen || control.is_cancelled() {
            seen = received;
            // The recorder is woken several times, because the first signal may arrive just before it begins
            // to wait, and because it may have to react to a signal twice.
            urgent = 10;
        }
        let due = Instant::now() >= next;
        if due {
            next = Instant::now() + settings.interval;
            readers.ask(&lock(&control.processes));
        }
        if due || urgent > 0 {
            urgent = i32::max(urgent - 1, 0);
            wake();
        }
        thread::park_timeout(PULSE);
    }
    readers.finish()
}

/// Samples every source of the machine once, in the calling thread.
pub fn sample(root: &Path, now: i64, samples: &mut Vec<Sample>) {
    let ask = Ask { root: root.into(), now, processes: Vec::new() };
    for (_, read) in SOURCES {
        let mut batch = Batch::default();
        read(&ask, &mut batch);
        samples.append(&mut batch.samples);
    }
}

/// Returns the mount table. If it does not respond, adds a warning and returns an empty table.
pub fn mounts(root: &Path, warnings: &mut Vec<String>) -> Vec<Mount> {
    let path = root.to_path_buf();
    readers::within(MOUNT_PATIENCE, move || machine::mounts(&path)).unwrap_or_else(|| {
        let name = root.join("proc/self/mountinfo");
        warnings.push(format!("no answer from {}: the mounts are not known", name.display()));
        Vec::new()
    })
}
