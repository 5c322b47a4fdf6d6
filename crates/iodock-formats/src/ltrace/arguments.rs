//! Reads the arguments between a call's brackets into the fields that their roles name.

use crate::strace::number;
use crate::Chunk;
use iodock_event::{
    constants, Action, Batch, CallSpec, LossKind, RawCall, Role, Text, NO_FD, UNKNOWN, UNSHOWN_OFFSET,
};
use std::sync::Arc;

/// The largest number of arguments of any call.
const MOST: usize = 6;
/// Number of arguments that ltrace prints for calls that its configuration does not describe.
const OF_UNDESCRIBED: usize = 4;
/// Unit in which mmap2 counts offsets, bytes.
const MAP_UNIT: i64 = 4096;

/// Information that the printed arguments do not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unshown {
    /// Whether ltrace printed only the address of a file name.
    pub name: bool,
    /// Whether a descriptor, size or offset after the fourth argument is missing.
    pub argument: bool,
}

impl Unshown {
    pub fn count<N>(self, file: &Arc<str>, line: u64, text: &[u8], chunk: &mut Chunk<N>) {
        if self.name {
            chunk.lose_at(LossKind::UnshownNames, file, line, text);
        }
        if self.argument {
            chunk.lose_at(LossKind::UnshownArguments, file, line, text);
        }
    }
}

/// Fills `raw` from the text between the brackets. Returns `None` if the text cannot be split into arguments.
pub fn fill(text: &[u8], raw: &mut RawCall, batch: &mut Batch) -> Option<Unshown> {
    let mut unreadable = 0;
    let unshown = fill_counting(text, raw, batch, &mut unreadable);
    batch.losses.add(LossKind::UnreadableArguments, unreadable);
    unshown
}

/// Fills `raw` like [`fill`], but does not count missing arguments, because a later line may contain them.
pub fn fill_begun(text: &[u8], raw: &mut RawCall, batch: &mut Batch) -> Option<()> {
    fill_counting(text, raw, batch, &mut 0).map(|_| ())
}

fn fill_counting(text: &[u8], raw: &mut RawCall, batch: &mut Batch, unreadable: &mut u64) -> Option<Unshown> {
    let spec = raw.call.spec();
    let mut values = [&b""[..]; MOST];
    let count = split(text, has_one_text(spec), &mut values)?;
    let mut unshown = Unshown::default();
    for (index, &role) in roles(spec).iter().enumerate() {
        let Some(value) = values[..count].get(index) else {
            let missed = is_missed(role, raw);
            unshown.argument |= missed && count >= OF_UNDESCRIBED;
            // ltrace always prints this many arguments, so others must have been lost.
            *unreadable += u64::from(missed && count < OF_UNDESCRIBED);
            continue;
        };
        *unreadable += u64::from(!is_readable(role, value));
        unshown.name |= !fill_one(role, value, spec, raw, batch);
    }
    Some(unshown)
}

/// Returns the roles of the arguments in the order in which the kernel takes them.
fn roles(spec: &CallSpec) -> &'static [Role] {
    match spec.name {
        // The offset of _llseek is passed in two halves, followed by the address of the result.
        "_llseek" => &[Role::Fd],
        _ => spec.registers(),
    }
}

/// Returns whether it matters that an argument is missing. For example, an anonymous map needs no descriptor.
fn is_missed(role: Role, raw: &RawCall) -> bool {
    let of_memory = raw.call.spec().action == Action::Map && raw.flags & constants::MAP_ANONYMOUS != 0;
    match role {
        Role::Fd | Role::Fd2 | Role::Size | Role::Offset => !of_memory,
        Role::Path | Role::Path2 | Role::DirFd | Role::DirFd2 => true,
        _ => false,
    }
}

/// Returns whether the call has at most one string. The last quotation mark then ends it, whatever the string
/// contains.
fn has_one_text(spec: &CallSpec) -> bool {
    match spec.action {
        Action::TwoNames | Action::Symlink | Action::Readlink => false,
        Action::None => !spec.family.contains("xattr") && spec.family != "mount",
        _ => true,
    }
}

/// Splits the text at the commas between arguments. Returns `None` if one has a form that ltrace does not
/// print.
fn split<'a>(text: &'a [u8], one_text: bool, values: &mut [&'a [u8]; MOST]) -> Option<usize> {
    let (mut rest, mut count) = (text, 0);
    while !rest.is_empty() && count < MOST {
        let end = value_length(rest, one_text)?;
        values[count] = &rest[..end];
        count += 1;
        rest = &rest[end..];
        if !rest.is_empty() {
            rest = rest.strip_prefix(b", ").filter(|rest| !rest.is_empty())?;
        }
    }
    Some(count)
}

fn value_length(text: &[u8], one_text: bool) -> Option<usize> {
    let end = match text[0] {
        b'"' => return text_length(text, one_text),
        b'{' | b'[' => structure_length(text)?,
        _ => memchr::memmem::find(text, b", ").unwrap_or(text.len()),
    };
    // Brackets outside of strings show that two lines were merged.
    let is_whole = !text[..end].iter().any(|byte| matches!(byte, b'(' | b')' | b'=' | b'"'));
    (is_whole && end > 0).then_some(end)
}

/// Returns the position after the closing quotation mark, and after the `...` of a shortened string.
fn text_length(text: &[u8], one_text: bool) -> Option<usize> {
    let closed = |quote: usize| {
        let end = quote + 1 + if text[quote + 1..].starts_with(b"...") { 3 } else { 0 };
        (end == text.len() || text[end..].starts_with(b", ")).then_some(end)
    };
    let quotes = |at: usize| closed(at + 1);
    if one_text {
        memchr::memrchr_iter(b'"', &text[1..]).find_map(quotes)
    } else {
        memchr::memchr_iter(b'"', &text[1..]).find_map(quotes)
    }
}

/// Returns the length of a structure such as `{ 1, 2 }`, including the brackets.
fn structure_length(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Returns whether the value has the kind that the role needs.
fn is_readable(role: Role, value: &[u8]) -> bool {
    match role {
        Role::Fd | Role::Fd2 | Role::DirFd | Role::DirFd2 => descriptor(value).is_some(),
        Role::Size | Role::Flags | Role::Offset => number(value).is_some(),
        _ => true,
    }
}

/// Sets the field for one argument. Returns `false` if ltrace does not show the name.
fn fill_one(role: Role, value: &[u8], spec: &CallSpec, raw: &mut RawCall, batch: &mut Batch) -> bool {
    match role {
        Role::Fd | Role::DirFd => raw.fd = descriptor(value).unwrap_or(NO_FD),
        Role::Fd2 | Role::DirFd2 => raw.fd2 = descriptor(value).unwrap_or(NO_FD),
        Role::Path => return name(value, &mut raw.path, &mut raw.path_cut, batch),
        Role::Path2 => return name(value, &mut raw.path2, &mut raw.path_cut, batch),
        Role::Size => raw.requested = integer(value),
        Role::Offset if spec.name == "mmap2" => raw.offset = integer(value).saturating_mul(MAP_UNIT),
        Role::Offset => raw.offset = integer(value),
        Role::OffsetPointer => raw.offset = pointed(value),
        Role::OffsetPointer2 => raw.offset2 = pointed(value),
        Role::Argument => raw.argument = integer(value),
        Role::Flags => raw.flags = number(value).map_or(0, |flags| flags as u64),
        // clone3 takes its flags in memory, which ltrace does not show.
        Role::CloneFlags if spec.name != "clone3" => {
            raw.flags = number(value).map_or(0, |flags| flags as u64)
        }
        _ => {}
    }
    true
}

/// Parses a descriptor such as `3`, `AT_FDCWD` or `-100`. For calls without a description, ltrace shows the
/// register's value, such as 0xffffff9c.
fn descriptor(value: &[u8]) -> Option<i32> {
    if value == b"AT_FDCWD" {
        return Some(iodock_event::AT_FDCWD);
    }
    let number = number(value)?;
    let low = u32::try_from(number).map(|low| low as i32);
    low.or_else(|_| i32::try_from(number)).ok()
}

fn integer(value: &[u8]) -> i64 {
    number(value).unwrap_or(UNKNOWN)
}

/// Returns an offset behind a pointer. ltrace shows only its address, and `nil` or 0 if there is none.
fn pointed(value: &[u8]) -> i64 {
    match number(value) {
        Some(0) | None => UNKNOWN,
        Some(_) => UNSHOWN_OFFSET,
    }
}

/// Stores the bytes of a name. Returns `false` if ltrace shows only its address.
fn name(value: &[u8], name: &mut Text, cut: &mut bool, batch: &mut Batch) -> bool {
    let Some(inner) = value.strip_prefix(b"\"") else {
        // `nil` means that there is no name, as for utimensat on a descriptor.
        return number(value).is_none_or(|address| address == 0);
    };
    *cut |= inner.ends_with(b"\"...");
    let inner = inner.strip_suffix(b"\"...").or_else(|| inner.strip_suffix(b"\"")).unwrap_or(inner);
    let start = batch.bytes.len();
    unescape(inner, &mut batch.bytes);
    *name = Text { start: start as u32, length: (batch.bytes.len() - start) as u32 };
    true
}

/// Appends the string with its escapes resolved, according to print_char of ltrace.
fn unescape(text: &[u8], into: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        into.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let octal = rest.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        if octal > 0 {
            into.push(rest[..octal].iter().fold(0, |value: u8, digit| value << 3 | (digit - b'0')));
            rest = &rest[octal..];
            continue;
        }
        let Some((&letter, after)) = rest.split_first() else { break };
        into.push(match letter {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            other => other,
        });
        rest = after;
    }
    into.extend_from_slice(rest);
}
