//! Traces for another back end. The tracer attaches to single threads when they are about to execute a
//! program that the other back end would not record. It detaches when the library of that back end reports
//! that it is loaded (iodock-preload, native/traced.c).

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
/// Longest sleep of the thread while it traces nothing. All its data are written before.
const REST: Duration = Duration::from_secs(1);

impl Tracer<'_> {
    /// Attaches to threads as requested, until `requests` are closed and no thread is left.
    pub fn serve(&mut self, requests: &Requests, root: u32) -> Ended {
        (self.aside, self.root, self.launched) = (true, root, true);
        self.library = requests.library.clone();
        loop {
            for (tid, answer) in requests.take() {
                // This is set before the first process can stop for the tracer, because another thread waits
                // for its end.
                requests.takes_root(requests.has_root() || self.is_of_root(tid));
                // An error is ignored, because the thread that made the request may have ended.
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

    /// Returns whether any task is stopped. A child may be stopped although no fork was reported, if its
    /// parent was killed first.
    fn any_stops(&mut self) -> bool {
        !self.stops.is_empty() || self.collect()
    }

    fn is_of_root(&self, tid: u32) -> bool {
        tid == self.root || process::tgid_of(tid) == Some(self.root)
    }

    /// Reports how the first process ended, or that it is not traced (any more), so that another thread waits
    /// for its end. Any of its threads may be the attached one, and may continue under its id after an exec.
    fn tell_root(&mut self, requests: &Requests) {
        let root = self.root;
        if self.root_ended {
            requests.root_ended(self.exit);
        } else if requests.has_root() && self.tasks.find(root).is_none() {
            requests.takes_root(self.tasks.iter().any(|task| task.tgid == root));
        }
    }

    /// Forgets the remaining tasks when the kernel says that nothing is traced. Their end was not recorded.
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

    /// Detaches from a task that did not wait to be attached.
    fn give_up(&mut self, tid: u32) {
        if let Some(slot) = self.tasks.find(tid).filter(|&slot| self.tasks.get(slot).stage == Stage::Taken) {
            self.tasks.get(slot).stage = Stage::Leaving;
            let _ = request::interrupt(tid);
        }
    }

    /// Returns whether this call must not be recorded, because it is a mark for the tracer or a call of the
    /// library.
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
        // A Go program with a libc loads the library, but the library would not record its calls, so the
        // tracer stays.
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

    /// Handles the end of a call that is not recorded. Returns whether the thread continues without the
    /// tracer.
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

    /// Handles the end of the thread's exec. Returns whether the exec is recorded.
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

    /// Marks a call with which the dynamic linker reads the other back end's library. The program would not
    /// make this call without the recorder, so it is hidden.
    pub(super) fn hide(&mut self, slot: usize) {
        let task = self.tasks.get(slot);
        let raw = &task.call.raw;
        let opens =
            raw.call.spec().action == Action::Open && path_of(&task.call) == Some(self.library.as_slice());
        task.hidden = opens || (task.library.is_some() && task.library == Some(raw.fd));
    }

    /// Handles the end of a call. Returns whether it was marked as hidden.
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

    /// Adds the leader after an exec by a single attached thread, which continues under its process's id.
    pub(super) fn leader_of_exec(&mut self, tid: u32, event: i32) -> Option<usize> {
        if !self.aside || event != libc::PTRACE_EVENT_EXEC {
            return None;
        }
        let caller = request::event_message(tid).ok()? as u32;
        // If the thread was killed in between, the message is no thread id, and its end is reported next.
        self.tasks.find(caller)?;
        Some(self.tasks.add(tid, tid, State::Running, self.now))
    }

    /// Returns whether the thread is about to execute a program that would lose its privileges under an
    /// unprivileged tracer. Its user did not request tracing, so the tracer detaches from it.
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
            // The thread was killed in between. Its end must still be waited for.
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
