//! Launching a program under the preloaded library, following it to its end, and emptying the buffers on
//! the way.

use super::births;
use super::records::{Records, Time};
use super::streams::Streams;
use crate::backends::{Ended, ProgramExit};
use crate::clock::Clock;
use crate::control::{Control, Received};
use crate::error::{RecordError, Refusal};
use crate::launch::{self, Program};
use iodock_event::LossKind;
use iodock_journal::JournalWriter;
use iodock_preload::format::header;
use iodock_preload::session::{self, Session};
use iodock_preload::shapes::Shapes;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io, thread, time::Duration};

/// A thread may be taken off its CPU between a call's end and the writing of its record; entries younger
/// than this wait for such a straggler.
const STRAGGLER_NS: u64 = 100_000_000;
/// How often processes are looked for that run on without the first one.
const PULSE: Duration = Duration::from_millis(20);

/// Removes the session's folder, whatever happens.
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
        let message = format!("{what}: {}", launch::plain(&error));
        RecordError::Refused(Refusal::new(message, "choose --backend ptrace"))
    };
    let folder = Folder(place());
    let session = Session::create(&folder.0, &session::tables())
        .map_err(|error| refused("the shared buffers can't be made", error))?;
    prepare(&mut program, &session);
    let mut child =
        launch::fork(&program, &[]).map_err(|error| refused("the program can't be started", error))?;
    let shapes = Shapes::of_this_machine();
    let mut following = Following {
        session: &session,
        streams: Streams::new(&session, &shapes),
        records: Records::new(journal, control),
        clock,
        control,
        root: child.pid,
        start: clock_pair(&session, clock),
        received: control.received(),
        exit: None,
        killed: 0,
    };
    let command = program.command_text();
    following.records.root(child.pid as u32, program.path.as_os_str().as_bytes(), &command, clock.now());
    child.release();
    following.follow();
    Ok(following.finish())
}

/// Shared memory, or the next best place from which a library may be loaded.
fn place() -> PathBuf {
    let name = format!("iodock-{}-{:x}", std::process::id(), session::ticks());
    let shared = Path::new("/dev/shm");
    let folder = if may_hold_programs(shared) { shared.to_path_buf() } else { std::env::temp_dir() };
    folder.join(name)
}

fn may_hold_programs(folder: &Path) -> bool {
    let Ok(text) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: a NUL-terminated path and a structure to write to.
    unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        libc::statvfs(text.as_ptr(), &mut status) == 0
            && status.f_flag & (libc::ST_NOEXEC | libc::ST_RDONLY) == 0
            && libc::access(text.as_ptr(), libc::W_OK) == 0
    }
}

fn prepare(program: &mut Program, session: &Session) {
    let mut preload = session.library().into_os_string().into_encoded_bytes();
    if let Some(others) = program.variable("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(b':');
        preload.extend_from_slice(others);
    }
    program.set_variable("LD_PRELOAD", &preload);
    program.set_variable("IODOCK_SESSION", session.path().as_os_str().as_bytes());
}

/// The session's clock and ours, read together.
fn clock_pair(session: &Session, clock: &Clock) -> (u64, i64) {
    let pairs = (0..16).map(|_| {
        let before = clock.now();
        let ticks = session::ticks();
        let after = clock.now();
        (after - before, ticks >> session.time_shift, before + (after - before) / 2)
    });
    pairs.min().map_or((0, 0), |(_, units, time)| (units, time))
}

struct Following<'a> {
    session: &'a Session,
    streams: Streams<'a>,
    records: Records<'a>,
    clock: &'a Clock,
    control: &'a Control,
    root: libc::pid_t,
    start: (u64, i64),
    received: Received,
    exit: Option<ProgramExit>,
    killed: u32,
}

impl Following<'_> {
    fn follow(&mut self) {
        while self.exit.is_none() {
            self.wait_for_root();
            self.heed_signals();
            self.drain(false);
        }
        let mut pulses = 0u32;
        while self.others_live() {
            thread::sleep(PULSE);
            self.heed_signals();
            pulses += 1;
            if pulses.is_multiple_of(25) {
                self.drain(false);
            }
        }
    }

    /// Until the first process ends, or the ticker or a signal wakes us.
    fn wait_for_root(&mut self) {
        let mut status = 0;
        // SAFETY: a plain wait for our own child.
        if unsafe { libc::waitpid(self.root, &mut status, 0) } != self.root {
            return;
        }
        self.exit = Some(if libc::WIFSIGNALED(status) {
            ProgramExit::Signal(libc::WTERMSIG(status))
        } else {
            ProgramExit::Code(libc::WEXITSTATUS(status))
        });
    }

    fn others_live(&mut self) -> bool {
        if self.streams.collect().is_err() {
            return false;
        }
        self.drain(true);
        self.records.births.processes.iter().any(|&pid| pid != self.root as u32 && is_alive(pid))
    }

    /// A signal sent to the recorder is meant for the program; a second one, or cancelling, kills it.
    fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent;
        let keys = received.terminal != self.received.terminal;
        let first = received.sent == 1;
        self.received = received;
        if cancelled || (asked && !first) || (self.exit.is_some() && (asked || keys)) {
            for &pid in &self.records.births.processes {
                if is_alive(pid) {
                    self.killed += 1;
                    // SAFETY: only sends a signal, to a process that we made.
                    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
                }
            }
        } else if asked {
            // SAFETY: our child, not yet waited for.
            unsafe { libc::kill(self.root, received.last_sent) };
        }
    }

    fn drain(&mut self, all: bool) {
        let now = clock_pair(self.session, self.clock);
        let time = Time { from: self.start, to: now };
        let units_per_ns = (now.0 - self.start.0) as f64 / (now.1 - self.start.1).max(1) as f64;
        let straggler = (STRAGGLER_NS as f64 * units_per_ns) as u64;
        let until = if all { u64::MAX } else { now.0.saturating_sub(straggler) };
        let result = self.drain_until(until, time);
        if let Err(error) = result {
            let text = format!("the shared buffers can't be read: {}", launch::plain(&error));
            self.records.failure.get_or_insert(text);
        }
        self.records.end_left();
        self.records.flush();
    }

    fn drain_until(&mut self, until: u64, time: Time) -> io::Result<()> {
        self.streams.collect()?;
        while let Some((stream, entry)) = self.streams.next(until)? {
            if let Some(fork) = births::fork_of(&entry) {
                self.streams.forks.remove(&fork.child_tid);
            }
            self.records.entry(stream, entry, &self.streams, time);
        }
        Ok(())
    }

    fn finish(mut self) -> Ended {
        self.drain(true);
        let _ = self.session.close();
        let time = Time { from: self.start, to: clock_pair(self.session, self.clock) };
        self.records.give_up_execs(time);
        let mut left: Vec<u32> = self.records.births.processes.iter().copied().collect();
        left.sort_unstable();
        for pid in left {
            self.end_of_killed(pid);
        }
        let counter = |at| self.session.counter(at).unwrap_or(0);
        let lost = counter(header::LOST_CALLS) + counter(header::LOST_STREAMS) + self.streams.damaged;
        self.records.lose(LossKind::DroppedRecords, lost);
        let programs = self.records.programs;
        self.records.lose(LossKind::BeforeLoad, programs);
        self.records.finish();
        Ended {
            exit: self.exit.unwrap_or(ProgramExit::Running),
            failure: self.records.failure.take(),
            losses: std::mem::take(&mut self.records.losses),
            killed: self.killed,
            warnings: Vec::new(),
        }
    }

    /// A process that ended without calling exit.
    fn end_of_killed(&mut self, pid: u32) {
        use iodock_event::{Record, TaskEnd, Text};
        let (mut exit_code, mut signal) = (None, Text::NONE);
        if pid == self.root as u32 {
            match self.exit {
                Some(ProgramExit::Code(code)) => exit_code = Some(code),
                Some(ProgramExit::Signal(number)) => {
                    signal = self.records.batch.push_text(crate::signals::name(number).as_bytes());
                }
                _ => {}
            }
        }
        let time = self.clock.now();
        for tid in self.records.births.ended(pid) {
            let end = TaskEnd { tid, time, exit_code, signal, core_dumped: false, superseded_by: None };
            self.records.batch.records.push(Record::End(end));
        }
    }
}

/// Runs it still? A zombie does not.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.iter().rposition(|&byte| byte == b')').and_then(|at| stat.get(at + 2));
    !matches!(state, None | Some(b'Z' | b'X'))
}
