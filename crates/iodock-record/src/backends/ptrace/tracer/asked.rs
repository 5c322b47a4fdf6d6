//! Handles signals to the recorder and cancelling.

use super::{Tracer, SECOND};
use std::collections::BTreeSet;

/// Time in ns within which a signal to the program and the same signal to the recorder count as one.
const SAME_SIGNAL: i64 = SECOND / 5;

impl Tracer<'_> {
    pub(super) fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent || cancelled;
        let keys = received.terminal != self.received.terminal;
        let first = self.received.sent == 0 && received.sent == 1 && !cancelled;
        self.received = received;
        if !self.is_ours {
            if asked || keys {
                self.detach();
            }
        } else if self.root_ended {
            if asked || keys {
                self.kill_all();
            }
        } else if asked && first {
            self.forward.push((received.last_sent, self.now));
        } else if asked {
            self.kill_all();
        }
        if self.is_ours && !self.root_ended {
            let now = self.now;
            self.forward.extend(self.control.take_to_pass_on().map(|signal| (signal, now)));
        }
        self.forward_signals();
    }

    /// Passes a signal sent to the recorder on to the program, unless the program received it, too. A batch
    /// system, for example, signals all processes. A short wait shows whether the program received it.
    fn forward_signals(&mut self) {
        let now = self.now;
        let (due, later) = self.forward.drain(..).partition(|&(_, since)| now - since >= SAME_SIGNAL);
        self.forward = later;
        let due: Vec<(i32, i64)> = due;
        for (signal, since) in due.into_iter().filter(|_| !self.root_ended) {
            let delivered = self.delivered.get(signal as usize).copied().unwrap_or(i64::MIN / 2);
            if (delivered - since).abs() > 2 * SAME_SIGNAL {
                // SAFETY: kill accesses no memory, and the process was not waited for, so its id is still
                // valid.
                unsafe { libc::kill(self.root as i32, signal) };
            }
        }
    }

    pub(super) fn kill_all(&mut self) {
        let processes: BTreeSet<u32> = self.tasks.iter().map(|task| task.tgid).collect();
        self.killed += processes.len() as u32;
        for pid in processes {
            // SAFETY: kill accesses no memory. The processes are traced and not waited for, so their ids are
            // still valid.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
    }
}
