//! Keeps batches on the local disk until the collector has stored them. They survive the agent's end at any
//! moment. They also survive a crash of the machine, except for rounds that were not synced yet. If the disk
//! is full or the limit is reached, the oldest batches are dropped and counted. Adding a batch never waits
//! for the disk.

mod folder;
mod segment;
mod wish;
mod writer;

pub use wish::Wish;

use folder::{set_aside, Folder, Saved};
use iodock_samples::batch::SpoolId;
use segment::{read, Frames, Segment};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Largest number of bytes of batches in memory, while the disk cannot be written or does not respond.
const MOST_WAITING: usize = 8 << 20;
/// Size in bytes at which the agent starts a new file. Dropping or sending affects at most one file.
const SEGMENT_BYTES: u64 = 2 << 20;

/// Function that receives notes for people.
pub type Say = Box<dyn Fn(&str) + Send + Sync>;

pub struct Spool {
    folder: PathBuf,
    id: SpoolId,
    limit: u64,
    shared: Mutex<Shared>,
    /// Signals that a batch waits to be written.
    put: Condvar,
    /// Signals that a batch has been written and can be sent.
    written: Condvar,
    wish: Mutex<Wish>,
    say: Say,
    _lock: File,
}

#[derive(Default)]
struct Shared {
    waiting: VecDeque<(u64, Vec<u8>)>,
    waiting_bytes: usize,
    /// Files, the oldest first. The last one is the file that is being written.
    segments: VecDeque<Segment>,
    /// Number of the next batch.
    next: u64,
    /// Number of the batch up to which the collector has stored all batches.
    kept: u64,
    lost: u64,
    /// Whether batches were lost and the collector may not know this yet.
    is_gap_unknown: bool,
    state: State,
    /// Number of writes so far.
    writes: u64,
}

/// State of a spool, which /metrics shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Number of bytes in files.
    pub bytes: u64,
    /// Number of batches that the collector has not stored yet.
    pub waiting: u64,
    /// Number of batches lost since the spool was created: refused, damaged, or dropped for lack of room.
    pub lost: u64,
    /// Number of batches that the collector has stored since the agent started.
    pub kept: u64,
    pub damaged: u64,
    pub refused: u64,
    pub push_failures: u64,
}

/// Frames to send, and their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub bytes: Vec<u8>,
    pub first: u64,
    pub last: u64,
    pub frames: u64,
    /// Segment and offset at which the next load begins.
    end: (u64, u64),
}

impl Load {
    /// Returns the load without its bytes, which keeps its end position.
    pub fn sent(self) -> Self {
        Load { bytes: Vec::new(), ..self }
    }
}

impl Spool {
    /// Opens or creates the spool, and starts the thread that writes it.
    ///
    /// # Errors
    /// Fails like [`Folder::open`].
    pub fn open(path: &Path, limit: u64, say: Say) -> io::Result<Arc<Spool>> {
        let folder = Folder::open(path)?;
        let next = folder.next();
        if folder.damaged > 0 {
            say(&format!(
                "note: spool: batches that were cut or damaged, and are left out: {}",
                folder.damaged
            ));
        }
        let lost = folder.state.lost + folder.damaged;
        let state = State { damaged: folder.damaged, ..State::default() };
        let shared = Shared { next, kept: folder.state.kept, lost, state, ..Shared::default() };
        let shared = Shared { segments: folder.segments, is_gap_unknown: folder.damaged > 0, ..shared };
        if folder.damaged > 0 {
            // The state is saved now, so that the next agent does not count the damaged frames again.
            shared.saved().write(&folder.path);
        }
        let spool = Arc::new(Spool {
            folder: folder.path,
            id: folder.id,
            limit,
            shared: Mutex::new(shared),
            put: Condvar::new(),
            written: Condvar::new(),
            wish: Mutex::default(),
            say,
            _lock: folder.lock,
        });
        spool.forget_kept();
        let writes = Arc::clone(&spool);
        thread::Builder::new().name("spool".into()).spawn(move || writer::write(&writes))?;
        Ok(spool)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wish(&self) -> MutexGuard<'_, Wish> {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn id(&self) -> SpoolId {
        self.id
    }

    /// Returns the number for the next batch.
    pub fn number(&self) -> u64 {
        let mut shared = self.shared();
        shared.next += 1;
        shared.next - 1
    }

    /// Returns the number of the last batch that was made.
    pub fn made(&self) -> u64 {
        self.shared().next - 1
    }

    /// Returns the number of the last batch up to which all are safe on the disk, stored by the collector, or
    /// lost and counted.
    pub fn safe(&self) -> u64 {
        let shared = self.shared();
        shared.segments.iter().map(|segment| segment.last).fold(shared.kept, u64::max)
    }

    /// Returns the number of batches lost since the spool was created.
    pub fn lost(&self) -> u64 {
        self.shared().lost
    }

    pub fn lose(&self, count: u64) {
        self.shared().lose(count);
    }

    /// Adds a batch. Its number must be larger than that of the previous one.
    pub fn put(&self, sequence: u64, frame: Vec<u8>) {
        let mut shared = self.shared();
        shared.waiting_bytes += frame.len();
        shared.waiting.push_back((sequence, frame));
        while shared.waiting_bytes > MOST_WAITING.min(self.limit as usize) {
            let Some((_, oldest)) = shared.waiting.pop_front() else { break };
            shared.waiting_bytes -= oldest.len();
            shared.lose(1);
        }
        self.put.notify_one();
    }

    pub fn state(&self) -> State {
        let shared = self.shared();
        let waiting = shared.segments.iter().map(|segment| segment.unkept(shared.kept)).sum::<u64>();
        State {
            bytes: shared.segments.iter().map(|segment| segment.bytes).sum(),
            waiting: waiting + shared.waiting.len() as u64,
            lost: shared.lost,
            ..shared.state
        }
    }

    /// Returns the next batches to send: at most `most` bytes, or one frame. Returns `None` if the collector
    /// has all batches. `after` is the previous load; if the collector has stored it, its part of the file is
    /// not read again.
    pub fn load(&self, after: &Load, most: usize) -> Option<Load> {
        let (kept, segments) = {
            let shared = self.shared();
            (shared.kept, shared.segments.clone())
        };
        segments.iter().filter(|segment| segment.unkept(kept) > 0).find_map(|segment| {
            let is_behind = after.end.0 == segment.first && after.last <= kept;
            let begin = if is_behind { after.end.1 } else { 0 };
            // The writing thread may have dropped the file just now.
            let bytes = read(&segment.path(&self.folder), begin, segment.bytes).ok()?;
            load(&bytes, segment.first, begin, kept, most)
        })
    }

    /// Waits until the writing thread has written something since this function returned `writes`.
    pub fn wait(&self, writes: u64) -> u64 {
        let shared = self.shared();
        let shared = self.written.wait_while(shared, |shared| shared.writes == writes);
        shared.unwrap_or_else(PoisonError::into_inner).writes
    }

    /// Records that the collector has stored all batches up to `kept`, and removes files that are no longer
    /// needed.
    pub fn keep(&self, kept: u64, is_full_wanted: bool) {
        let is_gap_unknown = {
            let mut shared = self.shared();
            let before = shared.segments.iter().map(|segment| segment.unkept(shared.kept)).sum::<u64>();
            shared.kept = shared.kept.max(kept);
            let after = shared.segments.iter().map(|segment| segment.unkept(shared.kept)).sum::<u64>();
            shared.state.kept += before - after;
            // If the collector has batches that this spool has not created yet, the disk was restored to an
            // older state.
            let is_ahead = kept >= shared.next;
            shared.next = shared.next.max(kept.saturating_add(1));
            shared.is_gap_unknown |= is_ahead;
            shared.is_gap_unknown
        };
        // The lost data may belong to a full round that is still waiting. Another one is requested only after
        // that has arrived.
        if (is_full_wanted || is_gap_unknown) && self.wish().ask(kept) {
            self.shared().is_gap_unknown = false;
        }
        self.forget_kept();
    }

    /// Handles a load of which the collector refuses the first frame: saves this frame in another file and
    /// counts it as lost. Returns the path, or the error.
    pub fn refuse(&self, load: &Load) -> String {
        let Some(found) = Frames::of(&load.bytes).next() else { return String::new() };
        let aside = set_aside(&self.folder, found.sequence, &load.bytes[found.begin..found.end]);
        {
            let mut shared = self.shared();
            shared.kept = shared.kept.max(found.sequence);
            shared.lose(1);
            shared.state.refused += 1;
        }
        self.forget_kept();
        aside.map_or_else(|error| error.to_string(), |()| format!("{}/refused-*", self.folder.display()))
    }

    pub fn push_failed(&self) {
        self.shared().state.push_failures += 1;
    }

    /// Removes files whose frames the collector has stored, except for the file that is being written.
    fn forget_kept(&self) {
        let mut removed = Vec::new();
        let mut shared = self.shared();
        while shared.segments.len() > 1 && shared.segments[0].unkept(shared.kept) == 0 {
            removed.extend(shared.segments.pop_front());
        }
        let saved = shared.saved();
        drop(shared);
        if !removed.is_empty() {
            saved.write(&self.folder);
        }
        for segment in removed {
            let _ = fs::remove_file(segment.path(&self.folder));
        }
    }
}

impl Shared {
    fn lose(&mut self, count: u64) {
        self.lost += count;
        self.is_gap_unknown |= count > 0;
    }

    fn saved(&self) -> Saved {
        let damaged = self.segments.iter().filter(|segment| segment.damaged > 0);
        let damaged = damaged.map(|segment| (segment.first, segment.damaged)).collect();
        Saved { kept: self.kept, lost: self.lost, next: self.next, damaged }
    }
}

/// Returns the frames of `bytes` after number `kept`. `bytes` begins at offset `begin` of the segment.
fn load(bytes: &[u8], segment: u64, begin: u64, kept: u64, most: usize) -> Option<Load> {
    let mut load = Load::default();
    for found in Frames::of(bytes).filter(|found| found.sequence > kept) {
        let frame = &bytes[found.begin..found.end];
        if load.frames > 0 && load.bytes.len() + frame.len() > most {
            break;
        }
        if load.frames == 0 {
            load.first = found.sequence;
        }
        load.bytes.extend_from_slice(frame);
        load.frames += 1;
        (load.last, load.end) = (found.sequence, (segment, begin + found.end as u64));
    }
    (load.frames > 0).then_some(load)
}
