//! Where one file holds several logs, one behind the other: pasted, or appended.
//!
//! A log of lines without a process is over with the end of its process. One whose lines show processes is over when all
//! have ended; only an execve of a process that none of them made begins another one, and only where the log shows
//! calls of exit: with a filter on calls, forks may be missing. Prompts and Markdown's fences stand between logs too.

use iodock_event::{Action, Batch, Outcome, RawCall, Record};
use rustc_hash::FxHashSet;

/// Lines remembered at which logs begin.
const MOST: usize = 1000;

/// A place in a chunk that may lie between two logs.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// The record that it is, or that comes behind it.
    pub record: usize,
    pub line: u64,
    pub sign: Sign,
}

/// What stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A record that may be its log's last one.
    Last,
    /// A prompt or fence.
    Between,
    /// A record whose time begins again where the log's began.
    Anew,
    /// The header of a table of `strace -c`, which belongs to the log above it (`-C`) unless something stands between.
    Table,
}

/// Follows a file from log to log.
#[derive(Debug, Default)]
pub struct Divider {
    /// Lines at which logs begin, but for the first one.
    pub beginnings: Vec<u64>,
    /// Processes of this log that have not ended.
    live: FxHashSet<u32>,
    /// Processes that others of it made.
    children: FxHashSet<u32>,
    /// The process of the last call.
    last: Option<u32>,
    /// Does no line show a process?
    bare: bool,
    /// Was a call of exit shown?
    exits: bool,
    /// The log may be over since this line.
    over: Option<u64>,
    /// A prompt or fence stood there, behind calls or a table.
    separated: Option<u64>,
    /// Has it a table?
    tabled: bool,
}

impl Divider {
    /// Follows a chunk's records. `bare`: the process of lines that show none, if there are only such.
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

    /// The log was over: is this the first call of another one?
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
