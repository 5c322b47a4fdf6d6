//! Finds the places where one log ends and the next begins in a file of several logs, pasted or appended.
//!
//! A log without process ids ends with the end of its process. A log with process ids ends when all its
//! processes have ended. A new log then begins only with an execve of a process that none of them created,
//! and only if the log shows calls of exit: with a filter on calls, forks may be missing. Prompts and
//! Markdown's fences also separate logs.

use iodock_event::{Action, Batch, Outcome, RawCall, Record};
use rustc_hash::FxHashSet;

/// The largest number of such lines that are remembered.
const MOST: usize = 1000;

/// A place in a chunk that may separate two logs.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// The record here, or the one that follows.
    pub record: usize,
    pub line: u64,
    pub sign: Sign,
}

/// Kind of text at a position of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A record that may be the last of its log.
    Last,
    /// A prompt or fence.
    Between,
    /// A record at which the time returns to the log's beginning.
    Anew,
    /// The header of a table of `strace -c`. It belongs to the log above it (`-C`) unless a prompt or fence
    /// separates them.
    Table,
}

/// Follows a file from log to log.
#[derive(Debug, Default)]
pub struct Divider {
    /// Lines at which logs begin, except the first.
    pub beginnings: Vec<u64>,
    /// Processes of this log that have not ended.
    live: FxHashSet<u32>,
    /// Processes that other processes of the log created.
    children: FxHashSet<u32>,
    /// The process of the last call.
    last: Option<u32>,
    /// Does no line show a process?
    bare: bool,
    /// Has the log shown a call of exit?
    exits: bool,
    /// The log may have ended at this line.
    over: Option<u64>,
    /// A prompt or fence was found there, after calls or a table.
    separated: Option<u64>,
    /// Does the log have a table?
    tabled: bool,
}

impl Divider {
    /// Processes the records of a chunk. `bare`: the process of lines without one, if all lines lack it.
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
            // Old versions of strace show no other end.
            self.over = line.filter(|_| self.bare).map(|line| line + 1);
        }
    }

    /// The log had ended: is this the first call of another one?
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
