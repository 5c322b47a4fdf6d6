//! The open call of each thread in a chunk, and the times at which the thread appeared.

use iodock_event::{CallId, UNKNOWN};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A call that has begun.
#[derive(Clone, Debug)]
pub struct Begun {
    pub call: CallId,
    /// Start time in ns, the same as in the call's `Enter` record.
    pub start: i64,
    /// Position in the chunk of the text of the arguments shown so far.
    pub text: Range<usize>,
    pub line: u64,
}

/// Times of a thread's first and last line in a chunk, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub tid: u32,
    pub first: i64,
    pub last: i64,
}

struct Thread {
    /// Times of the first and the last line; [`UNKNOWN`] before the thread's first line with a time.
    span: Span,
    open: Option<Begun>,
    met: bool,
}

/// The threads that appeared in a chunk, and their open calls.
#[derive(Default)]
pub struct Threads {
    slots: FxHashMap<u32, u32>,
    all: Vec<Thread>,
    /// Slot + 1 of each recently used thread, 0 for none. In most logs a few threads alternate.
    recent: [u32; RECENT],
}

const RECENT: usize = 32;

impl Threads {
    /// Returns the thread's open call, and whether the thread appears for the first time in the chunk.
    #[inline]
    pub fn meet(&mut self, tid: u32) -> (&mut Option<Begun>, bool) {
        let thread = self.thread(tid);
        let new = !std::mem::replace(&mut thread.met, true);
        (&mut thread.open, new)
    }

    /// Notes that the thread has a line at this time. Returns the time of its previous line; [`UNKNOWN`] if
    /// there is none.
    #[inline]
    pub fn seen(&mut self, tid: u32, time: i64) -> i64 {
        let span = &mut self.thread(tid).span;
        if span.first == UNKNOWN {
            span.first = time;
        }
        std::mem::replace(&mut span.last, time)
    }

    #[inline]
    fn thread(&mut self, tid: u32) -> &mut Thread {
        let recent = self.recent[tid as usize % RECENT].wrapping_sub(1) as usize;
        if self.all.get(recent).is_some_and(|thread| thread.span.tid == tid) {
            return &mut self.all[recent];
        }
        self.look_up(tid)
    }

    fn look_up(&mut self, tid: u32) -> &mut Thread {
        let next = self.all.len() as u32;
        let slot = *self.slots.entry(tid).or_insert(next);
        if slot == next {
            let span = Span { tid, first: UNKNOWN, last: UNKNOWN };
            self.all.push(Thread { span, open: None, met: false });
        }
        self.recent[tid as usize % RECENT] = slot + 1;
        &mut self.all[slot as usize]
    }

    /// Returns the times of the first and last lines of the threads, for threads with a known time.
    pub fn spans(&self) -> Vec<Span> {
        self.all.iter().map(|thread| thread.span).filter(|span| span.first != UNKNOWN).collect()
    }

    /// Returns the calls that are still open, and their threads.
    pub fn into_open(self) -> impl Iterator<Item = (u32, Begun)> {
        self.all.into_iter().filter_map(|thread| thread.open.map(|begun| (thread.span.tid, begun)))
    }
}
