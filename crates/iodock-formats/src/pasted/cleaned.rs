//! A reader that restores a log as strace wrote it.

use super::shape::{Beginning, Lead};
use super::{text, Pasted};
use crate::strace;
use iodock_event::{FirstLoss, LossKind, Losses};
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

const BLOCK: usize = 256 << 10;
/// Number of bytes that are kept at the end of the data until more are read, so that no prefix, character or
/// entity is cut. All of these are shorter.
const AHEAD: usize = 4096;

/// The reader's position in the current line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    /// The reader is inside a line that is longer than a block.
    Inside,
    /// The reader leaves out the current line.
    LeftOut,
}

/// Removes text that other tools added to a log. The number of lines stays the same, so line numbers stay
/// valid.
pub struct Cleaned<R> {
    inner: R,
    pasted: Pasted,
    file: Arc<str>,
    losses: Arc<Mutex<Losses>>,
    /// Bytes that were read and are not cleaned yet.
    raw: Vec<u8>,
    /// Cleaned bytes. Those from `given` on have not been returned yet.
    out: Vec<u8>,
    given: usize,
    line: u64,
    at: At,
    /// Whether the current line continues in the next one. `joined` counts the lines joined to it so far.
    goes_on: bool,
    joined: usize,
    ended: bool,
    scratch: Vec<u8>,
}

impl<R: Read> Cleaned<R> {
    /// Makes a reader. `line` is the number of the first line; `losses` counts the lines that are left out.
    pub fn new(inner: R, pasted: Pasted, file: Arc<str>, line: u64, losses: Arc<Mutex<Losses>>) -> Self {
        Cleaned {
            inner,
            pasted,
            file,
            losses,
            raw: Vec::new(),
            out: Vec::new(),
            given: 0,
            line,
            at: At::Start,
            goes_on: false,
            joined: 0,
            ended: false,
            scratch: Vec::new(),
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let filled = self.raw.len();
        self.raw.resize(filled + BLOCK, 0);
        let read = self.inner.read(&mut self.raw[filled..]);
        self.raw.truncate(filled + *read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
        self.clean();
        Ok(())
    }

    /// Cleans whole lines, and also an unfinished line if it is long enough.
    fn clean(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        let mut at = 0;
        while at < raw.len() {
            let newline = memchr::memchr(b'\n', &raw[at..]).map(|end| at + end);
            match newline {
                Some(end) => {
                    self.piece(&raw[at..end]);
                    self.end_line();
                    (at, self.line, self.at) = (end + 1, self.line + 1, At::Start);
                }
                None if self.ended || raw.len() - at > 2 * AHEAD => {
                    // The cut must not divide a character or an entity.
                    let end = if self.ended { raw.len() } else { safe_end(&raw[..raw.len() - AHEAD]) };
                    self.piece(&raw[at..end]);
                    at = end;
                    if !self.ended {
                        break;
                    }
                    // A line that is left out is counted even if its end is missing.
                    if self.at == At::LeftOut {
                        self.out.push(b'\n');
                    }
                }
                None => break,
            }
        }
        self.raw = raw;
        self.raw.drain(..at);
    }

    /// Ends a line, or leaves it open if the next line continues it. Joined lines are replaced by empty ones,
    /// so that line numbers stay valid.
    fn end_line(&mut self) {
        if self.goes_on {
            self.joined += 1;
            return;
        }
        let lines = std::mem::take(&mut self.joined) + 1;
        self.out.resize(self.out.len() + lines, b'\n');
    }

    /// Cleans a line without its newline, or a piece of a long line.
    fn piece(&mut self, raw: &[u8]) {
        if self.at == At::LeftOut {
            return;
        }
        if self.pasted.rewritten.nothing() {
            return self.cut(raw, raw);
        }
        let mut line = std::mem::take(&mut self.scratch);
        line.clear();
        self.pasted.rewritten.put_back(raw, &mut line);
        self.cut(&line, raw);
        self.scratch = line;
    }

    fn cut(&mut self, line: &[u8], raw: &[u8]) {
        let at = std::mem::replace(&mut self.at, At::Inside);
        let shape = self.pasted.shape.as_ref().filter(|_| at == At::Start);
        let Some(shape) = shape else { return self.out.extend_from_slice(line) };
        match shape.beginning(line) {
            Beginning::Lead(Lead { length, tid, goes_on }) => {
                self.goes_on = goes_on;
                if let Some(tid) = tid {
                    self.out.extend_from_slice(&line[tid]);
                    self.out.push(b' ');
                }
                self.out.extend_from_slice(&line[length..]);
            }
            Beginning::Other => self.lose(LossKind::OtherSources, raw),
            Beginning::Lacking if strace::is_noise_line(line) => self.out.extend_from_slice(line),
            Beginning::Lacking => self.lose(LossKind::UnprefixedLines, raw),
        }
    }

    #[cold]
    fn lose(&mut self, kind: LossKind, line: &[u8]) {
        self.at = At::LeftOut;
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, number) = (&self.file, self.line);
        let sample = || crate::places::sample(line);
        losses.add_at(kind, || FirstLoss { file: file.to_string(), line: number, sample: sample() });
    }
}

/// Returns a position at which the text can be cut without dividing a character or an entity.
fn safe_end(text: &[u8]) -> usize {
    let tail = text.len().saturating_sub(text::LONGEST);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b' ';
    let entity = text[tail..].iter().rposition(|&byte| byte == b'&').map(|at| tail + at);
    let end = entity.unwrap_or(text.len());
    end - text[..end].iter().rev().take(4).take_while(|byte| !plain(byte)).count()
}

impl<R: Read> Read for Cleaned<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() {
            if self.ended {
                return Ok(0);
            }
            self.out.clear();
            self.given = 0;
            self.fill()?;
        }
        let rest = &self.out[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}
