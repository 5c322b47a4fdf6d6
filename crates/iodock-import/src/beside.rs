//! A recorder's journal and what its back end kept beside it, as one source.

use iodock_event::{Batch, Clock, RecordSource, SourceError};
use iodock_journal::JournalReader;
use iodock_preload::calls::{self, CallsSource, Ending};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// The raw calls that lie beside a journal, with what a killed recorder left in its session.
pub fn calls_beside(journal: &Path) -> Result<Option<CallsSource>, SourceError> {
    let path = journal.with_extension(calls::ENDING);
    if !path.exists() {
        return Ok(None);
    }
    let (file, session) = calls::recover(&path)?;
    CallsSource::open(file, session).map(Some)
}

/// A journal as a stream's source, and behind it the calls kept beside it; the part keeps the other hand on
/// the journal.
pub struct JournalAndCalls {
    journal: Arc<Mutex<JournalReader>>,
    calls: Option<CallsSource>,
    /// The journal has been read.
    over: bool,
}

impl JournalAndCalls {
    pub fn new(journal: Arc<Mutex<JournalReader>>, calls: Option<CallsSource>) -> Self {
        JournalAndCalls { journal, calls, over: false }
    }

    fn reader(&self) -> MutexGuard<'_, JournalReader> {
        self.journal.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The journal tells how the first process ended.
    fn tell_ending(&mut self) {
        let ending = self.reader().closing().map(|closing| Ending {
            exit_code: closing.exit_code,
            signal: closing.exit_signal.clone(),
            time: closing.end,
        });
        if let (Some(ending), Some(calls)) = (ending, &mut self.calls) {
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
        self.calls.as_mut().map_or(Ok(None), CallsSource::next_batch)
    }

    fn recycle(&mut self, batch: Batch) {
        match &mut self.calls {
            Some(calls) if self.over => calls.recycle(batch),
            _ => self.reader().recycle(batch),
        }
    }

    fn clock(&self) -> Clock {
        self.reader().clock()
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let (done, all) = self.reader().progress();
        let (more, more_in_all) = self.calls.as_ref().map_or((0, Some(0)), CallsSource::progress);
        (done + more, all.zip(more_in_all).map(|(all, more)| all + more))
    }
}
