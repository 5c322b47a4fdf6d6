//! Reads a log with several threads. Each thread takes the next chunk of lines, parses it and puts the result
//! at its position in a queue. The caller's thread takes the parsed chunks in order and
//! resolves what depends on earlier chunks.

use crate::input::Progress;
use crate::splitter::{Piece, Splitter};
use crate::{Chunk, Input, Lines, LogReader, LogSource, ReadOptions};
use iodock_event::{Batch, Clock, LossKind, Losses, RecordSource, SourceError};
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Reads `input` with `reader`. The threads start when the first batch is requested.
pub fn start<R: LogReader>(
    format: &'static str,
    reader: R,
    input: Input,
    options: &ReadOptions,
) -> impl LogSource {
    let workers = options.workers;
    let (progress, left_out) = (input.progress(), input.losses());
    let splitter = Splitter::new(input, options.chunk_size, options.longest_line);
    let file = Arc::clone(&splitter.file);
    let shared = Shared {
        reader,
        file,
        splitter: Mutex::new(splitter),
        queue: Mutex::new(Queue::default()),
        changed: Condvar::new(),
        ahead: options.chunks_ahead() as u64,
    };
    let stage = if workers == 0 { Stage::Alone(Piece::default()) } else { Stage::Idle { workers } };
    let (state, shared) = (R::State::default(), Arc::new(shared));
    Stream {
        format,
        shared,
        state,
        next: 0,
        records: 0,
        stage,
        progress,
        left_out,
        whole: options.lines.is_none(),
    }
}

struct Stream<R: LogReader> {
    format: &'static str,
    shared: Arc<Shared<R>>,
    state: R::State,
    /// Sequence number of the next chunk to settle.
    next: u64,
    /// Number of records so far. A log without records is an error.
    records: u64,
    stage: Stage,
    progress: Arc<Progress>,
    /// Lines that an earlier stage left out.
    left_out: Arc<Mutex<Losses>>,
    /// Whether the input must be a single log.
    whole: bool,
}

enum Stage {
    /// There are no threads: the caller's thread parses.
    Alone(Piece),
    Idle {
        workers: usize,
    },
    Running,
    Finished,
}

struct Shared<R: LogReader> {
    reader: R,
    file: Arc<str>,
    splitter: Mutex<Splitter>,
    queue: Mutex<Queue<R::Notes>>,
    changed: Condvar,
    /// Number of chunks that may be parsed before the caller takes the first of them.
    ahead: u64,
}

struct Queue<N> {
    parsed: BTreeMap<u64, Chunk<N>>,
    /// Number of chunks that the caller has taken.
    taken: u64,
    /// Total number of chunks, once the end was found.
    end: Option<u64>,
    /// Number of chunks given to threads so far.
    handed_out: u64,
    error: Option<SourceError>,
    cancelled: bool,
    /// Emptied batches. The most recently emptied one is reused first, because it may still be in the
    /// processor's cache.
    batches: Vec<Batch>,
}

impl<N> Default for Queue<N> {
    fn default() -> Self {
        Queue {
            parsed: BTreeMap::new(),
            taken: 0,
            end: None,
            handed_out: 0,
            error: None,
            cancelled: false,
            batches: Vec::new(),
        }
    }
}

/// Locks the mutex even if it is poisoned. Only a panic poisons a lock, and the panic is reported as an
/// error. The data are counters and buffers, which remain usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<R: LogReader> Shared<R> {
    fn work(&self) {
        let mut piece = Piece::default();
        loop {
            let notes = match self.take(&mut piece) {
                Ok(Some(notes)) => notes,
                Ok(None) => return,
                Err(error) => return self.fail(error, None),
            };
            let Some(batch) = self.spare_batch(piece.sequence) else { return };
            let chunk = match self.parse(&piece, batch, notes) {
                Ok(chunk) => chunk,
                Err(error) => return self.fail(error, Some(piece.sequence)),
            };
            let mut queue = lock(&self.queue);
            queue.parsed.insert(piece.sequence, chunk);
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// Returns the next lines of the log, and the notes of `scan` about the previous ones; `None` at the end.
    fn take(&self, piece: &mut Piece) -> Result<Option<R::Notes>, SourceError> {
        let mut splitter = lock(&self.splitter);
        let more = splitter.next(piece)?;
        let notes = if more { self.scan(piece)? } else { R::Notes::default() };
        let mut queue = lock(&self.queue);
        if more {
            queue.handed_out = piece.sequence + 1;
        } else if queue.error.is_none() {
            queue.end = Some(queue.handed_out);
            drop(queue);
            self.changed.notify_all();
        }
        Ok(more.then_some(notes))
    }

    fn scan(&self, piece: &Piece) -> Result<R::Notes, SourceError> {
        let mut notes = R::Notes::default();
        let scanned = catch_unwind(AssertUnwindSafe(|| self.reader.scan(&self.lines(piece), &mut notes)));
        scanned.map(|()| notes).map_err(|_| self.panicked(piece))
    }

    fn lines<'a>(&'a self, piece: &'a Piece) -> Lines<'a> {
        Lines { bytes: &piece.bytes, first_line: piece.first_line, file: &self.file, at_end: piece.at_end }
    }

    /// Returns a batch for chunk `sequence`, once the caller is close enough to it; `None` if the reader was
    /// closed.
    fn spare_batch(&self, sequence: u64) -> Option<Batch> {
        let mut queue = lock(&self.queue);
        while !queue.cancelled && sequence >= queue.taken + self.ahead {
            queue = self.changed.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        (!queue.cancelled).then(|| queue.batches.pop().unwrap_or_default())
    }

    fn parse(&self, piece: &Piece, batch: Batch, notes: R::Notes) -> Result<Chunk<R::Notes>, SourceError> {
        let mut chunk = Chunk { batch, notes };
        let parsed = catch_unwind(AssertUnwindSafe(|| self.fill(piece, &mut chunk)));
        parsed.map(|()| chunk).map_err(|_| self.panicked(piece))
    }

    fn fill(&self, piece: &Piece, chunk: &mut Chunk<R::Notes>) {
        chunk.batch.clear();
        chunk.batch.counts.lines = piece.line_count;
        self.reader.parse(&self.lines(piece), chunk);
        if let Some(long) = &piece.too_long {
            let kind = if long.all_nul { LossKind::NulBytes } else { LossKind::LongLines };
            chunk.lose_at(kind, &self.file, long.line, &long.beginning);
        }
        if piece.damaged {
            let last = piece.first_line + piece.line_count.saturating_sub(1);
            chunk.lose_at(
                LossKind::CutLines,
                &self.file,
                last,
                b"the compressed file is cut or damaged here",
            );
        }
    }

    /// Records an error. Chunks before the failed one are still delivered in order; later ones are not.
    fn fail(&self, error: SourceError, failed: Option<u64>) {
        let mut queue = lock(&self.queue);
        let end = failed.unwrap_or(queue.handed_out);
        if queue.error.is_none() || queue.end.is_some_and(|earlier| end < earlier) {
            queue.error = Some(error);
            queue.end = Some(end);
        }
        drop(queue);
        self.changed.notify_all();
    }

    fn panicked(&self, piece: &Piece) -> SourceError {
        SourceError {
            file: self.file.to_string(),
            line: Some(piece.first_line),
            message: "iodock failed on these lines; this is a mistake in iodock".into(),
            hint: "report it with the log's lines from here on".into(),
        }
    }
}

impl<R: LogReader> Stream<R> {
    fn spawn(&mut self, workers: usize) -> Result<(), SourceError> {
        for _ in 0..workers {
            let shared = Arc::clone(&self.shared);
            let spawned =
                std::thread::Builder::new().name("iodock-parse".into()).spawn(move || shared.work());
            if let Err(error) = spawned {
                return Err(SourceError {
                    file: self.shared.file.to_string(),
                    line: None,
                    message: format!("can't start a thread: {error}"),
                    hint: "raise the limit of processes (ulimit -u)".into(),
                });
            }
        }
        self.stage = Stage::Running;
        Ok(())
    }

    /// Returns the next parsed chunk; `None` at the end. A chunk that failed ends the log with its error.
    fn wait(&mut self) -> Result<Option<Chunk<R::Notes>>, SourceError> {
        let mut queue = lock(&self.shared.queue);
        loop {
            if let Some(chunk) = queue.parsed.remove(&self.next) {
                self.next += 1;
                queue.taken = self.next;
                drop(queue);
                self.shared.changed.notify_all();
                return Ok(Some(chunk));
            }
            if queue.end.is_some_and(|end| self.next >= end) {
                return queue.error.take().map_or(Ok(None), Err);
            }
            queue = self.shared.changed.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Returns the next chunk, which the caller's thread reads and parses.
    fn parse_alone(&mut self) -> Result<Option<Chunk<R::Notes>>, SourceError> {
        let Stage::Alone(piece) = &mut self.stage else { return Ok(None) };
        let Some(notes) = self.shared.take(piece)? else { return Ok(None) };
        let batch = lock(&self.shared.queue).batches.pop().unwrap_or_default();
        self.shared.parse(piece, batch, notes).map(Some)
    }

    fn finish(&mut self) -> Result<Batch, SourceError> {
        self.stage = Stage::Finished;
        let mut chunk = Chunk { batch: Batch::default(), notes: R::Notes::default() };
        self.shared.reader.finish(&mut self.state, &mut chunk);
        chunk.batch.losses.merge(&lock(&self.left_out));
        let beginnings = self.shared.reader.beginnings(&self.state);
        if self.whole && !beginnings.is_empty() {
            return Err(several(&self.shared.file, beginnings));
        }
        if self.records == 0 && chunk.batch.records.is_empty() {
            return Err(self.nothing_readable());
        }
        Ok(chunk.batch)
    }

    fn nothing_readable(&self) -> SourceError {
        SourceError {
            file: self.shared.file.to_string(),
            line: Some(1),
            message: format!("no line of it can be read as {}", self.format),
            hint: "check that this is the whole log, and its format (--format)".into(),
        }
    }
}

/// Largest number of beginnings of logs that a message names.
const NAMED: usize = 6;

fn several(file: &str, beginnings: &[u64]) -> SourceError {
    let first = beginnings.first().copied().unwrap_or(1);
    let named: Vec<String> = beginnings.iter().take(NAMED).map(u64::to_string).collect();
    let more = if beginnings.len() > NAMED { " ..." } else { "" };
    let lines = match &named[..] {
        [line] => format!("another one begins at line {line}"),
        lines => format!("others begin at lines {}", lines.join(", ")),
    };
    let second = match beginnings.get(1) {
        Some(next) => format!("{first}-{} ...", next - 1),
        None => format!("{first}-"),
    };
    SourceError {
        file: file.into(),
        line: Some(first),
        message: format!("holds {} logs: {lines}{more}", beginnings.len() + 1),
        hint: format!(
            "import one at a time: --lines 1-{}, --lines {second}; or all as one run: --lines 1-",
            first - 1,
        ),
    }
}

impl<R: LogReader> RecordSource for Stream<R> {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        if let Stage::Idle { workers } = self.stage {
            self.spawn(workers)?;
        }
        let chunk = match self.stage {
            Stage::Finished => return Ok(None),
            Stage::Alone(_) => self.parse_alone(),
            _ => self.wait(),
        };
        match chunk {
            Ok(Some(mut chunk)) => {
                self.shared.reader.settle(&mut self.state, &mut chunk);
                self.records += chunk.batch.records.len() as u64;
                Ok(Some(chunk.batch))
            }
            Ok(None) => self.finish().map(Some),
            Err(error) => {
                self.stage = Stage::Finished;
                Err(error)
            }
        }
    }

    fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        let mut queue = lock(&self.shared.queue);
        if (queue.batches.len() as u64) < self.shared.ahead {
            queue.batches.push(batch);
        }
    }

    fn clock(&self) -> Clock {
        self.shared.reader.clock()
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.progress.read.load(Ordering::Relaxed), self.progress.total)
    }
}

impl<R: LogReader> LogSource for Stream<R> {
    fn format(&self) -> &'static str {
        self.format
    }

    fn resolution(&self) -> Option<i64> {
        self.shared.reader.resolution()
    }
}

impl<R: LogReader> Drop for Stream<R> {
    /// Does not join the threads. They end by themselves, and one of them may wait for standard input for
    /// ever.
    fn drop(&mut self) {
        lock(&self.shared.queue).cancelled = true;
        self.shared.changed.notify_all();
    }
}
