//! What other threads ask of a tracer's thread, which alone may take tasks: it sleeps in a wait for their stops,
//! and is woken by a signal.

use crate::backends::ProgramExit;
use crate::control::wake_signal;
use crate::locks::lock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A signal that comes just before the wait is lost: it is repeated.
const AGAIN: Duration = Duration::from_millis(1);

#[derive(Default)]
pub struct Requests {
    /// The path of the library of whoever asks: what is done to load it is not recorded.
    pub library: Vec<u8>,
    waiting: Mutex<Waiting>,
    news: Condvar,
    closed: AtomicBool,
    /// The tracer's thread.
    thread: AtomicI32,
    /// The first process was taken (or is about to be), and then how it ended.
    root_is_taken: AtomicBool,
    root_exit: Mutex<Option<ProgramExit>>,
}

#[derive(Default)]
struct Waiting {
    wanted: Vec<(u32, Sender<bool>)>,
    withdrawn: Vec<u32>,
    /// Processes that were made by those that are traced.
    born: Vec<u32>,
}

impl Requests {
    /// `library`: see the field.
    pub fn new(library: Vec<u8>) -> Requests {
        Requests { library, ..Requests::default() }
    }

    /// Has the tracer take `tid`. Whether it did.
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

    /// There is no tracer, and will be none: who asked for one goes on without.
    pub fn refuse(&self) {
        self.closed.store(true, SeqCst);
        lock(&self.waiting).wanted.clear();
    }

    /// The task has not waited to be taken.
    pub fn withdraw(&self, tid: u32) {
        lock(&self.waiting).withdrawn.push(tid);
        self.wake();
    }

    /// Nothing more is asked for.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        self.wake();
    }

    pub fn wake(&self) {
        self.news.notify_all();
        let thread = self.thread.load(SeqCst);
        if thread != 0 {
            // SAFETY: tgkill only sends a signal, for which a handler is installed as long as a recording runs.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, wake_signal()) };
        }
    }

    /// The calling thread is the tracer's.
    pub fn adopt(&self) {
        // SAFETY: can't fail.
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

    /// Until there may be news, or for this long. False if nothing more comes.
    pub fn rest(&self, most: Duration) -> bool {
        let waiting = lock(&self.waiting);
        if waiting.wanted.is_empty() && !self.are_closed() {
            drop(self.news.wait_timeout(waiting, most));
        }
        !self.are_closed()
    }

    /// To be told before the first process is asked for: its end is then told by the tracer.
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
