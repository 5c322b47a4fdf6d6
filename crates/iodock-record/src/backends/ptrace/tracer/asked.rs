//! What the outside asks of a recording: signals sent to the recorder, cancelling.

use super::{Tracer, SECOND};
use std::collections::BTreeSet;

/// A signal that reached the program and the recorder within this time is one and the same.
const SAME_SIGNAL: i64 = SECOND / 5;

impl Tracer<'_> {
    pub(super) fn heed_signals(&mut self) {
        let received = self.control.received();
        let cancelled = self.control.is_cancelled();
        let asked = received.sent != self.received.sent || cancelled;
        let keys = received.terminal != self.received.terminal;
        let first = self.received.sent == 0 && received.sent == 1 && !cancelled;
        self.received = received;
        if !self.filtered {
            if asked || keys {
                self.detach();
            }
        } else if self.root_ended {
            if asked || keys {
                self.kill_all();
            }
        } else if asked && first {
            self.forward = Some((received.last_sent, self.now));
        } else if asked {
            self.kill_all();
        }
        self.forward_signal();
    }

    /// A signal sent to the recorder is meant for the program, unless it got it too (a batch system
    /// signals everyone): that shows within a moment.
    pub(super) fn forward_signal(&mut self) {
        let Some((signal, since)) = self.forward else { return };
        if self.now - since < SAME_SIGNAL {
            return;
        }
        self.forward = None;
        if self.last_signal.0 != signal || (self.last_signal.1 - since).abs() > 2 * SAME_SIGNAL {
            // SAFETY: the root is alive, or a zombie that we have not waited for.
            unsafe { libc::kill(self.root as i32, signal) };
        }
    }

    pub(super) fn kill_all(&mut self) {
        let processes: BTreeSet<u32> = self.tasks.iter().map(|task| task.tgid).collect();
        self.killed += processes.len() as u32;
        for pid in processes {
            // SAFETY: traced by us, so not yet waited for: the id is theirs.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
    }
}
