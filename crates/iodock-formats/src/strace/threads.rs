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
    /// Slots + 1 of threads met lately, 0 for none: a few take turns in most logs.
    recent: [u32; RECENT],
}

const RECENT: usize = 32;

impl Threads {
    /// The thread's open call, and whether this is its first line in the chunk.
    #[inline]
    pub fn meet(&mut self, tid: u32) -> (&mut Option<Begun>, bool) {
        let recent = self.recent[tid as usize % RECENT].wrapping_sub(1) as usize;
        if self.open.get(recent).is_some_and(|(thread, _)| *thread == tid) {
            return (&mut self.open[recent].1, false);
        }
        self.look_up(tid)
    }

    fn look_up(&mut self, tid: u32) -> (&mut Option<Begun>, bool) {
        let next = self.open.len() as u32;
        let slot = *self.slots.entry(tid).or_insert(next);
        let new = slot == next;
        if new {
            self.open.push((tid, None));
        }
        self.recent[tid as usize % RECENT] = slot + 1;
        (&mut self.open[slot as usize].1, new)
    }

    /// The calls still open, with their threads.
    pub fn into_open(self) -> impl Iterator<Item = (u32, Begun)> {
        self.open.into_iter().filter_map(|(tid, begun)| begun.map(|begun| (tid, begun)))
    }
}
