//! Reads a call's arguments into the fields of a record that their roles name.

use super::lexer::{Lexer, Quoted};
use super::structures;
use super::values::{descriptor, flags, open_flags, push_unescaped, whole_value};
use iodock_event::{constants, Action, Batch, CallId, LossKind, RawCall, Role, Text, NO_FD, UNSHOWN_OFFSET};

/// Value for an fcntl or ioctl command that tracking does not use. It must not be 0, because that is
/// `F_DUPFD`.
pub const OTHER_COMMAND: u64 = u64::MAX;

/// Reads the arguments after the opening bracket and leaves `lexer` at the closing one. Returns `false` if
/// the text ends before it. In that case the arguments up to the end are filled in.
#[inline]
pub fn read(lexer: &mut Lexer<'_>, raw: &mut RawCall, batch: &mut Batch) -> bool {
    let spec = raw.call.spec();
    if lexer.peek() == b')' {
        return true;
    }
    for &role in spec.roles {
        read_one(lexer, role, spec.action, raw, batch);
        if !lexer.next_argument() {
            return lexer.peek() == b')';
        }
    }
    while lexer.next_argument() {}
    lexer.peek() == b')'
}

#[inline]
fn read_one(lexer: &mut Lexer<'_>, role: Role, action: Action, raw: &mut RawCall, batch: &mut Batch) {
    match role {
        Role::Skip | Role::Ring => {}
        Role::RingFlags if flags(lexer) & constants::IORING_ENTER_REGISTERED_RING == 0 => {}
        Role::RingFlags => (raw.fd, raw.fd_text) = (NO_FD, Text::NONE),
        Role::Fd | Role::DirFd => (raw.fd, raw.fd_text) = descriptor(lexer, batch),
        Role::Fd2 | Role::DirFd2 => (raw.fd2, raw.fd2_text) = descriptor(lexer, batch),
        Role::Path => path(lexer, &mut raw.path, &mut raw.path_cut, batch),
        Role::Path2 => path(lexer, &mut raw.path2, &mut raw.path_cut, batch),
        Role::Size => {
            set(&mut raw.requested, lexer.integer());
            whole_value(lexer, batch);
        }
        Role::Offset if action == Action::Map => set(&mut raw.offset, map_offset(lexer, raw.call)),
        Role::Offset => set(&mut raw.offset, lexer.integer()),
        Role::Argument => set(&mut raw.argument, number_or_names(lexer)),
        Role::Flags if matches!(action, Action::Fcntl | Action::Ioctl) => raw.flags = command(lexer),
        Role::Flags if action == Action::Open => raw.flags = open_flags(lexer, batch),
        Role::Flags => raw.flags = flags(lexer),
        Role::SeekPointer => set(&mut raw.offset, pointed(lexer)),
        Role::OffsetPointer => set(&mut raw.offset, pointed_offset(lexer)),
        Role::OffsetPointer2 => set(&mut raw.offset2, pointed_offset(lexer)),
        Role::Vector => set(&mut raw.requested, structures::vector(*lexer)),
        Role::Message => structures::message(*lexer, raw, batch),
        Role::Messages => raw.items = structures::messages(*lexer, batch),
        Role::HowFlags => raw.flags = structures::named_flags(*lexer),
        Role::CloneFlags => {
            raw.flags = structures::named_flags(*lexer);
            structures::pidfd(*lexer, raw, batch);
        }
        Role::Arguments => raw.argv = structures::arguments(lexer, batch),
        Role::NewPair => structures::new_pair(*lexer, raw, batch),
        Role::StatBuffer => structures::stat(*lexer, raw),
        Role::ControlBlocks => raw.items = structures::control_blocks(*lexer, batch),
        Role::Completions => raw.items = structures::completions(*lexer, batch),
    }
}

#[inline]
fn set(field: &mut i64, value: Option<i64>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn path(lexer: &mut Lexer<'_>, path: &mut Text, cut: &mut bool, batch: &mut Batch) {
    if lexer.peek() != b'"' {
        return unquoted(lexer, batch);
    }
    if let Some(Quoted { inner, escaped, cut: this_cut }) = lexer.string() {
        *path = push_unescaped(inner, escaped, batch);
        *cut |= this_cut;
    }
}

/// Handles an argument without quotation marks: an address, NULL, or a name whose quotation marks another
/// tool replaced.
#[cold]
fn unquoted(lexer: &Lexer<'_>, batch: &mut Batch) {
    if matches!(lexer.peek(), b'&' | 0x80..) {
        batch.losses.add(LossKind::GarbledNames, 1);
    }
}

/// Unit in which mmap2 counts offsets on every machine (mmap2(2)), bytes.
const MAP_UNIT: i64 = 4096;

/// Returns the offset of a map. strace before 4.8 printed mmap2's offset in pages, as the kernel takes it. An
/// offset in bytes is a multiple of the page size, which shows the difference.
fn map_offset(lexer: &mut Lexer<'_>, call: CallId) -> Option<i64> {
    let offset = lexer.integer()?;
    let in_pages = offset % MAP_UNIT != 0 && call.spec().name == "mmap2";
    Some(if in_pages { offset.wrapping_mul(MAP_UNIT) } else { offset })
}

/// Parses the `n` of `[n]` or `[n] => [m]`.
fn pointed(lexer: &mut Lexer<'_>) -> Option<i64> {
    if lexer.eat(b'[') {
        let number = lexer.integer();
        // `next_argument` would stop at the closing bracket, so the lexer moves past it.
        while !lexer.at_end() && !lexer.eat(b']') {
            lexer.at += 1;
        }
        return number;
    }
    None
}

/// Parses an offset behind a pointer. With `-e verbose=none` strace prints its address, so there is an offset
/// whose value is not known. `NULL` means that there is no offset.
fn pointed_offset(lexer: &mut Lexer<'_>) -> Option<i64> {
    pointed(lexer).or_else(|| lexer.peek().is_ascii_digit().then_some(UNSHOWN_OFFSET))
}

#[inline]
fn number_or_names(lexer: &mut Lexer<'_>) -> Option<i64> {
    if matches!(lexer.peek(), b'0'..=b'9' | b'-') {
        lexer.integer()
    } else {
        Some(flags(lexer) as i64)
    }
}

/// Parses an fcntl command or ioctl request.
fn command(lexer: &mut Lexer<'_>) -> u64 {
    if lexer.peek().is_ascii_digit() {
        return lexer.integer().map_or(OTHER_COMMAND, |number| number as u64);
    }
    constants::value(lexer.word()).unwrap_or(OTHER_COMMAND)
}
