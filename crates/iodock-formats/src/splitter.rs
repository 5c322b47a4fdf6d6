//! Divides a log into chunks of whole lines.

use crate::input::{read_error, read_up_to};
use crate::Input;
use iodock_event::SourceError;
use std::io::Read;
use std::sync::Arc;

/// Number of bytes that are kept of a line that is too long, to show in a message.
const KEPT_OF_LONG_LINE: usize = 256;

/// The text of one chunk.
#[derive(Debug, Default)]
pub struct Piece {
    /// Position of the chunk in the log, counted from 0.
    pub sequence: u64,
    pub first_line: u64,
    pub line_count: u64,
    /// Buffer with the text at its front.
    pub bytes: Vec<u8>,
    pub at_end: bool,
    /// Whether the compressed data end too early, because the file was cut or damaged.
    pub damaged: bool,
    /// A line that was too long to keep.
    pub too_long: Option<LongLine>,
}

/// A line that is longer than the limit: its number, its beginning, and whether all its bytes were NUL.
#[derive(Debug)]
pub struct LongLine {
    pub line: u64,
    pub beginning: Vec<u8>,
    pub all_nul: bool,
}

/// Reads the log. One thread at a time may use it.
pub struct Splitter {
    reader: Box<dyn Read + Send>,
    pub file: Arc<str>,
    compressed: bool,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    next_line: u64,
    next_sequence: u64,
    chunk_size: usize,
    longest_line: usize,
    ended: bool,
    damaged: bool,
    /// Beginning of the lines of a stack; `None` if no stacks follow the lines of calls.
    stacks: Option<&'static [u8]>,
}

/// Beginnings of the lines of a stack, after a newline, in logs of strace and perf trace. These lines belong
/// to the line of a call above them.
const STACKS: [&[u8]; 2] = [b"\n > ", b"\n                    "];

/// Returns the position at which the last line begins that may begin a chunk. In a log with stacks, a line
/// that belongs to a call above it may not. It is unknown whether that is so for a line that is not read yet.
fn last_break(bytes: &[u8], stacks: Option<&[u8]>) -> Option<usize> {
    let mut begins = memchr::memrchr_iter(b'\n', bytes).map(|at| at + 1);
    let Some(beginning) = stacks else { return begins.next() };
    begins.find(|&begin| {
        let line = &bytes[begin..];
        !line.starts_with(beginning) && !beginning.starts_with(line)
    })
}

impl Splitter {
    pub fn new(input: Input, chunk_size: usize, longest_line: usize) -> Splitter {
        let begins = |line: &&&[u8]| memchr::memmem::find(input.head(), line).is_some();
        Splitter {
            stacks: STACKS.iter().find(begins).map(|line| &line[1..]),
            file: Arc::clone(input.file()),
            compressed: input.is_compressed(),
            next_line: input.first_line(),
            reader: input.into_reader(),
            rest: Vec::new(),
            next_sequence: 0,
            chunk_size: chunk_size.max(1),
            longest_line: longest_line.max(KEPT_OF_LONG_LINE),
            ended: false,
            damaged: false,
        }
    }

    /// Fills `piece` with the next whole lines. Returns `false` at the end.
    pub fn next(&mut self, piece: &mut Piece) -> Result<bool, SourceError> {
        if self.ended {
            return Ok(false);
        }
        let bytes = &mut piece.bytes;
        bytes.clear();
        bytes.append(&mut self.rest);
        piece.too_long = None;
        let end = loop {
            let searched = bytes.len();
            let wanted = searched + self.chunk_size;
            if let Err(error) = read_up_to(&mut self.reader, bytes, wanted) {
                if !self.compressed {
                    self.ended = true;
                    return Err(read_error(&self.file, self.next_line - 1, &error));
                }
                self.damaged = true;
                self.ended = true;
            }
            let from = if self.stacks.is_some() { 0 } else { searched };
            if self.ended || bytes.len() < wanted {
                self.ended = true;
                break bytes.len();
            }
            match last_break(&bytes[from..], self.stacks) {
                Some(at) => break from + at,
                None if bytes.len() > self.longest_line => {
                    // A call may have a long stack of many lines, so a cut inside the stack is allowed here.
                    if let Some(at) = last_break(bytes, None).filter(|_| self.stacks.is_some()) {
                        break at;
                    }
                    piece.too_long = Some(self.skip_long_line(bytes));
                    break bytes.len();
                }
                None => {}
            }
        };
        self.rest.extend_from_slice(&bytes[end..]);
        bytes.truncate(end);
        self.number(piece);
        Ok(true)
    }

    fn number(&mut self, piece: &mut Piece) {
        piece.first_line = self.next_line;
        let newlines = memchr::memchr_iter(b'\n', &piece.bytes).count() as u64;
        let unended = piece.bytes.last().is_some_and(|&last| last != b'\n');
        piece.line_count = newlines + u64::from(unended) + u64::from(piece.too_long.is_some());
        if let Some(long) = &mut piece.too_long {
            long.line = self.next_line + newlines;
        }
        self.next_line += piece.line_count;
        piece.sequence = self.next_sequence;
        self.next_sequence += 1;
        piece.at_end = self.ended;
        piece.damaged = self.damaged;
    }

    /// Removes the incomplete last line from `bytes` and skips the rest of it. The text that follows the line
    /// in the last block becomes the beginning of the next chunk.
    fn skip_long_line(&mut self, bytes: &mut Vec<u8>) -> LongLine {
        let start = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let line = &bytes[start..];
        let beginning = line[..line.len().min(KEPT_OF_LONG_LINE)].to_vec();
        let mut all_nul = line.iter().all(|&byte| byte == 0);
        bytes.truncate(start);
        let mut block = Vec::with_capacity(self.chunk_size);
        loop {
            block.clear();
            let failed = read_up_to(&mut self.reader, &mut block, self.chunk_size).is_err();
            let end = memchr::memchr(b'\n', &block);
            all_nul &= block[..end.unwrap_or(block.len())].iter().all(|&byte| byte == 0);
            if let Some(end) = end {
                self.rest.extend_from_slice(&block[end + 1..]);
            }
            if end.is_some() || failed || block.is_empty() {
                self.damaged |= failed;
                self.ended |= failed || block.is_empty();
                return LongLine { line: 0, beginning, all_nul };
            }
        }
    }
}
