//! Converts the entries of chunks to records.

use super::births::{fork_call, Birth, Births};
use super::counted::Counted;
use super::streams::Streams;
use super::times::Times;
use super::usages::Usages;
use crate::reader::{CallRecord, Entry, InterfaceEntry, Part, ProcessRecord};
use iodock_event::constants::O_CLOEXEC;
use iodock_event::interfaces::InterfaceRecord;
use iodock_event::ranks::rank_among;
use iodock_event::{
    Action, Batch, DescriptorSnapshot, ErrnoId, Items, LossKind, Outcome, Phase, RawCall, Record, Role,
    Start, TaskEnd, Text, NO_FD, UNKNOWN,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

const MFD_CLOEXEC: u64 = 1;
/// Type of a character device in a file's mode: `S_IFCHR >> 12`.
const CHARACTER_DEVICE: u8 = 2;
/// Time after which a process that has called exit is treated as ended. Until then, records of calls that its
/// other threads have just made may still arrive.
const STRAGGLER_NS: i64 = 100_000_000;

/// How the first process ended, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    /// The time in ns since the epoch.
    pub time: Option<i64>,
}

/// The exit code of a process that has called exit, and the time of that call in ns.
#[derive(Clone, Copy)]
struct Exit {
    code: Option<i32>,
    time: i64,
}

#[derive(Default)]
struct KnownStacks(HashMap<usize, (Arc<[u8]>, Text)>);

pub struct Records {
    pub batch: Batch,
    pub births: Births,
    times: Times,
    /// Processes in an exec whose outcome is not known yet, with the call that began it.
    execs: HashMap<u32, CallRecord>,
    /// For each stream a task that may not have been created by a recorded process, and the time in ns when
    /// it appeared.
    unsure: HashMap<usize, (Birth, i64)>,
    /// Processes that are traced, with the exec that they were about to make.
    handed_over: HashMap<u32, Option<CallRecord>>,
    /// Processes that have called exit, and whose end is not yet recorded.
    exits: HashMap<u32, Exit>,
    /// Times in ns of the processes' calls of exit; ends are processed in this order. If an id was reused in
    /// between, the process is no longer in `exits`.
    leaving: VecDeque<(u32, i64)>,
    /// Calls in flight whose beginning was written as a record of its own, by thread and start.
    entered: HashSet<(u32, u64)>,
    programs: u64,
    pub usages: Usages,
    pub counted: Counted,
    /// Stacks whose bytes the batch already contains, by the address of their bytes in memory.
    stacks: Box<KnownStacks>,
    /// Time in ns when the last call ended.
    last: i64,
    /// The process whose calls in flight were searched last, and the end of the call for which they were
    /// searched, in units of the session's clock.
    pub changed: Option<(u32, u64)>,
}

impl Records {
    /// Creates a converter. `root` is the first process, whose start is recorded in the journal.
    pub fn new(root: u32, times: Times) -> Self {
        let mut births = Births::default();
        births.root(root);
        Records {
            batch: Batch::default(),
            births,
            times,
            execs: HashMap::new(),
            unsure: HashMap::new(),
            handed_over: HashMap::new(),
            exits: HashMap::new(),
            leaving: VecDeque::new(),
            entered: HashSet::new(),
            programs: 0,
            usages: Usages::default(),
            counted: Counted::default(),
            stacks: Box::default(),
            last: UNKNOWN,
            changed: None,
        }
    }

    /// Sets the conversion of times after the clock was read again.
    pub fn set_times(&mut self, times: Times) {
        self.times = times;
    }

    pub fn entry(&mut self, stream: usize, entry: Entry, streams: &Streams) {
        self.last = self.times.ns(super::streams::time_of(&entry));
        self.end_left(self.last - STRAGGLER_NS);
        self.make_sure(stream, &entry);
        match entry {
            Entry::Task { tid, pid, time } => {
                let now = self.times.ns(time);
                match self.appears(stream, (tid, pid), time, streams) {
                    Some(birth) if birth.fork.is_none() => drop(self.unsure.insert(stream, (birth, now))),
                    Some(birth) => self.born(birth, now),
                    None => {}
                }
            }
            Entry::Process(process) => self.program(stream, process, streams),
            Entry::Traced { pid, .. } => {
                let exec = self.execs.remove(&pid);
                let handed = self.handed_over.entry(pid).or_default();
                // The library repeats an exec that failed with E2BIG; only its first attempt has recorded a
                // beginning.
                if exec.is_some() {
                    *handed = exec;
                }
                self.births.leave(pid);
            }
            Entry::Usage(usage) => self.usages.add(&usage, self.last),
            Entry::Counted(counted) => self.counted.told(&counted),
            Entry::Call(call) => self.call(stream, *call, streams),
            Entry::Interface(interface) => self.interface(&interface),
        }
    }

    fn interface(&mut self, entry: &InterfaceEntry) {
        let [result, handle, bytes, offset, is_plain_view, variable, descriptor, calls] = entry.facts;
        let name = entry.name.as_ref().map_or(Text::NONE, |name| self.batch.push_text(name));
        self.batch.records.push(Record::Interface(InterfaceRecord {
            tid: entry.tid,
            time: self.times.ns(entry.time),
            part: entry.part,
            call: entry.call,
            result,
            handle,
            bytes,
            offset,
            is_plain_view: is_plain_view == 1,
            variable,
            name,
            descriptor,
            calls,
        }));
    }

    /// Whether the thread is known, and its process has not called exit.
    pub fn is_living(&self, tid: u32) -> bool {
        self.births.tasks.get(&tid).is_some_and(|pid| !self.exits.contains_key(pid))
    }

    /// Called when a thread writes to `stream` from `time` on. Returns its birth if the thread is new: its id
    /// is unknown or was reused.
    fn appears(
        &mut self,
        stream: usize,
        (tid, pid): (u32, u32),
        time: u64,
        streams: &Streams,
    ) -> Option<Birth> {
        let fork = streams.fork_in_flight(tid, time);
        let is_made = fork.is_some_and(|fork| self.births.is_used_again(fork));
        // The fork may come too late after its child's calls to be found. But if the process with this id has
        // called exit, it makes no more calls. So an entry in another process's stream comes from a new child
        // of vfork with the same id.
        let is_lent = || fork.is_none() && !self.is_living(tid) && self.births.lender(stream, pid).is_some();
        if is_made || is_lent() {
            self.end_former(tid, self.last);
        }
        self.births.appears(stream, (tid, pid), time, fork.map(|fork| fork.fork))
    }

    /// Records the birth of a task without a known parent, unless the next entry of its stream shows that the
    /// task was traced until now, and so is known.
    fn make_sure(&mut self, stream: usize, next: &Entry) {
        if self.unsure.is_empty() {
            return;
        }
        let Some((birth, time)) = self.unsure.remove(&stream) else { return };
        if !matches!(next, Entry::Process(ProcessRecord { was_traced: true, .. })) {
            self.born(birth, time);
        }
    }

    fn born(&mut self, birth: Birth, now: i64) {
        if birth.fork.is_some() {
            // An entry of `handed_over` belongs to an earlier process with this id.
            self.handed_over.remove(&birth.tid);
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

    /// Called when a program has begun. An exec of the process that is still pending has succeeded.
    fn program(&mut self, stream: usize, process: ProcessRecord, streams: &Streams) {
        // A process that has called exit begins no program, unless it made an exec before. So this is another
        // process with the same id.
        if self.exits.contains_key(&process.pid) && !self.execs.contains_key(&process.pid) {
            self.end_former(process.pid, self.last);
        }
        self.counted.begins(process.pid);
        if process.was_traced {
            self.handed_over.remove(&process.pid);
            return self.births.come_back(stream, process.tid, process.pid);
        }
        self.programs += 1;
        if let Some(birth) = self.appears(stream, (process.tid, process.pid), process.time, streams) {
            self.born(birth, self.last);
        }
        if let Some(exec) = self.execs.remove(&process.pid) {
            self.executed(exec, Some(&process.command));
        }
        let pairs = process.environment.split(|&byte| byte == 0);
        if let Some(rank) = rank_among(pairs) {
            self.batch.records.push(Record::Start(Start {
                tid: process.tid,
                tgid: process.pid,
                parent_tid: None,
                time: self.times.ns(process.time),
                working_directory: Text::NONE,
                command: Text::NONE,
                attached: false,
                rank: Some(rank),
            }));
        }
    }

    fn executed(&mut self, exec: CallRecord, command: Option<&[u8]>) {
        let now = self.times.ns(exec.start);
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

    fn call(&mut self, stream: usize, call: CallRecord, streams: &Streams) {
        let action = call.call.spec().action;
        match (call.part, action) {
            (Part::Beginning, Action::Exec) => {
                self.execs.insert(call.pid, call);
                return;
            }
            (Part::Beginning, _) => return self.leaves(&call),
            (Part::End, _) => {
                // A tracer was to record the process from this exec on. The exec has failed, so the library
                // still records it.
                if let Some(exec) = self.handed_over.remove(&call.pid) {
                    self.births.come_back(stream, call.tid, call.pid);
                    self.execs.extend(exec.map(|exec| (call.pid, exec)));
                }
                self.counted.failed_exec(call.pid);
                let Some(begun) = self.execs.remove(&call.pid) else { return };
                let failed = CallRecord { start: begun.start, path: begun.path, fd: begun.fd, ..call };
                return self.push(&failed, Phase::Whole);
            }
            (Part::Whole | Part::NoReturn, _) => {}
        }
        self.counted.call(&call, || self.times.ns(call.end) - self.times.ns(call.start));
        if let Some(fork) = fork_call(&call) {
            if self.births.is_used_again(fork) {
                self.end_former(fork.fork.child_tid, self.last);
            }
            if let Some(birth) = self.births.forked(call.pid, fork) {
                self.born(birth, self.last);
            }
        }
        if changes_descriptors(action) {
            self.enter_others(&call, streams);
        }
        let entered = !self.entered.is_empty() && self.entered.remove(&(call.tid, call.start));
        self.push(&call, if entered { Phase::Exit } else { Phase::Whole });
        if action == Action::Ioctl && call.result >= 0 {
            self.peer(&call);
        }
    }

    /// Records the new descriptor that an ioctl has returned: the other end of a pseudo-terminal.
    fn peer(&mut self, call: &CallRecord) {
        let Some(path) = &call.path else { return };
        let target = self.batch.push_text(path);
        let (tid, fd, flags) = (call.pid, call.result as i32, call.argument as u64);
        let (position, stat_type, stat_size) = (UNKNOWN, CHARACTER_DEVICE, UNKNOWN);
        let opened = DescriptorSnapshot { tid, fd, target, position, flags, stat_type, stat_size };
        self.batch.records.push(Record::Descriptor(opened));
    }

    /// Records the beginnings of the process's other calls in flight before this call, which changes the
    /// meaning of descriptors: a call uses the meaning at its beginning.
    fn enter_others(&mut self, call: &CallRecord, streams: &Streams) {
        self.changed = Some((call.pid, call.end));
        let in_flight: Vec<CallRecord> = streams
            .heads(call.pid)
            .filter_map(|entry| match entry {
                Entry::Call(other) if other.tid != call.tid => Some(other),
                _ => None,
            })
            .filter(|other| matches!(other.part, Part::Whole | Part::NoReturn) && other.start < call.end)
            .filter(|other| !self.entered.contains(&(other.tid, other.start)))
            .map(|other| (**other).clone())
            .collect();
        for other in in_flight {
            self.entered.insert((other.tid, other.start));
            self.push(&other, Phase::Enter);
        }
    }

    fn leaves(&mut self, call: &CallRecord) {
        let time = self.times.ns(call.start);
        let mut raw = RawCall::new(call.call, call.tid);
        raw.start = time;
        self.batch.records.push(Record::Call(raw));
        let code = Some(call.argument as i32 & 0xff);
        if call.call.name() == "exit" {
            self.births.tasks.remove(&call.tid);
            self.end(call.tid, code, time);
        } else {
            // If several threads call exit, the first of these calls ends the process.
            self.exits.entry(call.pid).or_insert(Exit { code, time });
            self.leaving.push_back((call.pid, time));
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

    /// Ends the processes that called exit before `until`. All calls of their other threads have been read by
    /// then.
    fn end_left(&mut self, until: i64) {
        if self.leaving.front().is_none_or(|&(_, time)| time >= until) {
            return;
        }
        self.usages.settle(until);
        while let Some(&(pid, time)) = self.leaving.front().filter(|&&(_, time)| time < until) {
            self.leaving.pop_front();
            if self.exits.get(&pid).is_some_and(|exit| exit.time == time) {
                self.end_process(pid, time);
            }
        }
    }

    fn end_process(&mut self, pid: u32, now: i64) {
        self.counted.ends(pid);
        let exit = self.exits.remove(&pid).unwrap_or(Exit { code: None, time: now });
        for tid in self.births.ended(pid) {
            self.end(tid, exit.code, exit.time);
        }
    }

    /// Records the end of the previous thread with this id, which from now on belongs to another thread.
    /// Later the two could not be distinguished.
    fn end_former(&mut self, tid: u32, now: i64) {
        let Some(&pid) = self.births.tasks.get(&tid) else { return };
        if tid != pid && self.is_living(tid) {
            self.births.tasks.remove(&tid);
            return self.end(tid, None, now);
        }
        if let Some(exec) = self.execs.remove(&pid) {
            self.unreached(exec);
        }
        self.usages.settle_process(pid);
        self.end_process(pid, now);
    }

    /// Records an exec after which the process reported nothing: it has succeeded, and has started a program
    /// that the library does not record, such as a static one.
    fn unreached(&mut self, exec: CallRecord) {
        self.batch.losses.add(LossKind::UnreachedPrograms, 1);
        self.executed(exec, None);
    }

    /// Called after the last entry. Processes that did not call exit were killed; `ending` says how the first
    /// one ended.
    pub fn finish(&mut self, root: u32, ending: &Ending) {
        self.end_left(i64::MAX);
        self.usages.settle(i64::MAX);
        let mut unsure: Vec<_> = self.unsure.drain().map(|(_, birth)| birth).collect();
        unsure.sort_by_key(|&(_, time)| time);
        unsure.into_iter().for_each(|(birth, time)| self.born(birth, time));
        let mut execs: Vec<_> = self.execs.drain().map(|(_, exec)| exec).collect();
        execs.sort_by_key(|exec| exec.start);
        execs.into_iter().for_each(|exec| self.unreached(exec));
        self.batch.losses.add(LossKind::BeforeLoad, self.programs);
        let mut left: Vec<u32> = self.births.processes.iter().copied().collect();
        left.sort_unstable();
        for pid in left {
            let first = pid == root;
            let signal = ending.signal.as_ref().filter(|_| first);
            let signal = signal.map_or(Text::NONE, |name| self.batch.push_text(name.as_bytes()));
            let time = ending.time.unwrap_or(self.last);
            let exit_code = ending.exit_code.filter(|_| first);
            for tid in self.births.ended(pid) {
                let end = TaskEnd { tid, time, exit_code, signal, core_dumped: false, superseded_by: None };
                self.batch.records.push(Record::End(end));
            }
        }
    }

    /// Returns the batch so far. The next batch uses the memory of `spare`, and contains no stacks yet.
    pub fn take_batch(&mut self, spare: Batch) -> Batch {
        self.stacks.0.clear();
        std::mem::replace(&mut self.batch, spare)
    }

    /// Returns the position of a stack's bytes in the batch, and adds them if the batch does not contain them
    /// yet.
    fn stack(&mut self, stack: Option<&Arc<[u8]>>) -> Text {
        let Some(stack) = stack else { return Text::NONE };
        let batch = &mut self.batch;
        let known = self.stacks.0.entry(stack.as_ptr() as usize);
        known.or_insert_with(|| (stack.clone(), batch.push_text(stack))).1
    }

    fn push(&mut self, call: &CallRecord, phase: Phase) {
        let spec = call.call.spec();
        let mut raw = RawCall::new(call.call, call.tid);
        raw.start = self.times.ns(call.start);
        raw.phase = phase;
        raw.stack = self.stack(call.stack.as_ref());
        (raw.fd, raw.fd2) = (call.fd, call.fd2);
        (raw.requested, raw.offset, raw.offset2) = (call.requested, call.offset, call.offset2);
        raw.flags = match spec.action {
            // memfd_create uses different numbers for its flags.
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
        let path = call.path.as_ref().filter(|_| spec.action != Action::Ioctl);
        raw.path = path.map_or(Text::NONE, |path| self.batch.push_text(path));
        raw.path2 = call.path2.as_ref().map_or(Text::NONE, |path| self.batch.push_text(path));
        if !call.items.is_empty() && phase != Phase::Enter {
            raw.items = Items { start: self.batch.items.len() as u32, count: call.items.len() as u32 };
            self.batch.items.extend_from_slice(&call.items);
        }
        if phase != Phase::Enter && call.part != Part::NoReturn {
            raw.duration = self.times.ns(call.end) - raw.start;
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
}

/// Whether the call changes the meaning of descriptors, or of relative names.
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
            | Action::ReceiveMany
            | Action::SendMany
            | Action::PipeMemory
            | Action::RingEnter
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_batch_has_the_bytes_of_its_stacks() {
        let stack: Arc<[u8]> = b"a stack".as_slice().into();
        let mut records = Records::new(1, Times::new(Vec::new()));
        let mut call = CallRecord::new(iodock_event::CallId::intern(b"fsync").unwrap(), (1, 1), (0, 1));
        call.stack = Some(stack.clone());
        for text_before in [vec![b'x'; 100], Vec::new()] {
            // The first record of the batch is an end of a task, not a call.
            records.batch.push_text(&text_before);
            let end = TaskEnd {
                tid: 2,
                time: 0,
                exit_code: None,
                signal: Text::NONE,
                core_dumped: false,
                superseded_by: None,
            };
            records.batch.records.push(Record::End(end));
            records.push(&call, Phase::Whole);
            let batch = records.take_batch(Batch::default());
            let Some(Record::Call(raw)) = batch.records.last() else { panic!("no call") };
            assert_eq!(batch.text(raw.stack), &*stack);
        }
    }
}
