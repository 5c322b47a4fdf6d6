//! Reads the arguments between a call's brackets into the fields that their roles name.

use super::values::{
    closing_buffer_quote, closing_quote, fcntl_command, flags, integer, open_flags, same, unescape,
};
use iodock_event::{
    constants, Action, Batch, CallSpec, LossKind, RawCall, Role, Text, AT_FDCWD, UNKNOWN, UNSHOWN_OFFSET,
};

/// Value of AT_FDCWD on Solaris, which old versions print as a number.
const SOLARIS_AT_FDCWD: i64 = -3_041_965;

/// Fills `raw` from the text between the brackets. Returns `false` if the text cannot be split into
/// arguments.
pub fn arguments(text: &[u8], spec: &CallSpec, raw: &mut RawCall, batch: &mut Batch) -> bool {
    let mut at = 0;
    for &role in spec.roles {
        if at >= text.len() {
            break;
        }
        let Some(end) = value_end(text, at, spec.action, role) else { return false };
        if !is_readable(role, &text[at..end], spec) {
            batch.losses.add(LossKind::UnreadableArguments, 1);
        }
        fill(role, &text[at..end], spec, raw, batch);
        at = end;
        // This skips the comma and the space after it.
        if at < text.len() {
            if text[at] != b',' {
                return false;
            }
            at += 1 + usize::from(text.get(at + 1) == Some(&b' '));
        }
    }
    if spec.action == Action::Fcntl && raw.flags == constants::F_SETFL && raw.argument > 0 {
        raw.argument = open_flags(raw.argument) as i64;
    }
    true
}

/// Returns the end of the value that begins at `at`: a comma, or the end of the text.
#[inline]
fn value_end(text: &[u8], at: usize, action: Action, role: Role) -> Option<usize> {
    if text[at] == b'"' {
        let close = match (role, action) {
            (
                Role::Skip,
                Action::Read
                | Action::Write
                | Action::PositionedRead
                | Action::PositionedWrite
                | Action::Receive
                | Action::Send,
            ) => closing_buffer_quote(text, at + 1)?,
            _ => closing_quote(text, at + 1)?,
        };
        let cut = text[close + 1..].starts_with(b"..");
        return Some(close + 1 + if cut { 2 } else { 0 });
    }
    if text[at] == b'[' {
        let close = memchr::memchr(b']', &text[at..])?;
        return Some(at + close + 1);
    }
    Some(memchr::memchr(b',', &text[at..]).map_or(text.len(), |comma| at + comma))
}

/// Returns whether the value has the kind that the role needs.
#[inline]
fn is_readable(role: Role, value: &[u8], spec: &CallSpec) -> bool {
    let is_number = |text: &[u8]| integer(text).is_some_and(|(_, length)| length == text.len());
    match role {
        Role::Fd | Role::Fd2 | Role::DirFd | Role::DirFd2 => is_number(value) || value == b"AT_FDCWD",
        Role::Size => is_number(value) || !value.first().is_some_and(u8::is_ascii_alphanumeric),
        Role::Flags if spec.action == Action::Open => {
            value.split(|&byte| byte == b'|').all(|word| is_number(word) || constants::is_open_flag(word))
        }
        _ => true,
    }
}

#[inline]
fn fill(role: Role, value: &[u8], spec: &CallSpec, raw: &mut RawCall, batch: &mut Batch) {
    match role {
        Role::Fd | Role::DirFd => set_descriptor(&mut raw.fd, value),
        Role::Fd2 | Role::DirFd2 => set_descriptor(&mut raw.fd2, value),
        Role::Path => {
            raw.path = name(value, batch);
            raw.path_cut |= value.ends_with(b"..") && value.len() > 3;
        }
        Role::Path2 => {
            raw.path2 = name(value, batch);
            raw.path_cut |= value.ends_with(b"..") && value.len() > 3;
        }
        Role::Size => set_number(&mut raw.requested, value),
        Role::Offset => set_number(&mut raw.offset, value),
        Role::OffsetPointer => raw.offset = pointed_offset(value),
        Role::OffsetPointer2 => raw.offset2 = pointed_offset(value),
        Role::Flags => {
            raw.flags = match spec.action {
                Action::Fcntl => fcntl_command(value),
                Action::Open => flags(value, open_flags),
                _ => flags(value, same),
            }
        }
        Role::Argument => raw.argument = argument(value),
        Role::NewPair => new_pair(value, raw),
        _ => {}
    }
}

#[inline]
fn set_descriptor(field: &mut i32, value: &[u8]) {
    match integer(value) {
        Some((SOLARIS_AT_FDCWD, _)) => *field = AT_FDCWD,
        Some((number, _)) => *field = i32::try_from(number).unwrap_or(-1),
        None if value == b"AT_FDCWD" => *field = AT_FDCWD,
        None => {}
    }
}

#[inline]
fn set_number(field: &mut i64, value: &[u8]) {
    if let Some((number, _)) = integer(value) {
        *field = number;
    }
}

/// Returns an offset behind a pointer. truss shows only its address, and 0 if there is none.
fn pointed_offset(value: &[u8]) -> i64 {
    match integer(value) {
        Some((0, _)) | None => UNKNOWN,
        Some(_) => UNSHOWN_OFFSET,
    }
}

/// Parses a number, or a name such as that of a whence or FD_CLOEXEC.
fn argument(value: &[u8]) -> i64 {
    match integer(value) {
        Some((number, length)) if length == value.len() => number,
        _ => flags(value, same) as i64,
    }
}

/// Returns the bytes of a name; empty if truss could only print its address.
fn name(value: &[u8], batch: &mut Batch) -> Text {
    let Some(inner) = value.strip_prefix(b"\"") else { return Text::NONE };
    let inner = inner.strip_suffix(b"\"..").or_else(|| inner.strip_suffix(b"\"")).unwrap_or(inner);
    let start = batch.bytes.len();
    unescape(inner, &mut batch.bytes);
    Text { start: start as u32, length: (batch.bytes.len() - start) as u32 }
}

/// Parses the new descriptors of pipe, which newer versions print as `[3, 4]`.
fn new_pair(value: &[u8], raw: &mut RawCall) {
    let inner = value.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]"));
    let Some(comma) = inner.and_then(|inner| memchr::memchr(b',', inner)) else { return };
    let inner = inner.unwrap_or_default();
    set_descriptor(&mut raw.fd, inner[..comma].trim_ascii());
    set_descriptor(&mut raw.fd2, inner[comma + 1..].trim_ascii());
}
