//! Handles the two stops of a call, at its beginning and at its end.

use super::Tracer;
use crate::backends::ptrace::request::{self, CallInfo, OP_ENTRY, OP_EXIT};
use crate::backends::ptrace::tasks::State;
use crate::backends::ptrace::{decode, recorded};
use crate::faults::MapCall;
use iodock_event::{Action, CallId, ErrnoId, LossKind, Outcome, UNKNOWN};

const CLONE_UNTRACED: u64 = 0x0080_0000;
/// Number of the ioctl that opens the other end of a pseudo-terminal, without giving its name.
const TIOCGPTPEER: u64 = 0x5441;

impl Tracer<'_> {
    /// Handles the beginning or the end of a call.
    #[inline]
    pub(super) fn call_stop(&mut self, slot: usize, tid: u32) {
        match self.tasks.get(slot).state {
            State::InCall => self.end(slot, tid),
            State::InOtherCall => {
                self.tasks.get(slot).state = State::Running;
                if self.aside && self.leaves(slot, tid) {
                    return;
                }
                self.go(slot, tid, 0);
            }
            _ => match request::call_info(tid) {
                Ok(info) if info.op == OP_ENTRY => self.begin(slot, tid, &info),
                // This is the end of a call that began before the tracer attached.
                _ => self.go(slot, tid, 0),
            },
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, slot: usize, tid: u32, info: &CallInfo) {
        debug_assert!(info.op != OP_EXIT);
        if self.aside && self.is_aside(slot, tid, info) {
            return;
        }
        let id = match self.calls.get(info.number as usize) {
            Some(&Some(id)) if info.arch == recorded::AUDIT_ARCH && !is_anonymous(id, info) => id,
            known => {
                let foreign = info.arch != recorded::AUDIT_ARCH || known.is_none();
                self.records.lose(LossKind::ForeignCalls, u64::from(foreign));
                return self.passes(slot, tid);
            }
        };
        if self.records.failure.is_some() {
            self.records.unrecorded += 1;
            return self.passes(slot, tid);
        }
        if self.command.is_some() && tid == self.root {
            // Before its exec, the process runs code of the recorder, whose calls are not recorded.
            if id.spec().action != Action::Exec {
                return self.passes(slot, tid);
            }
            self.first_call();
        }
        let task = self.tasks.get(slot);
        decode::begin(&mut task.call, id, tid, info);
        let action = id.spec().action;
        if self.aside {
            self.hide(slot);
        }
        if action == Action::Exec && self.aside && self.would_lose_rights(slot, tid) {
            self.records.lose(LossKind::UnreachedPrograms, 1);
            return self.hand_back(slot, tid);
        }
        let task = self.tasks.get(slot);
        if action == Action::Clone && task.call.raw.flags & CLONE_UNTRACED != 0 {
            keep_traced(tid, info);
        }
        task.entered = false;
        if action == Action::Map {
            // The task is stopped before the kernel maps the file, so no page fault in the mapping is missed.
            self.control.faults.about_to_map(&map_call(task.tgid, &info.arguments));
        }
        self.now = self.clock.now();
        task.call.raw.start = self.now;
        let ends_here = action == Action::Exit;
        task.state = if ends_here { State::InOtherCall } else { State::InCall };
        // The program continues first, because the remaining work does not need it to be stopped.
        self.go(slot, tid, 0);
        if ends_here {
            self.tasks.get(slot).call.raw.outcome = Outcome::NoResult;
            self.records.call(slot, &mut self.tasks);
        } else {
            self.records.begun(slot);
        }
    }

    /// Marks the call that begins as not recorded.
    #[inline]
    pub(super) fn passes(&mut self, slot: usize, tid: u32) {
        self.tasks.get(slot).state = State::InOtherCall;
        self.go(slot, tid, 0);
    }

    #[inline]
    pub(super) fn end(&mut self, slot: usize, tid: u32) {
        self.now = self.clock.now();
        let Ok(result) = request::result(tid) else { return };
        let task = self.tasks.get(slot);
        task.state = State::Running;
        let is_trapped = result as u64 == task.call.number && request::is_trapped(tid);
        if !is_trapped {
            decode::end(&mut task.call, tid, result, self.records.losses());
        }
        let raw = &mut task.call.raw;
        raw.duration = self.now - raw.start;
        if is_trapped {
            // The kernel did not make the call: the program's signal handler determines its result.
            (raw.outcome, raw.duration) = (Outcome::NoResult, UNKNOWN);
        } else if (-4095..0).contains(&result) {
            raw.result = -1;
            raw.outcome = Outcome::Failed;
            raw.errno = ErrnoId::from_linux(-result as i32);
        } else {
            raw.result = result;
            raw.outcome = Outcome::Succeeded;
        }
        let is_exec = self.aside && task.call.raw.call.spec().action == Action::Exec;
        if is_exec && !self.has_executed(slot, tid, result) {
            return;
        }
        if self.aside && self.was_hidden(slot, result) {
            self.records.forget(slot);
            return self.go(slot, tid, 0);
        }
        let raw = &mut self.tasks.get(slot).call.raw;
        if !self.launched && tid == self.root && raw.call.spec().action == Action::Exec {
            self.exec_errno = i32::max(-result as i32, 0);
        }
        let opens_peer = raw.flags == TIOCGPTPEER && raw.call.spec().action == Action::Ioctl && result >= 0;
        if opens_peer {
            self.records.call(slot, &mut self.tasks);
            self.records.descriptor(tid, result as i32);
            return self.go(slot, tid, 0);
        }
        // The program continues first, because the remaining work does not need it to be stopped.
        self.go(slot, tid, 0);
        self.records.call(slot, &mut self.tasks);
    }

    /// Records the descriptors that the first process inherits from the recorder. It is stopped before its
    /// exec.
    pub(super) fn first_call(&mut self) {
        let Some(command) = self.command.take() else { return };
        self.records.root(self.root, &command, self.clock.now());
        // Descriptors of the recorder with O_CLOEXEC are left out, because the exec closes them.
        self.records.descriptors(self.root, iodock_event::constants::O_CLOEXEC);
    }
}

/// Returns whether the call maps memory without a file.
#[inline]
fn is_anonymous(id: CallId, info: &CallInfo) -> bool {
    id.spec().action == Action::Map && info.arguments[4] as i32 == -1
}

fn map_call(pid: u32, arguments: &[u64; 6]) -> MapCall {
    let [_, length, protection, flags, fd, _] = *arguments;
    MapCall { pid, length, protection, flags, fd: fd as i32 }
}

/// Removes the flag that requests an untraced child, whose calls could not be recorded.
fn keep_traced(tid: u32, info: &CallInfo) {
    const CLONE: u64 = 56;
    let _ = if info.number == CLONE {
        request::set_first_argument(tid, info.arguments[0] & !CLONE_UNTRACED)
    } else {
        request::peek(tid, info.arguments[0])
            .and_then(|flags| request::poke(tid, info.arguments[0], flags & !CLONE_UNTRACED))
    };
}
