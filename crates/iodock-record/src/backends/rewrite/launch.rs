//! Starts a program with the preloaded library, follows it to its end, and saves the calls that the library
//! writes to the buffers. Nothing is decoded here, to leave the machine to the program.

use super::living::Living;
use super::tracing::Tracing;
use super::{room, root};
use crate::backends::ptrace::Requests;
use crate::backends::{Ended, ProgramExit};
use crate::clock::{pair, Clock};
use crate::control::{Control, Received};
use crate::error::{launch_error, plain, RecordError, Refusal};
use crate::faults::PageFaults;
use crate::launch;
use crate::locks::lock;
use crate::process;
use crate::program::Program;
use crate::standing::StopAlong;
use iodock_event::{LossKind, Losses, TaskUsage};
use iodock_journal::{JournalError, JournalWriter};
use iodock_preload::asking::{Asking, WATCH};
use iodock_preload::calls::{self, CallsWriter, Keeper};
use iodock_preload::format::header;
use iodock_preload::left;
use iodock_preload::session::{self, Session, Wanted};
use std::collections::HashSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io};

/// Interval of checking for new processes, and for buffers that fill fast.
const PULSE: Duration = Duration::from_millis(50);
/// Interval of writing calls to the file. It is the longest time whose calls are lost if the machine crashes.
const TURN: Duration = Duration::from_secs(1);

/// Removes the session's folder when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run(
    mut program: Program,
    journal: &mut JournalWriter,
    clock: &Clock,
    control: &Control,
) -> Result<Ended, RecordError> {
    let refused = |what: &str, error: io::Error| {
        let message = format!("{what}: {}", plain(&error));
        RecordError::Refused(Refusal::new(message, "choose --backend ptrace"))
    };
    let folder = Folder(room::place().map_err(RecordError::Refused)?);
    let wanted = Wanted {
        light: program.light,
        whole: program.whole.clone(),
        interfaces: program.interfaces,
        stacks: program.stacks,
    };
    let session = Session::create_for(&folder.0, &session::libraries(), wanted)
        .map_err(|error| refused("the shared buffers can't be made", error))?;
    left::remove(Path::new(room::SHARED), SystemTime::now());
    root::prepare(&mut program, &session);
    let complete = program.complete;
    let mut child = launch::fork(&program).map_err(|error| refused("the program can't be started", error))?;
    let path = journal.path().with_extension(calls::ENDING);
    let mut file = match CallsWriter::create(&path, &session, child.pid as u32) {
        Ok(file) => file,
        Err(source) => {
            child.abandon();
            let error = JournalError { path, source };
            return Err(RecordError::Store(Refusal::new(error.to_string(), error.hint())));
        }
    };
    // This link shows a later iodock where the file of calls is. An error is ignored, because without the
    // link the session only stays in memory if this process is killed and the store is lost.
    let _ = left::name_calls(&session, &path);
    // An error is ignored, because the next flush reports that the file can't be written.
    let _ = file.clock(pair(&session, clock));
    let root = child.pid as u32;
    let requests = Requests::new(session.library().into_os_string().into_encoded_bytes());
    let handle = handle_of(child.pid);
    let beside = journal.path().to_path_buf();
    let tracing =
        Tracing { session: &session, journal: &beside, root, clock, control, complete, requests: &requests };
    lock(&control.processes).push(child.pid as u32);
    let mut following = Following {
        session: &session,
        path,
        keeper: Keeper::new(&session, file),
        journal,
        clock,
        control,
        root: child.pid,
        handle,
        requests: &requests,
        living: Living::new(child.pid as u32),
        births: 0,
        turn: Instant::now(),
        received: control.received(),
        stopping: StopAlong::default(),
        may_stand_still: false,
        exit: None,
        killing: false,
        killed: HashSet::new(),
        failure: None,
    };
    let ((), traced) = tracing.around(|root_is_traced| {
        root::tell(following.journal, &program, root, clock.now(), !root_is_traced);
        watched(&session, control, || {
            child.release();
            following.follow();
        })
    });
    match child.failure() {
        Some(error) => Err(launch_error(&program.path.to_string_lossy(), &error)),
        None => Ok(following.finish(traced)),
    }
}

/// Runs `work`, and watches the page faults of processes that map a large file during that time.
fn watched(session: &Session, control: &Control, work: impl FnOnce()) {
    let least = control.faults.least_bytes();
    // If the session's header can't be mapped, no process makes such requests, and nothing is watched.
    let Some(watching) = least.and_then(|least| Asking::begin(session, WATCH, least).ok()) else {
        return work();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let serve = |pid| PageFaults::knows(pid, &session.folder) && control.faults.look_at(pid);
            watching.answer(serve, |_| {});
        });
        let _end = End(&watching);
        work();
    });
}

/// Ends the answering of requests when it is dropped.
struct End<'a>(&'a Asking);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Detaches from a program that requested tracing by its parent (PTRACE_TRACEME). The recorder does not trace
/// it here, and the stop at its exec would kill it with SIGTRAP.
fn leave_alone(pid: libc::pid_t, signal: libc::c_int) {
    let signal = if signal == libc::SIGTRAP { 0 } else { signal };
    // SAFETY: the request accesses no memory of the caller. It fails if the process has ended, which the next
    // wait shows.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0, signal as libc::c_long) };
}

/// Returns a descriptor that becomes readable when a process ends. It replaces a wait that only a signal
/// interrupts. Returns `None` before Linux 5.3.
fn handle_of(pid: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: pidfd_open accesses no memory of the caller, and the new descriptor has no other owner.
    unsafe {
        let handle = libc::syscall(libc::SYS_pidfd_open, pid, 0) as libc::c_int;
        (handle >= 0).then(|| OwnedFd::from_raw_fd(handle))
    }
}

struct Following<'a> {
    session: &'a Session,
    /// Path of the file with the calls.
    path: PathBuf,
    keeper: Keeper<'a>,
    journal: &'a mut JournalWriter,
    clock: &'a Clock,
    control: &'a Control,
    root: libc::pid_t,
    handle: Option<OwnedFd>,
    requests: &'a Requests,
    living: Living,
    /// Number of new processes that were read from the session.
    births: u64,
    /// Time at which calls were last written.
    turn: Instant,
    received: Received,
    stopping: StopAlong,
    /// Whether the first process may be stopped.
    may_stand_still: bool,
    exit: Option<ProgramExit>,
    /// Whether all processes are killed, including those created in the meantime; and the processes killed so
    /// far.
    killing: bool,
    killed: HashSet<u32>,
    failure: Option<String>,
}

impl Following<'_> {
    fn follow(&mut self) {
        while self.exit.is_none() {
            self.pause();
            self.wait_for_root();
            self.heed_signals();
            self.take_turn();
            self.stop_along();
        }
        while self.others_live() {
            std::thread::sleep(PULSE);
            self.heed_signals();
            self.take_turn();
        }
    }

    /// Waits until the first process ends, a signal arrives, or the interval is over.
    fn pause(&self) {
        let Some(handle) = &self.handle else {
            // The tracer waits for the first process, so this thread only sleeps.
            return if self.requests.has_root() {
                std::thread::sleep(PULSE)
            };
        };
        let mut wanted = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel gets a pointer to one structure and the count 1.
        unsafe { libc::poll(&mut wanted, 1, PULSE.as_millis() as libc::c_int) };
    }

    /// Stops the recorder if all processes that it records are stopped.
    fn stop_along(&mut self) {
        // Only while the first process runs are the processes checked.
        if self.exit.is_none() {
            let (living, clock) = (&self.living, self.clock);
            let stopped = self.may_stand_still
                && process::all_stopped([self.root as u32].into_iter())
                && living.all_stopped();
            self.stopping.heed(stopped, self.root, || clock.now());
        }
    }

    fn wait_for_root(&mut self) {
        // If the wait does not report stops, the process may be stopped at any time.
        self.may_stand_still = self.handle.is_none() || self.requests.has_root();
        self.exit = self.requests.root_exit();
        if self.exit.is_some() || self.requests.has_root() {
            return;
        }
        let mut status = 0;
        // Without the descriptor, this thread sleeps in this wait, which a stop of the program must not end.
        let how = if self.handle.is_some() { libc::WNOHANG | libc::WSTOPPED } else { 0 };
        // SAFETY: both waits write only to local variables and are for a child of this process. The first one
        // leaves the child to be waited for.
        unsafe {
            let mut ended: libc::siginfo_t = std::mem::zeroed();
            let wanted = libc::WEXITED | libc::WNOWAIT | how;
            if libc::waitid(libc::P_PID, self.root as u32, &mut ended, wanted) != 0 || ended.si_pid() == 0 {
                return;
            }
            if ended.si_code == libc::CLD_STOPPED {
                self.may_stand_still = true;
                return;
            }
            // The tracer has attached in the meantime, and handles this stop.
            if self.requests.has_root() {
                return;
            }
            if matches!(ended.si_code, libc::CLD_KILLED | libc::CLD_DUMPED) {
                self.note_usage();
            }
            libc::waitpid(self.root, &mut status, 0);
        }
        if libc::WIFSTOPPED(status) {
            return leave_alone(self.root, libc::WSTOPSIG(status));
        }
        self.exit = Some(if libc::WIFSIGNALED(status) {
            ProgramExit::Signal(libc::WTERMSIG(status))
        } else {
            ProgramExit::Code(libc::WEXITSTATUS(status))
        });
    }

    /// Records the usage of the first process, which the kernel keeps until the process is waited for. A
    /// process that was not killed has recorded its usage itself.
    fn note_usage(&mut self) {
        let pid = self.root as u32;
        let Some((user, system)) = process::cpu_time(pid, pid) else { return };
        let mut usage = TaskUsage::new(pid, self.clock.now());
        (usage.cpu_user_ns, usage.cpu_system_ns) = (user, system);
        let written = self.journal.usages(&[usage]);
        self.note_journal(written);
    }

    /// Processes beginnings of processes that the library or the tracer reported.
    fn notice(&mut self) -> io::Result<()> {
        let mut new = Vec::new();
        for pid in self.requests.take_born() {
            self.living.add(pid);
        }
        let (born, births) = self.session.births(self.births)?;
        self.births = births;
        new.extend(born.into_iter().filter(|&pid| self.living.add(pid)));
        self.keeper.collect(|pid| {
            if self.living.add(pid) {
                new.push(pid);
            }
        })?;
        if !new.is_empty() {
            lock(&self.control.processes).append(&mut new);
        }
        Ok(())
    }

    fn take_turn(&mut self) {
        let due = self.turn.elapsed() >= TURN;
        // The clock is read before the search for new calls, but written after them. So a reader of the
        // growing file has all calls up to this time.
        let clock = due.then(|| pair(self.session, self.clock));
        let mut result = self.notice();
        if self.failure.is_none() && (due || self.keeper.is_pressing()) {
            result = result.and_then(|()| self.keeper.hand_over(|pid| self.living.is_alive(pid)));
        }
        if due {
            self.turn = Instant::now();
            self.requests.wake();
            *lock(&self.control.processes) = self.living.all();
            self.write_samples();
        }
        if let Some(clock) = clock {
            let held = self.keeper.held();
            let file = &mut self.keeper.file;
            result = result.and_then(|()| file.clock_and_held(clock, held)).and_then(|()| file.flush());
        }
        self.note(result);
    }

    /// Stores the first failure and ends the recording: threads record nothing more when their buffers are
    /// full.
    fn note(&mut self, result: io::Result<()>) {
        let (Err(source), None) = (result, &self.failure) else { return };
        let error = JournalError { path: self.path.clone(), source };
        self.failure = Some(format!("{error}; {}", error.hint()));
        let _ = self.session.close();
    }

    fn write_samples(&mut self) {
        let samples = self.control.take_samples();
        if samples.is_empty() {
            return;
        }
        let written = self.journal.samples(&samples);
        self.note_journal(written);
    }

    fn note_journal(&mut self, written: Result<(), JournalError>) {
        if let Err(error) = written {
            self.failure.get_or_insert(format!("{error}; {}", error.hint()));
        }
    }

    fn others_live(&mut self) -> bool {
        let noticed = self.notice();
        let lives = noticed.is_ok() && !self.living.all().is_empty();
        self.note(noticed);
        lives
    }

    /// Passes a signal sent to the recorder on to the program. A second signal, or cancelling, kills the
    /// program.
    fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent;
        let keys = received.terminal != self.received.terminal;
        let first = received.sent == 1;
        self.received = received;
        self.killing |= cancelled || (asked && !first) || (self.exit.is_some() && (asked || keys));
        if self.killing {
            let noticed = self.notice();
            self.note(noticed);
            for pid in self.living.all() {
                self.killed.insert(pid);
                // SAFETY: kill accesses no memory, and this recording created the process.
                unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            }
        } else if asked {
            // SAFETY: kill accesses no memory, and the child was not waited for, so its id is still valid.
            unsafe { libc::kill(self.root, received.last_sent) };
        }
        for signal in self.control.take_to_pass_on().filter(|_| self.exit.is_none()) {
            // SAFETY: kill accesses no memory, and the child was not waited for, so its id is still valid.
            unsafe { libc::kill(self.root, signal) };
        }
    }

    /// Returns whether the first program is recorded: it is traced, or the library has started in it, which
    /// takes a chunk first of all.
    fn has_begun(&self) -> bool {
        self.requests.has_root() || self.session.counter(header::NEXT_CHUNK).is_ok_and(|chunks| chunks > 0)
    }

    fn finish(mut self, traced: Option<Ended>) -> Ended {
        let result = self.notice();
        self.note(result);
        let _ = self.session.close();
        if self.failure.is_none() {
            let clock = self.keeper.file.clock(pair(self.session, self.clock));
            let result = clock.and_then(|()| self.keeper.end());
            self.note(result);
        }
        self.write_samples();
        self.journal.add_written(self.keeper.file.length());
        let mut losses = Losses::default();
        if self.failure.is_some() {
            let lost = calls::count_lost(&self.path, self.session);
            losses.add(LossKind::DroppedRecords, lost);
            self.journal.lose(LossKind::DroppedRecords, lost);
        }
        // Files that can't be read can't be counted.
        let own = session::with_calls_of_their_own(self.session).map_or(0, |files| files.len() as u64);
        for (kind, count) in
            [(LossKind::OwnSystemCalls, own), (LossKind::UnreachedPrograms, u64::from(!self.has_begun()))]
        {
            losses.add(kind, count);
            self.journal.lose(kind, count);
        }
        let traced = traced.unwrap_or_default();
        losses.merge(&traced.losses);
        self.failure = self.failure.or(traced.failure);
        Ended {
            exit: self.exit.unwrap_or(ProgramExit::Running),
            failure: self.failure,
            losses,
            killed: self.killed.len() as u32,
            warnings: traced.warnings,
        }
    }
}
