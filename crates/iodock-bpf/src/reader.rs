//! Reads records from the CPUs' buffers.

use crate::calls::rounds;
use crate::format::{cpu, CHUNK};
use crate::programs::Programs;
use crate::record::Record;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads the buffers. `tails` has its position in each CPU's buffer, in bytes since the beginning.
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

    /// Appends all records to `out`, with a part for each CPU, and frees their space. Calls `look` with the
    /// records, except for those of a single word. Returns the largest number of bytes of one CPU.
    pub fn drain(&mut self, out: &mut Vec<u64>, mut look: impl FnMut(Record)) -> u64 {
        // All positions are read before the copying, which takes longer, so that they belong to nearly the
        // same time.
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

    /// Returns the records before `head` in the reader's chunk, and the position after them.
    fn rest_of_chunk(&self, at: usize, head: u64) -> (&'a [u64], u64) {
        let tail = self.tails[at];
        let size = self.programs.buffer_size;
        let start = at * size + tail as usize % size;
        let length = (CHUNK - tail as usize % CHUNK).min((head - tail) as usize);
        // SAFETY: the words are before `head`, so they are written; their space is not free until `tail`
        // moves past it.
        (unsafe { self.programs.buffers.words(start, length / 8) }, tail + length as u64)
    }

    fn field(&self, at: usize, field: usize) -> &'a AtomicU64 {
        self.programs.cpus.word(at * cpu::SIZE + field)
    }
}

/// Calls `look` with the records. Returns the records without the padding after the last record of a chunk.
fn looked_at<'a>(words: &'a [u64], look: &mut impl FnMut(Record)) -> &'a [u64] {
    let mut taken = 0;
    loop {
        // Most records have one word and need no attention. They are skipped without computing their lengths.
        taken += words[taken..].iter().take_while(|&&word| Record::is_one_word(word)).count();
        let Some(record) = Record::first_of(&words[taken..]) else { return &words[..taken] };
        look(record);
        taken += record.words.len();
    }
}
