//! Empties the kernel's buffers until all followed processes have ended, or a stop signal arrives.

use super::group::Group;
use super::keeper::{Keeper, Kept, Queue};
use super::notes;
use super::round::{Round, Watch};
use crate::backends::{Ended, ProgramExit};
use crate::clock::Clock;
use crate::control::{Control, Received};
use crate::process;
use crate::standing::StopAlong;
use iodock_bpf::calls::rounds::{self, END, NOTES, STRAGGLER_NS};
use iodock_bpf::programs::{Follow, Programs};
use iodock_bpf::reader::Reader;
use iodock_event::{LossKind, Losses};
use iodock_journal::JournalWriter;
use std::collections::HashSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::{io, thread, time::Duration};

/// Interval in ms of emptying the buffers. In this time a CPU writes up to 1 MiB of records of openat, which
/// have about 150 bytes.
const PULSE_MS: i32 = 10;
/// Interval in ms if no CPU wrote more than CALM_BYTES since the last time, and buffers have at least
/// CALM_BUFFER bytes.
const CALM_PULSE_MS: i32 = 20;
const CALM_BYTES: u64 = 256 << 10;
const CALM_BUFFER: usize = 4 << 20;
/// Time or number of bytes after which collected records are written. One large write costs a file system a
/// third of the same bytes in small ones, and the writer wakes up less often.
const COLLECTED_NS: u64 = 50_000_000;
const COLLECTED_BYTES: usize = 256 << 10;
const SECOND: i64 = 1_000_000_000;

/// The processes that are followed.
pub enum Purpose {
    /// A child process and its descendants. The descriptor becomes readable when the child ends.
    Launched { root: libc::pid_t, handle: Option<OwnedFd> },
    /// Processes that were running before, and their descendants.
    Attached,
    /// All processes of a cgroup, until a signal arrives.
    Group(Group),
}

impl Purpose {
    pub fn launched(root: libc::pid_t) -> Purpose {
        // SAFETY: pidfd_open accesses no memory of the caller. It returns a new descriptor or fails.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, root, 0) } as libc::c_int;
        // SAFETY: the descriptor is new and has no other owner.
        let handle = (handle >= 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) });
        Purpose::Launched { root, handle }
    }
}

pub struct Following<'a> {
    programs: &'a Programs,
    reader: Reader<'a>,
    watch: Watch<'a>,
    queue: Queue,
    /// Records that were taken out of the buffers but not passed to the writer yet, and the time of the first
    /// of them.
    round: Round,
    begun: u64,
    pulse_ms: i32,
    /// Notes of the recorder for the next round.
    notes: Vec<u64>,
    clock: &'a Clock,
    control: &'a Control,
    purpose: Purpose,
    received: Received,
    exit: Option<ProgramExit>,
    killed: u32,
    stopped: bool,
    stopping: StopAlong,
    last_look: i64,
    /// Tasks that did not exist at the last check, although no record of their end has arrived.
    missing: HashSet<u32>,
    /// Losses in the kernel at the last check, and those that the writer does not know yet.
    lost: Losses,
    untold: Losses,
}

impl<'a> Following<'a> {
    pub fn new(
        programs: &'a Programs,
        (watch, queue): (Watch<'a>, Queue),
        clock: &'a Clock,
        control: &'a Control,
        purpose: Purpose,
    ) -> Self {
        Following {
            reader: Reader::new(programs),
            programs,
            watch,
            queue,
            round: Round::default(),
            begun: 0,
            pulse_ms: PULSE_MS,
            notes: Vec::new(),
            clock,
            control,
            purpose,
            received: control.received(),
            exit: None,
            killed: 0,
            stopped: false,
            stopping: StopAlong::default(),
            last_look: clock.now(),
            missing: HashSet::new(),
            lost: Losses::default(),
            untold: Losses::default(),
        }
    }

    /// Follows the child process that will execute the program.
    pub fn root(&mut self, pid: u32, command: &[u8]) {
        let now = self.now();
        notes::root(&mut self.notes, pid, command, now);
        self.watch.root(pid);
        self.programs.follow(pid);
    }

    /// Follows all processes to the end on this thread, and writes records on another thread.
    pub fn run(mut self, keeper: Keeper<'a>, begin: impl FnOnce()) -> Followed {
        thread::scope(|scope| {
            let keeper = scope.spawn(|| keeper.run());
            let _first = super::first::go_first();
            begin();
            self.follow();
            self.finish(|| keeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn follow(&mut self) {
        while self.goes_on() {
            self.wait();
            self.heed_signals();
            self.look_for_members();
            self.drain(STRAGGLER_NS);
            if self.exit.is_some() && !self.watch.lives.is_empty() {
                self.drain(0);
                // A task whose end was recorded may have created another one, whose record is in the buffer
                // of a CPU that was read before.
                if self.watch.lives.is_empty() {
                    self.drain(0);
                }
            }
            if self.clock.now() - self.last_look >= SECOND {
                self.stop_along();
                self.forget_the_gone();
                self.note_losses();
                self.last_look = self.clock.now();
            }
        }
        while !self.queue.has_room() {
            thread::sleep(Duration::from_millis(1));
        }
        // These tasks continue after the recording.
        let now = self.now();
        for (tid, _) in self.watch.lives.all() {
            self.programs.note_run(&mut self.notes, tid, now);
        }
        self.drain(0);
    }

    /// Stops the recorder if all processes that it started are stopped.
    fn stop_along(&mut self) {
        let Purpose::Launched { root, .. } = self.purpose else { return };
        if self.exit.is_none() {
            let clock = self.clock;
            let stopped = process::all_stopped(self.watch.lives.processes());
            self.stopping.heed(stopped, root, || clock.now());
        }
    }

    fn goes_on(&self) -> bool {
        let living = !self.watch.lives.is_empty();
        match self.purpose {
            Purpose::Launched { .. } => self.exit.is_none() || living,
            Purpose::Attached => living && !self.stopped,
            Purpose::Group(_) => !self.stopped,
        }
    }

    /// Waits until the first process ends, at most for the interval.
    fn wait(&mut self) {
        let handle = match &self.purpose {
            Purpose::Launched { handle: Some(handle), .. } if self.exit.is_none() => handle.as_raw_fd(),
            _ => -1,
        };
        let mut handle = libc::pollfd { fd: handle, events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel gets a pointer to one structure and the count 1.
        unsafe { libc::poll(&mut handle, 1, self.pulse_ms) };
        let Purpose::Launched { root, .. } = self.purpose else { return };
        if handle.fd >= 0 && handle.revents == 0 {
            return;
        }
        let mut status = 0;
        // SAFETY: waitpid writes only to `status`, and the process is a child of this one.
        if self.exit.is_none() && unsafe { libc::waitpid(root, &mut status, libc::WNOHANG) } == root {
            self.exit = Some(if libc::WIFSIGNALED(status) {
                ProgramExit::Signal(libc::WTERMSIG(status))
            } else {
                ProgramExit::Code(libc::WEXITSTATUS(status))
            });
        }
    }

    /// Passes a signal sent to the recorder on to the program. A second signal, or cancelling, kills the
    /// program. Processes that were running before the recording are neither signalled nor killed.
    fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent;
        let keys = received.terminal != self.received.terminal;
        let first = received.sent == 1;
        self.received = received;
        let Purpose::Launched { root, .. } = self.purpose else {
            self.stopped |= asked || keys || cancelled;
            return;
        };
        if cancelled || (asked && !first) || (self.exit.is_some() && (asked || keys)) {
            for pid in self.followed_processes() {
                self.killed += 1;
                // SAFETY: kill accesses no memory, and the program created this process.
                unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            }
        } else if asked && self.exit.is_none() {
            // SAFETY: kill accesses no memory, and the child was not waited for, so its id is still valid.
            unsafe { libc::kill(root, received.last_sent) };
        }
        for signal in self.control.take_to_pass_on().filter(|_| self.exit.is_none()) {
            // SAFETY: kill accesses no memory, and the child was not waited for, so its id is still valid.
            unsafe { libc::kill(root, signal) };
        }
    }

    /// Follows a running process with all its threads, including those that it creates during this call.
    ///
    /// # Errors
    /// Fails if the process does not exist.
    pub fn attach(&mut self, pid: u32) -> io::Result<()> {
        loop {
            let threads = process::threads(pid)?;
            let new: Vec<u32> = threads.into_iter().filter(|&tid| !self.watch.lives.has(tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            let mut has_room = true;
            for tid in new {
                // The time is read before the program follows the thread, so that every recorded call ends
                // later.
                let now = self.now();
                match self.programs.follow(tid) {
                    Follow::New => {
                        self.watch.begins(tid, pid);
                        notes::attached(&mut self.notes, tid, pid, now);
                    }
                    // The parent of this thread is followed already, so the record of its creation will
                    // arrive.
                    Follow::Already => self.watch.begins(tid, pid),
                    Follow::Full => has_room = false,
                }
            }
            if !has_room {
                return Ok(());
            }
            self.control.faults.look_at(pid);
        }
    }

    /// Follows processes that an administrator or scheduler moved into the cgroup.
    fn look_for_members(&mut self) {
        let Purpose::Group(group) = &mut self.purpose else { return };
        let new: Vec<u32> = group.members().into_iter().filter(|&pid| !self.watch.lives.has(pid)).collect();
        for pid in new {
            // An error is ignored, because the process may have ended already.
            let _ = self.attach(pid);
        }
    }

    /// Returns the processes that are followed now. A process whose end was not recorded is excluded, because
    /// its id may belong to another process.
    fn followed_processes(&self) -> HashSet<u32> {
        let lives = self.watch.lives.all();
        lives.filter(|&(tid, _)| self.programs.follows(tid)).map(|(_, tgid)| tgid).collect()
    }

    /// Removes tasks whose end was not recorded, because they ended before the recorder attached, or because
    /// the record was lost.
    fn forget_the_gone(&mut self) {
        let may_be_missed =
            self.exit.is_some() || self.programs.dropped() > 0 || self.programs.untracked() > 0;
        if matches!(self.purpose, Purpose::Launched { .. }) && !may_be_missed {
            return;
        }
        let is_gone = |&(tid, tgid): &(u32, u32)| {
            !self.programs.follows(tid) || !Path::new(&format!("/proc/{tgid}/task/{tid}")).exists()
        };
        let missing: HashSet<u32> = self.watch.lives.all().filter(is_gone).map(|(tid, _)| tid).collect();
        let now = self.now();
        // A task must be missing in two checks, because at the first one the record of its end may not have
        // arrived yet.
        for &tid in missing.intersection(&self.missing) {
            notes::gone(&mut self.notes, tid, now);
            self.watch.ends(tid, 0);
        }
        self.missing = missing;
    }

    /// Passes new losses to the writer, so that the journal contains them if the recorder is killed.
    fn note_losses(&mut self) {
        let growth = self.growth_of_losses();
        self.untold.merge(&growth);
    }

    fn growth_of_losses(&mut self) -> Losses {
        let now = [
            (LossKind::DroppedRecords, self.programs.dropped()),
            (LossKind::ForeignCalls, self.programs.foreign()),
            (LossKind::UnreachedPrograms, self.programs.untracked()),
        ];
        let mut growth = Losses::default();
        for (kind, count) in now {
            growth.add(kind, count.saturating_sub(self.lost.counts.get(&kind).copied().unwrap_or(0)));
        }
        self.lost.merge(&growth);
        growth
    }

    /// Returns the time in monotonic ns.
    fn now(&self) -> u64 {
        (self.clock.now() - self.clock.epoch()) as u64
    }

    /// Takes all records out of the buffers, unless the writer has too much to write. Beginnings and ends of
    /// tasks in the last `age` ns are processed later.
    fn drain(&mut self, age: u64) {
        if !self.queue.has_room() {
            return;
        }
        let end = self.now();
        if self.round.words.is_empty() {
            (self.round, self.begun) = (self.queue.round(), end);
        }
        let mut words = std::mem::take(&mut self.round.words);
        self.watch.cuts = false;
        let most = self.reader.drain(&mut words, |record| self.watch.look(record, &mut self.round));
        self.pulse_ms = self.next_pulse(most);
        rounds::put_part(&mut words, NOTES, |out| out.append(&mut self.notes));
        if self.watch.cuts {
            let calls = self.watch.shared().filter_map(|tid| self.programs.in_call(tid));
            rounds::put_in_call(&mut words, self.now(), calls);
        }
        self.watch.settle(end - age);
        self.round.words = words;
        let full = self.round.words.len() * 8 >= COLLECTED_BYTES || end - self.begun >= COLLECTED_NS;
        if full || age == 0 || self.round.is_urgent() {
            self.hand_over(end);
        }
    }

    /// Returns the interval in ms until the next reading. `most` is the largest number of bytes of one CPU.
    /// For a cgroup the interval stays short, because its members are checked at this interval.
    fn next_pulse(&self, most: u64) -> i32 {
        let looks_for_members = matches!(self.purpose, Purpose::Group(_));
        let is_calm = most <= CALM_BYTES && self.programs.buffer_size >= CALM_BUFFER;
        if is_calm && !looks_for_members {
            CALM_PULSE_MS
        } else {
            PULSE_MS
        }
    }

    /// Passes the records that were taken up to `end` to the writer.
    fn hand_over(&mut self, end: u64) {
        let mut round = std::mem::take(&mut self.round);
        if !round.words.is_empty() {
            round.losses = std::mem::take(&mut self.untold);
            rounds::put_part(&mut round.words, END, |out| out.push(end));
            self.queue.push(round);
        }
    }

    /// Returns the reason why the program could not be executed, if there is one.
    fn exec_error(&self) -> Option<io::Error> {
        let failed = !self.watch.launched && self.watch.exec_errno != 0;
        failed.then(|| io::Error::from_raw_os_error(self.watch.exec_errno))
    }

    fn finish(mut self, kept: impl FnOnce() -> Kept) -> Followed {
        let exec_error = self.exec_error();
        self.note_losses();
        let mut untold = self.untold;
        let in_call = self.watch.lives.all().filter(|&(tid, _)| self.programs.in_call(tid).is_some()).count();
        untold.add(LossKind::UnfinishedAtEnd, in_call as u64);
        drop(self.queue);
        let Kept { failure, lost, told } = kept();
        untold.add(LossKind::DroppedRecords, lost);
        let exit = self.exit.unwrap_or(ProgramExit::Running);
        let mut losses = told;
        losses.merge(&untold);
        let ended = Ended { exit, failure, losses, killed: self.killed, warnings: Vec::new() };
        Followed { ended, untold, exec_error }
    }
}

/// Result of following processes.
pub struct Followed {
    ended: Ended,
    /// Losses in the kernel that the journal does not contain yet.
    untold: Losses,
    /// Reason why the program could not be executed, if there is one.
    pub exec_error: Option<io::Error>,
}

impl Followed {
    /// Writes the losses to the journal, and returns how the recording ended.
    pub fn told(self, journal: &mut JournalWriter) -> Ended {
        self.untold.counts.iter().for_each(|(&kind, &count)| journal.lose(kind, count));
        self.ended
    }
}
