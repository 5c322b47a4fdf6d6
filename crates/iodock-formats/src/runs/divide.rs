//! Finds the places where one log ends and the next begins, in a file of several logs that were pasted or
//! appended.
//!
//! A log without process ids ends when its process ends. A log with process ids ends when all its processes
//! have ended. A new log then begins only with an execve of a process that no process of the log created, and
//! only if the log shows calls of exit, because forks may be missing if strace filtered the calls. Prompts
//! and Markdown fences also separate logs.

use iodock_event::{Action, Batch, Outcome, RawCall, Record};
use rustc_hash::FxHashSet;

/// Largest number of places that are stored.
const MOST: usize = 1000;

/// A place in a chunk that may separate two logs.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Index of the record at this place, or of the record that follows.
    pub record: usize,
    pub line: u64,
    pub sign: Sign,
}

/// The kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A record that may be the last one of its log.
    Last,
    /// A prompt or a Markdown fence.
    Between,
    /// A record at which the time returns to the log's beginning.
    Anew,
    /// The header of a table of `strace -c`. The table belongs to the log above it (`-C`), unless a prompt or
    /// fence separates them.
    Table,
}

/// Finds the logs of a file one after the other.
#[derive(Debug, Default)]
pub struct Divider {
    /// Lines at which logs begin, except the first log.
    pub beginnings: Vec<u64>,
    /// Processes of the current log that have not ended.
    live: FxHashSet<u32>,
    /// Processes that other processes of the log created.
    children: FxHashSet<u32>,
    /// The process of the last call.
    last: Option<u32>,
    /// Whether no line shows a process.
    bare: bool,
    /// Whether the log has shown a call of exit.
    exits: bool,
    /// Line at which the log may have ended.
    over: Option<u64>,
    /// Line of a prompt or fence that followed calls or a table.
    separated: Option<u64>,
    /// Whether the log has a table.
    tabled: bool,
}

impl Divider {
    /// Processes the records of a chunk. `bare` is the process of lines without a process, if all lines lack
    /// one.
    pub fn follow(&mut self, batch: &Batch, marks: &[Mark], bare: Option<u32>) {
        self.children.extend(batch.forks.iter().map(|fork| fork.child_tid));
        let mut marks = marks.iter().peekable();
        for (index, record) in batch.records.iter().enumerate() {
            while let Some(mark) = marks.next_if(|mark| mark.sign != Sign::Last && mark.record <= index) {
                self.between(mark);
            }
            let line = marks.next_if(|mark| mark.record == index).map(|mark| mark.line);
            match record {
                Record::Call(raw) => self.call(raw, line, bare),
                Record::End(end) => self.end(end.tid, end.superseded_by.is_some(), line),
                _ => {}
            }
        }
        marks.for_each(|mark| self.between(mark));
    }

    fn between(&mut self, mark: &Mark) {
        match mark.sign {
            Sign::Between if self.last.is_some() || self.tabled => {
                self.separated.get_or_insert(mark.line);
            }
            Sign::Table => {
                if let Some(line) = self.separated.take() {
                    self.begin(line);
                }
                self.tabled = true;
            }
            Sign::Anew if self.last.is_some() => {
                let line = self.separated.or(self.over).unwrap_or(mark.line);
                self.begin(line);
            }
            Sign::Anew | Sign::Between | Sign::Last => {}
        }
    }

    #[inline]
    fn call(&mut self, raw: &RawCall, line: Option<u64>, bare: Option<u32>) {
        if self.last == Some(raw.tid) && self.over.is_none() && self.separated.is_none() && line.is_none() {
            return;
        }
        self.other_call(raw, line, bare);
    }

    fn other_call(&mut self, raw: &RawCall, line: Option<u64>, bare: Option<u32>) {
        if let Some(line) = self.separated.take().or(self.over.take().filter(|_| self.is_new(raw, bare))) {
            self.begin(line);
        }
        self.bare = bare == Some(raw.tid);
        self.last = Some(raw.tid);
        self.live.insert(raw.tid);
        if raw.call.spec().action == Action::Exit && raw.outcome == Outcome::NoResult {
            self.exits = true;
            // Old versions of strace print no other line at the end of a process.
            self.over = line.filter(|_| self.bare).map(|line| line + 1);
        }
    }

    /// Returns whether the call, after the end of a log, is the first call of another log.
    fn is_new(&self, raw: &RawCall, bare: Option<u32>) -> bool {
        let of_bare = self.bare && bare == Some(raw.tid);
        let is_first = raw.call.spec().action == Action::Exec && !self.children.contains(&raw.tid);
        of_bare || (is_first && self.exits)
    }

    fn end(&mut self, tid: u32, superseded: bool, line: Option<u64>) {
        self.live.remove(&tid);
        if self.live.is_empty() && self.last.is_some() && !superseded {
            self.over = line.map(|line| line + 1);
        }
    }

    fn begin(&mut self, line: u64) {
        if self.beginnings.len() < MOST {
            self.beginnings.push(line);
        }
        let beginnings = std::mem::take(&mut self.beginnings);
        *self = Divider { beginnings, ..Divider::default() };
    }
}
