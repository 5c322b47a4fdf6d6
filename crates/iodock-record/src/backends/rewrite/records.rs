//! From the buffers' entries to the journal's records.

use super::births::{is_fork, Birth, Births};
use super::streams::Streams;
use crate::control::{self, Control};
use crate::process;
use iodock_event::constants::O_CLOEXEC;
use iodock_event::{
    Action, Batch, CallId, ErrnoId, LossKind, Losses, Outcome, Phase, RawCall, Record, Role, Start, TaskEnd,
    Text, NO_FD, UNKNOWN,
};
use iodock_journal::{JournalError, JournalWriter};
use iodock_preload::reader::{CallRecord, Entry, Part, ProcessRecord};
use std::collections::{HashMap, HashSet};

const BATCH_RECORDS: usize = 1024;
const MFD_CLOEXEC: u64 = 1;

/// Session time to ns since the epoch: a line through two readings of both clocks.
#[derive(Clone, Copy)]
pub struct Time {
    pub from: (u64, i64),
    pub to: (u64, i64),
}

impl Time {
    pub fn ns(&self, units: u64) -> i64 {
        let span = (self.to.0 - self.from.0).max(1) as f64;
        let slope = (self.to.1 - self.from.1) as f64 / span;
        self.from.1 + (units.wrapping_sub(self.from.0) as i64 as f64 * slope) as i64
    }
}

pub struct Records<'a> {
    journal: &'a mut JournalWriter,
    control: &'a Control,
    pub batch: Batch,
    pub births: Births,
    /// Processes in an exec of which it is not known yet how it ended, and its beginning.
    execs: HashMap<u32, CallRecord>,
    /// Processes that have called exit: code and when.
    leaving: Vec<(u32, Option<i32>, i64)>,
    /// Calls in flight whose beginning is written.
    entered: HashSet<(u32, u64)>,
    pub failure: Option<String>,
    pub losses: Losses,
    pub unrecorded: u64,
    pub programs: u64,
}

impl<'a> Records<'a> {
    pub fn new(journal: &'a mut JournalWriter, control: &'a Control) -> Self {
        Records {
            journal,
            control,
            batch: Batch::default(),
            births: Births::default(),
            execs: HashMap::new(),
            leaving: Vec::new(),
            entered: HashSet::new(),
            failure: None,
            losses: Losses::default(),
            unrecorded: 0,
            programs: 0,
        }
    }

    /// The process that will execute the program, before it does.
    pub fn root(&mut self, pid: u32, path: &[u8], command: &[u8], now: i64) {
        let working_directory = self.batch.push_text(&process::working_directory(pid));
        let argv = self.batch.push_text(command);
        let rank = process::rank(pid);
        self.births.root(pid);
        control::lock(&self.control.processes).push(pid);
        self.batch.records.push(Record::Start(Start {
            tid: pid,
            tgid: pid,
            parent_tid: None,
            time: now,
            working_directory,
            command: argv,
            attached: false,
            rank,
        }));
        for open in process::descriptors(pid) {
            // Ours are closed by its exec; it never sees them.
            if open.snapshot.flags & O_CLOEXEC == 0 {
                let mut snapshot = open.snapshot;
                snapshot.target = self.batch.push_text(&open.target);
                self.batch.records.push(Record::Descriptor(snapshot));
            }
        }
        let Some(exec) = CallId::intern(b"execve") else { return };
        let mut raw = RawCall::new(exec, pid);
        raw.start = now;
        raw.path = self.batch.push_text(path);
        raw.argv = argv;
        (raw.result, raw.outcome) = (0, Outcome::Succeeded);
        self.batch.records.push(Record::Call(raw));
    }

    pub fn entry(&mut self, stream: usize, entry: Entry, streams: &Streams, time: Time) {
        match entry {
            Entry::Task { tid, pid, time: at } => {
                if let Some(birth) = self.births.appears(stream, (tid, pid), &streams.forks) {
                    self.born(birth, time.ns(at));
                }
            }
            Entry::Process(process) => self.program(stream, process, streams, time),
            Entry::Call(call) => self.call(*call, streams, time),
        }
        if self.batch.records.len() >= BATCH_RECORDS {
            self.hand_over();
        }
    }

    fn born(&mut self, birth: Birth, now: i64) {
        if birth.tid == birth.pid {
            control::lock(&self.control.processes).push(birth.pid);
        }
        self.batch.forks.extend(birth.fork);
        self.batch.records.push(Record::Start(Start {
            tid: birth.tid,
            tgid: birth.pid,
            parent_tid: birth.parent,
            time: now,
            working_directory: Text::NONE,
            command: Text::NONE,
            attached: false,
            rank: None,
        }));
    }

    /// A program has begun: the exec that brought it, if we saw one, has succeeded.
    fn program(&mut self, stream: usize, process: ProcessRecord, streams: &Streams, time: Time) {
        self.programs += 1;
        if let Some(birth) = self.births.appears(stream, (process.tid, process.pid), &streams.forks) {
            self.born(birth, time.ns(process.time));
        }
        if let Some(exec) = self.execs.remove(&process.pid) {
            self.executed(exec, Some(&process.command), time);
        }
        let pairs = process.environment.split(|&byte| byte == 0);
        if let Some(rank) = process::rank_among(pairs) {
            self.batch.records.push(Record::Start(Start {
                tid: process.tid,
                tgid: process.pid,
                parent_tid: None,
                time: time.ns(process.time),
                working_directory: Text::NONE,
                command: Text::NONE,
                attached: false,
                rank: Some(rank),
            }));
        }
    }

    fn executed(&mut self, exec: CallRecord, command: Option<&[u8]>, time: Time) {
        let now = time.ns(exec.start);
        if exec.tid != exec.pid {
            self.births.tasks.remove(&exec.tid);
            self.batch.records.push(Record::End(TaskEnd {
                tid: exec.pid,
                time: now,
                exit_code: None,
                signal: Text::NONE,
                core_dumped: false,
                superseded_by: Some(exec.tid),
            }));
        }
        let mut raw = RawCall::new(exec.call, exec.pid);
        raw.start = now;
        raw.fd = exec.fd;
        raw.path = exec.path.as_ref().map_or(Text::NONE, |path| self.batch.push_text(path));
        raw.argv = command.map_or(Text::NONE, |command| self.batch.push_text(command));
        (raw.result, raw.outcome) = (0, Outcome::Succeeded);
        self.batch.records.push(Record::Call(raw));
    }

    fn call(&mut self, call: CallRecord, streams: &Streams, time: Time) {
        let action = call.call.spec().action;
        match (call.part, action) {
            (Part::Beginning, Action::Exec) => {
                self.execs.insert(call.pid, call);
                return;
            }
            (Part::Beginning, _) => return self.leaves(&call, time),
            (Part::End, _) => {
                let Some(begun) = self.execs.remove(&call.pid) else { return };
                let failed = CallRecord { start: begun.start, path: begun.path, fd: begun.fd, ..call };
                return self.push(&failed, Phase::Whole, time);
            }
            (Part::Whole, _) => {}
        }
        if is_fork(call.call) && call.result > 0 {
            if let Some(birth) = self.births.forked(&call) {
                self.born(birth, time.ns(call.end));
            }
        }
        if changes_descriptors(action) {
            self.enter_others(&call, streams, time);
        }
        let entered = !self.entered.is_empty() && self.entered.remove(&(call.tid, call.start));
        self.push(&call, if entered { Phase::Exit } else { Phase::Whole }, time);
    }

    /// A descriptor means what it meant when a call began: calls of the same process that are in flight
    /// while this one changes that are noted before it.
    fn enter_others(&mut self, call: &CallRecord, streams: &Streams, time: Time) {
        let in_flight: Vec<CallRecord> = streams
            .heads(call.pid)
            .filter_map(|entry| match entry {
                Entry::Call(other) if other.tid != call.tid => Some(other),
                _ => None,
            })
            .filter(|other| other.part == Part::Whole && other.start < call.end)
            .filter(|other| !self.entered.contains(&(other.tid, other.start)))
            .map(|other| (**other).clone())
            .collect();
        for other in in_flight {
            self.entered.insert((other.tid, other.start));
            self.push(&other, Phase::Enter, time);
        }
    }

    fn leaves(&mut self, call: &CallRecord, time: Time) {
        let now = time.ns(call.start);
        let mut raw = RawCall::new(call.call, call.tid);
        raw.start = now;
        self.batch.records.push(Record::Call(raw));
        if call.call.name() == "exit" {
            self.births.tasks.remove(&call.tid);
            self.end(call.tid, Some(call.argument as i32 & 0xff), now);
        } else {
            self.leaving.push((call.pid, Some(call.argument as i32 & 0xff), now));
        }
    }

    fn end(&mut self, tid: u32, exit_code: Option<i32>, now: i64) {
        self.batch.records.push(Record::End(TaskEnd {
            tid,
            time: now,
            exit_code,
            signal: Text::NONE,
            core_dumped: false,
            superseded_by: None,
        }));
    }

    /// Ends the processes that called exit, once all that their other threads did is written.
    pub fn end_left(&mut self) {
        for (pid, exit_code, now) in std::mem::take(&mut self.leaving) {
            control::lock(&self.control.processes).retain(|&other| other != pid);
            for tid in self.births.ended(pid) {
                self.end(tid, exit_code, now);
            }
        }
    }

    /// Execs that brought no program of which we know: static, or without our library.
    pub fn give_up_execs(&mut self, time: Time) {
        let mut execs: Vec<_> = self.execs.drain().map(|(_, exec)| exec).collect();
        execs.sort_by_key(|exec| exec.start);
        for exec in execs {
            self.batch.losses.add(LossKind::UnreachedPrograms, 1);
            self.executed(exec, None, time);
        }
    }

    fn push(&mut self, call: &CallRecord, phase: Phase, time: Time) {
        let spec = call.call.spec();
        let mut raw = RawCall::new(call.call, call.tid);
        raw.start = time.ns(call.start);
        raw.phase = phase;
        (raw.fd, raw.fd2) = (call.fd, call.fd2);
        (raw.requested, raw.offset, raw.offset2) = (call.requested, call.offset, call.offset2);
        raw.flags = match spec.action {
            // Flags of memfd_create have numbers of their own.
            Action::NewMemfd if call.flags & MFD_CLOEXEC != 0 => O_CLOEXEC,
            Action::NewMemfd => call.flags & O_CLOEXEC,
            Action::Clone | Action::Map => call.flags,
            Action::Fork | Action::Vfork => 0,
            _ => u64::from(call.flags as u32),
        };
        raw.argument = match spec.action {
            _ if call.argument == UNKNOWN => UNKNOWN,
            Action::CloseRange => i64::from(call.argument as u32),
            Action::Seek => i64::from(call.argument as i32),
            _ => call.argument,
        };
        raw.path = call.path.as_ref().map_or(Text::NONE, |path| self.batch.push_text(path));
        raw.path2 = call.path2.as_ref().map_or(Text::NONE, |path| self.batch.push_text(path));
        if phase != Phase::Enter {
            raw.duration = time.ns(call.end) - raw.start;
            (raw.stat_size, raw.stat_type) = (call.stat_size, call.stat_type);
            if (-4095..0).contains(&call.result) {
                (raw.result, raw.outcome) = (-1, Outcome::Failed);
                raw.errno = ErrnoId::from_linux(-call.result as i32);
            } else {
                (raw.result, raw.outcome) = (call.result, Outcome::Succeeded);
            }
        } else if spec.has_role(Role::NewPair) {
            (raw.fd, raw.fd2) = (NO_FD, NO_FD);
        }
        self.batch.records.push(Record::Call(raw));
    }

    pub fn hand_over(&mut self) {
        self.losses.merge(&self.batch.losses);
        if self.failure.is_none() {
            let result = self.journal.push(&self.batch);
            self.note(result);
        } else {
            self.unrecorded += self.batch.records.len() as u64;
        }
        self.batch.clear();
    }

    /// Everything up to now is safe from a crash of the recorder afterwards.
    pub fn flush(&mut self) {
        self.hand_over();
        let samples = self.control.take_samples();
        if self.failure.is_some() {
            return;
        }
        let mut result = self.journal.flush();
        if !samples.is_empty() {
            result = result.and_then(|()| self.journal.samples(&samples));
        }
        self.note(result);
    }

    pub fn lose(&mut self, kind: LossKind, count: u64) {
        self.batch.losses.add(kind, count);
    }

    fn note(&mut self, result: Result<(), JournalError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(format!("{error}; {}", error.hint()));
        }
    }

    pub fn finish(&mut self) {
        self.flush();
        self.journal.lose(LossKind::DroppedRecords, self.unrecorded);
    }
}

/// Does the call change what descriptors, or relative names, mean?
fn changes_descriptors(action: Action) -> bool {
    !matches!(
        action,
        Action::None
            | Action::Read
            | Action::PositionedRead
            | Action::Write
            | Action::PositionedWrite
            | Action::Receive
            | Action::Send
            | Action::MultiMessage
            | Action::Transfer
            | Action::Seek
            | Action::SeekResult
            | Action::Map
            | Action::Stat
            | Action::Truncate
            | Action::Readlink
            | Action::ReadDirectory
    )
}
