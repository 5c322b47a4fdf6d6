//! Stores the tracer's data about each thread.

use iodock_event::{AsyncItem, CallId, RawCall};

/// Value in the index for a thread without a slot.
const NO_SLOT: u32 = u32::MAX;
/// Highest thread id that Linux assigns (PID_MAX_LIMIT).
const TID_LIMIT: usize = 4 << 20;

/// A call between its two stops. Its buffers are reused for the thread's next call.
pub struct Call {
    pub raw: RawCall,
    pub number: u64,
    pub arguments: [u64; 6],
    /// Bytes of the texts of `raw`.
    pub texts: Vec<u8>,
    pub items: Vec<AsyncItem>,
    pub scratch: Vec<u8>,
    /// Whether a path could not be read at the beginning of the call.
    pub unreadable: bool,
}

/// Execution state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The thread stopped before the tracer saw its parent's fork. It is held until then.
    Unexpected,
    /// The thread runs the program's code, or a call that is not recorded.
    Running,
    /// The thread is in a recorded call.
    InCall,
    /// The thread is in a call that is not recorded. It also stops at the end of this call.
    InOtherCall,
}

/// State of a thread that was attached for another back end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The task's calls are recorded.
    #[default]
    Recorded,
    /// The task is about to execute a program. Until then the other back end records it.
    Taken,
    /// The library in the task knows that it is traced.
    Told,
    /// The library of the other back end is making its own calls, which are not recorded.
    Muted,
    /// The library records again after the end of the current call.
    Leaving,
}

pub struct Task {
    pub tid: u32,
    pub tgid: u32,
    pub state: State,
    /// Whether the beginning of the current call is recorded already.
    pub entered: bool,
    /// Whether the thread is in a group stop (SIGSTOP and similar), until a SIGCONT.
    pub stopped: bool,
    /// Time at which the thread was created or attached, in ns since the epoch.
    pub born: i64,
    /// The task has created no process and no thread, and is the only thread of its process. So wait4 reports
    /// exactly the task's own usage.
    pub alone: bool,
    /// Whether the task's usage is read from wait4 after its end, instead of from /proc before it.
    pub asked_at_end: bool,
    /// State of the task if another back end records parts of its life.
    pub stage: Stage,
    /// Result that the current call will return, if the tracer sets it.
    pub answer: Option<u64>,
    /// Descriptor through which the dynamic linker reads the other back end's library.
    pub library: Option<i32>,
    /// Whether the current call is one of those with which the dynamic linker reads the library.
    pub hidden: bool,
    pub call: Call,
}

/// Threads in slots. The index is a table over all thread ids, so that no hashing is needed. Only pages of it
/// that are used take memory.
pub struct Tasks {
    slots: Vec<Task>,
    free: Vec<u32>,
    index: Vec<u32>,
}

impl Tasks {
    pub fn new() -> Self {
        // The index contains the slot plus one, so that the table can begin as zeroed pages.
        Tasks { slots: Vec::new(), free: Vec::new(), index: vec![0; TID_LIMIT + 1] }
    }

    #[inline]
    pub fn find(&self, tid: u32) -> Option<usize> {
        let slot = self.index.get(tid as usize).copied().unwrap_or(0).wrapping_sub(1);
        (slot != NO_SLOT).then_some(slot as usize)
    }

    #[inline]
    pub fn get(&mut self, slot: usize) -> &mut Task {
        &mut self.slots[slot]
    }

    pub fn add(&mut self, tid: u32, tgid: u32, state: State, now: i64) -> usize {
        if let Some(slot) = self.find(tid) {
            return slot;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot as usize,
            None => {
                self.slots.push(Task::new());
                self.slots.len() - 1
            }
        };
        let task = &mut self.slots[slot];
        (task.tid, task.tgid, task.state) = (tid, tgid, state);
        (task.entered, task.stopped, task.asked_at_end) = (false, false, false);
        (task.born, task.alone) = (now, false);
        (task.stage, task.answer, task.library, task.hidden) = (Stage::Recorded, None, None, false);
        if let Some(entry) = self.index.get_mut(tid as usize) {
            *entry = slot as u32 + 1;
        }
        slot
    }

    pub fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.index.get_mut(self.slots[slot].tid as usize) {
            *entry = 0;
        }
        self.slots[slot].tid = 0;
        self.free.push(slot as u32);
    }

    /// Handles an exec: the thread in slot `from` continues with the id of `to`, whose own thread has ended.
    pub fn take_over(&mut self, from: usize, to: usize) {
        let (from_tid, to_tid) = (self.slots[from].tid, self.slots[to].tid);
        self.slots.swap(from, to);
        self.slots[to].tid = to_tid;
        self.slots[from].tid = from_tid;
        self.remove(from);
    }

    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether there are threads and all of them are in a group stop.
    pub fn all_stopped(&self) -> bool {
        let mut threads = self.iter().peekable();
        threads.peek().is_some() && threads.all(|task| task.stopped)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.slots.iter().filter(|task| task.tid != 0)
    }
}

impl Task {
    fn new() -> Self {
        Task {
            tid: 0,
            tgid: 0,
            state: State::Running,
            entered: false,
            stopped: false,
            born: 0,
            alone: false,
            asked_at_end: false,
            stage: Stage::Recorded,
            answer: None,
            library: None,
            hidden: false,
            call: Call {
                raw: RawCall::new(CallId(0), 0),
                number: 0,
                arguments: [0; 6],
                texts: Vec::new(),
                items: Vec::new(),
                scratch: Vec::new(),
                unreadable: false,
            },
        }
    }
}
