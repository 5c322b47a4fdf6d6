//! Reads chunks back: what the preloaded library wrote, call by call.

pub use crate::entries::*;
use crate::format::*;
use crate::shapes::Shapes;
use iodock_event::control::each_passed;
use iodock_event::{AsyncItem, CallId, NO_FD, UNKNOWN};

/// A chunk's header.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub tid: u32,
    pub pid: u32,
    pub base: u64,
    pub stream: u32,
    pub sequence: u32,
    pub level: u32,
    /// The process whose thread writes it; a child of vfork writes into its parent's.
    pub owner: u32,
}

/// Why reading a chunk stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub at: usize,
}

pub fn head(bytes: &[u8]) -> Option<Head> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    (number(chunk::MAGIC)? == CHUNK_MAGIC).then_some(Head {
        tid: number(chunk::TID)?,
        pid: number(chunk::PID)?,
        base: u64::from(number(chunk::BASE)?) | u64::from(number(chunk::BASE + 4)?) << 32,
        stream: number(chunk::STREAM)?,
        sequence: number(chunk::SEQUENCE)?,
        level: number(chunk::LEVEL)?,
        owner: number(chunk::OWNER)?,
    })
}

/// Reads one chunk, entry by entry.
pub struct ChunkReader {
    bytes: Vec<u8>,
    at: usize,
    tid: u32,
    pid: u32,
    last_end: u64,
    last_size: u64,
    next_offset: i64,
    last_fd: i32,
    paths: Vec<(usize, usize)>,
}

/// Flags of a `struct io_uring_sqe`.
const SQE_FIXED_FILE: u8 = 1;
const SQE_SKIP_SUCCESS: u8 = 1 << 6;

/// The call that an operation of io_uring (`IORING_OP_...` of linux/io_uring.h) is shown as.
fn ring_call(operation: Option<u8>) -> Option<CallId> {
    CallId::intern(match operation {
        Some(1 | 4 | 22) => b"io_uring_read",
        Some(2 | 5 | 23) => b"io_uring_write",
        Some(3) => b"io_uring_fsync",
        _ => b"io_uring_enter",
    })
}

impl ChunkReader {
    /// `None` if `bytes` is no chunk.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let head = head(&bytes)?;
        Some(ChunkReader {
            bytes,
            at: chunk::BYTES,
            tid: head.tid,
            pid: head.pid,
            last_end: head.base,
            last_size: 0,
            next_offset: 0,
            last_fd: -1,
            paths: Vec::new(),
        })
    }

    /// The memory, to be used for another chunk.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Where the next entry begins.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// What is there can't be a record.
    pub fn next_entry(&mut self, shapes: &Shapes) -> Result<Option<Entry>, Damaged> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let entry = if self.bytes[start] == CODE_CONTROL { self.control() } else { self.call(shapes) };
        entry.map(Some).ok_or(Damaged { at: start })
    }

    /// The call that the chunk's thread never came back from.
    pub fn no_return(&self, flight: Flight, shapes: &Shapes) -> Option<Entry> {
        let shape = shapes.by_number.get(flight.number as usize)?;
        // Of a map it is not known whether it has a file.
        let &(call, _) = shapes.by_code.get(usize::from(shape.code)).filter(|_| shape.code > 0)?;
        let left_out = matches!(shape.kind, Kind::Map | Kind::Fork | Kind::Exec | Kind::Exit);
        let mut record = CallRecord::new(call, (self.tid, self.pid), (flight.start, flight.start));
        record.part = Part::NoReturn;
        record.fd = if shape.roles[0] == Role::Fd { flight.fd } else { NO_FD };
        (!left_out).then(|| Entry::Call(Box::new(record)))
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let start = self.at;
        self.at = start.checked_add(count)?;
        self.bytes.get(start..self.at)
    }

    fn number(&mut self) -> Option<u64> {
        let more = self.bytes.get(self.at)?.trailing_zeros();
        if more >= 8 {
            self.at += 1;
            return self.fixed(8);
        }
        Some(self.fixed(more as usize + 1)? >> (more + 1))
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn fixed(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.take(bytes)?;
        Some(taken.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn path(&mut self) -> Option<Vec<u8>> {
        let index = self.number()? as usize;
        if index > 0 {
            let &(at, count) = self.paths.get(index - 1)?;
            return Some(self.bytes[at..at + count].to_vec());
        }
        let count = self.number()? as usize;
        self.paths.push((self.at, count));
        Some(self.take(count)?.to_vec())
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let count = self.fixed(2)? as usize;
        Some(self.take(count)?.to_vec())
    }

    fn control(&mut self) -> Option<Entry> {
        self.byte()?;
        let kind = self.byte()?;
        let (tid, pid, time) = (self.fixed(4)? as u32, self.fixed(4)? as u32, self.fixed(8)?);
        (self.tid, self.pid, self.last_end) = (tid, pid, time);
        match kind {
            CONTROL_TASK => Some(Entry::Task { tid, pid, time }),
            CONTROL_PROCESS => {
                let parent_pid = self.fixed(4)? as u32;
                let was_traced = self.byte()? != 0;
                let working_directory = self.text()?;
                let (mut command, environment) = (self.text()?, self.text()?);
                command.pop();
                Some(Entry::Process(ProcessRecord {
                    tid,
                    pid,
                    parent_pid,
                    was_traced,
                    time,
                    working_directory,
                    command,
                    environment,
                }))
            }
            CONTROL_TRACED => Some(Entry::Traced { tid, pid, time }),
            CONTROL_USAGE => {
                let thread = self.cpu_time()?;
                let process = if self.byte()? != 0 { Some(self.process_usage()?) } else { None };
                Some(Entry::Usage(UsageRecord { tid, pid, time, thread, process }))
            }
            _ => None,
        }
    }

    fn cpu_time(&mut self) -> Option<CpuTime> {
        Some(CpuTime { user: self.number()?, system: self.number()? })
    }

    fn process_usage(&mut self) -> Option<ProcessUsage> {
        let cpu = self.cpu_time()?;
        Some(ProcessUsage { cpu, read_blocks: self.number()?, written_blocks: self.number()? })
    }

    fn call(&mut self, shapes: &Shapes) -> Option<Entry> {
        let &(call, shape) = shapes.by_code.get(usize::from(self.byte()?)).filter(|(_, s)| s.code > 0)?;
        let has = self.byte()?;
        let more = if has & HAS_MORE != 0 { self.byte()? } else { 0 };
        let (gap, duration) = (self.number()?, self.number()?);
        let start = if has & STEP_BACK != 0 {
            self.last_end.wrapping_sub(gap)
        } else {
            self.last_end.wrapping_add(gap)
        };
        let end = start.wrapping_add(duration);
        let part = match has & (PHASE_ENTER | PHASE_EXIT) {
            0 => Part::Whole,
            PHASE_ENTER => Part::Beginning,
            PHASE_EXIT => Part::End,
            _ => Part::NoReturn,
        };
        let mut record = CallRecord { part, ..CallRecord::new(call, (self.tid, self.pid), (start, end)) };
        self.last_end = end;
        if part == Part::NoReturn {
            if has & HAS_FD != 0 {
                self.last_fd = self.signed()? as i32;
            }
            record.fd = if shape.roles[0] == Role::Fd { self.last_fd } else { NO_FD };
            return Some(Entry::Call(Box::new(record)));
        }
        self.plain_fields(&mut record, &shape, has)?;
        self.more_fields(&mut record, &shape, more)?;
        Some(Entry::Call(Box::new(record)))
    }

    fn plain_fields(&mut self, record: &mut CallRecord, shape: &Shape, has: u8) -> Option<()> {
        let predicted = matches!(shape.kind, Kind::Data | Kind::Positioned);
        if has & HAS_FD != 0 {
            self.last_fd = self.signed()? as i32;
        }
        if has & HAS_FD != 0 || shape.has(Role::Fd) {
            record.fd = self.last_fd;
        }
        if has & HAS_SIZE != 0 {
            self.last_size = self.number()?;
        }
        if has & HAS_SIZE != 0 || predicted {
            record.requested = i64::try_from(self.last_size).unwrap_or(i64::MAX);
        }
        record.result = if has & HAS_RESULT != 0 {
            self.signed()?
        } else if record.requested != UNKNOWN {
            self.last_size as i64
        } else {
            0
        };
        if shape.has(Role::Pair) && record.result >= 0 {
            record.fd = self.last_fd;
        }
        if has & HAS_OFFSET != 0 {
            record.offset = self.next_offset.wrapping_add(self.signed()?);
        } else if shape.kind == Kind::Positioned {
            record.offset = self.next_offset;
        }
        if record.offset != UNKNOWN {
            self.next_offset = record.offset.wrapping_add(record.result.max(0));
        }
        Some(())
    }

    fn more_fields(&mut self, record: &mut CallRecord, shape: &Shape, more: u8) -> Option<()> {
        if more & MORE_PATH != 0 {
            record.path = Some(self.path()?);
        }
        if more & MORE_PATH2 != 0 {
            record.path2 = Some(self.path()?);
        }
        if more & MORE_FLAGS != 0 {
            record.flags = self.number()?;
        }
        if more & MORE_ARGUMENT != 0 {
            record.argument = self.signed()?;
        }
        if more & MORE_FD2 != 0 {
            record.fd2 = self.signed()? as i32;
        }
        if more & MORE_OFFSET2 != 0 {
            record.offset2 = self.signed()?;
        }
        if more & MORE_STAT != 0 {
            record.stat_type = self.byte()?;
            record.stat_size = self.number()? as i64;
        }
        if more & MORE_TEXT != 0 {
            let count = self.number()? as usize;
            let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len())?;
            while self.at < end {
                if shape.has(Role::Message) {
                    self.passed(count, &mut record.items)?;
                } else if shape.has(Role::Messages) {
                    self.message(&mut record.items)?;
                } else if shape.has(Role::Ring) {
                    self.ring(end, &mut record.items)?;
                } else {
                    let item = if shape.has(Role::Blocks) { self.request() } else { self.completion() };
                    record.items.push(item?);
                }
            }
            self.at = end;
        }
        Some(())
    }

    /// The descriptors in `count` bytes of control data.
    fn passed(&mut self, count: usize, items: &mut Vec<AsyncItem>) -> Option<()> {
        let end = self.at.checked_add(count)?;
        each_passed(self.bytes.get(self.at..end)?, |fd| items.push(AsyncItem::passed(fd)));
        self.at = end;
        Some(())
    }

    fn message(&mut self, items: &mut Vec<AsyncItem>) -> Option<()> {
        items.push(AsyncItem::message(i64::try_from(self.number()?).ok()?));
        let count = self.number()? as usize;
        self.passed(count, items)
    }

    /// Requests that were done before this call, and those that it submits, each behind their number; up to
    /// `end` others that are done.
    fn ring(&mut self, end: usize, items: &mut Vec<AsyncItem>) -> Option<()> {
        for _ in 0..self.number()? {
            items.push(self.completion()?);
        }
        for _ in 0..self.number()? {
            items.push(self.ring_request()?);
        }
        while self.at < end {
            items.push(self.completion()?);
        }
        Some(())
    }

    fn ring_request(&mut self) -> Option<AsyncItem> {
        let (key, operation, flags) = (self.number()?, self.byte()?, self.byte()?);
        let (fd, size, offset) = (self.signed()? as i32, self.number()?, self.signed()?);
        let bytes = size.checked_sub(1).map_or(UNKNOWN, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let fd = if flags & SQE_FIXED_FILE != 0 { NO_FD } else { fd };
        // What is done says nothing where it went well.
        let operation = if flags & SQE_SKIP_SUCCESS != 0 { None } else { Some(operation) };
        let call = ring_call(operation);
        Some(AsyncItem { call, ..AsyncItem::request(key, fd, false, bytes, offset) })
    }

    fn request(&mut self) -> Option<AsyncItem> {
        let key = self.number()?;
        let (flags, fd) = (self.byte()?, self.signed()? as i32);
        let (bytes, offset) = match flags & ITEM_MOVES {
            0 => (UNKNOWN, UNKNOWN),
            _ => (i64::try_from(self.number()?).unwrap_or(i64::MAX), self.signed()?),
        };
        Some(AsyncItem::request(key, fd, flags & ITEM_WRITES != 0, bytes, offset))
    }

    fn completion(&mut self) -> Option<AsyncItem> {
        let (key, bytes) = (self.number()?, self.signed()?);
        Some(AsyncItem::done(key, bytes))
    }
}
