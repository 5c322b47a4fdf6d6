//! Reads the arguments between a call's brackets into the fields that their roles name.

use crate::strace::{number, OTHER_COMMAND};
use iodock_event::{
    constants, Action, Batch, CallSpec, LossKind, RawCall, Role, Text, AT_FDCWD, NO_FD, UNKNOWN,
    UNSHOWN_OFFSET,
};

/// The largest number of arguments of any call.
const MOST: usize = 8;
/// Value of AT_FDCWD on FreeBSD.
const FREEBSD_AT_FDCWD: i64 = -100;

/// Fills `raw` from the text between the brackets. Returns `false` if the text cannot be split into
/// arguments.
pub fn fill(text: &[u8], raw: &mut RawCall, batch: &mut Batch) -> bool {
    let spec = raw.call.spec();
    let mut values = [&b""[..]; MOST];
    let Some(count) = split(text, spec, &mut values) else { return false };
    for (index, &role) in roles(spec).iter().enumerate().take(count) {
        if !is_readable(role, values[index], spec) {
            batch.losses.add(LossKind::UnreadableArguments, 1);
        }
        fill_one(role, values[index], spec, raw, batch);
    }
    // Before FreeBSD 10, calls take 64-bit lengths in an aligned pair of registers, so truss prints an unused
    // register before them.
    if spec.action == Action::Truncate && count == 3 {
        raw.argument = integer(values[2]);
    }
    true
}

/// Returns the roles of the arguments. FreeBSD has them in another order for some calls.
fn roles(spec: &CallSpec) -> &'static [Role] {
    match spec.name {
        "sendfile" => &[Role::Fd, Role::Fd2, Role::Offset, Role::Size],
        _ => spec.roles,
    }
}

/// Splits the text at the commas between arguments. Returns `None` if a string or structure is not closed.
fn split<'a>(text: &'a [u8], spec: &CallSpec, values: &mut [&'a [u8]; MOST]) -> Option<usize> {
    let (mut at, mut count) = (0, 0);
    while at < text.len() && count < MOST {
        let end = value_end(text, at, spec)?;
        values[count] = &text[at..end];
        count += 1;
        // This skips the comma.
        at = end + 1;
    }
    Some(count)
}

fn value_end(text: &[u8], at: usize, spec: &CallSpec) -> Option<usize> {
    match text[at] {
        b'"' if only_text(spec) => last_text_end(text, at),
        b'"' => text_end(text, at),
        b'{' | b'[' => structure_end(text, at),
        _ => {
            let comma = memchr::memchr(b',', &text[at..]).map_or(text.len(), |comma| at + comma);
            // An argument may have an explanation in braces: `0x40087468 { IOR 0x74('t'), 104, 8 }`.
            match memchr::memmem::find(&text[at..comma], b" { ") {
                Some(open) => structure_end(text, at + open + 1),
                None => Some(comma),
            }
        }
    }
}

/// Returns whether only one of the arguments is a string. The last quote then ends it, whatever the string
/// contains.
fn only_text(spec: &CallSpec) -> bool {
    let names = spec.roles.iter().filter(|role| matches!(role, Role::Path | Role::Path2)).count();
    match spec.action {
        Action::Read | Action::Write | Action::PositionedRead | Action::PositionedWrite => true,
        Action::Exec | Action::Readlink | Action::Symlink => false,
        _ => names == 1,
    }
}

/// Returns the position after the closing quote of the string at `at`, and after the `...` of a shortened
/// string.
fn text_end(text: &[u8], at: usize) -> Option<usize> {
    memchr::memchr_iter(b'"', &text[at + 1..]).find_map(|quote| closed(text, at + 1 + quote))
}

fn last_text_end(text: &[u8], at: usize) -> Option<usize> {
    memchr::memrchr_iter(b'"', &text[at + 1..]).find_map(|quote| closed(text, at + 1 + quote))
}

/// Returns the position after this quote and its `...`, if an argument can end there.
fn closed(text: &[u8], quote: usize) -> Option<usize> {
    let cut = text[quote + 1..].starts_with(b"...");
    let end = quote + 1 + if cut { 3 } else { 0 };
    matches!(text.get(end), None | Some(b',' | b' ' | b'}' | b']')).then_some(end)
}

/// Returns the position after the bracket that closes the bracket at `at`.
fn structure_end(text: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0usize, at);
    loop {
        match text.get(at)? {
            b'"' => {
                at = text_end(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns whether the value has the kind that the role needs. A structure or an address may replace any
/// value.
fn is_readable(role: Role, value: &[u8], spec: &CallSpec) -> bool {
    match role {
        Role::Fd | Role::Fd2 | Role::DirFd | Role::DirFd2 => value == b"AT_FDCWD" || number(value).is_some(),
        Role::Size => number(value).is_some() || !value.first().is_some_and(u8::is_ascii_alphanumeric),
        Role::Flags if spec.action == Action::Open => value
            .split(|&byte| byte == b'|')
            .all(|word| number(word).is_some() || constants::is_open_flag(word)),
        _ => true,
    }
}

fn fill_one(role: Role, value: &[u8], spec: &CallSpec, raw: &mut RawCall, batch: &mut Batch) {
    match role {
        Role::Fd | Role::DirFd => raw.fd = descriptor(value),
        Role::Fd2 | Role::DirFd2 => raw.fd2 = descriptor(value),
        Role::Path => raw.path = name(value, batch),
        Role::Path2 => raw.path2 = name(value, batch),
        Role::Size => raw.requested = integer(value),
        Role::Vector => raw.requested = vector(value),
        Role::Offset => raw.offset = integer(value),
        Role::OffsetPointer => raw.offset = pointed(value),
        Role::OffsetPointer2 => raw.offset2 = pointed(value),
        Role::Flags if spec.action == Action::Fcntl => raw.flags = command(value),
        Role::Flags if spec.action == Action::Open => raw.flags = flags(value, open_flags),
        Role::Flags if spec.action == Action::Ioctl => {
            raw.flags = constants::value(value).unwrap_or(OTHER_COMMAND);
        }
        Role::Flags => raw.flags = flags(value, |number| number as u64),
        // In an F_SETFL call, this argument contains open flags.
        Role::Argument if spec.action == Action::Fcntl && raw.flags == constants::F_SETFL => {
            raw.argument = flags(value, open_flags) as i64;
        }
        Role::Argument => raw.argument = flags(value, |number| number as u64) as i64,
        Role::Arguments => raw.argv = words(value, batch),
        Role::NewPair => new_pair(value, raw),
        Role::StatBuffer => stat(value, raw),
        _ => {}
    }
}

fn integer(value: &[u8]) -> i64 {
    number(value).unwrap_or(UNKNOWN)
}

fn descriptor(value: &[u8]) -> i32 {
    match number(value) {
        _ if value == b"AT_FDCWD" => AT_FDCWD,
        Some(FREEBSD_AT_FDCWD) => AT_FDCWD,
        Some(number) => i32::try_from(number).unwrap_or(NO_FD),
        None => NO_FD,
    }
}

/// Returns an offset behind a pointer. Newer versions of truss show it as `{ 0x200 }`. Older ones show only
/// its address, or 0 if there is none.
fn pointed(value: &[u8]) -> i64 {
    if let Some(inner) = value.strip_prefix(b"{ ").and_then(|inner| inner.strip_suffix(b" }")) {
        return integer(inner);
    }
    match number(value) {
        Some(0) | None => UNKNOWN,
        Some(_) => UNSHOWN_OFFSET,
    }
}

/// Returns the name between the quotes; empty if truss could only print its address.
fn name(value: &[u8], batch: &mut Batch) -> Text {
    let inner = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\""));
    inner.map_or(Text::NONE, |inner| batch.push_text(inner))
}

/// Returns the sum of the lengths in `[{"abc",3},{0x7ff,10}]`; UNKNOWN if truss does not show all of them.
fn vector(value: &[u8]) -> i64 {
    let Some(mut rest) = value.strip_prefix(b"[") else { return UNKNOWN };
    let mut sum = 0i64;
    while rest.first() == Some(&b'{') {
        let Some(end) = structure_end(rest, 0) else { return UNKNOWN };
        let length = memchr::memrchr(b',', &rest[..end]).and_then(|comma| number(&rest[comma + 1..end - 1]));
        let Some(length) = length else { return UNKNOWN };
        sum = sum.saturating_add(length);
        rest = rest[end..].strip_prefix(b",").unwrap_or(&rest[end..]);
    }
    if rest == b"]" {
        sum
    } else {
        UNKNOWN
    }
}

/// Returns the Linux value of names and numbers such as `A|B|0x4`. `freebsd` translates a FreeBSD number.
fn flags(value: &[u8], freebsd: fn(i64) -> u64) -> u64 {
    let one = |word: &[u8]| match number(word) {
        Some(number) => freebsd(number),
        None if word == b"O_FSYNC" => constants::O_SYNC,
        None => constants::value(word).unwrap_or(0),
    };
    value.split(|&byte| byte == b'|').map(one).fold(0, |sum, flag| sum | flag)
}

/// Translates FreeBSD's open flags (sys/fcntl.h) to those of Linux.
fn open_flags(number: i64) -> u64 {
    const FLAGS: &[(i64, u64)] = &[
        (0x1, constants::O_WRONLY),
        (0x2, constants::O_RDWR),
        (0x4, constants::O_NONBLOCK),
        (0x8, constants::O_APPEND),
        (0x40, constants::O_ASYNC),
        (0x80, constants::O_SYNC),
        (0x100, constants::O_NOFOLLOW),
        (0x200, constants::O_CREAT),
        (0x400, constants::O_TRUNC),
        (0x800, constants::O_EXCL),
        (0x1_0000, constants::O_DIRECT),
        (0x2_0000, constants::O_DIRECTORY),
        (0x10_0000, constants::O_CLOEXEC),
        (0x40_0000, constants::O_PATH),
        (0x100_0000, constants::O_DSYNC),
    ];
    FLAGS.iter().filter(|&&(freebsd, _)| number & freebsd != 0).fold(0, |sum, &(_, flag)| sum | flag)
}

/// Returns the fcntl command from its name or (before FreeBSD 7) from FreeBSD's number. The first five
/// numbers are the same in Linux.
fn command(value: &[u8]) -> u64 {
    match value {
        b"F_DUP2FD_CLOEXEC" => constants::F_DUP2FD,
        _ => match number(value) {
            Some(number @ 0..=4) => number as u64,
            Some(10 | 18) => constants::F_DUP2FD,
            Some(17) => constants::F_DUPFD_CLOEXEC,
            Some(_) => OTHER_COMMAND,
            None => constants::value(value).unwrap_or(OTHER_COMMAND),
        },
    }
}

/// Parses `[ "ls", "-l" ]` into NUL-separated bytes. Without `-a`, truss prints an address instead.
fn words(value: &[u8], batch: &mut Batch) -> Text {
    let Some(mut rest) = value.strip_prefix(b"[ ") else { return Text::NONE };
    let start = batch.bytes.len();
    while rest.first() == Some(&b'"') {
        let Some(end) = text_end(rest, 0) else { break };
        if batch.bytes.len() > start {
            batch.bytes.push(0);
        }
        let inner = &rest[1..end];
        batch.bytes.extend_from_slice(inner.strip_suffix(b"\"").unwrap_or(inner));
        rest = rest[end..].strip_prefix(b", ").unwrap_or_default();
    }
    Text { start: start as u32, length: (batch.bytes.len() - start) as u32 }
}

/// Parses the new descriptors of pipe, such as `{ 3, 4 }`. For pipe2, truss shows an address.
fn new_pair(value: &[u8], raw: &mut RawCall) {
    let inner = value.strip_prefix(b"{ ").and_then(|inner| inner.strip_suffix(b" }"));
    let Some((inner, comma)) = inner.and_then(|inner| Some((inner, memchr::memchr(b',', inner)?))) else {
        return;
    };
    raw.fd = descriptor(&inner[..comma]);
    raw.fd2 = descriptor(inner[comma + 1..].trim_ascii());
}

/// Parses `{ mode=-rw-r--r-- ,inode=5,size=35,blksize=32768 }`, in which the mode has the form that ls
/// prints.
fn stat(value: &[u8], raw: &mut RawCall) {
    let Some(rest) = value.strip_prefix(b"{ mode=") else { return };
    raw.stat_type = match rest.first() {
        Some(b'-') => 0o10,
        Some(b'd') => 0o4,
        Some(b'l') => 0o12,
        Some(b'c') => 0o2,
        Some(b'b') => 0o6,
        Some(b'p') => 0o1,
        Some(b's') => 0o14,
        _ => 0,
    };
    if let Some(at) = memchr::memmem::find(rest, b",size=") {
        let size = &rest[at + b",size=".len()..];
        let end = size.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(size.len());
        raw.stat_size = integer(&size[..end]);
    }
}
