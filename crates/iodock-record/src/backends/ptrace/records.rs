//! Writes calls to the journal in the order in which they end. The beginning of a call gets a record of its
//! own only if another record is written between its beginning and its end.

use super::tasks::{Call, State, Tasks};
use crate::control::Control;
use crate::process;
use iodock_event::{Batch, Items, LossKind, Losses, Phase, Record, Start, TaskEnd, TaskUsage, Text};
use iodock_journal::JournalWriter;

/// Number of records that are collected before they are passed to the journal.
const BATCH_RECORDS: usize = 1024;
const SIGNALS: usize = 65;

pub struct Records<'a> {
    journal: &'a mut JournalWriter,
    control: &'a Control,
    pub batch: Batch,
    usages: Vec<TaskUsage>,
    /// Slots with a call of which nothing is recorded yet, in the order in which the calls began.
    open: Vec<u32>,
    signals: [u64; SIGNALS],
    pub last_flush: i64,
    /// Reason why the journal can't be written. After this, nothing is recorded.
    pub failure: Option<String>,
    /// Number of calls after the journal failed.
    pub unrecorded: u64,
    pub all_losses: Losses,
}

impl<'a> Records<'a> {
    pub fn new(journal: &'a mut JournalWriter, control: &'a Control, now: i64) -> Self {
        Records {
            journal,
            control,
            batch: Batch::default(),
            usages: Vec::new(),
            open: Vec::new(),
            signals: [0; SIGNALS],
            last_flush: now,
            failure: None,
            unrecorded: 0,
            all_losses: Losses::default(),
        }
    }

    pub fn losses(&mut self) -> &mut Losses {
        &mut self.batch.losses
    }

    pub fn lose(&mut self, kind: LossKind, count: u64) {
        self.batch.losses.add(kind, count);
    }

    pub fn signal(&mut self, signal: i32) {
        if let Some(count) = self.signals.get_mut(signal as usize) {
            *count += 1;
        }
    }

    #[inline]
    pub fn begun(&mut self, slot: usize) {
        self.open.push(slot as u32);
    }

    /// Records a call that has ended. The beginnings of calls that began earlier are recorded first, because
    /// a descriptor has the meaning that it had when the call began.
    #[inline]
    pub fn call(&mut self, slot: usize, tasks: &mut Tasks) {
        if self.open.as_slice() == [slot as u32] {
            self.open.clear();
        } else if !self.open.is_empty() {
            self.enter_others(slot, tasks);
        }
        let task = tasks.get(slot);
        let phase = if task.entered { Phase::Exit } else { Phase::Whole };
        task.entered = false;
        push_call(&mut self.batch, &task.call, phase);
        if self.batch.records.len() >= BATCH_RECORDS {
            self.hand_over();
        }
    }

    /// Forgets the call that has just ended, because it must not be recorded.
    pub fn forget(&mut self, slot: usize) {
        self.open.retain(|&open| open as usize != slot);
    }

    fn enter_others(&mut self, slot: usize, tasks: &mut Tasks) {
        for index in 0..self.open.len() {
            let other = self.open[index] as usize;
            if other != slot {
                self.enter(other, tasks);
            }
        }
        self.open.clear();
    }

    fn enter(&mut self, slot: usize, tasks: &mut Tasks) {
        let task = tasks.get(slot);
        if task.tid != 0 && task.state == State::InCall && !task.hidden {
            task.entered = true;
            push_call(&mut self.batch, &task.call, Phase::Enter);
        }
    }

    /// Records the beginning of every call in flight.
    pub fn enter_all(&mut self, tasks: &mut Tasks) {
        self.enter_others(usize::MAX, tasks);
    }

    /// Handles the move of a thread from one slot to another.
    pub fn renamed(&mut self, from: usize, to: usize) {
        self.open.retain(|&slot| slot != to as u32);
        for slot in &mut self.open {
            if *slot == from as u32 {
                *slot = to as u32;
            }
        }
    }

    pub fn root(&mut self, pid: u32, command: &[u8], now: i64) {
        let working_directory = self.batch.push_text(&process::working_directory(pid));
        let command = self.batch.push_text(command);
        let rank = process::rank(pid);
        let start = Start {
            tid: pid,
            tgid: pid,
            parent_tid: None,
            time: now,
            working_directory,
            command,
            attached: false,
            rank,
        };
        self.batch.records.push(Record::Start(start));
    }

    /// Records the beginning of a task. With `describe`, reads its working directory and command from /proc.
    pub fn start(
        &mut self,
        tid: u32,
        tgid: u32,
        parent_tid: Option<u32>,
        now: i64,
        describe: bool,
        attached: bool,
    ) {
        let (mut working_directory, mut command, mut rank) = (Text::NONE, Text::NONE, None);
        if describe {
            working_directory = self.batch.push_text(&process::working_directory(tgid));
            command = self.batch.push_text(&process::command(tgid));
            rank = process::rank(tgid);
        }
        let start = Start { tid, tgid, parent_tid, time: now, working_directory, command, attached, rank };
        self.batch.records.push(Record::Start(start));
    }

    /// Records that a running task is an MPI rank.
    pub fn rank(&mut self, tid: u32, now: i64, rank: i32, tasks: &mut Tasks) {
        self.enter_all(tasks);
        let start = Start {
            tid,
            tgid: tid,
            parent_tid: None,
            time: now,
            working_directory: Text::NONE,
            command: Text::NONE,
            attached: false,
            rank: Some(rank),
        };
        self.batch.records.push(Record::Start(start));
    }

    /// Records the open descriptors of `pid`, except those with a flag in `without`.
    pub fn descriptors(&mut self, pid: u32, without: u64) {
        for open in process::descriptors(pid) {
            if open.snapshot.flags & without == 0 {
                self.push_descriptor(open);
            }
        }
    }

    /// Records one descriptor, which was opened by a call that does not contain the file's name.
    pub fn descriptor(&mut self, tid: u32, fd: i32) {
        self.push_descriptor(process::descriptor(tid, fd));
    }

    fn push_descriptor(&mut self, open: process::OpenDescriptor) {
        let mut snapshot = open.snapshot;
        snapshot.target = self.batch.push_text(&open.target);
        self.batch.records.push(Record::Descriptor(snapshot));
    }

    pub fn superseded(&mut self, leader: u32, caller: u32, now: i64, tasks: &mut Tasks) {
        self.enter_all(tasks);
        self.push_end(leader, now, None, Text::NONE, false, Some(caller));
    }

    pub fn ended(&mut self, tid: u32, status: i32, now: i64, tasks: &mut Tasks) {
        self.enter_all(tasks);
        if libc::WIFSIGNALED(status) {
            let name = crate::signals::name(libc::WTERMSIG(status));
            let signal = self.batch.push_text(name.as_bytes());
            self.push_end(tid, now, None, signal, libc::WCOREDUMP(status), None);
        } else {
            self.push_end(tid, now, Some(libc::WEXITSTATUS(status)), Text::NONE, false, None);
        }
    }

    fn push_end(
        &mut self,
        tid: u32,
        time: i64,
        exit_code: Option<i32>,
        signal: Text,
        core_dumped: bool,
        superseded_by: Option<u32>,
    ) {
        let end = TaskEnd { tid, time, exit_code, signal, core_dumped, superseded_by };
        self.batch.records.push(Record::End(end));
        if self.batch.records.len() >= BATCH_RECORDS {
            self.hand_over();
        }
    }

    /// Records the resource usage of a thread at its exit, and for a process also its I/O.
    pub fn usage(&mut self, tid: u32, tgid: u32, now: i64) {
        if self.failure.is_some() {
            return;
        }
        let mut usage = TaskUsage::new(tid, now);
        if let Some((user, system)) = process::cpu_time(tgid, tid) {
            (usage.cpu_user_ns, usage.cpu_system_ns) = (user, system);
        }
        if tid == tgid {
            let mut samples = Vec::new();
            crate::sampler::process_io(std::path::Path::new("/proc"), tid, now, &mut samples);
            self.control.give_samples(&mut samples);
        }
        self.usages.push(usage);
    }

    /// Records the resource usage, from wait4, of a process with a single thread and no children.
    pub fn usage_at_end(&mut self, tid: u32, used: &libc::rusage, now: i64) {
        if self.failure.is_some() {
            return;
        }
        let ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1000;
        let (cpu_user_ns, cpu_system_ns) = (ns(used.ru_utime), ns(used.ru_stime));
        self.usages.push(TaskUsage { cpu_user_ns, cpu_system_ns, ..TaskUsage::new(tid, now) });
        let mut samples = Vec::new();
        crate::sampler::process_blocks(tid, used.ru_inblock, used.ru_oublock, now, &mut samples);
        self.control.give_samples(&mut samples);
    }

    fn hand_over(&mut self) {
        self.all_losses.merge(&self.batch.losses);
        if self.failure.is_none() {
            let result = self.journal.push(&self.batch);
            self.note(result);
        }
        self.batch.clear();
    }

    /// Writes all records to the file, so that they survive a crash of the recorder.
    pub fn flush(&mut self, now: i64) {
        self.last_flush = now;
        self.hand_over();
        let samples = self.control.take_samples();
        let usages = std::mem::take(&mut self.usages);
        if self.failure.is_some() {
            return;
        }
        let mut result = self.journal.flush();
        if !samples.is_empty() {
            result = result.and_then(|()| self.journal.samples(&samples));
        }
        if !usages.is_empty() {
            result = result.and_then(|()| self.journal.usages(&usages));
        }
        self.note(result);
    }

    fn note(&mut self, result: Result<(), iodock_journal::JournalError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(format!("{error}; {}", error.hint()));
        }
    }

    pub fn finish(&mut self, now: i64) {
        for (signal, &count) in self.signals.iter().enumerate().filter(|(_, &count)| count > 0) {
            self.batch.counts.signals.insert(crate::signals::name(signal as i32), count);
        }
        self.flush(now);
        self.journal.lose(LossKind::DroppedRecords, self.unrecorded);
    }
}

#[inline]
fn push_call(batch: &mut Batch, call: &Call, phase: Phase) {
    let mut raw = call.raw;
    raw.phase = phase;
    if !call.texts.is_empty() {
        let base = batch.bytes.len() as u32;
        batch.bytes.extend_from_slice(&call.texts);
        for text in [&mut raw.path, &mut raw.path2, &mut raw.argv] {
            if text.is_some() {
                text.start += base;
            }
        }
    } else if raw.path.is_some() || raw.argv.is_some() || raw.path2.is_some() {
        // All texts are empty, but they still need an offset.
        let base = batch.bytes.len() as u32;
        for text in [&mut raw.path, &mut raw.path2, &mut raw.argv] {
            if text.is_some() {
                text.start = base;
            }
        }
    }
    if !call.items.is_empty() {
        raw.items = Items { start: batch.items.len() as u32, count: call.items.len() as u32 };
        batch.items.extend_from_slice(&call.items);
    }
    batch.records.push(Record::Call(raw));
}
