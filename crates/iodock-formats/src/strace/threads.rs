//! What each thread of a chunk is in the middle of.

use iodock_event::CallId;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A call that has begun.
#[derive(Clone, Debug)]
pub struct Begun {
    pub call: CallId,
    /// ns, as in its `Enter` record.
    pub start: i64,
    /// Its arguments so far, in the chunk's text.
    pub text: Range<usize>,
    pub line: u64,
}

/// Threads seen in a chunk, with their open calls.
#[derive(Default)]
pub struct Threads {
    slots: FxHashMap<u32, u32>,
    open: Vec<(u32, Option<Begun>)>,
    /// Neighbouring lines are often of one thread.
    recent: Option<(u32, u32)>,
}

impl Threads {
    /// The thread's open call, and whether this is its first line in the chunk.
    #[inline]
    pub fn meet(&mut self, tid: u32) -> (&mut Option<Begun>, bool) {
        if let Some((recent, slot)) = self.recent {
            if recent == tid {
                return (&mut self.open[slot as usize].1, false);
            }
        }
        let next = self.open.len() as u32;
        let slot = *self.slots.entry(tid).or_insert(next);
        let new = slot == next;
        if new {
            self.open.push((tid, None));
        }
        self.recent = Some((tid, slot));
        (&mut self.open[slot as usize].1, new)
    }

    /// The calls still open, with their threads.
    pub fn into_open(self) -> impl Iterator<Item = (u32, Begun)> {
        self.open.into_iter().filter_map(|(tid, begun)| begun.map(|begun| (tid, begun)))
    }
}
