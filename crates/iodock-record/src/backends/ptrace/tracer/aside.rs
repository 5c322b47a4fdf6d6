//! Tracing for another back end: single threads are attached when they are about to execute a program that it
//! would not see, and detached when its library reports that it is loaded (iodock-preload, native/traced.c).

use super::super::requests::Requests;
use super::Tracer;
use crate::backends::ptrace::recorded;
use crate::backends::ptrace::request::{self, CallInfo};
use crate::backends::ptrace::taking::{self, Taken};
use crate::backends::ptrace::tasks::{Call, Stage, State};
use crate::backends::{reach::blind_to, reason::Reason, Ended};
use crate::{process, program};
use iodock_event::Action;
use iodock_preload::format::mark;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

const PRCTL: u64 = 157;
/// Sleep of the thread while it traces nothing: all its data is written by then.
const REST: Duration = Duration::from_secs(1);

impl Tracer<'_> {
    /// Attaches to threads as requested, until `requests` are closed and none is left.
    pub fn serve(&mut self, requests: &Requests, root: u32) -> Ended {
        (self.aside, self.root, self.launched) = (true, root, true);
        self.library = requests.library.clone();
        loop {
            for (tid, answer) in requests.take() {
                // Before it can stop for us, because others wait for its end.
                requests.takes_root(requests.has_root() || self.is_of_root(tid));
                // The requester may have given up.
                let _ = answer.send(self.take(tid));
            }
            for tid in requests.take_withdrawn() {
                self.give_up(tid);
            }
            self.tell_root(requests);
            if !self.newborn.is_empty() {
                requests.add_born(&mut self.newborn);
            }
            if self.tasks.count() == 0 && !self.any_stops() {
                self.now = self.clock.now();
                self.records.flush(self.now);
                if !requests.rest(REST) {
                    break;
                }
                continue;
            }
            if !self.one_stop() {
                self.forget_all();
            }
            if requests.are_closed() && !self.detaching {
                self.detach();
            }
        }
        self.finished()
    }

    /// A child may be stopped without a report: its parent was killed first.
    fn any_stops(&mut self) -> bool {
        !self.stops.is_empty() || self.collect()
    }

    fn is_of_root(&self, tid: u32) -> bool {
        tid == self.root || process::tgid_of(tid) == Some(self.root)
    }

    /// Reports how the first process ended, or that it is not traced (any more): then others wait for its
    /// end. Any of its threads may be the attached one, and continue under its id.
    fn tell_root(&mut self, requests: &Requests) {
        let root = self.root;
        if self.root_ended {
            requests.root_ended(self.exit);
        } else if requests.has_root() && self.tasks.find(root).is_none() {
            requests.takes_root(self.tasks.iter().any(|task| task.tgid == root));
        }
    }

    /// Nothing is traced any more: the end of remaining tasks was not recorded.
    fn forget_all(&mut self) {
        let tids: Vec<u32> = self.tasks.iter().map(|task| task.tid).collect();
        for tid in tids {
            let Some(slot) = self.tasks.find(tid) else { continue };
            self.abandon_call(slot);
            self.tasks.remove(slot);
        }
    }

    fn take(&mut self, tid: u32) -> bool {
        if let Some(slot) = self.tasks.find(tid) {
            return self.tasks.get(slot).stage != Stage::Leaving;
        }
        let tgid = process::tgid_of(tid).unwrap_or(tid);
        let signal = match taking::take(tid) {
            Taken::Stands(signal) => signal,
            Taken::Ended(status) => {
                self.note_exit(tid, status);
                return false;
            }
            Taken::Refused => return false,
        };
        self.now = self.clock.now();
        let slot = self.tasks.add(tid, tgid, State::Running, self.now);
        self.tasks.get(slot).stage = Stage::Taken;
        if signal == libc::SIGTRAP {
            self.go(slot, tid, 0);
        } else {
            self.listen(slot, tid);
        }
        true
    }

    /// It did not wait to be attached.
    fn give_up(&mut self, tid: u32) {
        if let Some(slot) = self.tasks.find(tid).filter(|&slot| self.tasks.get(slot).stage == Stage::Taken) {
            self.tasks.get(slot).stage = Stage::Leaving;
            let _ = request::interrupt(tid);
        }
    }

    /// Whether this call must not be recorded: a mark, or one of the library's own.
    pub(super) fn is_aside(&mut self, slot: usize, tid: u32, info: &CallInfo) -> bool {
        let is_mark = info.number == PRCTL
            && info.arch == recorded::AUDIT_ARCH
            && info.arguments[0] == mark::CALL
            && (mark::ASKED..=mark::FAILED).contains(&info.arguments[1]);
        if is_mark {
            self.marked(slot, info.arguments[1]);
        } else {
            let known = self.calls.get(info.number as usize).copied().flatten();
            let executes = known.is_some_and(|id| id.spec().action == Action::Exec);
            let stage = self.tasks.get(slot).stage;
            if stage == Stage::Recorded || (matches!(stage, Stage::Taken | Stage::Told) && executes) {
                return false;
            }
        }
        self.passes(slot, tid);
        true
    }

    fn marked(&mut self, slot: usize, what: u64) {
        let task = self.tasks.get(slot);
        if task.stage == Stage::Leaving {
            return;
        }
        let program = format!("/proc/{}/exe", task.tgid);
        // A Go program with a libc loads the library, which would not see its calls.
        let stays = what == mark::LOADING && blind_to(Path::new(&program)) == Some(Reason::Go);
        task.answer = Some(if stays { mark::STAY_OFF } else { 0 });
        task.stage = match what {
            mark::ASKED => Stage::Told,
            mark::LOADING if !stays => Stage::Muted,
            mark::LOADED => Stage::Leaving,
            mark::FAILED => Stage::Recorded,
            _ => task.stage,
        };
    }

    /// At the end of a call that is not recorded: whether the thread continues without the tracer.
    pub(super) fn leaves(&mut self, slot: usize, tid: u32) -> bool {
        let task = self.tasks.get(slot);
        if let Some(answer) = task.answer.take() {
            let _ = request::set_result(tid, answer);
        }
        if task.stage != Stage::Leaving {
            return false;
        }
        self.hand_back(slot, tid);
        true
    }

    /// The thread's exec has ended. Returns whether it is recorded.
    pub(super) fn has_executed(&mut self, slot: usize, tid: u32, result: i64) -> bool {
        if !matches!(self.tasks.get(slot).stage, Stage::Taken | Stage::Told) {
            return true;
        }
        self.tasks.get(slot).stage = Stage::Recorded;
        if result < 0 {
            self.hand_back(slot, tid);
        }
        result >= 0
    }

    /// Marks the beginning call if it serves the dynamic linker to read the other back end's library. Without
    /// us the call would not be made.
    pub(super) fn hide(&mut self, slot: usize) {
        let task = self.tasks.get(slot);
        let raw = &task.call.raw;
        let opens =
            raw.call.spec().action == Action::Open && path_of(&task.call) == Some(self.library.as_slice());
        task.hidden = opens || (task.library.is_some() && task.library == Some(raw.fd));
    }

    /// The marked call has ended.
    pub(super) fn was_hidden(&mut self, slot: usize, result: i64) -> bool {
        let task = self.tasks.get(slot);
        if task.hidden {
            match task.call.raw.call.spec().action {
                Action::Open => task.library = (result >= 0).then_some(result as i32),
                Action::Close => task.library = None,
                _ => {}
            }
        }
        std::mem::take(&mut task.hidden)
    }

    /// A single attached thread has executed a program, and continues under its process's id.
    pub(super) fn leader_of_exec(&mut self, tid: u32, event: i32) -> Option<usize> {
        if !self.aside || event != libc::PTRACE_EVENT_EXEC {
            return None;
        }
        let caller = request::event_message(tid).ok()? as u32;
        // If it was killed since, this is no thread: its end comes next.
        self.tasks.find(caller)?;
        Some(self.tasks.add(tid, tid, State::Running, self.now))
    }

    /// Whether the thread is about to execute a program whose privileges would be lost under an unprivileged
    /// tracer. The thread did not request tracing, so it is detached instead.
    pub(super) fn would_lose_rights(&mut self, slot: usize, tid: u32) -> bool {
        if self.privileged {
            return false;
        }
        let Some(name) = path_of(&self.tasks.get(slot).call) else { return false };
        let folder = std::fs::read_link(format!("/proc/{tid}/cwd")).unwrap_or_default();
        program::privilege(&folder.join(OsStr::from_bytes(name))).is_some()
    }

    pub(super) fn hand_back(&mut self, slot: usize, tid: u32) {
        let tgid = self.tasks.get(slot).tgid;
        if request::detach(tid, 0).is_err() {
            // Killed in between: we still have to wait for its end.
            return;
        }
        self.tasks.get(slot).state = State::Running;
        self.tasks.remove(slot);
        let others: Vec<u32> =
            self.tasks.iter().filter(|task| task.tgid == tgid).map(|task| task.tid).collect();
        for other in others {
            let Some(slot) = self.tasks.find(other) else { continue };
            self.tasks.get(slot).stage = Stage::Leaving;
            let _ = request::interrupt(other);
        }
    }
}

fn path_of(call: &Call) -> Option<&[u8]> {
    let text = call.raw.path;
    let (start, length) = (text.start as usize, text.length as usize);
    call.texts.get(start..start + length).filter(|_| text.is_some())
}
