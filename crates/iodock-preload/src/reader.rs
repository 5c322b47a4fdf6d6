//! Decodes the records in chunks, which the preloaded library has written.

use crate::cursor::Cursor;
pub use crate::entries::*;
use crate::format::*;
use crate::items;
use crate::shapes::Shapes;
use iodock_event::interfaces::{InterfacePart, INTERFACE_CALLS};
use iodock_event::stacks::{push_frame, Frame};
use iodock_event::{NO_FD, UNKNOWN};
use std::sync::Arc;

/// A chunk's header.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub tid: u32,
    pub pid: u32,
    pub base: u64,
    pub stream: u32,
    pub sequence: u32,
    pub level: u32,
    /// Id of the process to which the chunk belongs; a child of vfork writes into its parent's chunk.
    pub owner: u32,
    /// Number of times that the chunk was used before.
    pub generation: u32,
}

impl Head {
    /// Returns the number that identifies the chunk at `index` and its generation.
    pub fn number(&self, index: u64) -> u64 {
        index | u64::from(self.generation) << 32
    }
}

/// The error that a chunk contains invalid bytes at offset `at`.
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
        generation: number(chunk::GENERATION)?,
    })
}

/// Reads one chunk, entry by entry.
pub struct ChunkReader {
    cursor: Cursor,
    tid: u32,
    pid: u32,
    last_end: u64,
    last_size: u64,
    next_offset: i64,
    last_fd: i32,
    last_directory: i32,
    last_opened: i32,
    /// Fields of the last call with each code; `None` for chunks of signal handlers, which omit no fields.
    habits: Option<Box<[Habit; HABITS]>>,
    /// The paths read so far, concatenated, and the position and length of each.
    texts: Vec<u8>,
    paths: Vec<(usize, usize)>,
    /// The stacks read so far; and for each code the index, plus one, of the stack of its last call (0:
    /// unknown).
    stacks: Vec<Arc<[u8]>>,
    last_stacks: [usize; HABITS],
}

#[derive(Clone, Copy, Default)]
struct Habit {
    flags: u64,
    argument: i64,
    fd2: i64,
}

/// The first bytes of a call's record.
struct Opening {
    code: u8,
    has: u8,
    more: u8,
    /// Whether the offset is in units of 512 bytes.
    in_blocks: bool,
}

/// Returns the value in the record. If the record omits a field that every such call has, returns the value
/// of the last call.
fn or_last<T: Copy>(written: Option<T>, last: Option<&mut T>) -> Option<T> {
    let Some(last) = last else { return written };
    *last = written.unwrap_or(*last);
    Some(*last)
}

/// Splits `head`, the first byte of a data call's record, into the call's code and the bits of present
/// fields.
fn data_head(head: u8) -> Option<(u8, u8)> {
    let call = HEADS.iter().rposition(|&first| first <= head).filter(|_| head < HEADS_END)?;
    Some((call as u8 + 1, head - HEADS[call]))
}

impl ChunkReader {
    /// Returns a reader of the chunk; `None` if `bytes` is not a chunk.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let head = head(&bytes)?;
        Some(ChunkReader {
            cursor: Cursor::new(bytes, chunk::BYTES),
            tid: head.tid,
            pid: head.pid,
            last_end: head.base,
            last_size: 0,
            next_offset: 0,
            last_fd: -1,
            last_directory: libc::AT_FDCWD,
            last_opened: 0,
            habits: (head.level == 0).then(|| Box::new([Habit::default(); HABITS])),
            texts: Vec::new(),
            paths: Vec::new(),
            stacks: Vec::new(),
            last_stacks: [0; HABITS],
        })
    }

    /// Replaces the known bytes of the chunk by a longer part of the same chunk.
    pub fn grow(&mut self, bytes: Vec<u8>) {
        self.cursor.grow(bytes);
    }

    /// Returns the number of known bytes of the chunk.
    pub fn length(&self) -> usize {
        self.cursor.at() + self.cursor.rest()
    }

    /// Returns the buffer, for reuse with another chunk.
    pub fn into_bytes(self) -> Vec<u8> {
        self.cursor.into_bytes()
    }

    /// Returns the offset of the next entry in the chunk.
    pub fn at(&self) -> usize {
        self.cursor.at()
    }

    /// Reads the next entry; `None` at the end.
    ///
    /// # Errors
    /// The next bytes are not a valid record.
    pub fn next_entry(&mut self, shapes: &Shapes) -> Result<Option<Entry>, Damaged> {
        let start = self.at();
        let Some(first) = self.cursor.next() else { return Ok(None) };
        let entry = match first {
            CODE_CONTROL => self.control(),
            CODE_STACK => self.stack().and_then(|stack| self.call(shapes, Some(stack))),
            _ => self.call(shapes, None),
        };
        entry.map(Some).ok_or(Damaged { at: start })
    }

    /// Returns the entry for a call in flight from which the chunk's thread never returned.
    pub fn no_return(&self, flight: Flight, shapes: &Shapes) -> Option<Entry> {
        let shape = shapes.by_number.get(flight.number as usize)?;
        // Calls that map memory are left out, because it is not known whether they map a file.
        let &(call, _) = shapes.by_code.get(usize::from(shape.code)).filter(|_| shape.code > 0)?;
        let left_out = matches!(shape.kind, Kind::Map | Kind::Fork | Kind::Exec | Kind::Exit);
        let mut record = CallRecord::new(call, (self.tid, self.pid), (flight.start, flight.start));
        record.part = Part::NoReturn;
        record.fd = if shape.roles[0] == Role::Fd { flight.fd } else { NO_FD };
        (!left_out).then(|| Entry::Call(Box::new(record)))
    }

    fn path(&mut self) -> Option<Vec<u8>> {
        let index = self.cursor.number()? as usize;
        if index > 0 {
            let &(at, count) = self.paths.get(index - 1)?;
            return Some(self.texts[at..at + count].to_vec());
        }
        let (shared, count) = (self.cursor.number()? as usize, self.cursor.number()? as usize);
        let start = self.texts.len();
        if shared > 0 {
            let &(last, _) = self.paths.last().filter(|&&(_, bytes)| shared <= bytes.min(LAST_PATH))?;
            self.texts.extend_from_within(last..last + shared);
        }
        self.texts.extend_from_slice(self.cursor.take(count)?);
        self.paths.push((start, shared + count));
        Some(self.texts[start..].to_vec())
    }

    /// Reads the stack of the next call. Returns the index of the stack plus one, or 0 if the stack is
    /// unknown.
    fn stack(&mut self) -> Option<usize> {
        self.cursor.byte()?;
        match self.cursor.number()? {
            STACK_NEW => {}
            known => {
                return usize::try_from(known - STACK_NONE).ok().filter(|&known| known <= self.stacks.len())
            }
        }
        let (frames, pythons) = (self.cursor.number()?, self.cursor.number()?);
        let pythons_at = if pythons > 0 { self.cursor.number()?.min(frames) } else { 0 };
        let mut stack = Vec::new();
        for place in 0..=(frames <= FRAMES && pythons <= PYTHON_FRAMES).then_some(frames)? {
            if place == pythons_at {
                (0..pythons).try_for_each(|_| self.python_frame(&mut stack))?;
            }
            if place < frames {
                let (module, offset) = (self.path()?, Some(self.cursor.number()?));
                push_frame(&mut stack, &Frame { module: &module, offset, ..Frame::default() });
            }
        }
        self.stacks.push(stack.into());
        Some(self.stacks.len())
    }

    fn python_frame(&mut self, stack: &mut Vec<u8>) -> Option<()> {
        let (file, function) = (self.path()?, self.path()?);
        let line = u32::try_from(self.cursor.number()?).ok().filter(|&line| line > 0);
        push_frame(stack, &Frame { file: &file, function: &function, line, ..Frame::default() });
        Some(())
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let count = self.cursor.fixed(2)? as usize;
        Some(self.cursor.take(count)?.to_vec())
    }

    fn control(&mut self) -> Option<Entry> {
        self.cursor.byte()?;
        let kind = self.cursor.byte()?;
        let (tid, pid, time) =
            (self.cursor.fixed(4)? as u32, self.cursor.fixed(4)? as u32, self.cursor.fixed(8)?);
        (self.tid, self.pid, self.last_end) = (tid, pid, time);
        match kind {
            CONTROL_TASK => Some(Entry::Task { tid, pid, time }),
            CONTROL_PROCESS => {
                let parent_pid = self.cursor.fixed(4)? as u32;
                let was_traced = self.cursor.byte()? != 0;
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
            CONTROL_COUNTED => {
                let [by_thread, by_process, waits] =
                    [self.cursor.number()?, self.cursor.number()?, self.cursor.number()?];
                Some(Entry::Counted(CountedRecord { tid, pid, time, by_thread, by_process, waits }))
            }
            CONTROL_INTERFACE => self.interface(tid, pid, time),
            CONTROL_USAGE => {
                let thread = self.cpu_time()?;
                let process = if self.cursor.byte()? != 0 { Some(self.process_usage()?) } else { None };
                Some(Entry::Usage(UsageRecord { tid, pid, time, thread, process }))
            }
            _ => None,
        }
    }

    fn interface(&mut self, tid: u32, pid: u32, time: u64) -> Option<Entry> {
        let part = match self.cursor.byte()? {
            1 => InterfacePart::Begins,
            2 => InterfacePart::Ends,
            3 => InterfacePart::Hint,
            4 => InterfacePart::Counts,
            _ => return None,
        };
        let call = u16::try_from(self.cursor.number()?).ok()?;
        if usize::from(call) >= INTERFACE_CALLS.len() {
            return None;
        }
        let known = self.cursor.byte()?;
        let mut facts = [UNKNOWN; 8];
        for (place, fact) in facts.iter_mut().enumerate() {
            if known & 1 << place != 0 {
                *fact = self.cursor.signed()?;
            }
        }
        let name = self.text()?;
        let name = (!name.is_empty()).then_some(name);
        Some(Entry::Interface(Box::new(InterfaceEntry { tid, pid, time, part, call, facts, name })))
    }

    fn cpu_time(&mut self) -> Option<CpuTime> {
        Some(CpuTime { user: self.cursor.number()?, system: self.cursor.number()? })
    }

    fn process_usage(&mut self) -> Option<ProcessUsage> {
        let cpu = self.cpu_time()?;
        Some(ProcessUsage { cpu, read_blocks: self.cursor.number()?, written_blocks: self.cursor.number()? })
    }

    fn opening(&mut self) -> Option<Opening> {
        let first = self.cursor.byte()?;
        if let Some((code, added)) = data_head(first) {
            let (has, in_blocks) = match added {
                WITH_BLOCKS.. => ((added - WITH_BLOCKS) | HAS_OFFSET, true),
                _ => (added, false),
            };
            return Some(Opening { code, has, more: 0, in_blocks });
        }
        let has = self.cursor.byte()?;
        let more = if has & HAS_MORE != 0 { self.cursor.byte()? } else { 0 };
        Some(Opening { code: first, has, more, in_blocks: false })
    }

    fn call(&mut self, shapes: &Shapes, stack: Option<usize>) -> Option<Entry> {
        let opening = self.opening()?;
        let has = opening.has;
        let &(call, shape) = shapes.by_code.get(usize::from(opening.code)).filter(|(_, s)| s.code > 0)?;
        let (gap, duration) = (self.cursor.number()?, self.cursor.number()?);
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
        if part == Part::Whole && self.habits.is_some() {
            let last = &mut self.last_stacks[usize::from(shape.code) % HABITS];
            *last = stack.unwrap_or(*last);
            record.stack = last.checked_sub(1).map(|place| self.stacks[place].clone());
        }
        if part == Part::NoReturn {
            if has & HAS_FD != 0 {
                self.last_fd = self.cursor.signed()? as i32;
            }
            record.fd = if shape.roles[0] == Role::Fd { self.last_fd } else { NO_FD };
            return Some(Entry::Call(Box::new(record)));
        }
        if opening.more & MORE_PATH != 0 {
            record.path = Some(self.path()?);
        }
        if opening.more & MORE_PATH2 != 0 {
            record.path2 = Some(self.path()?);
        }
        self.plain_fields(&mut record, &shape, &opening)?;
        self.more_fields(&mut record, &shape, opening.more)?;
        if shape.kind == Kind::Open && record.result >= 0 && part == Part::Whole {
            self.last_opened = record.result as i32;
            self.last_fd = self.last_opened;
        }
        Some(Entry::Call(Box::new(record)))
    }

    fn plain_fields(&mut self, record: &mut CallRecord, shape: &Shape, opening: &Opening) -> Option<()> {
        let predicted = matches!(shape.kind, Kind::Data | Kind::Positioned);
        let has = opening.has;
        let new_fd = if has & HAS_FD != 0 { Some(self.cursor.signed()? as i32) } else { None };
        let has_path = record.path.as_ref().is_some_and(|path| !path.is_empty());
        let last_fd = if has_path { &mut self.last_directory } else { &mut self.last_fd };
        *last_fd = new_fd.unwrap_or(*last_fd);
        if new_fd.is_some() || shape.has(Role::Fd) {
            record.fd = *last_fd;
        }
        if has & HAS_SIZE != 0 {
            self.last_size = self.cursor.number()?;
        }
        if has & HAS_SIZE != 0 || predicted {
            record.requested = i64::try_from(self.last_size).unwrap_or(i64::MAX);
        }
        record.result = if has & HAS_RESULT != 0 {
            self.cursor.signed()?
        } else if record.requested != UNKNOWN {
            self.last_size as i64
        } else if shape.kind == Kind::Open {
            i64::from(self.last_opened)
        } else {
            0
        };
        if shape.has(Role::Pair) && record.result >= 0 {
            record.fd = self.last_fd;
        }
        if has & HAS_OFFSET != 0 || shape.kind == Kind::Positioned {
            let step = if has & HAS_OFFSET != 0 { self.cursor.signed()? } else { 0 };
            let step = if opening.in_blocks { step.checked_mul(1 << BLOCK_SHIFT)? } else { step };
            record.offset = self.next_offset.wrapping_add(step);
            self.next_offset = record.offset.wrapping_add(record.result.max(0));
        }
        Some(())
    }

    fn more_fields(&mut self, record: &mut CallRecord, shape: &Shape, more: u8) -> Option<()> {
        self.habitual_fields(record, shape, more)?;
        if more & MORE_OFFSET2 != 0 {
            record.offset2 = self.cursor.signed()?;
        }
        if more & MORE_STAT != 0 {
            (record.stat_type, record.stat_size) = self.stat()?;
        }
        if more & MORE_TEXT != 0 {
            record.items = items::read(&mut self.cursor, shape)?;
        }
        Some(())
    }

    /// Fills in fields that are omitted because they equal those of the last call with that code.
    fn habitual_fields(&mut self, record: &mut CallRecord, shape: &Shape, more: u8) -> Option<()> {
        let place = usize::from(shape.code) % HABITS;
        let flags = if more & MORE_FLAGS != 0 { Some(self.cursor.number()?) } else { None };
        let argument = if more & MORE_ARGUMENT != 0 { Some(self.cursor.signed()?) } else { None };
        let fd2 = if more & MORE_FD2 != 0 { Some(self.cursor.signed()?) } else { None };
        let whole = record.part == Part::Whole;
        let mut habit = self.habits.as_mut().filter(|_| whole).map(|habits| &mut habits[place]);
        let last = habit.as_deref_mut().filter(|_| shape.has(Role::Flags)).map(|habit| &mut habit.flags);
        record.flags = or_last(flags, last).unwrap_or(record.flags);
        let last =
            habit.as_deref_mut().filter(|_| shape.has(Role::Argument)).map(|habit| &mut habit.argument);
        record.argument = or_last(argument, last).unwrap_or(record.argument);
        let last = habit.filter(|_| shape.has(Role::Fd2)).map(|habit| &mut habit.fd2);
        record.fd2 = or_last(fd2, last).map_or(record.fd2, |fd2| fd2 as i32);
        Some(())
    }

    fn stat(&mut self) -> Option<(u8, i64)> {
        let both = self.cursor.number()?;
        let (kind, size) = (both & STAT_APART, both >> STAT_SHIFT);
        if kind == STAT_APART {
            return Some((self.cursor.byte()?, self.cursor.number()? as i64));
        }
        Some((kind as u8, size as i64))
    }
}
