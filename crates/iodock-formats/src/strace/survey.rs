//! Finds the layout of a log from its first lines.

use super::first::First;
use super::line::{self, Kind};
use super::names::known_call;
use super::prefix::Prefix;
use super::untagged::Owner;
use crate::Head;
use iodock_event::{Batch, Clock, RawCall, UNKNOWN};

/// Number of lines at the beginning of the log that are examined.
const LOOKED_AT: usize = 1000;
/// Number of lines that are examined from the first `[pid N]` on.
const TAGGED_LOOKED_AT: usize = 20_000;

/// The layout of a log's lines.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub clock: Clock,
    /// Resolution of the time stamps, ns.
    pub resolution: Option<i64>,
    /// Whether strace ran with `-T`, so that calls have durations.
    pub durations: bool,
    /// Thread id that records get if their lines show none.
    pub bare_tid: u32,
    /// Whether no line shows a thread.
    pub bare: bool,
}

/// Counts of features in the first lines.
#[derive(Debug, Default)]
pub struct Survey {
    /// Number of calls that strace knows, whole or in part.
    pub calls: u32,
    /// Number of ends of tasks, signals and messages.
    pub events: u32,
    pub tables: u32,
    pub unknown: u32,
    timed: u32,
    epoch: u32,
    day: u32,
    relative: u32,
    unstamped: u32,
    resolution: Option<i64>,
    with_tid: u32,
    bare: u32,
    first: First,
    looked_at: usize,
}

impl Survey {
    pub fn of(head: &[u8]) -> Survey {
        let mut survey = Survey::default();
        let mut batch = Batch::default();
        let whole_lines = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..=end]);
        for line in whole_lines.split(|&byte| byte == b'\n').take(LOOKED_AT) {
            batch.clear();
            survey.looked_at += 1;
            survey.look(line.trim_ascii_end(), &mut batch);
        }
        survey
    }

    /// Returns whether no line so far has shown its thread.
    pub fn is_bare(&self) -> bool {
        self.bare > 0 && self.with_tid == 0 && !self.first.is_attached()
    }

    /// Returns whether some lines of the log have `[pid N]`. Other lines may then have no tag.
    pub fn is_tagged(&self) -> bool {
        self.first.is_tagged()
    }

    /// Continues to read in a longer `head`, to find the threads that appear after lines without a thread.
    pub fn find_first_thread(&mut self, head: &[u8]) {
        let mut batch = Batch::default();
        let whole_lines = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..=end]);
        let mut tagged = 0;
        for line in whole_lines.split(|&byte| byte == b'\n').skip(self.looked_at.saturating_sub(1)) {
            tagged += usize::from(self.is_tagged());
            if tagged > TAGGED_LOOKED_AT {
                break;
            }
            batch.clear();
            self.look(line.trim_ascii_end(), &mut batch);
        }
    }

    /// Returns the process that wrote the first lines, if other lines have tags.
    pub fn first_owner(&self) -> Option<Owner> {
        self.is_tagged().then(|| self.first.owner())
    }

    fn look(&mut self, line: &[u8], batch: &mut Batch) {
        let (prefix, kind) = line::read(line);
        self.first.look(&prefix, &kind, line);
        if line.ends_with(b" attached") {
            self.events += 1;
            return;
        }
        match kind {
            Kind::Call { name, text } => self.look_at_call(&prefix, name, text, batch),
            Kind::Begun { name, .. } | Kind::Resumed { name, .. } if known_call(name).is_some() => {
                self.call(&prefix)
            }
            Kind::End { .. } | Kind::Signal { .. } => {
                self.events += 1;
                self.stamp(&prefix);
            }
            Kind::Noise if line.is_empty() => {}
            Kind::Noise if line::is_title(line.trim_ascii()) => self.tables += 1,
            Kind::Row => self.tables += 1,
            Kind::Noise => self.events += 1,
            _ => self.unknown += 1,
        }
    }

    fn look_at_call(&mut self, prefix: &Prefix, name: &[u8], text: &[u8], batch: &mut Batch) {
        let Some(id) = known_call(name) else {
            self.unknown += 1;
            return;
        };
        let mut raw = RawCall::new(id, 0);
        if line::whole_call(text, &mut raw, batch).is_none() || other_tracer(text) {
            self.unknown += 1;
            return;
        }
        self.timed += u32::from(raw.duration != UNKNOWN);
        self.first.returned(prefix, &raw);
        self.call(prefix);
    }

    fn call(&mut self, prefix: &Prefix) {
        self.calls += 1;
        self.stamp(prefix);
    }

    fn stamp(&mut self, prefix: &Prefix) {
        match prefix.stamp.clock {
            Clock::Epoch => self.epoch += 1,
            Clock::Day => self.day += 1,
            Clock::Relative => self.relative += 1,
            Clock::None => self.unstamped += 1,
        }
        if prefix.stamp.resolution > 0 {
            self.resolution = Some(prefix.stamp.resolution);
        }
        match prefix.tid {
            None => self.bare += 1,
            Some(_) => self.with_tid += 1,
        }
    }

    /// Returns the confidence, from 0 to 100, that this is a log of strace. Logs from a terminal contain the
    /// output of programs, too.
    pub fn confidence(&self) -> u8 {
        let good = self.calls + self.events.min(self.calls.max(4)) + u32::from(self.tables > 2) * self.tables;
        let all = good + self.unknown;
        let only_a_table = self.calls == 0 && self.tables > 2;
        if only_a_table || good == 0 || (good < 3 && self.unknown > 20) {
            return 0;
        }
        (40 + 58 * good / all) as u8
    }

    pub fn layout(&self, head: &Head<'_>, tid_from_name: bool) -> Layout {
        let from_name = if tid_from_name { tid_in_name(head.file) } else { None };
        let bare_tid =
            if self.is_tagged() { Some(self.first.owner().tid) } else { self.first.attached().or(from_name) };
        Layout {
            clock: self.clock(),
            resolution: self.resolution,
            durations: self.timed > 0,
            bare_tid: bare_tid.unwrap_or(0),
            bare: self.with_tid == 0 && !self.is_tagged(),
        }
    }

    fn clock(&self) -> Clock {
        let votes = [
            (self.unstamped, Clock::None),
            (self.relative, Clock::Relative),
            (self.day, Clock::Day),
            (self.epoch, Clock::Epoch),
        ];
        votes.into_iter().max_by_key(|&(votes, _)| votes).map_or(Clock::None, |(_, clock)| clock)
    }
}

/// Returns whether another tracer printed the call. truss prints tabs before the result. FreeBSD's truss
/// prints the result twice, `= 3 (0x3)`. perf trace prints names of arguments, `fd: 3`.
fn other_tracer(text: &[u8]) -> bool {
    let name = text.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
    if name > 0 && text[name..].starts_with(b": ") {
        return true;
    }
    let Some(end) = memchr::memmem::rfind(text, b"= ") else { return false };
    let twice = text.ends_with(b")") && memchr::memmem::find(&text[end..], b" (0x").is_some();
    twice || (end > 0 && text[end - 1] == b'\t')
}

/// Returns whether this is a call, a signal or an end of a process as strace prints it.
pub fn is_own_line(line: &[u8]) -> bool {
    let mut batch = Batch::default();
    match line::read(line).1 {
        Kind::Call { name, text } => known_call(name).is_some_and(|id| {
            line::whole_call(text, &mut RawCall::new(id, 0), &mut batch).is_some() && !other_tracer(text)
        }),
        Kind::Begun { name, .. } | Kind::Resumed { name, .. } => known_call(name).is_some(),
        Kind::End { text } => line::task_end(text, 0, UNKNOWN, &mut batch).is_some(),
        Kind::Signal { name } => name.starts_with(b"SIG") || name.starts_with(b"stopped by SIG"),
        Kind::Noise | Kind::Row | Kind::Unknown => false,
    }
}

/// Returns the number in names such as `log.1234` and `log.1234.gz`.
pub fn tid_in_name(file: &str) -> Option<u32> {
    let base = file.rsplit('/').next()?;
    let base = [".gz", ".xz", ".zst"].iter().find_map(|ending| base.strip_suffix(ending)).unwrap_or(base);
    let (_, ending) = base.rsplit_once('.')?;
    ending.bytes().all(|byte| byte.is_ascii_digit()).then(|| ending.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untagged_lines_belong_to_the_thread_that_is_named_later() {
        let mut log = "read(3, \"x\", 1) = 1\n".repeat(5000);
        log += "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 812\n";
        log += "[pid   812] close(3) = 0\n[pid   811] close(3) = 0\n";
        let mut survey = Survey::of(&log.as_bytes()[..64 << 10]);
        assert!(survey.is_bare());
        survey.find_first_thread(log.as_bytes());
        let head = Head { bytes: log.as_bytes(), file: "log" };
        assert_eq!(survey.layout(&head, true).bare_tid, 811);
    }
}
