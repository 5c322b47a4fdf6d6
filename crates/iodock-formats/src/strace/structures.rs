//! Reads structured arguments: vectors, stat buffers, control blocks.

use super::lexer::{Lexer, Quoted};
use super::values::{descriptor, flags, push_unescaped};
use iodock_event::{constants, AsyncItem, Batch, Items, LossKind, RawCall, Text, NO_FD, UNKNOWN};
use memchr::memmem;

/// A field of a structure: its name (empty if an old version prints none), and the lexer at its value.
struct Field<'a> {
    name: &'a [u8],
    value: Lexer<'a>,
}

/// Calls `visit` for each field of the `{...}` at `lexer`, and moves past it. Returns `false` if there is
/// none or it is not closed.
fn each_field<'a>(lexer: &mut Lexer<'a>, mut visit: impl FnMut(Field<'a>)) -> bool {
    if !lexer.eat(b'{') {
        return false;
    }
    loop {
        let start = *lexer;
        let mut name = lexer.word();
        // Very old versions print fields as `msg_name(0)=NULL`.
        if lexer.peek() == b'(' && !name.is_empty() {
            lexer.at += 1;
            lexer.digits();
            lexer.eat(b')');
        }
        if !lexer.eat(b'=') {
            *lexer = start;
            name = b"";
        }
        visit(Field { name, value: *lexer });
        if !lexer.skip_value() {
            return false;
        }
        if !lexer.eat(b',') {
            return lexer.eat(b'}');
        }
        lexer.skip_spaces();
    }
}

/// Calls `visit` with the lexer at each element of the `[...]` at `lexer`. `visit` must move past the
/// element, and returns whether it could. The result is true if strace showed all elements, and not an
/// address or `...`.
fn each_element<'a>(lexer: &mut Lexer<'a>, mut visit: impl FnMut(&mut Lexer<'a>) -> bool) -> bool {
    // Versions before 4.10 print arrays of structures as `{{...}, {...}}`.
    let close = match lexer.peek() {
        b'[' => b']',
        b'{' => b'}',
        _ => return false,
    };
    lexer.at += 1;
    if lexer.eat(close) {
        return true;
    }
    loop {
        if lexer.peek() == b'.' || !visit(lexer) {
            return false;
        }
        if !lexer.eat(b',') {
            return lexer.eat(close);
        }
        lexer.skip_spaces();
    }
}

/// Returns the sum of the lengths in an iovec array; `None` if strace did not show all of them.
pub fn vector(mut lexer: Lexer<'_>) -> Option<i64> {
    let mut sum = 0i64;
    let mut known = true;
    let complete = each_element(&mut lexer, |element| {
        let mut length = None;
        let closed = each_field(element, |Field { name, mut value }| {
            if name == b"iov_len" || name.is_empty() {
                length = value.integer();
            }
        });
        known &= length.is_some();
        sum = sum.saturating_add(length.unwrap_or(0));
        closed
    });
    (complete && known).then_some(sum)
}

/// Stores the sum of the lengths in a message's vector, and the descriptors that are passed with it.
pub fn message(mut lexer: Lexer<'_>, raw: &mut RawCall, batch: &mut Batch) {
    let start = batch.items.len();
    each_field(&mut lexer, |Field { name, value }| match name {
        b"msg_iov" => raw.requested = vector(value).unwrap_or(raw.requested),
        b"msg_control" => control(value, batch),
        _ => {}
    });
    raw.items = items_from(start, batch);
}

/// Parses `[{msg_hdr={...}, msg_len=42}, ...]` of sendmmsg and recvmmsg: the bytes of each message, and the
/// descriptors passed.
pub fn messages(mut lexer: Lexer<'_>, batch: &mut Batch) -> Items {
    let start = batch.items.len();
    each_element(&mut lexer, |element| {
        each_field(element, |Field { name, mut value }| match name {
            b"msg_len" => batch.items.push(AsyncItem::message(value.integer().unwrap_or(UNKNOWN))),
            b"msg_hdr" => {
                each_field(&mut value, |Field { name, value }| {
                    if name == b"msg_control" {
                        control(value, batch);
                    }
                });
            }
            _ => {}
        })
    });
    items_from(start, batch)
}

/// Parses `[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[3]}]`. Versions before 4.12
/// print a single one without the outer brackets, and its data as `{3}` without a name.
fn control(mut lexer: Lexer<'_>, batch: &mut Batch) {
    if lexer.rest().starts_with(b"{cmsg_len") {
        control_message(&mut lexer, batch);
    } else {
        each_element(&mut lexer, |element| control_message(element, batch));
    }
}

fn control_message(lexer: &mut Lexer<'_>, batch: &mut Batch) -> bool {
    let mut rights = false;
    each_field(lexer, |Field { name, mut value }| match name {
        b"cmsg_type" => rights = value.word() == b"SCM_RIGHTS",
        b"cmsg_data" | b"" if rights => {
            each_element(&mut value, |fd| {
                let (number, _) = descriptor(fd, batch);
                batch.items.push(AsyncItem::passed(number));
                number != NO_FD
            });
        }
        _ => {}
    })
}

fn items_from(start: usize, batch: &Batch) -> Items {
    Items { start: start as u32, count: (batch.items.len() - start) as u32 }
}

/// Returns the flags of clone (`..., flags=...`), of clone3 and openat2 (`{flags=...}`), or of unshare
/// (without a name). Apart from file names in brackets, these calls show no string before their flags.
pub fn named_flags(mut lexer: Lexer<'_>) -> u64 {
    if let Some(at) = memmem::find(lexer.rest(), b"flags=") {
        lexer.at += at + b"flags=".len();
        return flags(&mut lexer);
    }
    // With `-e verbose=none`, clone3 shows only the address of its structure and no flags.
    Some(flags(&mut lexer)).filter(|&flags| flags <= u64::from(u32::MAX)).unwrap_or(0)
}

/// Stores the new descriptor of a clone with `CLONE_PIDFD`: `parent_tid=[5]`, or `=> {pidfd=[5]}` for clone3.
pub fn pidfd(mut lexer: Lexer<'_>, raw: &mut RawCall, batch: &mut Batch) {
    if raw.flags & constants::CLONE_PIDFD == 0 {
        return;
    }
    for name in [&b"pidfd=["[..], b"parent_tid=["] {
        if let Some(at) = memmem::find(lexer.rest(), name) {
            lexer.at += at + name.len();
            (raw.fd, raw.fd_text) = descriptor(&mut lexer, batch);
            return;
        }
    }
}

/// Parses `["sh", "-c", "abc"...]` into NUL-separated bytes.
pub fn arguments(lexer: &mut Lexer<'_>, batch: &mut Batch) -> Text {
    if !lexer.eat(b'[') {
        return Text::NONE;
    }
    let start = batch.bytes.len();
    let mut first = true;
    while lexer.peek() == b'"' {
        let Some(Quoted { inner, escaped, .. }) = lexer.string() else { break };
        if !first {
            batch.bytes.push(0);
        }
        first = false;
        push_unescaped(inner, escaped, batch);
        if !lexer.eat(b',') {
            break;
        }
        lexer.skip_spaces();
    }
    // This skips `...` or elements that strace could not read, up to and including `]`.
    while lexer.skip_value() && lexer.eat(b',') {}
    lexer.eat(b']');
    Text { start: start as u32, length: (batch.bytes.len() - start) as u32 }
}

/// Parses new descriptors such as `[3, 4]` or `[3<pipe:[1]>, 4<pipe:[1]>]`. With `-s 0` or `-s 1` strace does
/// not show them.
pub fn new_pair(mut lexer: Lexer<'_>, raw: &mut RawCall, batch: &mut Batch) {
    if !lexer.eat(b'[') {
        return;
    }
    (raw.fd, raw.fd_text) = descriptor(&mut lexer, batch);
    if lexer.eat(b',') {
        lexer.skip_spaces();
        (raw.fd2, raw.fd2_text) = descriptor(&mut lexer, batch);
    }
    if lexer.peek() == b'.' {
        batch.lose(LossKind::CutDescriptors);
    }
}

/// Parses `{st_mode=S_IFREG|0644, st_size=46599, ...}`, and the fields of statx, which begin with `stx_`.
pub fn stat(mut lexer: Lexer<'_>, raw: &mut RawCall) {
    each_field(&mut lexer, |Field { name, mut value }| match name {
        b"st_mode" | b"stx_mode" => raw.stat_type = file_type(&mut value),
        b"st_size" | b"stx_size" => raw.stat_size = value.integer().unwrap_or(UNKNOWN),
        _ => {}
    });
}

/// Parses a file type such as `S_IFREG|0644`, or its number.
fn file_type(lexer: &mut Lexer<'_>) -> u8 {
    if lexer.peek().is_ascii_digit() {
        return lexer.integer().map_or(0, |mode| (mode >> 12 & 0o17) as u8);
    }
    constants::stat_type(lexer.word()).unwrap_or(0)
}

/// Parses the control blocks of io_submit: `[{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3,
/// aio_nbytes=4096, ...}]`; in old versions `[{data=0, pread, fildes=3, nbytes=4096, offset=0}]`.
pub fn control_blocks(mut lexer: Lexer<'_>, batch: &mut Batch) -> Items {
    let start = batch.items.len() as u32;
    each_element(&mut lexer, |element| {
        let mut item =
            AsyncItem { key: 0, fd: NO_FD, write: false, bytes: UNKNOWN, offset: UNKNOWN, call: None };
        let closed = each_field(element, |Field { name, mut value }| {
            let name = name.strip_prefix(b"aio_").unwrap_or(name);
            match name {
                b"data" => item.key = value.integer().unwrap_or(0) as u64,
                b"fildes" => item.fd = value.integer().map_or(NO_FD, |fd| fd as i32),
                b"nbytes" => item.bytes = value.integer().unwrap_or(UNKNOWN),
                b"offset" => item.offset = value.integer().unwrap_or(UNKNOWN),
                b"buf" if value.peek() == b'[' => item.bytes = vector(value).unwrap_or(UNKNOWN),
                b"lio_opcode" | b"" => item.write |= is_write(value.word()),
                _ => {}
            }
        });
        batch.items.push(item);
        closed
    });
    Items { start, count: batch.items.len() as u32 - start }
}

fn is_write(operation: &[u8]) -> bool {
    matches!(operation, b"IOCB_CMD_PWRITE" | b"IOCB_CMD_PWRITEV" | b"pwrite" | b"pwritev" | b"1" | b"8")
}

/// Parses the events of io_getevents: `[{data=0, obj=0x7ff, res=4096, res2=0}]`.
pub fn completions(mut lexer: Lexer<'_>, batch: &mut Batch) -> Items {
    let start = batch.items.len() as u32;
    each_element(&mut lexer, |element| {
        let mut item =
            AsyncItem { key: 0, fd: NO_FD, write: false, bytes: UNKNOWN, offset: UNKNOWN, call: None };
        let closed = each_field(element, |Field { name, mut value }| match name {
            b"data" => item.key = value.integer().unwrap_or(0) as u64,
            b"res" => item.bytes = value.integer().unwrap_or(UNKNOWN),
            _ => {}
        });
        batch.items.push(item);
        closed
    });
    Items { start, count: batch.items.len() as u32 - start }
}
