//! Writes the records that were taken out of the buffers, on a separate thread: if the disk is slow, the
//! buffers must still be emptied.

use super::round::Round;
use super::{names, notes};
use crate::control::Control;
use crate::error::{RecordError, Refusal};
use crate::process;
use iodock_bpf::calls::{self, rounds};
use iodock_bpf::format::Kind;
use iodock_bpf::plans::Plans;
use iodock_bpf::record::{bytes_of, put_note};
use iodock_event::{Losses, TaskUsage};
use iodock_journal::{Closing, JournalError, JournalWriter};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of bytes that may wait to be written. Beyond it, records stay in the buffers until these are full.
const MOST_WAITING: usize = 256 << 20;
/// Interval at which samples and usages are written.
const TURN: Duration = Duration::from_secs(1);

/// Queue of records from the reader to the writer.
pub struct Queue {
    sender: Sender<Round>,
    spare: Receiver<Vec<u64>>,
    waiting: Arc<AtomicUsize>,
}

impl Queue {
    pub fn has_room(&self) -> bool {
        self.waiting.load(Relaxed) < MOST_WAITING
    }

    /// Returns memory for the next round, reused if possible.
    pub fn round(&self) -> Round {
        Round { words: self.spare.try_recv().unwrap_or_default(), ..Round::default() }
    }

    pub fn push(&self, round: Round) {
        self.waiting.fetch_add(round.words.len() * 8, Relaxed);
        // Sending can't fail, because the writer exists until this queue is dropped.
        let _ = self.sender.send(round);
    }
}

pub struct Keeper<'a> {
    journal: &'a mut JournalWriter,
    calls: JournalWriter,
    control: &'a Control,
    rounds: Receiver<Round>,
    spare: Sender<Vec<u64>>,
    waiting: Arc<AtomicUsize>,
    usages: Vec<TaskUsage>,
    lost: u64,
    told: Losses,
    failure: Option<String>,
}

/// Result of the writer.
pub struct Kept {
    pub failure: Option<String>,
    /// Number of records that could not be written.
    pub lost: u64,
    /// Losses that the journal contains.
    pub told: Losses,
}

impl<'a> Keeper<'a> {
    /// Creates the file of calls next to `journal`.
    ///
    /// # Errors
    /// Fails if the file can't be created.
    pub fn new(
        journal: &'a mut JournalWriter,
        control: &'a Control,
        plans: &Plans,
        (epoch, shows_pages): (i64, bool),
    ) -> Result<(Keeper<'a>, Queue), RecordError> {
        let path = journal.path().with_extension(calls::ENDING);
        let calls = JournalWriter::create(path, &calls::meta(epoch, plans, shows_pages))
            .map_err(|error| RecordError::Store(Refusal::new(error.to_string(), error.hint())))?;
        let (sender, rounds) = channel();
        let (spare, used) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let queue = Queue { sender, spare: used, waiting: Arc::clone(&waiting) };
        let (usages, failure) = (Vec::new(), None);
        let told = Losses::default();
        Ok((
            Keeper { journal, calls, control, rounds, spare, waiting, usages, lost: 0, told, failure },
            queue,
        ))
    }

    /// Writes rounds until the queue is dropped.
    pub fn run(mut self) -> Kept {
        let mut turn = Instant::now() + TURN;
        loop {
            match self.rounds.recv_timeout(turn.saturating_duration_since(Instant::now())) {
                Ok(round) => self.take(round),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= turn {
                self.write_side();
                turn = Instant::now() + TURN;
            }
        }
        self.write_side();
        let written = self.calls.written_bytes();
        let closed = self.calls.close(&Closing::default());
        self.journal.add_written(written);
        note(&mut self.failure, closed);
        Kept { failure: self.failure, lost: self.lost, told: self.told }
    }

    fn take(&mut self, mut round: Round) {
        self.usages.append(&mut round.usages);
        round.losses.counts.iter().for_each(|(&kind, &count)| self.journal.lose(kind, count));
        self.told.merge(&round.losses);
        round.mapped.iter().for_each(|mapped| self.control.faults.has_mapped(mapped));
        // /proc is read now, before processes end, but the notes are written after the round, because notes
        // must be in the order of time.
        let found = found_out(&round);
        // The file has the byte order of this machine, which is little endian.
        let result = self.calls.raw(bytes_of(&round.words));
        self.lost += if self.calls.has_failed() { rounds::records(&round.words) } else { 0 };
        note(&mut self.failure, result);
        if !found.is_empty() {
            let result = self.calls.raw(bytes_of(&found));
            note(&mut self.failure, result);
        }
        self.waiting.fetch_sub(round.words.len() * 8, Relaxed);
        round.words.clear();
        // At the end of a recording the reader no longer exists, so an error is ignored.
        let _ = self.spare.send(round.words);
    }

    fn write_side(&mut self) {
        let samples = self.control.take_samples();
        let usages = std::mem::take(&mut self.usages);
        let mut result = self.journal.flush();
        if !samples.is_empty() {
            result = result.and_then(|()| self.journal.samples(&samples));
        }
        if !usages.is_empty() {
            result = result.and_then(|()| self.journal.usages(&usages));
        }
        note(&mut self.failure, result);
    }
}

/// Reads facts about the processes of a round from /proc and returns them as notes. Environments and maps may
/// be gone a moment later.
fn found_out(round: &Round) -> Vec<u64> {
    let mut words = Vec::new();
    rounds::put_part(&mut words, rounds::NOTES, |out| {
        for &(pid, time) in &round.executed {
            if let Some(rank) = process::rank(pid) {
                put_note(out, Kind::Rank, pid, time, &[rank as u32 as u64], &[]);
            }
        }
        for of in &round.unnamed {
            if let Some(name) = names::find(of) {
                notes::named(out, of.tid, of.time, of.file, &name);
            }
        }
    });
    words
}

/// Stores the first failure.
fn note(failure: &mut Option<String>, result: Result<(), JournalError>) {
    if let Err(error) = result {
        failure.get_or_insert(format!("{error}; {}", error.hint()));
    }
}
