//! The machine's own state, once a second: what explains a slow moment later.

mod lustre;
mod machine;

pub use machine::{mounts, process_blocks, process_io};

use crate::clock::Clock;
use crate::control::{lock, wake, Control};
use iodock_event::{Sample, SampleKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

/// How often a signal or cancellation that the recorder has not noticed is repeated.
const PULSE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Settings {
    /// Where /proc and /sys are found; another folder in tests.
    pub root: PathBuf,
    pub interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { root: "/".into(), interval: Duration::from_secs(1) }
    }
}

/// Samples until the recording is finished, and wakes the recorder for its flush and its news.
pub fn tick(clock: &Clock, control: &Control, settings: &Settings) {
    let mut next = Instant::now();
    let mut seen = control.received();
    let mut urgent = 0;
    while !control.finished.load(SeqCst) {
        let received = control.received();
        if received != seen || control.is_cancelled() {
            seen = received;
            // Some repeats: the first may have come just before the recorder began to wait, and what it
            // does about a signal may want a second look.
            urgent = 10;
        }
        let due = Instant::now() >= next;
        if due {
            next = Instant::now() + settings.interval;
            let mut samples = Vec::new();
            sample(&settings.root, clock.now(), &mut samples);
            let processes = lock(&control.processes).clone();
            for pid in processes {
                process_io(&settings.root.join("proc"), pid, clock.now(), &mut samples);
            }
            control.give_samples(&mut samples);
        }
        if due || urgent > 0 {
            urgent = i32::max(urgent - 1, 0);
            wake();
        }
        thread::park_timeout(PULSE);
    }
}

/// Every source once.
pub fn sample(root: &Path, now: i64, samples: &mut Vec<Sample>) {
    machine::disks(root, now, samples);
    machine::pressure(root, now, samples);
    machine::load(root, now, samples);
    machine::nfs(root, now, samples);
    lustre::llite(root, now, samples);
}

fn push(samples: &mut Vec<Sample>, ts: i64, names: (&str, &str, &str), value: f64, kind: SampleKind) {
    let (source, target, metric) = names;
    samples.push(Sample {
        ts,
        source: source.into(),
        target: target.into(),
        metric: metric.into(),
        value,
        kind,
    });
}
