//! Reads named arguments into the fields that a call's roles name.

use super::names::is_argument;
use crate::strace::{number, OTHER_COMMAND};
use iodock_event::{
    constants, Action, Batch, CallSpec, LossKind, RawCall, Role, Text, AT_FDCWD, NO_FD, UNKNOWN,
    UNSHOWN_OFFSET,
};

/// The largest number of arguments of any call.
const MOST: usize = 6;
/// Unit in which mmap2 counts offsets, bytes.
const MAP_UNIT: i64 = 4096;

/// The arguments that a line shows. perf leaves out arguments that are 0.
#[derive(Clone, Copy, Default)]
struct Shown<'a> {
    pairs: [(&'a [u8], &'a [u8]); MOST],
    count: usize,
}

impl<'a> Shown<'a> {
    /// Parses `fd: 3</a>, buf: 0x7f, count: 10`. Returns `None` if the text is not a list of arguments.
    fn read(text: &'a [u8]) -> Option<Shown<'a>> {
        let mut shown = Shown::default();
        let mut rest = text;
        while !rest.is_empty() {
            let name = name_length(rest)?;
            let value = &rest[name + 2..];
            let end = value_length(value);
            if shown.count == MOST {
                return None;
            }
            shown.pairs[shown.count] = (&rest[..name], &value[..end]);
            shown.count += 1;
            rest = value[end..].strip_prefix(b", ").unwrap_or_default();
        }
        Some(shown)
    }

    /// Returns the value of the first of `names` that the line shows.
    fn value(&self, names: &[&[u8]]) -> Option<&'a [u8]> {
        let pairs = &self.pairs[..self.count];
        names.iter().find_map(|name| pairs.iter().find(|pair| pair.0 == *name).map(|pair| pair.1))
    }
}

/// Returns the length of the name before `: `.
fn name_length(text: &[u8]) -> Option<usize> {
    let length = text.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    (length > 0 && text[length..].starts_with(b": ")).then_some(length)
}

/// Returns whether `rest` is empty or begins with another argument.
fn ends(rest: &[u8]) -> bool {
    rest.is_empty() || rest.strip_prefix(b", ").is_some_and(|rest| name_length(rest).is_some())
}

/// Returns the length of a value. Names in it are not escaped, so only the text that follows marks its end.
fn value_length(value: &[u8]) -> usize {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let close = match (value.first(), value.get(digits)) {
        (Some(b'"'), _) => Some(b'"'),
        (Some(b'{' | b'['), _) => return structure_length(value),
        (_, Some(b'<')) if digits > 0 => Some(b'>'),
        _ => None,
    };
    let from = match close {
        Some(_) => digits + 1,
        None => 0,
    };
    // A string that perf shortened looks like `"abc"...`.
    let closed = |at: usize| match close {
        Some(byte) => value[from..at].strip_suffix(b"...").unwrap_or(&value[from..at]).ends_with(&[byte]),
        None => true,
    };
    (from..=value.len()).find(|&at| ends(&value[at..]) && closed(at)).unwrap_or(value.len())
}

/// Returns the length of a structure such as `{ .family: INET, port: 53 }`, including the brackets.
fn structure_length(value: &[u8]) -> usize {
    let mut depth = 0usize;
    for (at, byte) in value.iter().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    value.len()
}

/// Fills `raw`. Returns `None` if the arguments cannot be parsed, and `Some(false)` if perf shows only the
/// address of a name.
pub fn fill(text: &[u8], raw: &mut RawCall, batch: &mut Batch) -> Option<bool> {
    let shown = Shown::read(text)?;
    let spec = raw.call.spec();
    let strange = shown.pairs[..shown.count].iter().any(|(name, _)| !is_argument(name));
    let mut named = true;
    for &role in spec.roles {
        let value = shown.value(names_of(role, spec.action));
        // If the name of an argument is damaged, its value could belong to any role. A missing argument is
        // then not certain to be 0.
        if strange && value.is_none() && !names_of(role, spec.action).is_empty() {
            return None;
        }
        if value.is_some_and(|value| !is_readable(role, value, spec)) {
            batch.losses.add(LossKind::UnreadableArguments, 1);
        }
        named &= fill_one(role, &shown, spec, raw, batch);
    }
    Some(named)
}

/// Returns whether the value has the kind that the role needs.
fn is_readable(role: Role, value: &[u8], spec: &CallSpec) -> bool {
    match role {
        Role::Fd | Role::Fd2 | Role::DirFd | Role::DirFd2 => {
            let name = value.iter().position(|&byte| byte == b'<').unwrap_or(value.len());
            matches!(value, b"CWD" | b"AT_FDCWD") || number(&value[..name]).is_some()
        }
        Role::Size => number(value).is_some(),
        Role::Flags if spec.action == Action::Open => value
            .split(|&byte| byte == b'|')
            .all(|word| number(word).is_some() || constants::is_open_flag(word)),
        _ => true,
    }
}

/// Sets the field for one argument. Returns `false` if perf does not show the name.
fn fill_one(role: Role, shown: &Shown<'_>, spec: &CallSpec, raw: &mut RawCall, batch: &mut Batch) -> bool {
    let action = spec.action;
    let value = shown.value(names_of(role, action));
    match role {
        Role::Fd | Role::DirFd => (raw.fd, raw.fd_text) = descriptor(value, batch),
        Role::Fd2 | Role::DirFd2 => (raw.fd2, raw.fd2_text) = descriptor(value, batch),
        Role::Path => return path(value, &mut raw.path, batch),
        Role::Path2 => return path(value, &mut raw.path2, batch),
        Role::Size => raw.requested = integer(value),
        Role::Offset if shown.value(&[b"pgoff"]).is_some() => {
            raw.offset = integer(shown.value(&[b"pgoff"])).saturating_mul(MAP_UNIT);
        }
        Role::Offset => raw.offset = integer(value),
        Role::OffsetPointer => raw.offset = value.map_or(UNKNOWN, |_| UNSHOWN_OFFSET),
        Role::OffsetPointer2 => raw.offset2 = value.map_or(UNKNOWN, |_| UNSHOWN_OFFSET),
        Role::Argument => raw.argument = value.map_or(0, |value| flags(value, action) as i64),
        Role::Flags if matches!(action, Action::Fcntl | Action::Ioctl) => {
            raw.flags = value.map_or(0, |value| command(value, action));
        }
        Role::Flags => raw.flags = value.map_or(0, |value| flags(value, action)),
        Role::CloneFlags | Role::HowFlags => raw.flags = value.map_or(0, |value| inner_flags(value, action)),
        _ => {}
    }
    true
}

/// Returns the kernel's names of the argument (SYSCALL_DEFINE in its sources), which perf prints.
fn names_of(role: Role, action: Action) -> &'static [&'static [u8]] {
    match (role, action) {
        (Role::Fd, _) => &[
            b"pidfd",
            b"epfd",
            b"fanotify_fd",
            b"fd",
            b"fildes",
            b"oldfd",
            b"in_fd",
            b"fd_in",
            b"fdin",
            b"ufd",
            b"mqdes",
        ],
        (Role::Fd2, _) => &[b"newfd", b"out_fd", b"fd_out", b"fdout"],
        (Role::DirFd, Action::TwoNames) => &[b"olddfd"],
        (Role::DirFd, _) => &[b"dfd", b"newdfd", b"from_dfd", b"fd"],
        (Role::DirFd2, _) => &[b"newdfd"],
        (Role::Path, Action::Symlink) => &[b"newname"],
        (Role::Path, _) => &[
            b"filename",
            b"pathname",
            b"path",
            b"oldname",
            b"from_pathname",
            b"dir_name",
            b"uname",
            b"special",
            b"specialfile",
            b"new_root",
            b"library",
            b"name",
        ],
        (Role::Path2, _) => &[b"newname"],
        (Role::Size, _) => &[b"count", b"len", b"size"],
        (Role::Offset, _) => &[b"pos", b"pos_l", b"off", b"offset"],
        (Role::OffsetPointer, _) => &[b"offset", b"off_in"],
        (Role::OffsetPointer2, _) => &[b"off_out"],
        (Role::Argument, Action::Fcntl) => &[b"arg"],
        (Role::Argument, Action::Seek) => &[b"whence"],
        (Role::Argument, Action::Truncate) => &[b"length"],
        (Role::Argument, Action::CloseRange) => &[b"max_fd"],
        (Role::Argument, Action::NewFromProcess) => &[b"fd"],
        (Role::Argument, _) => &[b"pid"],
        (Role::Flags, Action::Fcntl | Action::Ioctl) => &[b"cmd"],
        (Role::Flags, Action::NewSocket | Action::NewSocketPair) => &[b"type"],
        (Role::Flags, _) => &[b"flags", b"flag"],
        (Role::CloneFlags, _) => &[b"clone_flags", b"unshare_flags", b"uargs"],
        (Role::HowFlags, _) => &[b"how"],
        _ => &[],
    }
}

/// Parses a descriptor such as `3`, `3</a>` or `CWD`. perf leaves out descriptor 0.
fn descriptor(value: Option<&[u8]>, batch: &mut Batch) -> (i32, Text) {
    let Some(value) = value else { return (0, Text::NONE) };
    if matches!(value, b"CWD" | b"AT_FDCWD") {
        return (AT_FDCWD, Text::NONE);
    }
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
    let fd = number(&value[..digits]).and_then(|fd| i32::try_from(fd).ok()).unwrap_or(NO_FD);
    let name = value[digits..].strip_prefix(b"<").and_then(|name| name.strip_suffix(b">"));
    (fd, name.filter(|name| !name.is_empty()).map_or(Text::NONE, |name| batch.push_text(name)))
}

/// Parses a name in quotes or, as old versions print it, without quotes. Returns `false` if perf shows only
/// its address.
fn path(value: Option<&[u8]>, path: &mut Text, batch: &mut Batch) -> bool {
    let Some(value) = value else { return true };
    if let Some(inner) = value.strip_prefix(b"\"") {
        let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
        *path = batch.push_text(inner);
        return true;
    }
    if value.starts_with(b"0x") && number(value).is_some() {
        return false;
    }
    *path = batch.push_text(value);
    true
}

fn integer(value: Option<&[u8]>) -> i64 {
    value.map_or(0, |value| number(value).unwrap_or(UNKNOWN))
}

/// Parses flags such as `RDONLY|CLOEXEC|0x8`. perf prints names without their common prefix, or with it
/// (`trace.show_prefix`).
fn flags(value: &[u8], action: Action) -> u64 {
    let beginning: &[&[u8]] = match action {
        Action::Map => &[b"MAP_"],
        Action::Clone | Action::Unshare => &[b"CLONE_"],
        Action::Seek => &[b"SEEK_"],
        Action::Fcntl => &[b"O_", b"FD_"],
        Action::NewSocket | Action::NewSocketPair | Action::NewAccepted => &[b"SOCK_"],
        Action::Stat | Action::None | Action::TwoNames => &[b"AT_"],
        Action::PositionedRead | Action::PositionedWrite => &[b"RWF_"],
        Action::CloseRange => &[b"CLOSE_RANGE_"],
        _ => &[b"O_"],
    };
    let one = |word: &[u8]| {
        number(word).map(|number| number as u64).or_else(|| named(word, beginning)).unwrap_or(0)
    };
    value.split(|&byte| byte == b'|').map(one).fold(0, |sum, flag| sum | flag)
}

fn named(word: &[u8], beginnings: &[&[u8]]) -> Option<u64> {
    let with = |beginning: &&[u8]| constants::value(&[*beginning, word].concat());
    constants::value(word).or_else(|| beginnings.iter().find_map(with))
}

/// Parses an fcntl command or ioctl request.
fn command(value: &[u8], action: Action) -> u64 {
    let beginning: &[&[u8]] = if action == Action::Fcntl { &[b"F_"] } else { &[] };
    number(value).map(|number| number as u64).or_else(|| named(value, beginning)).unwrap_or(OTHER_COMMAND)
}

/// Parses flags such as `VM|FS`, or flags in a structure: `{ .flags: RDONLY, ...}`, `{.flags =
/// (__u64)4001536,}`. If perf shows only an address, the flags are unknown.
fn inner_flags(value: &[u8], action: Action) -> u64 {
    if value.starts_with(b"0x") {
        return if action == Action::Unshare { flags(value, action) } else { 0 };
    }
    let Some(at) = memchr::memmem::find(value, b".flags") else { return flags(value, action) };
    let rest = value[at + b".flags".len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"=")).unwrap_or(rest).trim_ascii_start();
    let rest = match rest.strip_prefix(b"(") {
        Some(typed) => &typed[memchr::memchr(b')', typed).map_or(0, |close| close + 1)..],
        None => rest,
    };
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b' ')).unwrap_or(rest.len());
    let action = if action == Action::Clone { action } else { Action::Open };
    flags(&rest[..end], action)
}
