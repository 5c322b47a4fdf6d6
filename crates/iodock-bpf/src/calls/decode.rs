//! Converts a buffer's record to a [`RawCall`]: the roles of the call describe its arguments.

use super::rounds::InCall;
use crate::format::{Kind, Piece, STRING_LIMIT};
use crate::plans::{piece, Plans};
use crate::record::{Copied, Record};
use iodock_event::constants::{special_type_of_mode, IORING_ENTER_REGISTERED_RING, O_CLOEXEC};
use iodock_event::control::each_passed;
use iodock_event::{
    Action, AsyncItem, Batch, CallId, ErrnoId, Items, LossKind, Outcome, Phase, RawCall, Role, Text, NO_FD,
    UNKNOWN,
};

/// Result in a record if a seccomp filter answered the call with SIGSYS (see native/format.h).
const NO_RESULT: i64 = i32::MIN as i64;
const MFD_CLOEXEC: u64 = 1;
const EFAULT: i32 = 14;
/// Number of words of a general record before its pieces.
const GENERAL_WORDS: usize = 10;

const BLOCK_BYTES: usize = 72;
const EVENT_BYTES: usize = 32;
const MESSAGE_BYTES: usize = 64;
/// Largest numbers of control blocks, events and messages that one record contains (see native/pieces.h).
const BLOCK_LIMIT: i64 = 256;
const EVENT_LIMIT: i64 = 512;
const MESSAGE_LIMIT: i64 = 256;

/// A call in a small record, and the meaning of its values.
#[derive(Clone, Copy)]
struct Small {
    call: CallId,
    sized: bool,
}

/// Converts the buffers' records to calls.
pub struct Decoder {
    small: Vec<Option<Small>>,
    calls: Vec<Option<CallId>>,
    /// Added to monotonic ns, it gives ns since the epoch.
    pub epoch: i64,
}

impl Decoder {
    pub fn new(plans: &Plans, epoch: i64) -> Self {
        let small =
            |id: &Option<CallId>| id.map(|call| Small { call, sized: call.spec().has_role(Role::Size) });
        Decoder { small: plans.calls.iter().map(small).collect(), calls: plans.calls.clone(), epoch }
    }

    pub fn time(&self, monotonic: u64) -> i64 {
        (monotonic as i64).wrapping_add(self.epoch)
    }

    /// Converts ns since the epoch to monotonic ns.
    pub fn monotonic(&self, time: i64) -> u64 {
        time.wrapping_sub(self.epoch) as u64
    }

    pub fn call_id(&self, number: usize) -> Option<CallId> {
        self.calls.get(number).copied().flatten()
    }

    /// Decodes a request of io_uring (IORING_OP_... of linux/io_uring.h). Returns `None` if it neither moves
    /// nor syncs bytes.
    pub fn request(&self, record: Record) -> Option<RawCall> {
        let &[_, _, duration, result, _, offset] = record.words else { return None };
        let (name, sized) = match record.number() {
            // The length of READV and WRITEV is a number of vectors, not of bytes.
            1 => ("io_uring_read", false),
            2 => ("io_uring_write", false),
            4 | 22 => ("io_uring_read", true),
            5 | 23 => ("io_uring_write", true),
            3 => ("io_uring_fsync", false),
            _ => return None,
        };
        let mut raw = RawCall::new(CallId::intern(name.as_bytes())?, record.tid());
        let (fd, length) = record.halves(4);
        raw.duration = duration as i64;
        raw.start = self.time(record.time()).wrapping_sub(raw.duration);
        raw.fd = fd as i32;
        if name != "io_uring_fsync" {
            raw.offset = offset as i64;
            raw.requested = if sized { i64::from(length) } else { UNKNOWN };
        }
        finish(&mut raw, result as i64);
        Some(raw)
    }

    /// Decodes a complete call, whose texts are stored in `batch`.
    #[inline]
    pub fn call(&self, record: Record, batch: &mut Batch) -> Option<RawCall> {
        match record.kind() {
            Kind::Small => self.small(record, UNKNOWN),
            Kind::Positioned => self.small(record, *record.words.get(4)? as i64),
            Kind::General => self.general(record, batch),
            Kind::Unfinished => self.unfinished(record),
            _ => None,
        }
    }

    #[inline]
    fn small(&self, record: Record, offset: i64) -> Option<RawCall> {
        let Small { call, sized } = self.small.get(record.number()).copied().flatten()?;
        let mut raw = RawCall::new(call, record.tid());
        let (duration, result) = record.halves(2);
        let (fd, size) = record.halves(3);
        raw.duration = i64::from(duration);
        raw.start = self.time(record.time()).wrapping_sub(raw.duration);
        raw.fd = fd as i32;
        raw.requested = if sized { i64::from(size) } else { UNKNOWN };
        raw.offset = offset;
        finish(&mut raw, i64::from(result as i32));
        Some(raw)
    }

    fn general(&self, record: Record, batch: &mut Batch) -> Option<RawCall> {
        let call = self.call_id(record.number())?;
        let mut raw = RawCall::new(call, record.tid());
        let arguments: &[u64; 6] = record.words.get(4..GENERAL_WORDS)?.try_into().ok()?;
        let result = record.words[3] as i64;
        raw.duration = record.words[2] as i64;
        raw.start = self.time(record.time()).wrapping_sub(raw.duration);
        finish(&mut raw, result);
        if call.spec().opens() {
            raw.stat_type = special_type_of_mode(arguments[5]);
        }
        let pieces = record.pieces(GENERAL_WORDS);
        let mut next = 0;
        for (&role, &value) in call.spec().registers().iter().zip(arguments) {
            plain(&mut raw, role, value);
            if piece(role, call.spec()) != Piece::None {
                pointed(&mut raw, role, pieces.get(next).copied().flatten(), result, batch);
                next += 1;
                if let (Role::Message, Some(Some(Copied::Bytes(control)))) = (role, pieces.get(next)) {
                    raw.items = passed(batch, control);
                }
            }
        }
        Some(raw)
    }

    /// Returns a record of the beginning of a call.
    pub fn beginning(&self, call: &InCall) -> Option<RawCall> {
        let mut raw = RawCall::new(self.call_id(call.number)?, call.tid);
        raw.phase = Phase::Enter;
        raw.start = self.time(call.start);
        for (&role, &value) in raw.call.spec().registers().iter().zip(&call.arguments) {
            plain(&mut raw, role, value);
        }
        Some(raw)
    }

    /// Decodes exit, or a call that was cut off by the end of its task. Its record has only the values from
    /// its beginning.
    fn unfinished(&self, record: Record) -> Option<RawCall> {
        let call = self.call_id(record.number())?;
        let mut raw = RawCall::new(call, record.tid());
        raw.start = self.time(record.time()).wrapping_sub(record.words[2] as i64);
        for (&role, &value) in call.spec().registers().iter().zip(&record.words[4..GENERAL_WORDS]) {
            plain(&mut raw, role, value);
        }
        Some(raw)
    }
}

#[inline]
fn finish(raw: &mut RawCall, result: i64) {
    if result == NO_RESULT {
        // The kernel did not make the call: the program's signal handler determines its result.
        (raw.outcome, raw.duration) = (Outcome::NoResult, UNKNOWN);
    } else if (-4095..0).contains(&result) {
        (raw.result, raw.outcome) = (-1, Outcome::Failed);
        raw.errno = ErrnoId::from_linux(-result as i32);
    } else {
        (raw.result, raw.outcome) = (result, Outcome::Succeeded);
    }
}

/// Stores an argument that is a plain value, not a pointer.
fn plain(raw: &mut RawCall, role: Role, value: u64) {
    let action = raw.call.spec().action;
    match role {
        Role::Fd | Role::DirFd => raw.fd = value as i32,
        Role::Fd2 | Role::DirFd2 => raw.fd2 = value as i32,
        Role::Size => raw.requested = i64::try_from(value).unwrap_or(i64::MAX),
        Role::Offset => raw.offset = value as i64,
        Role::RingFlags if value & IORING_ENTER_REGISTERED_RING != 0 => raw.fd = NO_FD,
        Role::Flags => raw.flags = flags(action, value),
        Role::CloneFlags if raw.call.spec().name != "clone3" => raw.flags = value,
        Role::Argument => raw.argument = argument(action, value),
        _ => {}
    }
}

fn flags(action: Action, value: u64) -> u64 {
    match action {
        // memfd_create has its own numbers for flags.
        Action::NewMemfd if value & MFD_CLOEXEC != 0 => O_CLOEXEC,
        Action::NewMemfd => value & O_CLOEXEC,
        Action::Clone | Action::Map => value,
        _ => u64::from(value as u32),
    }
}

fn argument(action: Action, value: u64) -> i64 {
    match action {
        Action::CloseRange => i64::from(value as u32),
        Action::Seek => i64::from(value as i32),
        _ => value as i64,
    }
}

/// Stores an argument behind a pointer. The kernel's program copied the piece of memory when the call ended.
fn pointed(raw: &mut RawCall, role: Role, piece: Option<Copied>, result: i64, batch: &mut Batch) {
    let bytes = match piece {
        // The pointer was null, or the call did not fill the memory.
        None => return,
        Some(Copied::Unreadable) => {
            // With EFAULT the program itself passed a bad pointer, so nothing is lost.
            let named = matches!(role, Role::Path | Role::Path2) && result != -i64::from(EFAULT);
            batch.losses.add(LossKind::UnreadableMemory, u64::from(named));
            return;
        }
        Some(Copied::Bytes(bytes)) => bytes,
    };
    match role {
        Role::Path => (raw.path, raw.path_cut) = path(bytes, batch),
        Role::Path2 => {
            let (text, cut) = path(bytes, batch);
            raw.path2 = text;
            raw.path_cut |= cut;
        }
        Role::OffsetPointer => raw.offset = offset_before(bytes, result),
        Role::OffsetPointer2 => raw.offset2 = offset_before(bytes, result),
        Role::SeekPointer => raw.offset = word(bytes, 0) as i64,
        Role::HowFlags | Role::CloneFlags => raw.flags = word(bytes, 0),
        Role::Vector | Role::Message => raw.requested = vector_sum(bytes),
        Role::NewPair => (raw.fd, raw.fd2) = pair(bytes),
        Role::StatBuffer => stat(raw, bytes),
        Role::ControlBlocks => {
            count_missing(batch, result, bytes.len() / BLOCK_BYTES, BLOCK_LIMIT);
            raw.items = items(batch, bytes.chunks_exact(BLOCK_BYTES).map(control_block));
        }
        Role::Messages => {
            count_missing(batch, result, bytes.len() / MESSAGE_BYTES, MESSAGE_LIMIT);
            raw.items = items(batch, bytes.chunks_exact(MESSAGE_BYTES).map(message));
        }
        Role::Completions => {
            count_missing(batch, result, bytes.len() / EVENT_BYTES, EVENT_LIMIT);
            raw.items = items(batch, bytes.chunks_exact(EVENT_BYTES).map(completion));
        }
        _ => {}
    }
}

/// Counts missing requests of a call that took `result` requests. The record contains the first `copied` of
/// them: at most `limit` are copied, and copying stops at an unreadable one.
fn count_missing(batch: &mut Batch, result: i64, copied: usize, limit: i64) {
    let unreadable = result.min(limit).saturating_sub(copied as i64);
    batch.losses.add(LossKind::UnreadableMemory, unreadable.max(0) as u64);
    batch.losses.add(LossKind::TooManyRequests, result.saturating_sub(limit).max(0) as u64);
}

/// Stores a path, which was copied with its NUL, and returns whether it was cut.
fn path(bytes: &[u8], batch: &mut Batch) -> (Text, bool) {
    let name = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    (batch.push_text(name), bytes.len() == STRING_LIMIT)
}

/// Returns the offset before the call. The call has advanced it by the transferred bytes.
fn offset_before(bytes: &[u8], result: i64) -> i64 {
    (word(bytes, 0) as i64).wrapping_sub(result.max(0))
}

fn vector_sum(vectors: &[u8]) -> i64 {
    let lengths = vectors.chunks_exact(16).map(|vector| word(vector, 8));
    i64::try_from(lengths.fold(0u64, u64::saturating_add)).unwrap_or(i64::MAX)
}

fn pair(bytes: &[u8]) -> (i32, i32) {
    let half =
        |at: usize| bytes.get(at..at + 4).and_then(|half| half.try_into().ok()).map(i32::from_ne_bytes);
    (half(0).unwrap_or(NO_FD), half(4).unwrap_or(NO_FD))
}

/// Reads mode and size from a `struct stat` (at 24 and 48) or a `struct statx` (at 28 and 40).
fn stat(raw: &mut RawCall, bytes: &[u8]) {
    let extended = raw.call.spec().name == "statx";
    let (mode, size) = if extended { (28, 40) } else { (24, 48) };
    let Some(mode) = bytes.get(mode..mode + 2) else { return };
    raw.stat_type = mode[1] >> 4;
    raw.stat_size = word(bytes, size) as i64;
}

fn items(batch: &mut Batch, items: impl Iterator<Item = AsyncItem>) -> Items {
    let start = batch.items.len();
    batch.items.extend(items);
    Items { start: start as u32, count: (batch.items.len() - start) as u32 }
}

/// Stores the descriptors that a message passes.
fn passed(batch: &mut Batch, control: &[u8]) -> Items {
    let start = batch.items.len();
    each_passed(control, |fd| batch.items.push(AsyncItem::passed(fd)));
    Items { start: start as u32, count: (batch.items.len() - start) as u32 }
}

/// Reads the number of bytes at 56 in a `struct mmsghdr`.
fn message(message: &[u8]) -> AsyncItem {
    AsyncItem::message(i64::from(word(message, 56) as u32))
}

/// Reads a block's address and its `struct iocb`: operation at 16, descriptor at 20, length at 32, offset at
/// 40.
fn control_block(bytes: &[u8]) -> AsyncItem {
    let (key, block) = (word(bytes, 0), &bytes[8..]);
    let (length, offset) = (word(block, 32), word(block, 40) as i64);
    let operation = word(block, 16) as u16;
    let (bytes, offset) = match operation {
        0 | 1 => (i64::try_from(length).unwrap_or(i64::MAX), offset),
        // The length of PREADV and PWRITEV is a number of vectors, not of bytes.
        7 | 8 => (UNKNOWN, offset),
        // Syncs and polls have neither a length nor an offset.
        _ => (UNKNOWN, UNKNOWN),
    };
    let fd = (word(block, 16) >> 32) as i32;
    AsyncItem::request(key, fd, matches!(operation, 1 | 8), bytes, offset)
}

/// Reads a `struct io_event`: the block's address at 8, the result at 16.
fn completion(event: &[u8]) -> AsyncItem {
    AsyncItem::done(word(event, 8), word(event, 16) as i64)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
