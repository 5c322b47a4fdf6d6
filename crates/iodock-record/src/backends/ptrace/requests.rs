//! Passes requests of other threads to the tracer's thread, which is the only one that can trace tasks. The
//! tracer waits for stops of tasks, and a signal wakes it.

use crate::backends::ProgramExit;
use crate::control::wake_signal;
use crate::locks::lock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Interval at which the signal is repeated, because a signal just before the wait has no effect.
const AGAIN: Duration = Duration::from_millis(1);

#[derive(Default)]
pub struct Requests {
    /// Path of the other back end's library. Calls that load it are not recorded.
    pub library: Vec<u8>,
    waiting: Mutex<Waiting>,
    news: Condvar,
    closed: AtomicBool,
    /// Id of the tracer's thread.
    thread: AtomicI32,
    /// Whether the tracer has attached to the first process or is about to, and then how this process ended.
    root_is_taken: AtomicBool,
    root_exit: Mutex<Option<ProgramExit>>,
}

#[derive(Default)]
struct Waiting {
    wanted: Vec<(u32, Sender<bool>)>,
    withdrawn: Vec<u32>,
    /// Processes that traced processes have created.
    born: Vec<u32>,
}

impl Requests {
    /// Creates an empty list of requests. `library` is the path of the other back end's library.
    pub fn new(library: Vec<u8>) -> Requests {
        Requests { library, ..Requests::default() }
    }

    /// Requests that the tracer attach to `tid`. Returns whether it did.
    pub fn ask(&self, tid: u32) -> bool {
        let (answer, answered) = channel();
        let mut waiting = lock(&self.waiting);
        if self.are_closed() {
            return false;
        }
        waiting.wanted.push((tid, answer));
        drop(waiting);
        loop {
            self.wake();
            match answered.recv_timeout(AGAIN) {
                Ok(taken) => return taken,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Refuses all requests, because no tracer runs or will run. Threads that request one continue without
    /// it.
    pub fn refuse(&self) {
        self.closed.store(true, SeqCst);
        lock(&self.waiting).wanted.clear();
    }

    /// Withdraws the request for a task that did not wait to be attached.
    pub fn withdraw(&self, tid: u32) {
        lock(&self.waiting).withdrawn.push(tid);
        self.wake();
    }

    /// Closes the list: no more requests follow.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        self.wake();
    }

    pub fn wake(&self) {
        self.news.notify_all();
        let thread = self.thread.load(SeqCst);
        if thread != 0 {
            // SAFETY: tgkill only sends a signal, which has a handler as long as a recording runs.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, wake_signal()) };
        }
    }

    /// Makes the calling thread the tracer's thread.
    pub fn adopt(&self) {
        // SAFETY: gettid has no arguments and can't fail.
        self.thread.store(unsafe { libc::gettid() }, SeqCst);
    }

    pub fn leave(&self) {
        self.thread.store(0, SeqCst);
    }

    pub fn take(&self) -> Vec<(u32, Sender<bool>)> {
        std::mem::take(&mut lock(&self.waiting).wanted)
    }

    pub fn take_withdrawn(&self) -> Vec<u32> {
        std::mem::take(&mut lock(&self.waiting).withdrawn)
    }

    pub fn add_born(&self, processes: &mut Vec<u32>) {
        lock(&self.waiting).born.append(processes);
    }

    pub fn take_born(&self) -> Vec<u32> {
        std::mem::take(&mut lock(&self.waiting).born)
    }

    pub fn are_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Waits for requests, at most for this time. Returns false if no more will follow.
    pub fn rest(&self, most: Duration) -> bool {
        let waiting = lock(&self.waiting);
        if waiting.wanted.is_empty() && !self.are_closed() {
            drop(self.news.wait_timeout(waiting, most));
        }
        !self.are_closed()
    }

    /// Sets whether the tracer has attached to the first process or is about to, so that it reports the
    /// process's end. Call it before attaching.
    pub fn takes_root(&self, takes: bool) {
        self.root_is_taken.store(takes, SeqCst);
    }

    pub fn has_root(&self) -> bool {
        self.root_is_taken.load(SeqCst)
    }

    pub fn root_ended(&self, exit: ProgramExit) {
        *lock(&self.root_exit) = Some(exit);
    }

    pub fn root_exit(&self) -> Option<ProgramExit> {
        *lock(&self.root_exit)
    }
}
