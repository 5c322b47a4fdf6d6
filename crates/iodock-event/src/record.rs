//! The output of a source: one [`Record`] per call, process start or process end, in the source's order.

use crate::interfaces::InterfaceRecord;
use crate::{Batch, CallId, ErrnoId, Identity, NO_FD, UNKNOWN};

/// A range of [`Batch::bytes`]. Length 0 with start `u32::MAX` means that there is no text, which differs
/// from an empty text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    pub start: u32,
    pub length: u32,
}

impl Text {
    pub const NONE: Text = Text { start: u32::MAX, length: 0 };
    pub fn is_some(self) -> bool {
        self.start != u32::MAX
    }
}

/// A range of [`Batch::items`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Items {
    pub start: u32,
    pub count: u32,
}

/// Value of `argument` for an io_uring_setup if the source shows the ring's requests in io_uring_enter.
pub const RING_IS_SHOWN: i64 = 1;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// The call returned a result, which is in `result`.
    Succeeded,
    /// The call returned an error, which is in `errno`.
    Failed,
    /// The call did not return (`= ?` in strace): it was exit, its thread was killed, or the tracer detached.
    NoResult,
}

/// The part of a call that a record shows. The tracker resolves a call's descriptor when the call *begins*,
/// and applies the effect when the call *ends*. It therefore needs both moments if the source has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The record shows the whole call.
    Whole,
    /// The record shows only the beginning (`<unfinished ...>`) and the arguments printed so far. An `Exit`
    /// of the same thread follows. The tracker does not count an `Enter` as a call.
    Enter,
    /// The record shows the end of a call whose `Enter` came before (`<... resumed>`). It has all arguments,
    /// including those of the `Enter`.
    Exit,
    /// The record shows the end of a call whose beginning was cut off. It has a result and a duration, but no
    /// start time.
    Orphan,
}

/// One system call as the source shows it, with its arguments sorted into fields by the call's [`Role`]s
/// (`CallSpec::roles`). Unknown times and quantities are [`UNKNOWN`], absent descriptors [`NO_FD`].
///
/// [`Role`]: crate::Role
#[derive(Clone, Copy, Debug)]
pub struct RawCall {
    /// Start time, ns since the epoch or since midnight of the first day, depending on the source's clock.
    pub start: i64,
    /// End time on the same clock, ns; set only if it differs from `start + duration`.
    pub end: i64,
    /// Elapsed time inside the call, ns.
    pub duration: i64,
    /// System CPU time (`truss -E`), ns. It never holds elapsed time.
    pub sys_cpu: i64,
    /// The returned value; for failed calls the value that the source shows (usually -1).
    pub result: i64,
    /// Bytes requested (count argument, or sum of the vector's lengths).
    pub requested: i64,
    /// Offset argument; for a two-sided call, that of the input side. A negative value means that there is an
    /// offset whose value the source does not show.
    pub offset: i64,
    /// Offset argument of the output side of a two-sided call.
    pub offset2: i64,
    /// A numeric argument whose meaning depends on the call: third argument of fcntl, last of close_range,
    /// whence of lseek.
    pub argument: i64,
    /// `st_size` if the source shows it for this call.
    pub stat_size: i64,
    /// Open flags, clone flags, fcntl command, ioctl request, mmap flags... as Linux numbers
    /// (`constants`).
    pub flags: u64,
    /// The thread's number in the source (0 if it shows none).
    pub tid: u32,
    pub fd: i32,
    pub fd2: i32,
    /// First path argument, and below it the second, as unescaped bytes. For execve, the program.
    pub path: Text,
    pub path2: Text,
    /// The arguments of execve, separated by NUL.
    pub argv: Text,
    /// The source's description of the descriptor (strace `-y`, `-yy`), without the brackets.
    pub fd_text: Text,
    pub fd2_text: Text,
    pub result_text: Text,
    /// The call stack, encoded as described in [`crate::stacks`].
    pub stack: Text,
    /// Control blocks of io_submit, completions of io_getevents, or the parts of messages (see
    /// [`AsyncItem`]).
    pub items: Items,
    pub call: CallId,
    /// The error; `ErrnoId::NONE` unless the source names one.
    pub errno: ErrnoId,
    pub outcome: Outcome,
    pub phase: Phase,
    /// File type as in `st_mode >> 12` if the source shows it for this call, else 0.
    pub stat_type: u8,
    /// The tracer shortened the path (`"..."...`), so it is incomplete.
    pub path_cut: bool,
}

impl RawCall {
    pub fn new(call: CallId, tid: u32) -> Self {
        RawCall {
            start: UNKNOWN,
            end: UNKNOWN,
            duration: UNKNOWN,
            sys_cpu: UNKNOWN,
            result: UNKNOWN,
            requested: UNKNOWN,
            offset: UNKNOWN,
            offset2: UNKNOWN,
            argument: UNKNOWN,
            stat_size: UNKNOWN,
            flags: 0,
            tid,
            fd: NO_FD,
            fd2: NO_FD,
            path: Text::NONE,
            path2: Text::NONE,
            argv: Text::NONE,
            fd_text: Text::NONE,
            fd2_text: Text::NONE,
            result_text: Text::NONE,
            stack: Text::NONE,
            items: Items::default(),
            call,
            errno: ErrnoId::NONE,
            outcome: Outcome::NoResult,
            phase: Phase::Whole,
            stat_type: 0,
            path_cut: false,
        }
    }

    /// Returns the end time of the call; [`UNKNOWN`] if the source does not show it.
    pub fn end_time(&self) -> i64 {
        if self.end != UNKNOWN {
            self.end
        } else if self.start != UNKNOWN && self.duration != UNKNOWN {
            self.start.saturating_add(self.duration)
        } else {
            UNKNOWN
        }
    }
}

/// The end of a thread or process (`+++ exited with N +++`, `+++ killed by SIG +++`).
#[derive(Clone, Copy, Debug)]
pub struct TaskEnd {
    pub tid: u32,
    pub time: i64,
    pub exit_code: Option<i32>,
    /// Name of the signal, such as `SIGKILL`, without the remark that a core was dumped.
    pub signal: Text,
    pub core_dumped: bool,
    /// Thread that continues under this thread's id (`+++ superseded by execve in pid N +++`).
    pub superseded_by: Option<u32>,
}

/// The start of a thread as the recorder saw it: its creator, its kind and its working directory. Logs do not
/// contain such records.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub tid: u32,
    pub tgid: u32,
    pub parent_tid: Option<u32>,
    pub time: i64,
    pub working_directory: Text,
    /// Arguments of the command, separated by NUL.
    pub command: Text,
    /// Whether the task was already running when recording began (attach).
    pub attached: bool,
    /// MPI rank, if the task's environment contains one. Children inherit it. A task's environment is known
    /// only after exec, so a second `Start` of a living task may provide the rank.
    pub rank: Option<i32>,
}

impl Start {
    /// Returns the start of a thread for which a log shows only the process.
    pub fn of_thread(tid: u32, tgid: u32) -> Start {
        Start {
            tid,
            tgid,
            parent_tid: None,
            time: UNKNOWN,
            working_directory: Text::NONE,
            command: Text::NONE,
            attached: false,
            rank: None,
        }
    }
}

/// A descriptor that was open before recording began.
#[derive(Clone, Copy, Debug)]
pub struct DescriptorSnapshot {
    pub tid: u32,
    pub fd: i32,
    /// The target of the link /proc/PID/fd/N.
    pub target: Text,
    /// Position in the file, bytes; [`UNKNOWN`] if not known.
    pub position: i64,
    /// Open flags, including `O_CLOEXEC` if it is set.
    pub flags: u64,
    /// File type as in `st_mode >> 12`; 0 if not known.
    pub stat_type: u8,
    pub stat_size: i64,
}

#[derive(Clone, Copy, Debug)]
// Most records are calls. Boxing them would cost one allocation per call.
#[allow(clippy::large_enum_variant)]
pub enum Record {
    Call(RawCall),
    End(TaskEnd),
    Start(Start),
    Descriptor(DescriptorSnapshot),
    Identity(Identity),
    Interface(InterfaceRecord),
}

/// One element of a call's structures. For io_submit: a control block that requests `bytes`. For
/// io_getevents: a completion that transferred `bytes`, or failed with a negative errno; `key` links both and
/// is the block's address if the source shows it, else its `data`. For sendmmsg and recvmmsg: a message and
/// the `bytes` transferred. For all calls on messages: a descriptor `fd` that was passed (`SCM_RIGHTS`).
#[derive(Clone, Copy, Debug)]
pub struct AsyncItem {
    pub key: u64,
    pub fd: i32,
    pub write: bool,
    pub bytes: i64,
    pub offset: i64,
    /// For a request submitted to an io_uring: the call as which the tracker shows it when it completes. The
    /// value `io_uring_enter` means that the tracker does not show it.
    pub call: Option<CallId>,
}

impl AsyncItem {
    /// Makes an item for a request to move `bytes` at `offset` of the file behind `fd`.
    pub fn request(key: u64, fd: i32, write: bool, bytes: i64, offset: i64) -> AsyncItem {
        AsyncItem { key, fd, write, bytes, offset, call: None }
    }

    /// Makes an item for a completed request.
    pub fn done(key: u64, bytes: i64) -> AsyncItem {
        AsyncItem { key, ..AsyncItem::message(bytes) }
    }

    /// Makes an item for a message of `bytes`, which is UNKNOWN if the source does not show the number.
    pub fn message(bytes: i64) -> AsyncItem {
        AsyncItem { key: 0, fd: NO_FD, write: false, bytes, offset: UNKNOWN, call: None }
    }

    /// Makes an item for a descriptor that was passed with a message.
    pub fn passed(fd: i32) -> AsyncItem {
        AsyncItem { fd, ..AsyncItem::message(UNKNOWN) }
    }
}

/// The zero point of a source's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Time stamps count from the Unix epoch.
    Epoch,
    /// Time stamps count from midnight of the first day (strace `-t`, `-tt`).
    Day,
    /// Time stamps count from the first record (strace `-r` alone, truss `-d` without its base line).
    Relative,
    /// The source has no time stamps.
    None,
}

impl Clock {
    pub fn name(self) -> &'static str {
        match self {
            Clock::Epoch => "epoch",
            Clock::Day => "day",
            Clock::Relative => "relative",
            Clock::None => "none",
        }
    }
}

/// The reason why a source cannot be read, or not beyond a line. `hint` says what the user can do.
#[derive(Clone, Debug)]
pub struct SourceError {
    pub file: String,
    pub line: Option<u64>,
    pub message: String,
    pub hint: String,
}

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{}: {}", self.file, line, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for SourceError {}

/// A source of records: a log or a journal. It yields the records in its own order.
pub trait RecordSource: Send {
    /// Returns the next batch with its losses and counts; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError>;
    /// Returns a batch to the source, which may reuse its memory.
    fn recycle(&mut self, _batch: Batch) {}
    /// Checks for new data in a source that is still being written. Afterwards `next_batch` can continue.
    ///
    /// # Errors
    /// The source cannot be read any further.
    fn go_on(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
    /// Returns whether the next batch of a growing source is still incomplete. Batches of a growing source
    /// have the same records as those of the finished source.
    ///
    /// # Errors
    /// The source cannot be read any further.
    fn is_waiting(&mut self) -> Result<bool, SourceError> {
        Ok(false)
    }
    /// Returns the time up to which a growing source is complete, in ns since the epoch, if known.
    fn until(&self) -> Option<i64> {
        None
    }
    fn clock(&self) -> Clock;
    /// Returns the number of bytes read so far, and the total number if known.
    fn progress(&self) -> (u64, Option<u64>);
}
