//! A source's output: one [`Record`] per call, process start or process end, in the source's order.

use crate::interfaces::InterfaceRecord;
use crate::{Batch, CallId, ErrnoId, Identity, NO_FD, UNKNOWN};

/// A piece of [`Batch::bytes`]. Length 0 with start `u32::MAX` is "none"; an empty text is not none.
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

/// A run of [`Batch::items`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Items {
    pub start: u32,
    pub count: u32,
}

/// `argument` of an io_uring_setup if the source shows the ring's requests in io_uring_enter.
pub const RING_IS_SHOWN: i64 = 1;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// It returned a result, which is in `result`.
    Succeeded,
    /// It returned an error, which is in `errno`.
    Failed,
    /// `= ?`: exit, a killed thread, or a process that detached. Neither success nor failure.
    NoResult,
}

/// The part of a call that a record shows. A call's descriptor is resolved when the call
/// *began*, and the call takes effect when it *ended*. So the tracker needs both moments, if the source has
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The whole call in one record.
    Whole,
    /// The beginning only (`<unfinished ...>`); an `Exit` of the same thread follows. It does not count as a
    /// call. The arguments shown so far are filled in.
    Enter,
    /// The end of a call whose `Enter` came before (`<... resumed>`). All arguments are filled in, including
    /// those of `Enter`.
    Exit,
    /// The end of a call whose beginning was cut off: result and duration, no start.
    Orphan,
}

/// One system call as the source shows it, with its arguments sorted into fields by the call's [`Role`]s
/// (`CallSpec::roles`). Unknown times and quantities are [`UNKNOWN`], absent descriptors [`NO_FD`].
///
/// [`Role`]: crate::Role
#[derive(Clone, Copy, Debug)]
pub struct RawCall {
    /// ns since the epoch, or since midnight of the first day, depending on the source's clock.
    pub start: i64,
    /// ns on the same clock; set only if it is not `start + duration`.
    pub end: i64,
    /// Elapsed ns inside the call.
    pub duration: i64,
    /// System CPU ns (truss -E), never elapsed time.
    pub sys_cpu: i64,
    /// The returned value; for failed calls the value that the source shows (-1).
    pub result: i64,
    /// Bytes requested (count argument, or sum of the vector's lengths).
    pub requested: i64,
    /// Offset argument of the (input) side. If negative, there is an offset whose value the source does not
    /// show.
    pub offset: i64,
    /// Offset argument of the output side of a two-sided call.
    pub offset2: i64,
    /// A numeric argument of the call: third argument of fcntl, last of close_range, whence of lseek.
    pub argument: i64,
    /// `st_size` if the call shows one.
    pub stat_size: i64,
    /// Open flags, clone flags, fcntl command, ioctl request, mmap flags... as Linux numbers
    /// (`constants`).
    pub flags: u64,
    /// The thread's number in the source (0 if it shows none).
    pub tid: u32,
    pub fd: i32,
    pub fd2: i32,
    /// First and second path named, as unescaped bytes. For execve, the program.
    pub path: Text,
    pub path2: Text,
    /// execve's arguments, NUL-separated.
    pub argv: Text,
    /// The source's own description of a descriptor (`-y`, `-yy`), without the brackets.
    pub fd_text: Text,
    pub fd2_text: Text,
    pub result_text: Text,
    /// The stack of the call: see [`crate::stacks`].
    pub stack: Text,
    /// Control blocks of io_submit, completions of io_getevents, or the parts of messages (see
    /// [`AsyncItem`]).
    pub items: Items,
    pub call: CallId,
    /// `ErrnoId::NONE` unless the source names one.
    pub errno: ErrnoId,
    pub outcome: Outcome,
    pub phase: Phase,
    /// `st_mode >> 12` if the call shows one, else 0.
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

    /// The end time of the call, as far as the source shows it.
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

/// How a thread or process ended (`+++ exited with N +++`, `+++ killed by SIG +++`).
#[derive(Clone, Copy, Debug)]
pub struct TaskEnd {
    pub tid: u32,
    pub time: i64,
    pub exit_code: Option<i32>,
    /// Name of the signal without the core note, e.g. `SIGKILL`.
    pub signal: Text,
    pub core_dumped: bool,
    /// `+++ superseded by execve in pid N +++`: the thread that continues under this thread's id.
    pub superseded_by: Option<u32>,
}

/// A thread's start as the recorder saw it: its creator, its kind and its working directory. Logs do not
/// contain this.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub tid: u32,
    pub tgid: u32,
    pub parent_tid: Option<u32>,
    pub time: i64,
    pub working_directory: Text,
    /// NUL-separated arguments.
    pub command: Text,
    /// Was it running when the recording began (attach)?
    pub attached: bool,
    /// MPI rank, if the task's environment contains one; children inherit it. A task's rank becomes known at
    /// its exec, so a second `Start` of a living task may provide it.
    pub rank: Option<i32>,
}

impl Start {
    /// A thread for which a log shows only its process.
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
    /// The link target of /proc/PID/fd/N.
    pub target: Text,
    /// Position, [`UNKNOWN`] if not known.
    pub position: i64,
    /// Open flags (with `O_CLOEXEC` where set).
    pub flags: u64,
    /// `st_mode >> 12`, 0 if not known.
    pub stat_type: u8,
    pub stat_size: i64,
}

#[derive(Clone, Copy, Debug)]
// Calls are by far the most frequent records. Boxing them would cost an allocation each.
#[allow(clippy::large_enum_variant)]
pub enum Record {
    Call(RawCall),
    End(TaskEnd),
    Start(Start),
    Descriptor(DescriptorSnapshot),
    Identity(Identity),
    Interface(InterfaceRecord),
}

/// One control block passed to io_submit (`bytes` requested), or one completion from io_getevents (`bytes`
/// transferred, negative for an errno). `key` joins the two: the block's address if the source shows it, else
/// its `data`. For sendmmsg and recvmmsg, one message with the `bytes` transferred. For all message calls,
/// also each descriptor passed with a message (`SCM_RIGHTS`), in `fd`.
#[derive(Clone, Copy, Debug)]
pub struct AsyncItem {
    pub key: u64,
    pub fd: i32,
    pub write: bool,
    pub bytes: i64,
    pub offset: i64,
    /// For a request submitted to an io_uring: the call as which it is shown when it completes.
    /// `io_uring_enter` itself means that it is not shown.
    pub call: Option<CallId>,
}

impl AsyncItem {
    /// A request to move `bytes` at `offset` of the file behind `fd`.
    pub fn request(key: u64, fd: i32, write: bool, bytes: i64, offset: i64) -> AsyncItem {
        AsyncItem { key, fd, write, bytes, offset, call: None }
    }

    /// A completed request.
    pub fn done(key: u64, bytes: i64) -> AsyncItem {
        AsyncItem { key, ..AsyncItem::message(bytes) }
    }

    /// A message of `bytes`, UNKNOWN if the source does not show the number.
    pub fn message(bytes: i64) -> AsyncItem {
        AsyncItem { key: 0, fd: NO_FD, write: false, bytes, offset: UNKNOWN, call: None }
    }

    /// A descriptor that was passed with a message.
    pub fn passed(fd: i32) -> AsyncItem {
        AsyncItem { fd, ..AsyncItem::message(UNKNOWN) }
    }
}

/// The origin of a source's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Unix epoch.
    Epoch,
    /// Midnight of the first day (`-t`, `-tt`).
    Day,
    /// The first record (`-r` alone, truss -d without its base line).
    Relative,
    /// No stamps at all.
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

/// Why a source cannot be read at all, or only up to here. `hint` says what to do.
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

/// A source of records in its own order: a log or a journal.
pub trait RecordSource: Send {
    /// The next batch, `None` at the end. Losses and counts of the batch are in it.
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError>;
    /// Gives a batch back for reuse.
    fn recycle(&mut self, _batch: Batch) {}
    /// Checks for new data in a source that is still being written. Then `next_batch` can continue.
    ///
    /// # Errors
    /// The source cannot be read any further.
    fn go_on(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
    /// For a source that is followed as it grows: whether its next batch is not complete yet. A batch that is
    /// given has the records that it would have if all had been there.
    ///
    /// # Errors
    /// The source cannot be read any further.
    fn is_waiting(&mut self) -> Result<bool, SourceError> {
        Ok(false)
    }
    /// For a source that is still being written: the time up to which it is complete, in ns since the epoch,
    /// if known.
    fn until(&self) -> Option<i64> {
        None
    }
    fn clock(&self) -> Clock;
    /// Bytes of the source read so far, and in total if known.
    fn progress(&self) -> (u64, Option<u64>);
}
