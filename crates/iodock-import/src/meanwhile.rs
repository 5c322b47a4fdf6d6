//! Makes the tables of a recording while its program runs, on an idle core, from the raw calls that the
//! recorder has written. The steps and their results are the same as after the end of the program. If
//! anything is unusual, all these tables are dropped, and the tables are made when the program has ended.

use crate::beside::calls_path;
use crate::idle::{self, Machine};
use crate::merge::Stream;
use crate::parts::{tracker_of, Counted, Part, Parts, Standing};
use crate::pipeline::{Progress, Running, Step};
use crate::recording::{finish_tables, RecordingSink};
use crate::{ImportError, ImportSummary};
use iodock_event::{Batch, Clock, RecordSource, SourceError};
use iodock_preload::calls::{CallsFile, CallsSource, Ending, Usages};
use iodock_store::{Manifest, StoreOptions, StoreWriter};
use iodock_tracker::DEFAULT_COVERAGE_BYTES;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Duration of a program, and number of bytes of its calls, from which tables are made early. For shorter
/// programs, making all tables at the end takes only a moment.
const BEGIN_AFTER: Duration = Duration::from_secs(3);
const BEGIN_BYTES: u64 = 4 << 20;
/// Interval at which the thread checks for new calls. The recorder writes once a second.
const LOOK: Duration = Duration::from_millis(500);
/// Interval at which the thread checks whether a core is idle again.
const BUSY: Duration = Duration::from_millis(300);
/// Number of rows tracked at a time. They take less than a millisecond of processor time, so the thread that
/// finishes the tables at the end of the recording need not wait long for this one.
const ROWS: usize = 1 << 11;
/// Longest time that the thread which finishes the tables waits for the low-priority encoder thread on a busy
/// machine. After that it makes all tables itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// Environment variable that selects when tables are made, for tests and for users.
const VARIABLE: &str = "IODOCK_TABLES";

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Tables are made while a core is idle, if the run is long.
    Idle,
    /// Tables are made from the beginning, also on a busy machine.
    Meanwhile,
    Afterwards,
}

fn when() -> When {
    match std::env::var(VARIABLE).as_deref() {
        Ok("meanwhile") => When::Meanwhile,
        Ok("afterwards") => When::Afterwards,
        _ => When::Idle,
    }
}

/// The threads that make tables for the recordings of this process.
static STARTED: Mutex<Vec<Meanwhile>> = Mutex::new(Vec::new());

/// A thread that makes tables of the recording at `store`.
pub struct Meanwhile {
    store: PathBuf,
    over: Arc<Over>,
    thread: JoinHandle<Option<Made>>,
}

/// Signals to the thread that the recording has ended.
#[derive(Default)]
struct Over {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    fn set(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until the recording has ended, but not longer than `most`. Returns whether it has ended.
    fn wait(&self, most: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_over, most, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Meanwhile {
    /// Starts to follow the recording at `store`, which a recorder of this process is about to make.
    pub fn begin(store: &Path) {
        let over = Arc::new(Over::default());
        let (place, end) = (store.to_path_buf(), Arc::clone(&over));
        let named = std::thread::Builder::new().name("iodock-tables".into());
        // If no thread can be created, the tables are made after the recording.
        let Ok(thread) = named.spawn(move || follow(&place, &end)) else { return };
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        started.push(Meanwhile { store: store.into(), over, thread });
    }

    /// Returns the tables made so far of the recording at `store`, which has ended.
    pub(crate) fn take(store: &Path) -> Option<Made> {
        let one = {
            let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
            let at = started.iter().position(|one| one.store == store)?;
            started.swap_remove(at)
        };
        one.over.set();
        let end = Instant::now() + PATIENCE;
        while !one.thread.is_finished() {
            if Instant::now() > end {
                // The thread drops its tables when it sees that the recording has ended.
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        one.thread.join().ok()?
    }

    /// Makes the threads drop the tables of recordings that this process does not finish.
    pub fn give_up() {
        let all = std::mem::take(&mut *STARTED.lock().unwrap_or_else(PoisonError::into_inner));
        all.iter().for_each(|one| one.over.set());
    }
}

/// The tables made so far. They are in the store's folder under a temporary name, which is removed when this
/// value is dropped.
pub(crate) struct Made {
    running: Running,
    sink: RecordingSink,
    usages: Usages,
    rest: Arc<Mutex<Option<Rest>>>,
    /// Number of records in the journal's first batches, which come before the calls.
    records: usize,
    /// Whether page faults are recorded. If so, the tracker remembers memory maps.
    has_faults: bool,
    journal: PathBuf,
}

/// The data that are known only when the recording has ended.
struct Rest {
    ending: Ending,
    batches: VecDeque<Batch>,
}

/// Yields the journal's first records, then the calls as they arrive, then the rest of the journal.
struct Source {
    first: VecDeque<Batch>,
    calls: CallsSource,
    rest: Arc<Mutex<Option<Rest>>>,
    last: VecDeque<Batch>,
}

impl RecordSource for Source {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        if let Some(first) = self.first.pop_front() {
            return Ok(Some(first));
        }
        let next = self.calls.next_batch()?;
        Ok(next.or_else(|| self.last.pop_front()))
    }

    fn recycle(&mut self, batch: Batch) {
        self.calls.recycle(batch);
    }

    fn is_waiting(&mut self) -> Result<bool, SourceError> {
        Ok(self.first.is_empty() && self.calls.is_waiting()?)
    }

    fn go_on(&mut self) -> Result<(), SourceError> {
        if let Some(rest) = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.calls.set_ending(rest.ending);
            self.last = rest.batches;
        }
        self.calls.go_on()
    }

    fn clock(&self) -> Clock {
        self.calls.clock()
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.calls.progress()
    }
}

/// Waits until making tables is worthwhile, then makes tables until the recording has ended. Returns `None`
/// if no usable tables were made.
fn follow(store: &Path, over: &Over) -> Option<Made> {
    idle::hear_no_signals();
    let when = when();
    if when == When::Afterwards {
        return None;
    }
    let began = Instant::now();
    let journal = store.join("journal");
    let length = || {
        let part = crate::parts::journals(&journal).ok()?;
        Some(calls_path(part.first()?).metadata().ok()?.len())
    };
    let is_long =
        |length: u64| when == When::Meanwhile || length >= BEGIN_BYTES && began.elapsed() >= BEGIN_AFTER;
    while !length().is_some_and(is_long) {
        if over.wait(LOOK) {
            return None;
        }
    }
    let mut machine = if when == When::Idle { Some(Machine::look()?) } else { None };
    if machine.is_some() && !(idle::has_memory() && idle::take_lowest_priority()) {
        return None;
    }
    let mut has_idle_core = || machine.as_mut().is_none_or(Machine::has_idle_core);
    while !has_idle_core() {
        if over.wait(BUSY) {
            return None;
        }
    }
    let mut made = Made::begin(store).ok()?;
    loop {
        // The recorder needs the remaining disk space.
        if !idle::has_room(store, length()?) {
            return None;
        }
        let wait = if has_idle_core() {
            match made.running.step(ROWS, &mut made.sink).ok()? {
                Step::More => Duration::ZERO,
                Step::Waiting => LOOK,
                Step::Over => return None,
            }
        } else {
            BUSY
        };
        if over.wait(wait) {
            return Some(made);
        }
        if wait == LOOK {
            made.running.go_on().ok()?;
        }
    }
}

impl Made {
    fn begin(store: &Path) -> Result<Made, ImportError> {
        let journal = store.join("journal");
        let parts = Parts::open_without_calls(&journal, Standing::InProgress)?;
        let part = only(&parts)?;
        let (mut first, mut records) = (VecDeque::new(), 0);
        while let Some(batch) = part.reader().next_batch()? {
            records += batch.records.len();
            // The losses and counts of the journal are added at the end.
            first.push_back(Batch { losses: Default::default(), counts: Default::default(), ..batch });
        }
        if records == 0 {
            return Err(unusual());
        }
        let file = CallsFile::open_followed(&calls_path(&part_path(&journal)?))?;
        let calls = CallsSource::open(file, None)?;
        let (usages, rest) = (calls.usages(), Arc::new(Mutex::new(None)));
        let source = Source { first, calls, rest: Arc::clone(&rest), last: VecDeque::new() };
        let stream = Stream::new(Box::new(source), 0)?;
        let mut tracker = tracker_of(&parts.open);
        let has_faults = part.faults.is_some();
        if has_faults {
            tracker.remember_maps();
        }
        let running = Running::new(vec![stream], tracker, DEFAULT_COVERAGE_BYTES)?;
        let writer = StoreWriter::create(store, StoreOptions { force: false, complete: true })?;
        let sink = RecordingSink::new(writer, Parts::default());
        Ok(Made { running, sink, usages, rest, records, has_faults, journal })
    }

    /// Makes the remaining tables, and completes the store.
    pub fn finish(
        mut self,
        manifest: Manifest,
        (progress, cancel): (&mut dyn FnMut(Progress), &AtomicBool),
    ) -> Result<ImportSummary, ImportError> {
        let mut parts = Parts::open_without_calls(&self.journal, Standing::Over)?;
        let mut batches = VecDeque::new();
        let mut records = 0;
        let part = only(&parts)?;
        while let Some(batch) = part.reader().next_batch()? {
            records += batch.records.len();
            batches.push_back(Batch { losses: batch.losses, counts: batch.counts, ..Batch::default() });
        }
        let closing = part.reader().closing().cloned();
        let is_usual = records == self.records && part.faults.is_some() == self.has_faults;
        let Some(closing) = closing.filter(|_| is_usual) else { return Err(unusual()) };
        let ending =
            Ending { exit_code: closing.exit_code, signal: closing.exit_signal.clone(), time: closing.end };
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Rest { ending, batches });
        self.running.go_on()?;
        parts.open[0].beside = self.usages.clone();
        self.sink.set_parts(parts);
        // The current encoder thread has the lowest priority, so a new one replaces it.
        if !self.sink.writer().renew_encoder(PATIENCE)? {
            // Dropping the store waits for the old encoder, so another thread does that.
            std::thread::spawn(move || drop(self));
            return Err(unusual());
        }
        let meanwhile = self.running.calls();
        let summary = finish_tables(self.running, self.sink, manifest, (progress, cancel))?;
        Ok(ImportSummary { meanwhile, ..summary })
    }
}

/// Returns the only part of the recording if all its calls are in one file. Several files would have to be
/// merged.
fn only(parts: &Parts) -> Result<&Part, ImportError> {
    match parts.open.as_slice() {
        [part] if parts.unreadable.is_empty() && part.traced.is_none() && part.counted == Counted::Nobody => {
            Ok(part)
        }
        _ => Err(unusual()),
    }
}

fn part_path(journal: &Path) -> Result<PathBuf, ImportError> {
    crate::parts::journals(journal)?.pop().ok_or_else(unusual)
}

/// Returns an error that users do not see, because the caller then makes the tables in the normal way.
fn unusual() -> ImportError {
    ImportError::Store { message: "the recording can't be followed".into(), hint: "open the store".into() }
}
