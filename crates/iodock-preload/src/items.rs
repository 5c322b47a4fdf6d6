//! Decodes the texts of records, which contain requests of asynchronous I/O, messages or passed descriptors.

use crate::cursor::Cursor;
use crate::format::{Role, Shape, ITEM_MOVES, ITEM_WRITES};
use iodock_event::control::each_passed;
use iodock_event::{AsyncItem, CallId, NO_FD, UNKNOWN};

/// Flags of a `struct io_uring_sqe`.
const SQE_FIXED_FILE: u8 = 1;
const SQE_SKIP_SUCCESS: u8 = 1 << 6;

/// Returns the call name under which iodock shows an operation of io_uring (`IORING_OP_...` of
/// linux/io_uring.h).
fn ring_call(operation: Option<u8>) -> Option<CallId> {
    CallId::intern(match operation {
        Some(1 | 4 | 22) => b"io_uring_read",
        Some(2 | 5 | 23) => b"io_uring_write",
        Some(3) => b"io_uring_fsync",
        _ => b"io_uring_enter",
    })
}

/// Reads the text of a call with this shape: its length, then the items. Returns `None` if the bytes are
/// invalid.
pub fn read(cursor: &mut Cursor, shape: &Shape) -> Option<Vec<AsyncItem>> {
    let count = cursor.number()? as usize;
    let end = cursor.at().checked_add(count).filter(|_| count <= cursor.rest())?;
    let mut items = Vec::new();
    while cursor.at() < end {
        if shape.has(Role::Message) {
            passed(cursor, count, &mut items)?;
        } else if shape.has(Role::Messages) {
            message(cursor, &mut items)?;
        } else if shape.has(Role::Ring) {
            ring(cursor, end, &mut items)?;
        } else {
            let item = if shape.has(Role::Blocks) { request(cursor) } else { completion(cursor) };
            items.push(item?);
        }
    }
    (cursor.at() == end).then_some(items)
}

/// Reads the descriptors in `count` bytes of control data.
fn passed(cursor: &mut Cursor, count: usize, items: &mut Vec<AsyncItem>) -> Option<()> {
    each_passed(cursor.take(count)?, |fd| items.push(AsyncItem::passed(fd)));
    Some(())
}

fn message(cursor: &mut Cursor, items: &mut Vec<AsyncItem>) -> Option<()> {
    items.push(AsyncItem::message(i64::try_from(cursor.number()?).ok()?));
    let count = cursor.number()? as usize;
    passed(cursor, count, items)
}

/// Reads the count of completions before this call, and these; the count of requests that the call submits,
/// and these; then the other completions up to `end`.
fn ring(cursor: &mut Cursor, end: usize, items: &mut Vec<AsyncItem>) -> Option<()> {
    for _ in 0..cursor.number()? {
        items.push(completion(cursor)?);
    }
    for _ in 0..cursor.number()? {
        items.push(ring_request(cursor)?);
    }
    while cursor.at() < end {
        items.push(completion(cursor)?);
    }
    Some(())
}

fn ring_request(cursor: &mut Cursor) -> Option<AsyncItem> {
    let (key, operation, flags) = (cursor.number()?, cursor.byte()?, cursor.byte()?);
    let (fd, size, offset) = (cursor.signed()? as i32, cursor.number()?, cursor.signed()?);
    let bytes = size.checked_sub(1).map_or(UNKNOWN, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    let fd = if flags & SQE_FIXED_FILE != 0 { NO_FD } else { fd };
    // The kernel reports no completion for such an operation if it succeeds, so it is shown as
    // io_uring_enter.
    let operation = if flags & SQE_SKIP_SUCCESS != 0 { None } else { Some(operation) };
    let call = ring_call(operation);
    Some(AsyncItem { call, ..AsyncItem::request(key, fd, false, bytes, offset) })
}

fn request(cursor: &mut Cursor) -> Option<AsyncItem> {
    let key = cursor.number()?;
    let (flags, fd) = (cursor.byte()?, cursor.signed()? as i32);
    let (bytes, offset) = match flags & ITEM_MOVES {
        0 => (UNKNOWN, UNKNOWN),
        _ => (i64::try_from(cursor.number()?).unwrap_or(i64::MAX), cursor.signed()?),
    };
    Some(AsyncItem::request(key, fd, flags & ITEM_WRITES != 0, bytes, offset))
}

fn completion(cursor: &mut Cursor) -> Option<AsyncItem> {
    let (key, bytes) = (cursor.number()?, cursor.signed()?);
    Some(AsyncItem::done(key, bytes))
}
