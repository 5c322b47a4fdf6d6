//! Handles group stops of traced threads.

use super::Tracer;
use crate::backends::ptrace::request;

impl Tracer<'_> {
    /// Leaves a thread in its group stop.
    pub(super) fn listen(&mut self, slot: usize, tid: u32) {
        self.tasks.get(slot).stopped = true;
        let _ = request::listen(tid);
    }

    /// Stops the recorder if all processes that it follows are stopped.
    pub(super) fn stop_along(&mut self) {
        if self.is_ours {
            let clock = self.clock;
            let all_stopped = self.tasks.all_stopped();
            self.stopping.heed(all_stopped, self.root as libc::pid_t, || clock.now());
        }
    }
}
