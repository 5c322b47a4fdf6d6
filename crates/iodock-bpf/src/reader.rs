//! Taking records out of the CPUs' buffers.

use crate::calls::rounds;
use crate::format::{cpu, CHUNK};
use crate::programs::Programs;
use crate::record::Record;
use std::sync::atomic::{AtomicU64, Ordering};

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

    /// Appends all records to `out`, a part for each CPU, shows them to `look`, and gives their room back.
    pub fn drain(&mut self, out: &mut Vec<u64>, mut look: impl FnMut(Record)) {
        // All at nearly the same time: copying takes longer.
        for at in 0..self.heads.len() {
            self.heads[at] = self.field(at, cpu::HEAD).load(Ordering::Acquire);
        }
        for at in 0..self.heads.len() {
            let head = self.heads[at];
            if head == self.tails[at] {
                continue;
            }
            rounds::put_part(out, at as u32, |out| {
                while self.tails[at] < head {
                    self.tails[at] = self.take_chunk(at, head, out, &mut look);
                }
            });
            self.field(at, cpu::TAIL).store(head, Ordering::Release);
        }
    }

    /// Takes what is before `head` in the chunk that the reader is in; where it goes on.
    fn take_chunk(&self, at: usize, head: u64, out: &mut Vec<u64>, look: &mut impl FnMut(Record)) -> u64 {
        let tail = self.tails[at];
        let chunks = self.programs.chunk_count;
        let chunk = at * chunks + (tail as usize / CHUNK) % chunks;
        let inside = tail as usize % CHUNK;
        let length = (CHUNK - inside).min((head - tail) as usize);
        // SAFETY: before `head`, so written; not given back before the shared `tail` moves past it.
        let words = unsafe { self.programs.chunks.words(chunk * CHUNK + inside, length / 8) };
        let mut taken = 0;
        while let Some(record) = Record::first_of(&words[taken..]) {
            look(record);
            taken += record.words.len();
        }
        out.extend_from_slice(&words[..taken]);
        // Behind the last record of a chunk is padding.
        tail + length as u64
    }

    fn field(&self, at: usize, field: usize) -> &'a AtomicU64 {
        self.programs.cpus.word(at * cpu::SIZE + field)
    }
}
