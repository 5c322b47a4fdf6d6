//! Types of the entries that [`crate::reader`] decodes from chunks: calls, programs, resource usage.

use crate::format::chunk;
use iodock_event::interfaces::InterfacePart;
use iodock_event::{AsyncItem, CallId, NO_FD, UNKNOWN};
use std::sync::Arc;

/// The phase of a call that a record describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// The beginning of a call that may not return.
    Beginning,
    /// The end of such a call.
    End,
    /// The call never returned. Its end is the time when this was found.
    NoReturn,
}

/// One call. Times are in units of the session's clock; unknown values are [`UNKNOWN`] or [`NO_FD`].
#[derive(Clone, Debug)]
pub struct CallRecord {
    pub call: CallId,
    pub tid: u32,
    pub pid: u32,
    pub start: u64,
    pub end: u64,
    pub result: i64,
    pub requested: i64,
    pub offset: i64,
    pub offset2: i64,
    pub argument: i64,
    pub stat_size: i64,
    pub flags: u64,
    pub fd: i32,
    pub fd2: i32,
    pub stat_type: u8,
    pub part: Part,
    pub path: Option<Vec<u8>>,
    pub path2: Option<Vec<u8>>,
    /// Requests of asynchronous I/O that the call submitted or found completed, messages, or passed
    /// descriptors.
    pub items: Vec<AsyncItem>,
    /// The stack from which the call was made: see [`iodock_event::stacks`].
    pub stack: Option<Arc<[u8]>>,
}

impl CallRecord {
    /// A complete call of which only the times are known.
    pub fn new(call: CallId, (tid, pid): (u32, u32), (start, end): (u64, u64)) -> Self {
        CallRecord {
            call,
            tid,
            pid,
            start,
            end,
            result: 0,
            requested: UNKNOWN,
            offset: UNKNOWN,
            offset2: UNKNOWN,
            argument: UNKNOWN,
            stat_size: UNKNOWN,
            flags: 0,
            fd: NO_FD,
            fd2: NO_FD,
            stat_type: 0,
            part: Part::Whole,
            path: None,
            path2: None,
            items: Vec::new(),
            stack: None,
        }
    }
}

/// The last call of a thread, from which it never returned.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub number: u32,
    /// Start of the call, in units of the session's clock.
    pub start: u64,
    /// The call's first argument.
    pub fd: i32,
}

impl Flight {
    /// Reads the call in flight from a chunk's header; `None` if there is none.
    pub fn of(head: &[u8], time_shift: u32) -> Option<Flight> {
        let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let start = u64::from_le_bytes(head.get(chunk::FLIGHT_START..)?.get(..8)?.try_into().ok()?);
        let (call, fd) = (number(chunk::FLIGHT)?, number(chunk::FLIGHT_FD)? as i32);
        Some(Flight { number: call.checked_sub(1)?, start: start >> time_shift, fd })
    }
}

/// Facts that the library recorded when a program started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessRecord {
    pub tid: u32,
    pub pid: u32,
    pub parent_pid: u32,
    /// The process was traced until now, so its earlier calls are recorded elsewhere.
    pub was_traced: bool,
    pub time: u64,
    pub working_directory: Vec<u8>,
    /// The program's arguments, separated by NUL.
    pub command: Vec<u8>,
    /// Variables of the environment that may contain the MPI rank, as `NAME=VALUE`, separated by NUL.
    pub environment: Vec<u8>,
}

/// Resource usage of a thread when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageRecord {
    pub tid: u32,
    pub pid: u32,
    pub time: u64,
    pub thread: CpuTime,
    /// Recorded at the end of a process: usage of all its threads, including those that ended before.
    pub process: Option<ProcessUsage>,
}

/// CPU time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user: u64,
    pub system: u64,
}

/// Resource usage of a process. Blocks of 512 bytes were moved between memory and devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    pub cpu: CpuTime,
    pub read_blocks: u64,
    pub written_blocks: u64,
}

/// Reads and writes that the kernel has counted when a program began or ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedRecord {
    pub tid: u32,
    pub pid: u32,
    pub time: u64,
    pub by_thread: u64,
    /// The count of all threads of the process, and of children that it has waited for. It includes one query
    /// of this report, the one for `by_thread`.
    pub by_process: u64,
    /// Number of context switches in which the process's threads waited.
    pub waits: u64,
}

/// The beginning or the end of a call of an interface, such as MPI-IO, or a fact about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceEntry {
    pub tid: u32,
    pub pid: u32,
    pub time: u64,
    pub part: InterfacePart,
    /// The call's index in `INTERFACE_CALLS`.
    pub call: u16,
    /// Result, handle, bytes, offset, whether a view is contiguous, variable, descriptor, and number of
    /// calls, as in `interfaces/interfaces.h`; UNKNOWN if not reported.
    pub facts: [i64; 8],
    /// Name of the file that the call opened, or the properties of a data set or variable.
    pub name: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub enum Entry {
    Call(Box<CallRecord>),
    Interface(Box<InterfaceEntry>),
    Process(ProcessRecord),
    Usage(UsageRecord),
    Counted(CountedRecord),
    /// From this point the process is traced: its calls are recorded elsewhere.
    Traced {
        tid: u32,
        pid: u32,
        time: u64,
    },
    /// From this point another task writes to the stream: a child of vfork, its parent again, or a thread
    /// that took over the stream of an ended thread.
    Task {
        tid: u32,
        pid: u32,
        time: u64,
    },
}
