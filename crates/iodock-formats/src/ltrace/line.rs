//! Parses one line into thread, time and meaning.

use super::stamps::{self, Stamp};
use crate::strace::number;

/// The columns before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Thread id; `None` if ltrace ran without `-f` and `-p`.
    pub tid: Option<u32>,
    pub stamp: Option<Stamp>,
}

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A system call with its result.
    Call(Call<'a>),
    /// The beginning of a system call whose end is on a later line: `SYS_read(3 <unfinished ...>`. ltrace
    /// also prints `<no return ...>`.
    Begun { name: &'a [u8], arguments: &'a [u8] },
    /// The end of a system call: `<... SYS_read resumed> , "abc", 3) = 3`.
    Resumed(Call<'a>),
    /// The end of a system call (since 0.7.91) or of a library call: `<... read resumed> ) = 3`.
    Either(Call<'a>),
    /// The thread's execve succeeded: `--- Called exec() ---`. No other line shows the end of the execve.
    Executed,
    /// The process ended by itself: `+++ exited (status 3) +++`.
    Exited(i32),
    /// A signal ended the process: `+++ killed by SIGKILL +++`.
    Killed(&'a [u8]),
    /// A library call, or a part of one.
    Library,
    /// A signal: `--- SIGCHLD (Child exited) ---`.
    Signal(&'a [u8]),
    /// A known line that is not counted: a stack frame (`-w`) or an empty line.
    Known,
}

/// A completed call as the line shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The name without `SYS_` or `@SYS`.
    pub name: &'a [u8],
    pub arguments: &'a [u8],
    pub result: i64,
    /// Duration in ns; `None` if ltrace ran without `-T`.
    pub duration: Option<i64>,
}

/// Returns whether this line shows a system call.
pub fn is_system_call(line: &[u8]) -> bool {
    matches!(read(line), Some((_, Body::Call(_) | Body::Begun { .. } | Body::Resumed(_))))
}

/// Parses a line. Returns `None` for a line that ltrace does not print.
pub fn read(line: &[u8]) -> Option<(Start, Body<'_>)> {
    if line.trim_ascii().is_empty() || is_frame(line) {
        return Some((Start::default(), Body::Known));
    }
    let (start, rest) = prefix(line);
    Some((start, body(rest.trim_ascii_end())?))
}

/// Parses the prefix: `1234 ` or `[pid 1234] `, times (`-r`, `-t`), the address (`-i`) and the indentation
/// (`-n`). Returns the text after it.
fn prefix(line: &[u8]) -> (Start, &[u8]) {
    let mut start = Start::default();
    let mut rest = line;
    if let Some((tid, after)) = thread(rest) {
        (start.tid, rest) = (Some(tid), after);
    }
    while let Some((stamp, after)) = stamps::read(rest) {
        start.stamp = Some(stamps::better(start.stamp, stamp));
        rest = after;
    }
    (start, address(rest).trim_ascii_start())
}

fn thread(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, after): (&[u8], &[u8]) = match text.strip_prefix(b"[pid ") {
        Some(rest) => (rest, b"] "),
        None => (text, b" "),
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let tid = std::str::from_utf8(&digits[..length]).ok()?.parse().ok()?;
    Some((tid, digits[length..].strip_prefix(after)?))
}

/// Returns the text after the address of `-i`, such as `[0x7f07a7371d07] `.
fn address(text: &[u8]) -> &[u8] {
    let inner = text.strip_prefix(b"[0x").or_else(|| text.strip_prefix(b"["));
    let Some(inner) = inner else { return text };
    let length = inner.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = if inner.starts_with(b"nil") { &inner[3..] } else { &inner[length..] };
    rest.strip_prefix(b"] ").unwrap_or(text)
}

fn body(text: &[u8]) -> Option<Body<'_>> {
    match text.first() {
        Some(b'<') => resumed(text.strip_prefix(b"<... ")?),
        Some(b'-' | b'+') => event(text),
        _ => begins(text),
    }
}

/// Parses a line that begins a call.
fn begins(text: &[u8]) -> Option<Body<'_>> {
    let open = memchr::memchr(b'(', text).filter(|&open| open > 0)?;
    let system = system_name(&text[..open]);
    let arguments = &text[open + 1..];
    if let Some(shown) = cut(arguments) {
        return Some(system.map_or(Body::Library, |name| Body::Begun { name, arguments: shown }));
    }
    let Some(name) = system else {
        return (is_library_name(&text[..open]) && has_result(arguments)).then_some(Body::Library);
    };
    ended(name, arguments).map(Body::Call)
}

/// Returns the name of a system call from `SYS_read` or `read@SYS`. ltrace prints `SYS_435@SYS` for calls
/// that it cannot name.
fn system_name(text: &[u8]) -> Option<&[u8]> {
    let name = text.strip_suffix(b"@SYS").or_else(|| text.strip_prefix(b"SYS_"))?;
    is_word(name).then_some(name)
}

fn is_word(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether the text can name a library function: `malloc`, `libc.so.6->fopen`, `puts@libc.so.6`,
/// `_ZNSolsEi`, or with `-C` `std::ostream::operator<<`.
fn is_library_name(text: &[u8]) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || byte >= 0x80 || memchr::memchr(byte, b"_.:@->+<$~").is_some()
    };
    let demangled = || memchr::memmem::find(text, b"::").is_some() && plain(text[0]);
    let of_demangled = |byte: u8| plain(byte) || memchr::memchr(byte, b" *&,[]=!|^%/").is_some();
    text.iter().all(|&byte| plain(byte)) || (demangled() && text.iter().all(|&byte| of_demangled(byte)))
}

/// Returns the text before the words that mark an unfinished call.
fn cut(text: &[u8]) -> Option<&[u8]> {
    text.strip_suffix(b" <unfinished ...>").or_else(|| text.strip_suffix(b" <no return ...>"))
}

/// Parses the text after `<... `: `SYS_read resumed> , "abc", 3) = 3`.
fn resumed(text: &[u8]) -> Option<Body<'_>> {
    let end = memchr::memmem::find(text, b" resumed> ")?;
    let (name, rest) = (&text[..end], &text[end + b" resumed> ".len()..]);
    match system_name(name) {
        Some(name) => ended(name, rest).map(Body::Resumed),
        None if !has_result(rest) && cut(rest).is_none() => None,
        None if !is_word(name) => is_library_name(name).then_some(Body::Library),
        None => Some(ended(name, rest).map_or(Body::Library, Body::Either)),
    }
}

/// Splits the text at ` = ` into arguments and result. A result contains no ` = `.
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = memchr::memmem::rfind(text, b" = ")?;
    let arguments = text[..equals].trim_ascii_end().strip_suffix(b")")?;
    Some((arguments, &text[equals + 3..]))
}

fn has_result(text: &[u8]) -> bool {
    // If ltrace could not read the result, it prints nothing after ` = `.
    split(text).is_some() || text.ends_with(b" =")
}

/// Parses a call whose result is a number.
fn ended<'a>(name: &'a [u8], text: &'a [u8]) -> Option<Call<'a>> {
    let (arguments, result) = split(text)?;
    let (result, duration) = match memchr::memchr(b' ', result) {
        Some(space) => (&result[..space], Some(stamps::duration(&result[space + 1..])?)),
        None => (result, None),
    };
    let result = if result == b"nil" { 0 } else { number(result)? };
    Some(Call { name, arguments, result, duration })
}

/// Parses lines about a process, such as `+++ ... +++` and `--- ... ---`.
fn event(text: &[u8]) -> Option<Body<'_>> {
    if let Some(inner) = text.strip_prefix(b"--- ") {
        let inner = inner.strip_suffix(b" ---")?;
        if inner == b"Called exec()" {
            return Some(Body::Executed);
        }
        let end = memchr::memmem::find(inner, b" (").filter(|_| inner.ends_with(b")"))?;
        let name = &inner[..end];
        return (name.starts_with(b"SIG") && is_word(name)).then_some(Body::Signal(name));
    }
    let inner = text.strip_prefix(b"+++ ")?.strip_suffix(b" +++")?;
    if let Some(status) = inner.strip_prefix(b"exited (status ") {
        let status = number(status.strip_suffix(b")")?)?;
        return i32::try_from(status).ok().map(Body::Exited);
    }
    inner.strip_prefix(b"killed by ").filter(|name| is_word(name)).map(Body::Killed)
}

/// Returns whether this is a line of a stack (`-w`): ` > /bin/a(main+0x1d) [401136]` or `\ta.c:12`, and
/// before 0.7.91 `\t\t\tmain (ip = 0x401136)`.
fn is_frame(line: &[u8]) -> bool {
    if let Some(frame) = line.strip_prefix(b"\t") {
        let last = frame.rsplit(|&byte| byte == b':').next().unwrap_or_default();
        let of_source = last.len() < frame.len() && last.iter().all(u8::is_ascii_digit);
        return of_source || (frame.ends_with(b")") && memchr::memmem::find(frame, b" (ip = 0x").is_some());
    }
    line.starts_with(b" > ") && line.ends_with(b"]")
}
