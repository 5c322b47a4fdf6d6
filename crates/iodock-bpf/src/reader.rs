//! Takes records out of the CPUs' buffers.

use crate::calls::rounds;
use crate::format::{cpu, CHUNK};
use crate::programs::Programs;
use crate::record::Record;
use std::sync::atomic::{AtomicU64, Ordering};

/// The reader's position in each CPU's buffer, bytes since the beginning.
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

    /// Appends all records to `out`, a part for each CPU, shows them to `look`, except those that need no
    /// attention, and frees their space. Returns the largest number of bytes of one CPU.
    pub fn drain(&mut self, out: &mut Vec<u64>, mut look: impl FnMut(Record)) -> u64 {
        // All positions are read at nearly the same time, because copying takes longer.
        for at in 0..self.heads.len() {
            self.heads[at] = self.field(at, cpu::HEAD).load(Ordering::Acquire);
        }
        let mut most = 0;
        for at in 0..self.heads.len() {
            let head = self.heads[at];
            most = most.max(head - self.tails[at]);
            if head == self.tails[at] {
                continue;
            }
            rounds::put_part(out, at as u32, |out| {
                while self.tails[at] < head {
                    let (words, next) = self.rest_of_chunk(at, head);
                    out.extend_from_slice(looked_at(words, &mut look));
                    self.tails[at] = next;
                }
            });
            self.field(at, cpu::TAIL).store(head, Ordering::Release);
        }
        most
    }

    /// The data before `head` in the reader's chunk; and where to continue.
    fn rest_of_chunk(&self, at: usize, head: u64) -> (&'a [u64], u64) {
        let tail = self.tails[at];
        let size = self.programs.buffer_size;
        let start = at * size + tail as usize % size;
        let length = (CHUNK - tail as usize % CHUNK).min((head - tail) as usize);
        // SAFETY: before `head`, so written; not given back before the shared `tail` moves past it.
        (unsafe { self.programs.buffers.words(start, length / 8) }, tail + length as u64)
    }

    fn field(&self, at: usize, field: usize) -> &'a AtomicU64 {
        self.programs.cpus.word(at * cpu::SIZE + field)
    }
}

/// Shows the records to `look`; returns them without the padding after the last record of a chunk.
fn looked_at<'a>(words: &'a [u64], look: &mut impl FnMut(Record)) -> &'a [u64] {
    let mut taken = 0;
    loop {
        // Most have one word and need no attention: skipped without computing where each next one begins.
        taken += words[taken..].iter().take_while(|&&word| Record::is_one_word(word)).count();
        let Some(record) = Record::first_of(&words[taken..]) else { return &words[..taken] };
        look(record);
        taken += record.words.len();
    }
}
