//! Converts the buffers' records to the record types that all sources share.

use super::decode::Decoder;
use super::flight::Flights;
use super::streams::Streams;
use crate::format::{start, Kind};
use crate::lives::Lives;
use crate::plans::Plans;
use crate::record::{Copied, Record as Recorded};
use iodock_event::{
    Action, Batch, CallId, DescriptorSnapshot, FileIdentity, Fork, Identity, LossKind, Outcome, Phase,
    Record, Start, TaskEnd, Text, UNKNOWN,
};
use std::collections::HashSet;

/// Numbers of words before the pieces in the record of an exec and in the notes of the recorder.
const EXEC_WORDS: usize = 6;
const START_WORDS: usize = 4;
const DESCRIPTOR_WORDS: usize = 6;
const NAME_WORDS: usize = 4;
/// Value of an unknown rank in a record.
pub const NO_RANK: u64 = u64::MAX;

pub struct Records {
    decoder: Decoder,
    pub batch: Batch,
    lives: Lives,
    flights: Flights,
    /// The process that the recorder has created to execute the program. Its calls before the exec are the
    /// recorder's and are skipped.
    root: Option<u32>,
    /// Page-cache files that already have an identity record.
    named: HashSet<FileIdentity>,
}

impl Records {
    pub fn new(plans: &Plans, epoch: i64) -> Self {
        Records {
            decoder: Decoder::new(plans, epoch),
            batch: Batch::default(),
            lives: Lives::default(),
            flights: Flights::default(),
            root: None,
            named: HashSet::new(),
        }
    }

    #[inline]
    pub fn take(&mut self, record: Recorded, streams: &Streams) {
        match record.kind() {
            Kind::Small | Kind::Positioned | Kind::General | Kind::Unfinished => self.call(record, streams),
            Kind::Fork => self.born(record),
            Kind::Exec => self.executed(record),
            Kind::Exit => self.ended(record),
            Kind::Request => self.request(record),
            Kind::Start => self.begins(record),
            Kind::Descriptor => self.descriptor(record),
            Kind::Gone => self.leaves(record, 0, |end, _| end),
            Kind::Rank => self.rank(record),
            Kind::Identity => self.identity(record),
            Kind::Name => self.name(record),
            Kind::Pages => self.pages(record),
            // [`Streams`] has expanded short records to small ones before.
            Kind::Padding | Kind::Again | Kind::Short | Kind::ShortPositioned | Kind::ShortSized => {}
        }
    }

    #[inline]
    fn call(&mut self, record: Recorded, streams: &Streams) {
        if self.root == Some(record.tid()) {
            return;
        }
        let Some(mut raw) = self.decoder.call(record, &mut self.batch) else { return };
        if raw.outcome == Outcome::Succeeded {
            self.enter_others(&raw, record.time(), streams);
        }
        if self.flights.ends(raw.tid, self.decoder.monotonic(raw.start)) {
            raw.phase = Phase::Exit;
        }
        self.batch.records.push(Record::Call(raw));
    }

    /// Records the beginnings of other threads' calls whose descriptor this call closes.
    #[inline]
    fn enter_others(&mut self, raw: &iodock_event::RawCall, end: u64, streams: &Streams) {
        if !matches!(raw.call.spec().action, Action::Close | Action::Dup2 | Action::CloseRange) {
            return;
        }
        let Some(tgid) = self.lives.shared_process(raw.tid) else { return };
        for call in self.flights.cut_by(raw, tgid, end, (streams, &self.lives, &self.decoder)) {
            self.batch.records.extend(self.decoder.beginning(&call).map(Record::Call));
        }
    }

    fn request(&mut self, record: Recorded) {
        match self.decoder.request(record) {
            Some(raw) => self.batch.records.push(Record::Call(raw)),
            // The request is neither a read, a write nor a sync.
            None => self.batch.losses.add(LossKind::IoUringContents, 1),
        }
    }

    /// Records a thread that the recorder follows from now on. It was created for the recording, or was
    /// running before.
    fn begins(&mut self, record: Recorded) {
        let (tid, now) = (record.tid(), self.decoder.time(record.time()));
        let (&[_, _, _, rank, ..], (tgid, flags)) = (record.words, record.halves(2)) else { return };
        let [directory, command, _] = record.pieces(START_WORDS);
        if flags & start::LAUNCHED != 0 {
            self.root = Some(tid);
        }
        self.lives.begins(tid, tgid);
        let begun = Start {
            attached: flags & start::ATTACHED != 0,
            working_directory: self.text(directory),
            command: self.text(command),
            rank: (rank != NO_RANK).then_some(rank as i32),
            ..started(tid, tgid, None, now)
        };
        self.batch.records.push(Record::Start(begun));
    }

    fn text(&mut self, piece: Option<Copied>) -> Text {
        match piece {
            Some(Copied::Bytes(bytes)) => self.batch.push_text(bytes),
            _ => Text::NONE,
        }
    }

    fn descriptor(&mut self, record: Recorded) {
        let &[_, _, _, position, flags, size, ..] = record.words else { return };
        let (fd, stat_type) = record.halves(2);
        let [target, _, _] = record.pieces(DESCRIPTOR_WORDS);
        let target = self.text(target);
        self.batch.records.push(Record::Descriptor(DescriptorSnapshot {
            tid: record.tid(),
            fd: fd as i32,
            target,
            position: position as i64,
            flags,
            stat_type: stat_type as u8,
            stat_size: size as i64,
        }));
    }

    fn rank(&mut self, record: Recorded) {
        let (pid, now) = (record.tid(), self.decoder.time(record.time()));
        let rank = record.words.get(2).map(|&rank| rank as i32);
        self.batch.records.push(Record::Start(Start { rank, ..started(pid, pid, None, now) }));
    }

    /// Records the file that a descriptor refers to.
    fn identity(&mut self, record: Recorded) {
        let &[_, time, _, inode] = record.words else { return };
        let (device, fd) = record.halves(2);
        let file = FileIdentity { device, inode };
        self.named.insert(file);
        let told = Identity::of(file, record.tid(), self.decoder.time(time));
        self.batch.records.push(Record::Identity(Identity { fd: fd as i32, ..told }));
    }

    /// Records a file name that the recorder found. The recorder finds names late, so they also apply to
    /// earlier records.
    fn name(&mut self, record: Recorded) {
        let &[_, _, device, inode, ..] = record.words else { return };
        let name = self.text(record.pieces(NAME_WORDS)[0]);
        let file = FileIdentity { device: device as u32, inode };
        let told = Identity::of(file, record.tid(), UNKNOWN);
        self.batch.records.push(Record::Identity(Identity { name, ..told }));
    }

    /// Records only the identity of the file. [`super::pages`] reads the pages after the names of files are
    /// known.
    fn pages(&mut self, record: Recorded) {
        let Some(run) = super::pages::run_of(record, self.decoder.epoch) else { return };
        if self.named.insert(run.file) {
            self.batch.records.push(Record::Identity(Identity::of(run.file, run.tid, run.ts)));
        }
    }

    fn born(&mut self, record: Recorded) {
        let tid = record.tid();
        let &[_, _, _, flags, shares] = record.words else { return };
        let (parent_tid, tgid) = record.halves(2);
        // A 32-bit call has no known number, but the kernel's flags still say what the two tasks share.
        let named = self.decoder.call_id(record.number());
        let flags = match named.map(|call| call.spec().action) {
            Some(Action::Clone) if flags != u64::MAX => flags,
            _ => shares,
        };
        let Some(call) = named.or_else(|| CallId::intern(b"clone")) else { return };
        self.batch.forks.push(Fork { parent_tid, child_tid: tid, flags, call });
        let now = self.decoder.time(record.time());
        self.batch.records.push(Record::Start(started(tid, tgid, Some(parent_tid), now)));
        self.lives.begins(tid, tgid);
    }

    fn executed(&mut self, record: Recorded) {
        let (pid, now) = (record.tid(), self.decoder.time(record.time()));
        let Some(&begun) = record.words.get(2).filter(|_| record.words.len() >= EXEC_WORDS) else { return };
        let (old_tid, number) = record.halves(3);
        let call = self.decoder.call_id(number as usize).or_else(|| CallId::intern(b"execve"));
        self.root = self.root.filter(|&root| root != pid);
        if old_tid != pid {
            self.lives.taken_over(old_tid, pid);
            self.end(TaskEnd { superseded_by: Some(old_tid), ..ending(pid, now) });
        }
        let Some(call) = call else { return };
        let mut raw = iodock_event::RawCall::new(call, pid);
        raw.start = self.decoder.time(begun);
        raw.duration = now.wrapping_sub(raw.start);
        (raw.result, raw.outcome) = (0, Outcome::Succeeded);
        let [name, interpreter, command] = record.pieces(EXEC_WORDS).map(bytes);
        (raw.fd, raw.path) = self.program_name(name.strip_suffix(&[0]).unwrap_or(name), call);
        let command = given_command(name, interpreter, command);
        raw.argv = self.batch.push_text(command.strip_suffix(&[0]).unwrap_or(command));
        self.batch.records.push(Record::Call(raw));
        self.program(record, raw.path);
    }

    /// Records the file of the executed program.
    fn program(&mut self, record: Recorded, name: Text) {
        let file = FileIdentity { device: record.halves(4).0, inode: record.words[5] };
        if file.inode > 0 && name.length > 0 {
            let told = Identity::of(file, record.tid(), self.decoder.time(record.time()));
            self.batch.records.push(Record::Identity(Identity { name, ..told }));
        }
    }

    /// Returns descriptor and name of an executed program. The kernel names a program that execveat runs by
    /// descriptor `/dev/fd/N` or `/dev/fd/N/NAME`.
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
        if record.words.len() < 7 {
            return;
        }
        let (_, status) = record.halves(6);
        self.leaves(record, status as i32, with_status);
    }

    /// Records the end of a task, and of its process if it was the last task.
    fn leaves(&mut self, record: Recorded, status: i32, how: fn(TaskEnd, (i32, &mut Batch)) -> TaskEnd) {
        let now = self.decoder.time(record.time());
        for (tid, status) in self.lives.ends(record.tid(), status) {
            let end = how(ending(tid, now), (status, &mut self.batch));
            self.end(end);
        }
    }

    fn end(&mut self, end: TaskEnd) {
        self.batch.records.push(Record::End(end));
    }
}

/// Stores a wait status, in the form of wait(2).
fn with_status(mut end: TaskEnd, (status, batch): (i32, &mut Batch)) -> TaskEnd {
    match status & 0x7f {
        0 => end.exit_code = Some(status >> 8 & 0xff),
        signal => {
            end.signal = batch.push_text(iodock_event::signals::name(signal).as_bytes());
            end.core_dumped = status & 0x80 != 0;
        }
    }
    end
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

/// Returns a script's command as the user gave it. Before the script's name the kernel has inserted the
/// interpreter, perhaps with an option.
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
