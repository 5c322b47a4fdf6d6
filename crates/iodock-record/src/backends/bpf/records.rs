//! From the buffers' records to the journal's.

use super::decode::Decoder;
use super::flight::Flights;
use super::lives::Lives;
use crate::control::{self, Control};
use crate::process;
use iodock_bpf::format::Kind;
use iodock_bpf::reader::{Ahead, Copied, Record as Recorded};
use iodock_event::constants::O_CLOEXEC;
use iodock_event::{
    Action, Batch, CallId, Fork, LossKind, Losses, Outcome, Phase, RawCall, Record, Start, TaskEnd,
    TaskUsage, Text, UNKNOWN,
};
use iodock_journal::{JournalError, JournalWriter};

const BATCH_RECORDS: usize = 1024;
const PAGE_BYTES: i64 = 4096;
/// Words of a fork's and an exec's record before their pieces.
const EXEC_WORDS: usize = 4;

pub struct Records<'a> {
    journal: &'a mut JournalWriter,
    control: &'a Control,
    decoder: Decoder,
    batch: Batch,
    usages: Vec<TaskUsage>,
    pub lives: Lives,
    flights: Flights,
    root: u32,
    /// The root has executed its program; before that it is ours.
    pub launched: bool,
    pub exec_errno: i32,
    pub failure: Option<String>,
    pub losses: Losses,
    unrecorded: u64,
}

impl<'a> Records<'a> {
    pub fn new(journal: &'a mut JournalWriter, control: &'a Control, decoder: Decoder) -> Self {
        Records {
            journal,
            control,
            decoder,
            batch: Batch::default(),
            usages: Vec::new(),
            lives: Lives::default(),
            flights: Flights::default(),
            root: 0,
            launched: false,
            exec_errno: 0,
            failure: None,
            losses: Losses::default(),
            unrecorded: 0,
        }
    }

    /// The process that will execute the program, before it does.
    pub fn root(&mut self, pid: u32, command: &[u8], now: i64) {
        self.root = pid;
        self.lives.begins(pid, pid);
        control::lock(&self.control.processes).push(pid);
        let start = Start {
            working_directory: self.batch.push_text(&process::working_directory(pid)),
            command: self.batch.push_text(command),
            rank: process::rank(pid),
            ..started(pid, pid, None, now)
        };
        self.batch.records.push(Record::Start(start));
        // Ours are closed by its exec; it never sees them.
        self.descriptors(pid, O_CLOEXEC);
    }

    /// A thread that ran before.
    pub fn attached(&mut self, tid: u32, tgid: u32, now: i64) {
        self.lives.begins(tid, tgid);
        let mut start = Start { attached: true, ..started(tid, tgid, None, now) };
        if tid == tgid {
            start.working_directory = self.batch.push_text(&process::working_directory(tgid));
            start.command = self.batch.push_text(&process::command(tgid));
            start.rank = process::rank(tgid);
            control::lock(&self.control.processes).push(tgid);
        }
        self.batch.records.push(Record::Start(start));
        if tid == tgid {
            self.descriptors(tgid, 0);
            self.control.faults.look_at(tgid);
        }
    }

    /// What a process has open, but for descriptors with one of the flags in `without`.
    fn descriptors(&mut self, pid: u32, without: u64) {
        for open in process::descriptors(pid).into_iter().filter(|open| open.snapshot.flags & without == 0) {
            let mut snapshot = open.snapshot;
            snapshot.target = self.batch.push_text(&open.target);
            self.batch.records.push(Record::Descriptor(snapshot));
        }
    }

    /// Tasks that ended unseen.
    pub fn gone(&mut self, tids: &[u32], now: i64) {
        for &tid in tids {
            for (tid, _) in self.lives.ends(tid, 0) {
                control::lock(&self.control.processes).retain(|&pid| pid != tid);
                self.end(ending(tid, now));
            }
        }
    }

    #[inline]
    pub fn take(&mut self, record: Recorded, ahead: &Ahead) {
        match record.kind() {
            Kind::Small | Kind::Positioned | Kind::General | Kind::Unfinished => self.call(record, ahead),
            Kind::Fork => self.born(record),
            Kind::Exec => self.executed(record),
            Kind::Exit => self.ended(record),
            Kind::Request => self.request(record),
            Kind::Padding => {}
        }
        if self.batch.records.len() >= BATCH_RECORDS {
            self.hand_over();
        }
    }

    #[inline]
    fn call(&mut self, record: Recorded, ahead: &Ahead) {
        if self.launched && self.failure.is_none() && !self.flights.any_entered() {
            if let Some(data) = self.decoder.data(record) {
                self.hand_over();
                let result = self.journal.push_data(&data);
                return self.note(result);
            }
        }
        let Some(mut raw) = self.decoder.call(record, &mut self.batch) else { return };
        if !self.launched && raw.tid == self.root {
            // What we do in the child ourselves; but for an exec that fails.
            if raw.call.spec().action == Action::Exec && raw.outcome == Outcome::Failed {
                self.exec_errno = (record.words[3] as i64).unsigned_abs() as i32;
            }
            return;
        }
        if raw.outcome == Outcome::Succeeded {
            if raw.call.spec().action == Action::Map {
                let pid = self.lives.shared_process(raw.tid).unwrap_or(raw.tid);
                self.control.faults.has_mapped(pid, raw.requested, raw.flags);
            }
            self.enter_others(&raw, record.time(), ahead);
        }
        if self.flights.ends(raw.tid, self.decoder.monotonic(raw.start)) {
            raw.phase = Phase::Exit;
        }
        self.batch.records.push(Record::Call(raw));
    }

    /// Writes the beginnings of calls of other threads that this one takes the descriptor away from.
    #[inline]
    fn enter_others(&mut self, raw: &RawCall, end: u64, ahead: &Ahead) {
        let Some(tgid) = self.lives.shared_process(raw.tid) else { return };
        for call in self.flights.cut_by(raw, tgid, end, (ahead, &self.lives, &self.decoder)) {
            self.batch.records.extend(self.decoder.beginning(&call).map(Record::Call));
        }
    }

    pub fn new_drain(&mut self) {
        self.flights.forget();
    }

    fn request(&mut self, record: Recorded) {
        match self.decoder.request(record) {
            Some(raw) => self.batch.records.push(Record::Call(raw)),
            // Neither read, write nor sync.
            None => self.lose(LossKind::IoUringContents, 1),
        }
    }

    fn born(&mut self, record: Recorded) {
        let tid = record.tid();
        let (parent_tid, tgid) = record.halves(2);
        let (flags, shares) = (record.words[3], record.words[4]);
        let Some(call) = self.decoder.call_id(record.number()) else { return };
        let flags = match call.spec().action {
            Action::Clone if flags != u64::MAX => flags,
            Action::Clone => shares,
            _ => 0,
        };
        self.batch.forks.push(Fork { parent_tid, child_tid: tid, flags, call });
        let now = self.decoder.time(record.time());
        self.batch.records.push(Record::Start(started(tid, tgid, Some(parent_tid), now)));
        self.lives.begins(tid, tgid);
        if tid == tgid {
            control::lock(&self.control.processes).push(tid);
        }
    }

    fn executed(&mut self, record: Recorded) {
        let (pid, now) = (record.tid(), self.decoder.time(record.time()));
        let (old_tid, number) = record.halves(3);
        let call = self.decoder.call_id(number as usize).or_else(|| CallId::intern(b"execve"));
        self.launched |= pid == self.root;
        if old_tid != pid {
            self.lives.taken_over(old_tid, pid);
            self.end(TaskEnd { superseded_by: Some(old_tid), ..ending(pid, now) });
        }
        let Some(call) = call else { return };
        let mut raw = RawCall::new(call, pid);
        raw.start = self.decoder.time(record.words[2]);
        raw.duration = now - raw.start;
        (raw.result, raw.outcome) = (0, Outcome::Succeeded);
        let [name, interpreter, command] = record.pieces(EXEC_WORDS).map(bytes);
        (raw.fd, raw.path) = self.program_name(name.strip_suffix(&[0]).unwrap_or(name), call);
        let command = given_command(name, interpreter, command);
        raw.argv = self.batch.push_text(command.strip_suffix(&[0]).unwrap_or(command));
        self.batch.records.push(Record::Call(raw));
        if let Some(rank) = process::rank(pid) {
            let start = Start { rank: Some(rank), ..started(pid, pid, None, now) };
            self.batch.records.push(Record::Start(start));
        }
    }

    /// The kernel calls a program given to execveat by a descriptor `/dev/fd/N` or `/dev/fd/N/NAME`.
    fn program_name(&mut self, name: &[u8], call: CallId) -> (i32, Text) {
        let relative = name.strip_prefix(b"/dev/fd/").filter(|_| call.spec().name == "execveat");
        let digits = relative.map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
        let number = relative.and_then(|rest| std::str::from_utf8(&rest[..digits]).ok()?.parse().ok());
        match (relative, number) {
            (Some(rest), Some(fd)) => {
                let rest = &rest[digits..];
                (fd, self.batch.push_text(rest.strip_prefix(b"/").unwrap_or(rest)))
            }
            _ if call.spec().name == "execveat" => (iodock_event::AT_FDCWD, self.batch.push_text(name)),
            _ => (iodock_event::NO_FD, self.batch.push_text(name)),
        }
    }

    fn ended(&mut self, record: Recorded) {
        let (tid, now) = (record.tid(), self.decoder.time(record.time()));
        let &[_, _, user, system, total, peak, _] = record.words else { return };
        let (_, status) = record.halves(6);
        let mut usage = TaskUsage::new(tid, now);
        (usage.cpu_user_ns, usage.cpu_system_ns) = shared_out(total as i64, user as i64, system as i64);
        if let Some(pages) = Some(peak as i64).filter(|&pages| pages > 0) {
            usage.peak_memory_bytes = pages * PAGE_BYTES;
        }
        self.usages.push(usage);
        for (tid, status) in self.lives.ends(tid, status as i32) {
            control::lock(&self.control.processes).retain(|&pid| pid != tid);
            self.task_ended(tid, status, now);
        }
    }

    fn task_ended(&mut self, tid: u32, status: i32, now: i64) {
        let mut end = ending(tid, now);
        if libc::WIFSIGNALED(status) {
            end.signal = self.batch.push_text(crate::signals::name(libc::WTERMSIG(status)).as_bytes());
            end.core_dumped = libc::WCOREDUMP(status);
        } else {
            end.exit_code = Some(libc::WEXITSTATUS(status));
        }
        self.end(end);
    }

    fn end(&mut self, end: TaskEnd) {
        self.batch.records.push(Record::End(end));
    }

    fn hand_over(&mut self) {
        if self.batch.records.is_empty() && self.batch.losses.counts.is_empty() {
            return;
        }
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

fn started(tid: u32, tgid: u32, parent_tid: Option<u32>, time: i64) -> Start {
    let (working_directory, command) = (Text::NONE, Text::NONE);
    Start { tid, tgid, parent_tid, time, working_directory, command, attached: false, rank: None }
}

fn ending(tid: u32, time: i64) -> TaskEnd {
    TaskEnd { tid, time, exit_code: None, signal: Text::NONE, core_dumped: false, superseded_by: None }
}

fn bytes(piece: Option<Copied<'_>>) -> &[u8] {
    match piece {
        Some(Copied::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

/// A script's command as it was given: the kernel has put the interpreter, perhaps with an option, before
/// the script's name.
fn given_command<'a>(name: &[u8], interpreter: &[u8], command: &'a [u8]) -> &'a [u8] {
    if name == interpreter {
        return command;
    }
    let mut rest = command;
    for _ in 0..3 {
        if rest.starts_with(name) {
            return rest;
        }
        let Some(end) = rest.iter().position(|&byte| byte == 0) else { break };
        rest = &rest[end + 1..];
    }
    command
}

/// The scheduler's exact sum, ns, shared out as the clock ticks saw it.
fn shared_out(total: i64, user: i64, system: i64) -> (i64, i64) {
    if total <= 0 {
        return (UNKNOWN, UNKNOWN);
    }
    if user + system == 0 {
        return (total, 0);
    }
    let user = (i128::from(total) * i128::from(user) / i128::from(user + system)) as i64;
    (user, total - user)
}
