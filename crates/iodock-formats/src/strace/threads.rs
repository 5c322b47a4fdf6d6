//! What each thread of a chunk is in the middle of, and when it was seen.

use iodock_event::{CallId, UNKNOWN};
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

/// Times of a thread's first and last line in a chunk, ns.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub tid: u32,
    pub first: i64,
    pub last: i64,
}

struct Thread {
    /// Both times [`UNKNOWN`] before its first line with a time.
    span: Span,
    open: Option<Begun>,
    met: bool,
}

/// Threads seen in a chunk, with their open calls.
#[derive(Default)]
pub struct Threads {
    slots: FxHashMap<u32, u32>,
    all: Vec<Thread>,
    /// Slots + 1 of threads met lately, 0 for none: a few take turns in most logs.
    recent: [u32; RECENT],
}

const RECENT: usize = 32;

impl Threads {
    /// The thread's open call, and whether it was never met in the chunk before.
    #[inline]
    pub fn meet(&mut self, tid: u32) -> (&mut Option<Begun>, bool) {
        let thread = self.thread(tid);
        let new = !std::mem::replace(&mut thread.met, true);
        (&mut thread.open, new)
    }

    /// The thread has a line of this time; gives that of its line before, [`UNKNOWN`] if there is none.
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

    /// When threads were seen: those of which a time is known.
    pub fn spans(&self) -> Vec<Span> {
        self.all.iter().map(|thread| thread.span).filter(|span| span.first != UNKNOWN).collect()
    }

    /// The calls still open, with their threads.
    pub fn into_open(self) -> impl Iterator<Item = (u32, Begun)> {
        self.all.into_iter().filter_map(|thread| thread.open.map(|begun| (thread.span.tid, begun)))
    }
}
