//! Combines a recorder's journal and the files of its back end into one source.

use iodock_event::{Batch, Clock, RecordSource, SourceError};
use iodock_journal::{JournalReader, MAGIC};
use iodock_preload::calls::{self, Counts, Ending, Usages};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Calls that a back end recorded without decoding them.
pub enum RawCalls {
    /// The preloaded library recorded the calls.
    Rewritten(Box<calls::CallsSource>),
    /// The recorder's BPF programs in the kernel recorded the calls.
    Kernel(Box<iodock_bpf::calls::CallsSource>),
}

/// Returns the path of the file of raw calls that belongs to a journal.
pub fn calls_path(journal: &Path) -> PathBuf {
    journal.with_extension(calls::ENDING)
}

/// Opens the raw calls of a journal, including those that a killed recorder left in its session folder.
pub fn calls_beside(journal: &Path) -> Result<Option<RawCalls>, SourceError> {
    let path = calls_path(journal);
    if !path.exists() {
        return Ok(None);
    }
    if is_journal(&path) {
        return iodock_bpf::calls::CallsSource::open(&path)
            .map(|calls| Some(RawCalls::Kernel(Box::new(calls))));
    }
    let (file, session) = calls::recover(&path)?;
    calls::CallsSource::open(file, session).map(|calls| Some(RawCalls::Rewritten(Box::new(calls))))
}

/// Opens the raw calls of a recording in progress without changing its files. Returns `None` if they cannot
/// be read yet.
pub fn calls_growing(journal: &Path) -> Option<RawCalls> {
    let path = calls_path(journal);
    if is_journal(&path) {
        let reader = JournalReader::open(&path).ok()?.growing();
        return iodock_bpf::calls::CallsSource::of(reader, &path)
            .ok()
            .map(|calls| RawCalls::Kernel(Box::new(calls)));
    }
    let file = calls::CallsFile::open_growing(&path).ok()?;
    calls::CallsSource::open(file, None).ok().map(|calls| RawCalls::Rewritten(Box::new(calls)))
}

/// Returns whether the file is framed like a journal, as the BPF programs' records are.
fn is_journal(path: &Path) -> bool {
    let mut first = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == MAGIC
}

impl RawCalls {
    fn source(&mut self) -> &mut dyn RecordSource {
        match self {
            RawCalls::Rewritten(calls) => calls.as_mut(),
            RawCalls::Kernel(calls) => calls.as_mut(),
        }
    }

    /// Returns the tables of counters, if calls were counted instead of recorded.
    pub fn take_counts(&mut self) -> Option<Counts> {
        match self {
            RawCalls::Rewritten(calls) => calls.take_counts(),
            RawCalls::Kernel(_) => None,
        }
    }

    /// Returns where to find the resource usage of tasks, if the file of calls contains it.
    pub fn usages(&self) -> Option<Usages> {
        match self {
            RawCalls::Rewritten(calls) => Some(calls.usages()),
            RawCalls::Kernel(_) => None,
        }
    }

    /// Returns whether the page cache was recorded; `None` if the back end cannot record it.
    pub fn page_cache(&self) -> Option<&str> {
        match self {
            RawCalls::Rewritten(_) => None,
            RawCalls::Kernel(calls) => calls.page_cache(),
        }
    }

    /// Returns the time up to which a recording in progress is complete, in ns since the epoch, if the file
    /// contains it.
    pub fn until(&self) -> Option<i64> {
        match self {
            RawCalls::Rewritten(calls) => calls.until(),
            RawCalls::Kernel(_) => None,
        }
    }

    /// Returns the number of bytes of the file that are read.
    pub fn length(&self) -> u64 {
        match self {
            RawCalls::Rewritten(calls) => calls.progress().1.unwrap_or(0),
            RawCalls::Kernel(calls) => calls.length(),
        }
    }

    fn progress(&self) -> (u64, Option<u64>) {
        match self {
            RawCalls::Rewritten(calls) => calls.progress(),
            RawCalls::Kernel(calls) => calls.progress(),
        }
    }
}

/// Opens the journal of calls that ptrace traced while another back end recorded. Returns `None` if it cannot
/// be read: then it was not flushed when its recorder was killed, and the main journal reports that already.
pub fn traced_beside(journal: &Path, is_growing: bool) -> Option<Arc<Mutex<JournalReader>>> {
    let reader = JournalReader::open(journal.with_extension(calls::TRACED_ENDING)).ok()?;
    Some(Arc::new(Mutex::new(if is_growing { reader.growing() } else { reader })))
}

/// A journal as the source of a stream, followed by the raw calls. The part of the recording keeps a second
/// handle to the journal.
pub struct JournalAndCalls {
    journal: Arc<Mutex<JournalReader>>,
    calls: Option<RawCalls>,
    /// Whether the journal has been read to its end.
    over: bool,
}

impl JournalAndCalls {
    pub fn new(journal: Arc<Mutex<JournalReader>>, calls: Option<RawCalls>) -> Self {
        JournalAndCalls { journal, calls, over: false }
    }

    fn reader(&self) -> MutexGuard<'_, JournalReader> {
        self.journal.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Passes the end of the first process, which the journal contains, to the calls.
    fn tell_ending(&mut self) {
        let ending = self.reader().closing().map(|closing| Ending {
            exit_code: closing.exit_code,
            signal: closing.exit_signal.clone(),
            time: closing.end,
        });
        if let (Some(ending), Some(RawCalls::Rewritten(calls))) = (ending, &mut self.calls) {
            calls.set_ending(ending);
        }
    }
}

impl RecordSource for JournalAndCalls {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        if !self.over {
            if let Some(batch) = self.reader().next_batch()? {
                return Ok(Some(batch));
            }
            self.over = true;
            self.tell_ending();
        }
        self.calls.as_mut().map_or(Ok(None), |calls| calls.source().next_batch())
    }

    fn recycle(&mut self, batch: Batch) {
        match &mut self.calls {
            Some(calls) if self.over => calls.source().recycle(batch),
            _ => self.reader().recycle(batch),
        }
    }

    fn go_on(&mut self) -> Result<(), SourceError> {
        self.over = false;
        self.reader().go_on()?;
        self.calls.as_mut().map_or(Ok(()), |calls| calls.source().go_on())
    }

    fn until(&self) -> Option<i64> {
        self.calls.as_ref().and_then(RawCalls::until)
    }

    fn clock(&self) -> Clock {
        self.reader().clock()
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let (done, all) = self.reader().progress();
        let (more, more_in_all) = self.calls.as_ref().map_or((0, Some(0)), RawCalls::progress);
        (done + more, all.zip(more_in_all).map(|(all, more)| all + more))
    }
}
