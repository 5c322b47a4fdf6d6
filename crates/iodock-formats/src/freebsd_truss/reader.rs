//! Converts lines to records.

use super::arguments::fill;
use super::errors::error;
use super::line::{body, prefix, Body, Call, Ending, Prefix};
use super::settle::{settle, Appeared, State};
use crate::runs::{Order, RecordLines};
use crate::strace::known_call;
use crate::{Chunk, Lines, LogReader};
use iodock_event::{
    Action, CallId, Clock, ErrnoId, Fork, LossKind, Outcome, RawCall, Record, TaskEnd, Text, UNKNOWN,
};
use std::collections::HashSet;
use std::sync::Arc;

/// The order of lines. A single truss process writes each line when its call is complete, so all lines are in
/// order.
const ORDER: Order = Order { by_thread: false, jitter: 1_000_000 };
/// Process id that records get if the log shows none.
const ONLY_PROCESS: u32 = 1;
/// Prefixes that FreeBSD puts before the names of calls of other systems and of its own older versions.
const BEFORE_NAMES: &[&[u8]] = &[b"linux_new", b"linux_", b"freebsd32_", b"compat11.", b"freebsd11_"];

/// Smallest number of rows for recognising time stamps. With fewer rows, durations could increase by chance
/// and look like time stamps.
const FEWEST: usize = 8;

/// The meaning of the columns that contain seconds. truss does not print their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Index of the column with the time stamp (`-d`).
    pub stamp: Option<usize>,
    /// Index of the column with the duration (`-D`).
    pub duration: Option<usize>,
    /// Whether calls show their process or thread. Before FreeBSD 7, the lines for ends of processes do not,
    /// even with `-f`.
    pub numbered: bool,
}

impl Columns {
    /// Finds the columns. A single column contains time stamps (`-d`) if its values grow. A few exceptions
    /// are allowed, because another log may begin or a digit may be damaged.
    pub fn find(head: &[u8]) -> Columns {
        let all = || head.split(|&byte| byte == b'\n').map(prefix);
        let numbered = all().any(|row| row.pid.is_some() || row.tid.is_some());
        let rows: Vec<Prefix> = all().filter(|row| row.columns > 0).collect();
        let two = rows.iter().filter(|row| row.columns == 2).count();
        if two * 2 > rows.len() {
            return Columns { stamp: Some(0), duration: Some(1), numbered };
        }
        let grown = rows.windows(2).filter(|pair| pair[0].stamps[0] <= pair[1].stamps[0]).count();
        match rows.len() {
            0..FEWEST => Columns { numbered, ..Columns::default() },
            all if grown * 10 >= (all - 1) * 9 => Columns { stamp: Some(0), duration: None, numbered },
            _ => Columns { stamp: None, duration: Some(0), numbered },
        }
    }

    fn value(place: Option<usize>, start: &Prefix) -> i64 {
        place.filter(|&place| place < start.columns).map_or(UNKNOWN, |place| start.stamps[place])
    }
}

/// Reader of one log.
pub struct FreebsdTrussReader {
    pub columns: Columns,
    pub file: Arc<str>,
}

/// Data about a chunk that `parse` passes to `settle`.
#[derive(Default)]
pub struct Notes {
    pub appeared: Vec<Appeared>,
    known: HashSet<u32>,
    places: RecordLines,
}

impl LogReader for FreebsdTrussReader {
    type Notes = Notes;
    type State = State;

    fn clock(&self) -> Clock {
        self.columns.stamp.map_or(Clock::None, |_| Clock::Relative)
    }

    fn resolution(&self) -> Option<i64> {
        self.columns.stamp.map(|_| 1)
    }

    fn parse(&self, lines: &Lines<'_>, chunk: &mut Chunk<Notes>) {
        for line in lines.numbered() {
            let read = !line.text.contains(&0) && self.line(line.text, chunk);
            if !read && !chunk.notes.places.of_terminal(line.text, line.number) {
                chunk.lose_at(line.loss(), lines.file, line.number, line.text);
            }
            chunk.notes.places.note(line.number, &chunk.batch.records);
        }
    }

    fn settle(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        let notes = std::mem::take(&mut chunk.notes);
        state.timed += chunk.batch.counts.timed;
        state.untimed += chunk.batch.counts.untimed;
        let order = self.columns.stamp.map(|_| ORDER);
        state.runs.follow(notes.places, ONLY_PROCESS, order, &self.file, chunk);
        settle(state, &notes.appeared, &mut chunk.batch);
    }

    fn beginnings<'a>(&self, state: &'a State) -> &'a [u64] {
        state.runs.beginnings()
    }

    fn finish(&self, state: &mut State, chunk: &mut Chunk<Notes>) {
        if state.timed == 0 {
            chunk.batch.losses.add(LossKind::MissingDurations, state.untimed);
        }
        if self.columns.stamp.is_none() {
            chunk.batch.losses.add(LossKind::MissingTimestamps, state.timed + state.untimed);
        }
    }
}

impl FreebsdTrussReader {
    /// Reads one line. Returns `false` if it cannot be parsed.
    fn line(&self, line: &[u8], chunk: &mut Chunk<Notes>) -> bool {
        let start = prefix(line);
        let (pid, time) = (start.pid.unwrap_or(ONLY_PROCESS), Columns::value(self.columns.stamp, &start));
        let tid = start.tid.unwrap_or(pid);
        let end = TaskEnd {
            tid: pid,
            time,
            exit_code: None,
            signal: Text::NONE,
            core_dumped: false,
            superseded_by: None,
        };
        let whose = start.pid.is_some() || start.tid.is_some();
        match body(&line[start.body..]) {
            Body::Exited(_) | Body::Killed { .. } if self.columns.numbered && !whose => {}
            Body::Call(call) => return self.call(&call, &start, (pid, tid), chunk),
            Body::Exited(value) => {
                self.end(TaskEnd { exit_code: exit_code(value), ..end }, chunk);
            }
            Body::Killed { signal, core_dumped } => {
                let signal = chunk.batch.push_text(signal_name(signal).as_bytes());
                self.end(TaskEnd { signal, core_dumped, ..end }, chunk);
            }
            Body::ThreadExited if tid != pid => {
                self.appear(pid, tid, chunk);
                chunk.batch.records.push(Record::End(TaskEnd { tid, ..end }));
            }
            Body::Signal(name) => count_signal(name, chunk),
            Body::ThreadExited | Body::Known => {}
            Body::Unreadable => return false,
        }
        true
    }

    fn call(
        &self,
        call: &Call<'_>,
        start: &Prefix,
        (pid, tid): (u32, u32),
        chunk: &mut Chunk<Notes>,
    ) -> bool {
        let Some(id) = call_id(call.name) else {
            chunk.batch.lose(LossKind::TooManyNames);
            return true;
        };
        let batch = &mut chunk.batch;
        let bytes = batch.bytes.len();
        let mut raw = RawCall::new(id, tid);
        if !fill(call.arguments, &mut raw, batch) {
            batch.bytes.truncate(bytes);
            return false;
        }
        if !self.time(start, &mut raw) {
            chunk.batch.lose(LossKind::IncredibleNumbers);
        }
        ended(call, &mut raw, chunk);
        self.appear(pid, tid, chunk);
        chunk.batch.records.push(Record::Call(raw));
        true
    }

    /// Sets the times of the call. The time stamp is that of its end; its beginning is the time stamp minus
    /// the duration. Returns `false` if the call would have begun before truss did.
    fn time(&self, start: &Prefix, raw: &mut RawCall) -> bool {
        let end = Columns::value(self.columns.stamp, start);
        raw.duration = Columns::value(self.columns.duration, start);
        match (end, raw.duration) {
            (UNKNOWN, _) => {}
            (_, UNKNOWN) => raw.end = end,
            (_, duration) if duration > end => {
                (raw.end, raw.duration) = (end, UNKNOWN);
                return false;
            }
            _ => raw.start = end.saturating_sub(raw.duration),
        }
        true
    }

    /// Notes the first line of a thread in the chunk.
    fn appear(&self, pid: u32, tid: u32, chunk: &mut Chunk<Notes>) {
        if tid != pid && chunk.notes.known.insert(tid) {
            let index = chunk.batch.records.len();
            chunk.notes.appeared.push(Appeared { index, pid, tid: Some(tid) });
        }
    }

    /// Handles the end of a process. If its number appears again, it belongs to another process.
    fn end(&self, end: TaskEnd, chunk: &mut Chunk<Notes>) {
        chunk.batch.records.push(Record::End(end));
        chunk.notes.known.clear();
        let index = chunk.batch.records.len();
        chunk.notes.appeared.push(Appeared { index, pid: end.tid, tid: None });
    }
}

/// Returns the call with that name, or with the name that another system gives it.
fn call_id(name: &[u8]) -> Option<CallId> {
    let own = BEFORE_NAMES.iter().filter_map(|before| name.strip_prefix(*before));
    own.filter_map(known_call).next().or_else(|| CallId::intern(name))
}

/// Returns the exit code. Before FreeBSD 10, truss prints the status of wait(2) as the result, which has the
/// exit code in its second byte.
fn exit_code(value: i64) -> Option<i32> {
    let code = if value > 0xff { value >> 8 } else { value };
    i32::try_from(code).ok().map(|code| code & 0xff)
}

/// Returns the name of a signal from FreeBSD's number.
fn signal_name(number: i64) -> String {
    const NAMES: &[&str] = &[
        "",
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGEMT",
        "SIGFPE",
        "SIGKILL",
        "SIGBUS",
        "SIGSEGV",
        "SIGSYS",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGURG",
        "SIGSTOP",
        "SIGTSTP",
        "SIGCONT",
        "SIGCHLD",
        "SIGTTIN",
        "SIGTTOU",
        "SIGIO",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGINFO",
        "SIGUSR1",
        "SIGUSR2",
        "SIGTHR",
        "SIGLIBRT",
    ];
    let known =
        usize::try_from(number).ok().and_then(|number| NAMES.get(number)).filter(|name| !name.is_empty());
    known.map_or_else(|| format!("SIG{number}"), |name| (*name).to_string())
}

fn count_signal(name: &[u8], chunk: &mut Chunk<Notes>) {
    let number = crate::strace::number(name);
    let name = number.map_or_else(|| String::from_utf8_lossy(name).into_owned(), signal_name);
    *chunk.batch.counts.signals.entry(name).or_default() += 1;
}

/// Sets the result or the error from the text after the brackets.
fn ended(call: &Call<'_>, raw: &mut RawCall, chunk: &mut Chunk<Notes>) {
    let batch = &mut chunk.batch;
    match call.ending {
        Ending::Nothing => {
            raw.duration = UNKNOWN;
            return;
        }
        Ending::Result(value) => (raw.outcome, raw.result) = (Outcome::Succeeded, value),
        Ending::JustReturned => raw.outcome = Outcome::Succeeded,
        Ending::Error(number) => {
            (raw.outcome, raw.result) = (Outcome::Failed, -1);
            let linux = call.name.starts_with(b"linux_");
            let id = if linux { i32::try_from(number).ok().map(ErrnoId::from_linux) } else { error(number) };
            match id {
                Some(id) => raw.errno = id,
                None => batch.lose(LossKind::TooManyNames),
            }
        }
    }
    let counts = &mut batch.counts;
    if raw.duration == UNKNOWN {
        counts.untimed += 1;
    } else {
        counts.timed += 1;
    }
    let forks = matches!(raw.call.spec().action, Action::Fork | Action::Vfork);
    if let Some(child_tid) = u32::try_from(raw.result).ok().filter(|&child| forks && child > 0) {
        batch.forks.push(Fork { parent_tid: raw.tid, child_tid, flags: 0, call: raw.call });
    }
}
