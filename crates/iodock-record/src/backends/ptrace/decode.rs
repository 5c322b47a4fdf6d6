//! Converts registers to a [`RawCall`]. The roles in the table of calls say what each argument means.

use super::memory::{self, Read};
use super::request::CallInfo;
use super::tasks::Call;
use iodock_event::constants::{special_type_of_mode, IORING_ENTER_REGISTERED_RING, O_CLOEXEC};
use iodock_event::control::{each_passed, CONTROL_LIMIT};
use iodock_event::{Action, AsyncItem, LossKind, Losses, RawCall, Role, Text, NO_FD, UNKNOWN};
use std::io::Write;
use std::mem;

/// Number of bytes of execve's arguments that are recorded.
const ARGUMENTS_LIMIT: usize = 32 * 1024;
/// Largest number of iovecs or control blocks that the kernel accepts.
const VECTOR_LIMIT: usize = 1024;
const MFD_CLOEXEC: u64 = 1;

/// Fills `call` with the values that are known at the beginning of the call.
#[inline]
pub fn begin(call: &mut Call, id: iodock_event::CallId, tid: u32, info: &CallInfo) {
    call.raw = RawCall::new(id, tid);
    (call.number, call.arguments) = (info.number, info.arguments);
    call.texts.clear();
    call.items.clear();
    let spec = id.spec();
    for (index, &role) in spec.registers().iter().enumerate().take(6) {
        let value = info.arguments[index];
        match role {
            Role::Skip
            | Role::SeekPointer
            | Role::NewPair
            | Role::StatBuffer
            | Role::Completions
            | Role::Ring
            | Role::Messages => {}
            Role::Fd | Role::DirFd => call.raw.fd = value as i32,
            Role::Fd2 | Role::DirFd2 => call.raw.fd2 = value as i32,
            Role::Size => call.raw.requested = i64::try_from(value).unwrap_or(i64::MAX),
            Role::Offset => call.raw.offset = value as i64,
            Role::RingFlags if value & IORING_ENTER_REGISTERED_RING == 0 => {}
            Role::RingFlags => call.raw.fd = NO_FD,
            Role::Flags => call.raw.flags = flags(spec.action, value),
            Role::Argument => call.raw.argument = argument(spec.action, value),
            _ => pointed(call, role, tid, value, info),
        }
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

/// Reads an argument behind a pointer.
fn pointed(call: &mut Call, role: Role, tid: u32, address: u64, info: &CallInfo) {
    match role {
        Role::CloneFlags if call.raw.call.spec().name == "clone3" => {
            call.raw.flags = memory::read_u64(tid, address).unwrap_or(0)
        }
        Role::CloneFlags => call.raw.flags = address,
        _ if address == 0 => {}
        Role::Path => (call.raw.path, call.raw.path_cut) = path(call, tid, address),
        Role::Path2 => {
            let (text, cut) = path(call, tid, address);
            call.raw.path2 = text;
            call.raw.path_cut |= cut;
        }
        Role::OffsetPointer => call.raw.offset = offset(tid, address),
        Role::OffsetPointer2 => call.raw.offset2 = offset(tid, address),
        Role::HowFlags => call.raw.flags = memory::read_u64(tid, address).unwrap_or(0),
        Role::Vector => call.raw.requested = vector_sum(call, tid, address, info.arguments[2]),
        Role::Message => message(call, tid, address),
        Role::Arguments => call.raw.argv = arguments(call, tid, address),
        Role::ControlBlocks => control_blocks(call, tid, address, info.arguments[1]),
        _ => {}
    }
}

fn path(call: &mut Call, tid: u32, address: u64) -> (Text, bool) {
    let start = call.texts.len() as u32;
    let read = memory::read_path(tid, address, &mut call.texts);
    if read == Read::Unreadable {
        // With EFAULT the program itself passed a bad pointer. After other failures, reading is tried again
        // at the end of the call.
        call.unreadable = true;
        return (Text::NONE, false);
    }
    (Text { start, length: call.texts.len() as u32 - start }, read == Read::Cut)
}

fn offset(tid: u32, address: u64) -> i64 {
    memory::read_u64(tid, address).map_or(UNKNOWN, |value| value as i64)
}

/// Returns the total length of `count` iovecs.
fn vector_sum(call: &mut Call, tid: u32, address: u64, count: u64) -> i64 {
    let count = usize::min(count as usize, VECTOR_LIMIT);
    call.scratch.resize(count * 16, 0);
    let read = memory::read_some(tid, address, &mut call.scratch);
    if read < call.scratch.len() {
        return UNKNOWN;
    }
    let lengths = call.scratch.chunks_exact(16).map(|vector| word(vector, 8));
    i64::try_from(lengths.fold(0u64, u64::saturating_add)).unwrap_or(i64::MAX)
}

/// Bytes of a `struct user_msghdr`: the vectors are at 16, their number at 24, the control data at 32, its
/// length at 40.
const MESSAGE_HEADER: usize = 56;

fn message(call: &mut Call, tid: u32, address: u64) {
    let mut header = [0; MESSAGE_HEADER];
    if !memory::read_exact(tid, address, &mut header) {
        return;
    }
    call.raw.requested = vector_sum(call, tid, word(&header, 16), word(&header, 24));
    if call.raw.call.spec().action == Action::Send {
        passed(call, tid, &header);
    }
}

/// Stores the descriptors in the control data of a message.
fn passed(call: &mut Call, tid: u32, header: &[u8]) {
    let length = usize::min(word(header, 40) as usize, CONTROL_LIMIT);
    if length == 0 {
        return;
    }
    call.scratch.resize(length, 0);
    let read = memory::read_some(tid, word(header, 32), &mut call.scratch);
    each_passed(&call.scratch[..read], |fd| call.items.push(AsyncItem::passed(fd)));
}

/// Reads the `struct mmsghdr`s of sendmmsg and recvmmsg. The result is their number. Each begins with the
/// message and has its number of bytes at 56.
fn messages(call: &mut Call, tid: u32, address: u64, count: i64) {
    let mut message = [0; 64];
    for index in 0..u64::min(count as u64, VECTOR_LIMIT as u64) {
        if !memory::read_exact(tid, address.wrapping_add(index * 64), &mut message) {
            break;
        }
        passed(call, tid, &message[..MESSAGE_HEADER]);
        call.items.push(AsyncItem::message(i64::from(half(&message, MESSAGE_HEADER) as u32)));
    }
}

fn received(call: &mut Call, tid: u32, address: u64) {
    let mut header = [0; MESSAGE_HEADER];
    if memory::read_exact(tid, address, &mut header) {
        passed(call, tid, &header);
    }
}

fn arguments(call: &mut Call, tid: u32, address: u64) -> Text {
    let start = call.texts.len();
    let mut pointers = [0u8; 512];
    let mut at = address;
    'all: loop {
        let read = memory::read_some(tid, at, &mut pointers);
        for pointer in pointers[..read].chunks_exact(8) {
            let pointer = word(pointer, 0);
            let used = call.texts.len() - start;
            if pointer == 0 || used >= ARGUMENTS_LIMIT {
                break 'all;
            }
            if used > 0 {
                call.texts.push(0);
            }
            memory::read_string(tid, pointer, ARGUMENTS_LIMIT - used, &mut call.texts);
        }
        if read < pointers.len() {
            break;
        }
        at += pointers.len() as u64;
    }
    Text { start: start as u32, length: (call.texts.len() - start) as u32 }
}

/// Reads the `struct iocb`s of io_submit.
fn control_blocks(call: &mut Call, tid: u32, address: u64, count: u64) {
    for index in 0..u64::min(count, VECTOR_LIMIT as u64) {
        let mut block = [0; 64];
        let Some(pointer) = memory::read_u64(tid, address.wrapping_add(index * 8)) else { break };
        if !memory::read_exact(tid, pointer, &mut block) {
            break;
        }
        let operation = u16::from_ne_bytes([block[16], block[17]]);
        let (bytes, offset) = (word(&block, 32), word(&block, 40) as i64);
        let (bytes, offset) = match operation {
            0 | 1 => (i64::try_from(bytes).unwrap_or(i64::MAX), offset),
            // The length of PREADV and PWRITEV is a number of vectors, not of bytes.
            7 | 8 => (vector_sum(call, tid, word(&block, 24), bytes), offset),
            // Syncs and polls have neither a length nor an offset.
            _ => (UNKNOWN, UNKNOWN),
        };
        let fd = i32::from_ne_bytes([block[20], block[21], block[22], block[23]]);
        call.items.push(AsyncItem::request(pointer, fd, matches!(operation, 1 | 8), bytes, offset));
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads the data that the call left in memory, at its end.
#[inline]
pub fn end(call: &mut Call, tid: u32, result: i64, losses: &mut Losses) {
    if call.unreadable {
        call.unreadable = false;
        losses.add(LossKind::UnreadableMemory, u64::from(result != -i64::from(libc::EFAULT)));
    }
    if result < 0 {
        return;
    }
    if call.raw.call.spec().opens() {
        call.raw.stat_type = special_type(tid, result);
    }
    for (index, &role) in call.raw.call.spec().registers().iter().enumerate().take(6) {
        let address = call.arguments[index];
        match role {
            Role::StatBuffer => stat(&mut call.raw, tid, address),
            Role::NewPair => pair(&mut call.raw, tid, address),
            Role::Completions => completions(call, tid, address, result),
            Role::SeekPointer => call.raw.offset = offset(tid, address),
            Role::Messages => messages(call, tid, address, result),
            Role::Message if call.raw.call.spec().action == Action::Receive => received(call, tid, address),
            _ => {}
        }
    }
}

/// Returns the type of the file that the thread has just opened, or 0 for a regular file. The thread is
/// stopped, so the descriptor still refers to this file. The file system is not queried, because it may be
/// slow.
fn special_type(tid: u32, fd: i64) -> u8 {
    let mut path = [0; 40];
    let Ok(()) = write!(&mut path[..], "/proc/{tid}/fd/{fd}\0") else { return 0 };
    // SAFETY: zeroes are a valid statx.
    let mut found: libc::statx = unsafe { mem::zeroed() };
    let (flags, wanted) = (libc::AT_STATX_DONT_SYNC, libc::STATX_TYPE);
    // SAFETY: the path ends with NUL, and `found` has room for the result.
    let failed = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr().cast(), flags, wanted, &mut found) } != 0;
    if failed {
        return 0;
    }
    special_type_of_mode(u64::from(found.stx_mode))
}

/// Reads mode and size from a `struct stat` (at 24 and 48) or a `struct statx` (at 28 and 40).
fn stat(raw: &mut RawCall, tid: u32, address: u64) {
    let mut buffer = [0; 56];
    if !memory::read_exact(tid, address, &mut buffer) {
        return;
    }
    let extended = raw.call.spec().name == "statx";
    let (mode, size) = if extended {
        (u32::from(u16::from_ne_bytes([buffer[28], buffer[29]])), word(&buffer, 40))
    } else {
        (half(&buffer, 24) as u32, word(&buffer, 48))
    };
    raw.stat_type = ((mode >> 12) & 0xf) as u8;
    raw.stat_size = size as i64;
}

fn pair(raw: &mut RawCall, tid: u32, address: u64) {
    let mut ends = [0; 8];
    let read = memory::read_exact(tid, address, &mut ends);
    (raw.fd, raw.fd2) = if read { (half(&ends, 0), half(&ends, 4)) } else { (NO_FD, NO_FD) };
}

/// Reads the `struct io_event`s of io_getevents: the block's address at 8, the result at 16.
fn completions(call: &mut Call, tid: u32, address: u64, count: i64) {
    let mut event = [0; 32];
    for index in 0..count as u64 {
        if !memory::read_exact(tid, address.wrapping_add(index * 32), &mut event) {
            break;
        }
        call.items.push(AsyncItem::done(word(&event, 8), word(&event, 16) as i64));
    }
}
