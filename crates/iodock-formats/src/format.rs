//! What a format is.

use crate::Input;
use iodock_event::{Batch, Clock, FirstLoss, LossKind, RecordSource, SourceError};
use std::sync::Arc;

/// How to read a log.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Parsing threads. 0: none, the caller's own thread parses, for many logs at a time.
    pub workers: usize,
    /// Bytes of log that one thread parses at a time; grows for longer lines.
    pub chunk_size: usize,
    /// Bytes of the longest line that is read; longer ones are a loss.
    pub longest_line: usize,
    /// Take the thread id of lines that show none from the numeric ending of the log's name (`log.1234`,
    /// as `strace -ff` names its files).
    pub tid_from_name: bool,
    /// Only these lines, which are taken for one log. `None`: all, which must be one log.
    pub lines: Option<LineRange>,
}

/// Lines of a log, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    pub first: u64,
    /// `None`: to the end.
    pub last: Option<u64>,
}

/// Parsed chunks of each thread that may wait for the caller: threads need not stand still while it is busy.
const AHEAD: usize = 8;
/// Of all threads together, as long as each has one: memory must not grow with the machine.
const MOST_AHEAD: usize = 32;

impl ReadOptions {
    /// Chunks of a log that may be in memory at a time.
    pub fn chunks_ahead(&self) -> usize {
        (self.workers * AHEAD).min(MOST_AHEAD.max(self.workers)) + 1
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            workers: 2,
            chunk_size: 256 << 10,
            longest_line: 16 << 20,
            tid_from_name: true,
            lines: None,
        }
    }
}

/// The beginning of a log, to recognise it by.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The first lines, uncompressed; may end in the middle of one.
    pub bytes: &'a [u8],
    /// The log's path as given, `-` for standard input.
    pub file: &'a str,
}

/// A chunk of whole lines.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// With their newlines (`\n` or `\r\n`).
    pub bytes: &'a [u8],
    /// Number of the first line, counted from 1.
    pub first_line: u64,
    /// The log's path as given.
    pub file: &'a Arc<str>,
    /// Does the log end here? Only then may the last line lack its newline.
    pub at_end: bool,
}

impl<'a> Lines<'a> {
    /// One after the other.
    pub fn numbered(&self) -> impl Iterator<Item = NumberedLine<'a>> {
        let (mut rest, mut number, at_end) = (self.bytes, self.first_line, self.at_end);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
            number += 1;
            Some(NumberedLine {
                number: number - 1,
                text: line.strip_suffix(b"\r").unwrap_or(line),
                is_cut: end.is_none() && at_end,
            })
        })
    }
}

/// A line of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct NumberedLine<'a> {
    /// Counted from 1, from the beginning of the log.
    pub number: u64,
    /// Without its newline.
    pub text: &'a [u8],
    /// Does the log end in this line, before its newline?
    pub is_cut: bool,
}

impl NumberedLine<'_> {
    /// What it is if it can't be read.
    pub fn loss(&self) -> LossKind {
        if self.is_cut {
            LossKind::CutLines
        } else if self.text.contains(&0) {
            LossKind::NulBytes
        } else {
            LossKind::UnreadableLines
        }
    }
}

/// A chunk's records, and what the reader's own in-order step needs besides (`notes`).
#[derive(Debug, Default)]
pub struct Chunk<N> {
    /// `counts.lines` is filled by the framework.
    pub batch: Batch,
    pub notes: N,
}

impl<N> Chunk<N> {
    /// Counts a loss, remembering the first place of each kind.
    pub fn lose_at(&mut self, kind: LossKind, file: &Arc<str>, line: u64, text: &[u8]) {
        self.batch.losses.add_at(kind, || FirstLoss {
            file: file.to_string(),
            line,
            sample: crate::places::sample(text),
        });
    }
}

/// Reads one log. Shared by the parsing threads, so what changes while reading lives in `State`.
pub trait LogReader: Send + Sync + 'static {
    /// What [`LogReader::parse`] tells [`LogReader::settle`] about a chunk.
    type Notes: Default + Send + 'static;
    /// What is carried from chunk to chunk.
    type State: Default + Send + 'static;

    fn clock(&self) -> Clock;

    /// ns of a time stamp's last digit; `None` where there are no stamps.
    fn resolution(&self) -> Option<i64> {
        None
    }

    /// The step before the parallel one, in the log's order: what `parse` must know of the chunks before.
    /// Serial too, so only for logs that need it.
    fn scan(&self, _lines: &Lines<'_>, _notes: &mut Self::Notes) {}

    /// The parallel step: fills `chunk` from `lines`. Each line becomes a record, known noise, or a
    /// loss. Chunks come in any order.
    fn parse(&self, lines: &Lines<'_>, chunk: &mut Chunk<Self::Notes>);

    /// The in-order step: joins what crosses chunk borders (unfinished calls, midnights, sums of
    /// relative stamps). Called once for each chunk, in the log's order. Keep it short: it is serial.
    fn settle(&self, state: &mut Self::State, chunk: &mut Chunk<Self::Notes>);

    /// Lines at which other logs begin, behind the first one in the same file. Asked after the last chunk.
    fn beginnings<'a>(&self, _state: &'a Self::State) -> &'a [u64] {
        &[]
    }

    /// After the last chunk: what is still unfinished. `chunk` is a new, empty one.
    fn finish(&self, state: &mut Self::State, chunk: &mut Chunk<Self::Notes>);
}

/// Records of a log.
pub trait LogSource: RecordSource {
    /// [`LogFormat::name`] of the log's format.
    fn format(&self) -> &'static str;
    /// ns of a time stamp's last digit, by which calls of several logs can be ordered or not; `None`
    /// where it is not known.
    fn resolution(&self) -> Option<i64>;
}

/// A kind of log.
pub trait LogFormat: Sync {
    /// What `--format` calls it.
    fn name(&self) -> &'static str;

    /// How sure the format is that this is one of its logs: 0 not, 100 without doubt.
    fn confidence(&self, head: &Head<'_>) -> u8;

    /// Is this a line that it prints for a call, from the first byte on? Only such lines show what was put before them.
    fn owns(&self, line: &[u8]) -> bool;

    /// Starts reading `input`, whose beginning is `input.head()`. Most formats do
    /// `Ok(Box::new(crate::start(self.name(), reader, input, options)))`.
    fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError>;
}
