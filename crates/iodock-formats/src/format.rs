//! The interface that each log format implements.

use crate::Input;
use iodock_event::{Batch, Clock, FirstLoss, LossKind, RecordSource, SourceError};
use std::sync::Arc;

/// Options for reading a log.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Number of parsing threads. With 0 the caller's own thread parses, which suits reading many logs at a
    /// time.
    pub workers: usize,
    /// Number of bytes that one thread parses at a time. It grows for longer lines.
    pub chunk_size: usize,
    /// Length in bytes of the longest line that is read. Longer lines are a loss.
    pub longest_line: usize,
    /// Whether lines without a thread id get it from the numeric ending of the log's name (`log.1234`, as
    /// `strace -ff` names its files).
    pub tid_from_name: bool,
    /// The lines to read, as one log. `None` means all lines, which must be a single log.
    pub lines: Option<LineRange>,
}

/// A range of lines of a log, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    pub first: u64,
    /// Last line of the range; `None` means the end of the log.
    pub last: Option<u64>,
}

/// Number of parsed chunks that each thread may queue while the caller is busy.
const AHEAD: usize = 8;
/// Limit of parsed chunks for all threads together, so that memory does not grow with the number of cores.
/// Each thread gets at least one chunk.
const MOST_AHEAD: usize = 32;

impl ReadOptions {
    /// Returns the number of chunks of a log that may be in memory at a time.
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

/// The beginning of a log, from which its format is recognised.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The first lines, uncompressed. The last one may be incomplete.
    pub bytes: &'a [u8],
    /// The log's path as given, `-` for standard input.
    pub file: &'a str,
}

/// A chunk of whole lines.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The bytes of the lines, including newlines (`\n` or `\r\n`).
    pub bytes: &'a [u8],
    /// Number of the first line, counted from 1.
    pub first_line: u64,
    /// The log's path as given.
    pub file: &'a Arc<str>,
    /// Whether the log ends with this chunk. Only then may the last line lack its newline.
    pub at_end: bool,
}

impl<'a> Lines<'a> {
    /// Iterates over the lines.
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

/// One line of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct NumberedLine<'a> {
    /// Number of the line, counted from 1 at the beginning of the log.
    pub number: u64,
    /// The bytes of the line, without the newline.
    pub text: &'a [u8],
    /// Whether the log ends in this line, which has no newline.
    pub is_cut: bool,
}

impl NumberedLine<'_> {
    /// Returns the kind of loss to count if the line cannot be read.
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

/// The records of a chunk, and `notes` for [`LogReader::settle`].
#[derive(Debug, Default)]
pub struct Chunk<N> {
    /// The records. The framework fills in `counts.lines`.
    pub batch: Batch,
    pub notes: N,
}

impl<N> Chunk<N> {
    /// Counts a loss, and stores the first place of each kind.
    pub fn lose_at(&mut self, kind: LossKind, file: &Arc<str>, line: u64, text: &[u8]) {
        self.batch.losses.add_at(kind, || FirstLoss {
            file: file.to_string(),
            line,
            sample: crate::places::sample(text),
        });
    }
}

/// Reads one log. The parsing threads share the reader, so `State` holds everything that changes during
/// reading.
pub trait LogReader: Send + Sync + 'static {
    /// Data about a chunk that [`LogReader::parse`] passes to [`LogReader::settle`].
    type Notes: Default + Send + 'static;
    /// State that the reader carries from chunk to chunk.
    type State: Default + Send + 'static;

    fn clock(&self) -> Clock;

    /// Returns the resolution of the time stamps in ns (the value of the last digit); `None` if there are no
    /// stamps.
    fn resolution(&self) -> Option<i64> {
        None
    }

    /// Finds facts about earlier chunks that `parse` needs. This step comes before the parallel one, in the
    /// log's order. It is serial, so only logs that need it use it.
    fn scan(&self, _lines: &Lines<'_>, _notes: &mut Self::Notes) {}

    /// Fills `chunk` from `lines`, in parallel with other chunks and in any order. Each line becomes a
    /// record, a known line without a record, or a loss.
    fn parse(&self, lines: &Lines<'_>, chunk: &mut Chunk<Self::Notes>);

    /// Joins parts that cross the borders of chunks (unfinished calls, midnights, sums of relative time
    /// stamps). It is called once for each chunk, in the log's order. It is serial, so it should be short.
    fn settle(&self, state: &mut Self::State, chunk: &mut Chunk<Self::Notes>);

    /// Returns the lines at which further logs begin in the same file. It is called after the last chunk.
    fn beginnings<'a>(&self, _state: &'a Self::State) -> &'a [u64] {
        &[]
    }

    /// Adds records for calls that are still unfinished after the last chunk. `chunk` is new and empty.
    fn finish(&self, state: &mut Self::State, chunk: &mut Chunk<Self::Notes>);
}

/// A source of the records of a log.
pub trait LogSource: RecordSource {
    /// Returns the [`LogFormat::name`] of the log's format.
    fn format(&self) -> &'static str;
    /// Returns the resolution of the time stamps in ns; `None` if it is not known. It shows whether calls of
    /// several logs can be ordered.
    fn resolution(&self) -> Option<i64>;
}

/// A kind of log that iodock can read.
pub trait LogFormat: Sync {
    /// Returns the name of the format, as used for `--format`.
    fn name(&self) -> &'static str;

    /// Returns the confidence that a log has this format, from 0 (impossible) to 100 (certain).
    fn confidence(&self, head: &Head<'_>) -> u8;

    /// Returns whether the tracer prints a line for a call that begins like `line`. Such lines show which
    /// text another tool put before each line.
    fn owns(&self, line: &[u8]) -> bool;

    /// Starts reading `input`; its beginning is `input.head()`. Most formats return
    /// `Ok(Box::new(crate::start(self.name(), reader, input, options)))`.
    fn open(&self, input: Input, options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError>;
}
