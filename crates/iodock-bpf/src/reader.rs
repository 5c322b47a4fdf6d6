//! Reading the CPUs' buffers as one stream in the order of time.

use crate::format::{cpu, Kind, CHUNK, KINDS};
use crate::programs::{InCall, Programs};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

/// One record, as it lies in the buffer.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub words: &'a [u64],
}

/// A copied piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied<'a> {
    Bytes(&'a [u8]),
    Unreadable,
}

impl<'a> Record<'a> {
    #[inline]
    pub fn kind(&self) -> Kind {
        KINDS.get((self.words[0] >> 16 & 15) as usize).copied().unwrap_or(Kind::Padding)
    }

    #[inline]
    pub fn number(&self) -> usize {
        (self.words[0] >> 20 & 0xfff) as usize
    }

    #[inline]
    pub fn tid(&self) -> u32 {
        (self.words[0] >> 32) as u32
    }

    /// Monotonic ns.
    #[inline]
    pub fn time(&self) -> u64 {
        self.words[1]
    }

    /// The lower and the upper half of a word.
    #[inline]
    pub fn halves(&self, at: usize) -> (u32, u32) {
        (self.words[at] as u32, (self.words[at] >> 32) as u32)
    }

    /// The copied pieces that follow word `from`, by their number.
    pub fn pieces(&self, from: usize) -> [Option<Copied<'a>>; 3] {
        let mut found = [None; 3];
        let mut rest = &self.words[from..];
        while let Some((&head, after)) = rest.split_first() {
            let (length, index) = (head as u32, (head >> 32) as usize);
            let copied = if length == u32::MAX { 0 } else { length as usize };
            let Some((words, next)) = after.split_at_checked(copied.div_ceil(8)) else { break };
            let piece = if length == u32::MAX {
                Copied::Unreadable
            } else {
                // SAFETY: any bytes are valid, and `words` holds at least `copied` of them.
                Copied::Bytes(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), copied) })
            };
            if let Some(place) = found.get_mut(index) {
                *place = Some(piece);
            }
            rest = next;
        }
        found
    }
}

/// Where the reader is in each CPU's buffer, bytes since the beginning.
pub struct Reader<'a> {
    programs: &'a Programs,
    tails: Vec<u64>,
    heads: Vec<u64>,
}

impl<'a> Reader<'a> {
    pub fn new(programs: &'a Programs) -> Self {
        let count = programs.cpu_count;
        Reader { programs, tails: vec![0; count], heads: vec![0; count] }
    }

    /// Calls `take` with every record before `until` (monotonic ns), in the order of time, and gives the room
    /// back. `take` may also look at what comes later.
    pub fn drain(&mut self, until: u64, mut take: impl FnMut(Record, &Ahead)) {
        let mut heap = BinaryHeap::new();
        for at in 0..self.heads.len() {
            self.heads[at] = self.field(at, cpu::HEAD).load(Ordering::Acquire);
            if let Some(record) = self.next(at) {
                heap.push(Reverse((record.time(), at)));
            }
        }
        while let Some(Reverse((_, at))) = heap.pop() {
            // As far as the next CPU's first.
            let limit = heap.peek().map_or(until, |Reverse((time, _))| u64::min(*time, until));
            let mut next = self.next(at);
            while let Some(record) = next.filter(|record| record.time() <= limit) {
                take(record, &Ahead { programs: self.programs, tails: &self.tails });
                self.tails[at] += record.words.len() as u64 * 8;
                next = self.next(at);
            }
            self.field(at, cpu::TAIL).store(self.tails[at], Ordering::Release);
            if let Some(record) = next.filter(|record| record.time() <= until) {
                heap.push(Reverse((record.time(), at)));
            }
        }
    }

    fn field(&self, at: usize, field: usize) -> &'a AtomicU64 {
        self.programs.cpus.word(at * cpu::SIZE + field)
    }

    /// The first record of a CPU that is not taken yet.
    #[inline]
    fn next(&mut self, at: usize) -> Option<Record<'a>> {
        next(self.programs, at, &mut self.tails[at], self.heads[at])
    }
}

/// The first record at or behind `tail`, which moves over padding.
#[inline]
fn next<'a>(programs: &'a Programs, at: usize, tail: &mut u64, head: u64) -> Option<Record<'a>> {
    while *tail < head {
        let chunks = programs.chunk_count;
        let chunk = at * chunks + (*tail as usize / CHUNK) % chunks;
        let inside = *tail as usize % CHUNK;
        let start = chunk * CHUNK + inside;
        // SAFETY: before `head`, so written; not given back before the shared `tail` moves past it.
        let first = unsafe { programs.chunks.words(start, 1) }[0];
        let count = (first & 0xffff) as usize;
        if count > 1 && inside + count * 8 <= CHUNK {
            // SAFETY: as above.
            return Some(Record { words: unsafe { programs.chunks.words(start, count) } });
        }
        *tail += (CHUNK - inside) as u64;
    }
    None
}

/// What is in the buffers and not taken yet, and the calls that have not ended.
pub struct Ahead<'r> {
    programs: &'r Programs,
    tails: &'r [u64],
}

impl<'r> Ahead<'r> {
    /// Calls `look` with every record that is not taken yet, CPU by CPU, also those written since the drain
    /// began.
    pub fn records(&self, mut look: impl FnMut(Record<'r>)) {
        for (at, &tail) in self.tails.iter().enumerate() {
            let mut tail = tail;
            let head = self.programs.cpus.word(at * cpu::SIZE + cpu::HEAD).load(Ordering::Acquire);
            while let Some(record) = next(self.programs, at, &mut tail, head) {
                look(record);
                tail += record.words.len() as u64 * 8;
            }
        }
    }

    /// The call that a followed task is in now.
    pub fn in_call(&self, tid: u32) -> Option<InCall> {
        self.programs.in_call(tid)
    }
}
