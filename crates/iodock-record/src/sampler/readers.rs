//! Reads the counters in a thread for which no other thread waits: reading a file of a dead file system may
//! hang in the kernel forever, and no signal ends such a thread. Then the recorder abandons the thread, and a
//! new one reads the other sources.

use super::batch::Batch;
use super::Settings;
use crate::clock::Clock;
use crate::locks::lock;
use iodock_event::Sample;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Number of rounds after which a source that does not respond is reported and not read any more.
const SILENT_ROUNDS: u32 = 3;

/// Parameters of a reading.
#[derive(Clone, Debug)]
pub struct Ask {
    pub root: PathBuf,
    /// Time of the reading, ns since the epoch.
    pub now: i64,
    /// Processes that are being recorded.
    pub processes: Vec<u32>,
}

pub type Source = (&'static str, fn(&Ask, &mut Batch));

/// Failures of a source.
#[derive(Debug, Default)]
struct Trouble {
    /// Number of unreadable lines in the worst round. It is not a sum, because the same damaged line appears
    /// in each round.
    unreadable: u64,
    refused: Option<(PathBuf, String)>,
}

/// State of the reading thread.
#[derive(Debug, Default)]
struct State {
    /// Source that is being read, and the time when its reading began.
    reading: Option<(&'static str, Instant)>,
    is_left_behind: bool,
    troubles: BTreeMap<&'static str, Trouble>,
}

/// Data of the reading thread.
struct Reader {
    sources: Vec<Source>,
    root: PathBuf,
    clock: Clock,
    state: Arc<Mutex<State>>,
    to: Arc<Mutex<Vec<Sample>>>,
}

pub struct Readers {
    sources: Vec<Source>,
    settings: Settings,
    clock: Clock,
    to: Arc<Mutex<Vec<Sample>>>,
    state: Arc<Mutex<State>>,
    /// Sender of requests to the thread. `None` if there is no thread.
    asks: Option<Sender<Vec<u32>>>,
    warnings: Vec<String>,
}

impl Readers {
    /// Starts the reading thread. It adds samples to `to`, perhaps even after the recording.
    pub fn start(
        sources: &[Source],
        settings: &Settings,
        clock: Clock,
        to: Arc<Mutex<Vec<Sample>>>,
    ) -> Readers {
        let (sources, settings) = (sources.to_vec(), settings.clone());
        let (state, asks, warnings) = (Arc::default(), None, Vec::new());
        let mut readers = Readers { sources, settings, clock, to, state, asks, warnings };
        readers.start_thread();
        readers
    }

    fn start_thread(&mut self) {
        let (asks, asked) = channel();
        let reader = Reader {
            sources: self.sources.clone(),
            root: self.settings.root.clone(),
            clock: self.clock,
            state: self.state.clone(),
            to: self.to.clone(),
        };
        let name = "iodock-counters".into();
        match thread::Builder::new().name(name).spawn(move || reader.answer(&asked)) {
            Ok(_) => self.asks = Some(asks),
            Err(error) => {
                self.warnings.push(format!("the machine could not be sampled: no thread for it: {error}"));
                self.asks = None;
            }
        }
    }

    /// Requests a reading of every source, if the last round is complete.
    pub fn ask(&mut self, processes: &[u32]) {
        self.leave_silent();
        if let (Some(asks), None) = (&self.asks, lock(&self.state).reading) {
            let _ = asks.send(processes.to_vec());
        }
    }

    /// Abandons the thread if a source does not respond, and continues without this source.
    fn leave_silent(&mut self) {
        let mut state = lock(&self.state);
        let Some((name, since)) = state.reading else { return };
        let seconds = since.elapsed();
        if seconds < self.settings.interval * SILENT_ROUNDS {
            return;
        }
        state.is_left_behind = true;
        let troubles = std::mem::take(&mut state.troubles);
        drop(state);
        self.state = Arc::new(Mutex::new(State { troubles, ..State::default() }));
        self.sources.retain(|(known, _)| *known != name);
        let seconds = seconds.as_secs_f64();
        self.warnings
            .push(format!("no answer from {name} for {seconds:.1} s: its samples are missing from then on"));
        self.start_thread();
    }

    /// Ends the thread, and returns warnings about missing data.
    pub fn finish(mut self) -> Vec<String> {
        self.leave_silent();
        let troubles = std::mem::take(&mut lock(&self.state).troubles);
        for (name, trouble) in troubles {
            if let Some((path, why)) = trouble.refused {
                self.warnings.push(format!("{} could not be sampled: {why}", path.display()));
            }
            if trouble.unreadable > 0 {
                let count = trouble.unreadable;
                self.warnings.push(format!("{name}: lines that could not be read, each time: {count}"));
            }
        }
        self.warnings
    }
}

impl Reader {
    fn answer(self, asked: &Receiver<Vec<u32>>) {
        let mut ask = Ask { root: self.root.clone(), now: 0, processes: Vec::new() };
        while let Ok(processes) = asked.recv() {
            (ask.processes, ask.now) = (processes, self.clock.now());
            for &source in &self.sources {
                if !self.read(source, &ask) {
                    return;
                }
            }
            lock(&self.state).reading = None;
        }
    }

    /// Reads one source. Returns false if the recorder has abandoned this thread.
    fn read(&self, (name, read): Source, ask: &Ask) -> bool {
        lock(&self.state).reading = Some((name, Instant::now()));
        let mut batch = Batch::default();
        read(ask, &mut batch);
        lock(&self.to).append(&mut batch.samples);
        let mut state = lock(&self.state);
        if batch.unreadable > 0 || batch.refused.is_some() {
            let trouble = state.troubles.entry(name).or_default();
            trouble.unreadable = trouble.unreadable.max(batch.unreadable);
            trouble.refused = trouble.refused.take().or(batch.refused);
        }
        !state.is_left_behind
    }
}

/// Runs `ask` on a separate thread, and returns its result if it is ready in time.
pub fn within<T: Send + 'static>(patience: Duration, ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (answer, answered) = channel();
    let run = move || {
        let _ = answer.send(ask());
    };
    thread::Builder::new().spawn(run).ok()?;
    answered.recv_timeout(patience).ok()
}
