//! Finds the owner of each line without `[pid N]`, in logs where other lines have that tag.
//!
//! On a terminal strace prints the tag only while it traces more than one process (`nprocs > 1` in its
//! `printleader`). A line without a tag therefore belongs to the only process that is left. Tags, ends, forks
//! and strace's messages, which this module reads in the log's order, show which process that is.

use super::line::{self, Kind};
use super::names::known_call;
use iodock_event::{lwp, Action, Batch, Outcome, RawCall};
use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};

/// The process to which an untagged line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub tid: u32,
    /// Whether the line could belong to several processes. `tid` is then a separate process without a number.
    pub ambiguous: bool,
}

/// The line from which on untagged lines have this owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub line: u64,
    pub owner: Owner,
}

/// Tracks the processes of a log in the order of its lines.
#[derive(Debug)]
pub struct Untagged {
    /// Processes that are traced, according to the log.
    live: FxHashSet<u32>,
    /// Children that a fork returned and that have had no line yet.
    expected: Vec<u32>,
    /// Processes that called exit. The log may not show their end (`-qq`).
    leaving: FxHashSet<u32>,
    /// Names of the calls that have begun and not ended, by process.
    open: FxHashMap<u32, Vec<u8>>,
    /// The owner of untagged lines until the next tag; `None` if it must be determined.
    owner: Option<Owner>,
    /// The owner of the last untagged line.
    last: Owner,
    first: Owner,
    /// Whether the log has shown a line of a process.
    begun: bool,
    /// The last id that was assigned to a process without a number.
    unnumbered: u32,
    batch: Batch,
}

/// The effect of a line on the set of processes.
enum Step {
    Nothing,
    Line,
    Begun(Vec<u8>),
    Resumed(Vec<u8>, Option<u32>),
    Forked(u32),
    Leaving,
    Ended,
    /// The process ended because this thread called execve.
    Superseded(u32),
}

impl Untagged {
    /// Makes the tracker. `first` is the process at the beginning of the log.
    pub fn new(first: Owner) -> Untagged {
        Untagged {
            live: FxHashSet::from_iter([first.tid]),
            expected: Vec::new(),
            leaving: FxHashSet::default(),
            open: FxHashMap::default(),
            owner: Some(first),
            last: first,
            first,
            begun: false,
            // The first process may already use the id `lwp::UNNUMBERED`.
            unnumbered: lwp::UNNUMBERED + 1,
            batch: Batch::default(),
        }
    }

    /// Adds the changes of the owner in `text`, whose first line is `first_line`. The first change is at that
    /// line.
    pub fn scan(&mut self, text: &[u8], first_line: u64, changes: &mut Vec<Change>) {
        changes.push(Change { line: first_line, owner: self.last });
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii_end();
            let before = self.last;
            self.line(line);
            if self.last != before {
                changes.push(Change { line: first_line + index as u64, owner: self.last });
            }
            self.after(line);
        }
    }

    fn line(&mut self, line: &[u8]) {
        let (mut prefix, mut kind) = line::read(line);
        if matches!(kind, Kind::Unknown) {
            // Output of the program may precede strace's line.
            let Some(at) = memmem::rfind(line, b"[pid ") else { return };
            (prefix, kind) = line::read(&line[at..]);
        }
        let step = self.step(&kind);
        if matches!(step, Step::Nothing) {
            return;
        }
        match prefix.tid.filter(|_| prefix.bracketed) {
            Some(tid) => {
                self.owner = None;
                self.show(tid);
                self.take(tid, step);
            }
            None => self.bare(step),
        }
        self.begun = true;
    }

    /// Reads information about processes at the end of a line, after a call or alone.
    fn after(&mut self, line: &[u8]) {
        if let Some(to) = line.strip_suffix(b" ...>").and_then(changed_to) {
            let bracketed = line::read(line).0.tid;
            self.end(bracketed.unwrap_or(self.last.tid));
            self.owner = None;
            self.show(to);
        }
        if !(line.ends_with(b"ached") || line.ends_with(b" threads")) {
            return;
        }
        match message(line) {
            Some((tid, true)) => self.attached(tid),
            Some((tid, false)) => self.end(tid),
            None => {}
        }
    }

    fn show(&mut self, tid: u32) {
        if self.live.insert(tid) {
            self.expected.retain(|&child| child != tid);
        }
        self.leaving.remove(&tid);
    }

    fn attached(&mut self, tid: u32) {
        if !self.begun {
            // With `strace -p`, the log begins with this message.
            self.live.remove(&0);
        }
        self.show(tid);
        let alone = self.live.len() == 1;
        self.owner = alone.then_some(Owner { tid, ambiguous: false });
    }

    fn bare(&mut self, step: Step) {
        let owner = self.owner.unwrap_or_else(|| self.survivor(&step));
        if self.owner.is_none() {
            // strace traces no other process any more, whether or not the log shows their ends.
            self.live.clear();
            self.leaving.clear();
            self.live.insert(owner.tid);
            self.owner = Some(owner);
        }
        self.last = owner;
        let ended = matches!(step, Step::Ended);
        self.take(owner.tid, step);
        if ended {
            // This was the last process.
            self.owner = None;
            self.expected.clear();
        }
    }

    /// Returns the only process that is left, or a process without a number if it cannot be determined.
    fn survivor(&mut self, step: &Step) -> Owner {
        let known = self.only_one(step);
        let several = self.live.len() > 1 || !self.expected.is_empty();
        let ambiguous = match known {
            Some(tid) => self.first.ambiguous && tid == self.first.tid,
            None => several,
        };
        if self.live.is_empty() {
            self.expected.clear();
        }
        let tid = known.unwrap_or_else(|| {
            self.unnumbered = self.unnumbered.saturating_add(1);
            self.unnumbered
        });
        Owner { tid, ambiguous }
    }

    fn only_one(&self, step: &Step) -> Option<u32> {
        let mut live = self.live.iter().copied();
        if let (Some(tid), None) = (live.next(), live.next()) {
            return Some(tid);
        }
        let only = |wanted: &dyn Fn(&u32) -> bool| {
            let mut found = self.live.iter().copied().filter(wanted);
            found.next().filter(|_| found.next().is_none())
        };
        let staying = only(&|tid| !self.leaving.contains(tid));
        let inside = match step {
            Step::Resumed(name, _) => only(&|tid| self.open.get(tid) == Some(name)),
            _ => None,
        };
        let child = match self.expected[..] {
            [child] if self.live.is_empty() => Some(child),
            _ => None,
        };
        staying.or(inside).or(child)
    }

    fn take(&mut self, tid: u32, step: Step) {
        match step {
            Step::Nothing | Step::Line => {
                self.open.remove(&tid);
            }
            Step::Begun(name) => {
                self.open.insert(tid, name);
            }
            Step::Resumed(_, child) => {
                self.open.remove(&tid);
                self.expected.extend(child.filter(|child| !self.live.contains(child)));
            }
            Step::Forked(child) if !self.live.contains(&child) => self.expected.push(child),
            Step::Forked(_) => {}
            Step::Leaving => {
                self.leaving.insert(tid);
            }
            Step::Ended => self.end(tid),
            Step::Superseded(thread) => {
                self.end(thread);
                self.live.insert(tid);
            }
        }
    }

    fn end(&mut self, tid: u32) {
        self.live.remove(&tid);
        self.leaving.remove(&tid);
        self.open.remove(&tid);
    }

    fn step(&mut self, kind: &Kind<'_>) -> Step {
        match *kind {
            Kind::Call { name, text } => self.call(name, text),
            Kind::Begun { name, .. } => Step::Begun(name.to_vec()),
            Kind::Resumed { name, text } => match self.ended_call(name, text, true) {
                Some(raw) if raw.outcome == Outcome::NoResult && is_exit(name) => Step::Leaving,
                Some(raw) => Step::Resumed(name.to_vec(), child_of(&raw)),
                None => Step::Resumed(name.to_vec(), None),
            },
            Kind::End { text } => match text.strip_prefix(b"superseded by execve in pid ") {
                Some(thread) => number(thread).map_or(Step::Ended, Step::Superseded),
                None => Step::Ended,
            },
            Kind::Signal { .. } => Step::Line,
            Kind::Noise | Kind::Row | Kind::Unknown => Step::Nothing,
        }
    }

    fn call(&mut self, name: &[u8], text: &[u8]) -> Step {
        if is_exit(name) {
            return Step::Leaving;
        }
        let child = self.ended_call(name, text, false).as_ref().and_then(child_of);
        child.map_or(Step::Line, Step::Forked)
    }

    /// Reads the end of a call that creates or ends a process.
    fn ended_call(&mut self, name: &[u8], text: &[u8], resumed: bool) -> Option<RawCall> {
        // Few names have these beginnings and endings. A table lookup for each line would double the cost.
        if !(name.ends_with(b"fork") || name.starts_with(b"clone") || is_exit(name)) {
            return None;
        }
        let mut raw = RawCall::new(known_call(name)?, 0);
        self.batch.clear();
        match resumed {
            true => line::orphaned_end(text, &mut raw, &mut self.batch)?,
            false => line::whole_call(text, &mut raw, &mut self.batch)?,
        }
        Some(raw)
    }
}

/// Returns the 7 in `<pid changed to 7`, which shows that the execve of a thread continues under its leader's
/// id.
fn changed_to(line: &[u8]) -> Option<u32> {
    let at = memmem::rfind(line, b"<pid changed to ")?;
    number(&line[at + 16..])
}

/// Returns the process that strace's message says it attached to (`true`) or detached from (`false`).
pub fn message(line: &[u8]) -> Option<(u32, bool)> {
    let at = memmem::rfind(line, b"Process ")?;
    let rest = &line[at + 8..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let tid = number(rest)?;
    match &rest[digits..] {
        b" attached" => Some((tid, true)),
        b" detached" => Some((tid, false)),
        what if what.starts_with(b" attached with ") => Some((tid, true)),
        _ => None,
    }
}

fn is_exit(name: &[u8]) -> bool {
    matches!(name, b"exit_group" | b"exit" | b"_exit")
}

fn child_of(raw: &RawCall) -> Option<u32> {
    let forks = matches!(raw.call.spec().action, Action::Fork | Action::Vfork | Action::Clone);
    let child = u32::try_from(raw.result).ok().filter(|&child| child > 0);
    child.filter(|_| forks && raw.outcome == Outcome::Succeeded)
}

fn number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}
