//! Batches on the local disk until the collector keeps them. They survive the agent's end at any moment, and the
//! machine's but for the last rounds that were not synced yet; of a full disk and beyond the limit the oldest are
//! dropped and counted. Whoever puts a batch in never waits for the disk.

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

/// In memory, while the disk can't be written to or does not answer.
const MOST_WAITING: usize = 8 << 20;
/// A file is begun anew beyond that: what is dropped or sent is one of them, at most.
const SEGMENT_BYTES: u64 = 2 << 20;

/// Gets notes for people.
pub type Say = Box<dyn Fn(&str) + Send + Sync>;

pub struct Spool {
    folder: PathBuf,
    id: SpoolId,
    limit: u64,
    shared: Mutex<Shared>,
    /// There is something to write.
    put: Condvar,
    /// There is something to send.
    written: Condvar,
    wish: Mutex<Wish>,
    say: Say,
    _lock: File,
}

#[derive(Default)]
struct Shared {
    waiting: VecDeque<(u64, Vec<u8>)>,
    waiting_bytes: usize,
    /// The oldest first; the last is the one that is written.
    segments: VecDeque<Segment>,
    /// Of batches; the next one's.
    next: u64,
    /// The collector keeps all up to this one.
    kept: u64,
    lost: u64,
    /// Some were lost, and the collector has not said anything since.
    is_gap_unknown: bool,
    state: State,
    /// Counts what is written.
    writes: u64,
}

/// Of a spool, as it is shown in /metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// In files.
    pub bytes: u64,
    /// Batches that the collector does not keep yet.
    pub waiting: u64,
    /// Since the spool was made: for lack of room, refused or damaged.
    pub lost: u64,
    /// Since the agent began.
    pub kept: u64,
    pub damaged: u64,
    pub refused: u64,
    pub push_failures: u64,
}

/// Frames to be sent, and where they lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub bytes: Vec<u8>,
    pub first: u64,
    pub last: u64,
    pub frames: u64,
    /// Segment, and what follows the load in it.
    end: (u64, u64),
}

impl Load {
    /// Only where it ended.
    pub fn sent(self) -> Self {
        Load { bytes: Vec::new(), ..self }
    }
}

impl Spool {
    /// Opens the spool, or makes it, and starts the thread that writes.
    ///
    /// # Errors
    /// Those of [`Folder::open`].
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
            // The next agent must not count them again.
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

    /// For the next batch.
    pub fn number(&self) -> u64 {
        let mut shared = self.shared();
        shared.next += 1;
        shared.next - 1
    }

    /// The number of the last batch that was made.
    pub fn made(&self) -> u64 {
        self.shared().next - 1
    }

    /// All batches up to that number are safe on the disk, kept by the collector, or lost and counted.
    pub fn safe(&self) -> u64 {
        let shared = self.shared();
        shared.segments.iter().map(|segment| segment.last).fold(shared.kept, u64::max)
    }

    /// Batches that were lost since the spool was made.
    pub fn lost(&self) -> u64 {
        self.shared().lost
    }

    pub fn lose(&self, count: u64) {
        self.shared().lose(count);
    }

    /// Takes a batch that is to be kept. Numbers must grow.
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

    /// What is to be sent next, at most `most` bytes or one frame; `None` if the collector has all. `after` is the
    /// load before: what is kept of it is not read again.
    pub fn load(&self, after: &Load, most: usize) -> Option<Load> {
        let (kept, segments) = {
            let shared = self.shared();
            (shared.kept, shared.segments.clone())
        };
        segments.iter().filter(|segment| segment.unkept(kept) > 0).find_map(|segment| {
            let is_behind = after.end.0 == segment.first && after.last <= kept;
            let begin = if is_behind { after.end.1 } else { 0 };
            // It may have been dropped just now.
            let bytes = read(&segment.path(&self.folder), begin, segment.bytes).ok()?;
            load(&bytes, segment.first, begin, kept, most)
        })
    }

    /// Waits until something was written since `writes` was this function's answer.
    pub fn wait(&self, writes: u64) -> u64 {
        let shared = self.shared();
        let shared = self.written.wait_while(shared, |shared| shared.writes == writes);
        shared.unwrap_or_else(PoisonError::into_inner).writes
    }

    /// The collector keeps all up to `kept`. What it need not be sent any more goes.
    pub fn keep(&self, kept: u64, is_full_wanted: bool) {
        let is_gap_unknown = {
            let mut shared = self.shared();
            let before = shared.segments.iter().map(|segment| segment.unkept(shared.kept)).sum::<u64>();
            shared.kept = shared.kept.max(kept);
            let after = shared.segments.iter().map(|segment| segment.unkept(shared.kept)).sum::<u64>();
            shared.state.kept += before - after;
            // It keeps what this spool has not made yet: the disk went back to an older state.
            let is_ahead = kept >= shared.next;
            shared.next = shared.next.max(kept.saturating_add(1));
            shared.is_gap_unknown |= is_ahead;
            shared.is_gap_unknown
        };
        // A full round that is on its way may be what was lost in part: then it is asked for once that is there.
        if (is_full_wanted || is_gap_unknown) && self.wish().ask(kept) {
            self.shared().is_gap_unknown = false;
        }
        self.forget_kept();
    }

    /// The first frame of a load is refused whatever is done: it is set aside. Gives where, or why not.
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

    /// Removes files whose frames are all kept, but the one that is written.
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

/// The frames of `bytes` after `kept`, which lie in a segment from `begin` on.
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
