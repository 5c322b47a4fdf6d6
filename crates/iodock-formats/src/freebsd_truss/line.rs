//! Parses one line into thread, time and meaning.

use super::errors;
use crate::strace::number;

/// Nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;
/// The largest process id (sys/proc.h: PID_MAX). Thread ids are larger.
const LAST_PID: u32 = 99_999;

/// The columns before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Process id, if truss ran with `-f`.
    pub pid: Option<u32>,
    /// Thread id, if truss ran with `-H`.
    pub tid: Option<u32>,
    /// Times in ns. Only the first `columns` of them are set.
    pub stamps: [i64; 2],
    pub columns: usize,
    /// Position in the line of the text after the prefix.
    pub body: usize,
}

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    Call(Call<'a>),
    /// The process ended by itself: `process exit, rval = 0`.
    Exited(i64),
    /// A signal ended the process: `process killed, signal = 9 (core dumped)`.
    Killed {
        signal: i64,
        core_dumped: bool,
    },
    /// A thread ended: `<thread 100123 exited>`.
    ThreadExited,
    /// A signal, such as `SIGNAL 20 (SIGCHLD) code=CLD_EXITED ...`. The value is the name in the brackets or,
    /// without it, the number.
    Signal(&'a [u8]),
    /// A known line that is not counted.
    Known,
    Unreadable,
}

/// A call as the line shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    pub name: &'a [u8],
    /// The text between the brackets.
    pub arguments: &'a [u8],
    pub ending: Ending,
}

/// The text after a call's brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A result, such as `= 3 (0x3)`.
    Result(i64),
    /// FreeBSD's error number, as in `ERR#2 'No such file or directory'` or `ERESTART`.
    Error(i64),
    /// `EJUSTRETURN`: the call succeeded and does not return to its caller (sigreturn).
    JustReturned,
    /// The thread ended during the call, so there is no result.
    Nothing,
}

/// Parses the prefix of `line`: `  739: `, `  739 100123: ` or `100123: `, then up to two columns such as
/// `0.001234567 `.
pub fn prefix(line: &[u8]) -> Prefix {
    let mut prefix = Prefix::default();
    let mut at = owner(line, &mut prefix);
    while prefix.columns < prefix.stamps.len() {
        let Some((stamp, end)) = column(line, at) else { break };
        prefix.stamps[prefix.columns] = stamp;
        prefix.columns += 1;
        at = end;
    }
    prefix.body = at;
    prefix
}

/// Stores the numbers before the colon. Returns the position after it, or 0 if there is no such prefix.
fn owner(line: &[u8], prefix: &mut Prefix) -> usize {
    let Some((first, end)) = digits(line, blanks(line, 0)) else { return 0 };
    let second = digits(line, blanks(line, end)).filter(|_| end < blanks(line, end));
    let end = second.map_or(end, |(_, end)| end);
    if !line[end..].starts_with(b": ") {
        return 0;
    }
    match second {
        Some((tid, _)) => (prefix.pid, prefix.tid) = (Some(first), Some(tid)),
        None if first > LAST_PID => prefix.tid = Some(first),
        None => prefix.pid = Some(first),
    }
    end + 2
}

fn digits(line: &[u8], from: usize) -> Option<(u32, usize)> {
    let length = line[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&line[from..from + length]).ok()?.parse().ok()?;
    Some((number, from + length))
}

fn blanks(line: &[u8], from: usize) -> usize {
    from + line[from..].iter().take_while(|&&byte| byte == b' ').count()
}

/// Parses a column such as `0.001234567 `, which has nine decimals.
fn column(line: &[u8], at: usize) -> Option<(i64, usize)> {
    let (seconds, point) = digits(line, at)?;
    let (part, end) = digits(line, point + usize::from(line.get(point) == Some(&b'.')))?;
    let whole = line[point] == b'.' && end == point + 10 && line.get(end) == Some(&b' ');
    whole.then_some((i64::from(seconds) * SECOND + i64::from(part), end + 1))
}

/// Parses the text after the prefix.
pub fn body(text: &[u8]) -> Body<'_> {
    if let Some(call) = name_length(text).and_then(|open| call(text, open)) {
        return Body::Call(call);
    }
    other(text)
}

/// Returns the length of the call's name at the beginning of the text if a bracket follows directly. Examples
/// of names are `compat11.stat` and `#482`.
fn name_length(text: &[u8]) -> Option<usize> {
    let length =
        text.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'#')))?;
    (length > 0 && text[length] == b'(' && !text[0].is_ascii_digit()).then_some(length)
}

fn call(text: &[u8], open: usize) -> Option<Call<'_>> {
    let mut end = text.len();
    loop {
        let close = memchr::memrchr(b')', text.get(open + 1..end)?)? + open + 1;
        let tail = text[close + 1..].trim_ascii();
        let name = &text[..open];
        // For programs in Linux emulation, truss already prints Linux's error number.
        let linux = name.starts_with(b"linux_");
        if let Some(ending) = ending(tail, linux).filter(|&one| one != Ending::Nothing || ends_a_thread(name))
        {
            return Some(Call { name, arguments: &text[open + 1..close], ending });
        }
        end = close;
    }
}

/// Returns whether truss may print this call without a result.
fn ends_a_thread(name: &[u8]) -> bool {
    matches!(name, b"exit" | b"_exit" | b"sys_exit" | b"thr_exit" | b"linux_exit" | b"linux_exit_group")
}

fn ending(tail: &[u8], linux: bool) -> Option<Ending> {
    match tail {
        b"" => return Some(Ending::Nothing),
        b"ERESTART" => return Some(Ending::Error(-1)),
        b"EJUSTRETURN" => return Some(Ending::JustReturned),
        _ => {}
    }
    if let Some(rest) = tail.strip_prefix(b"ERR#") {
        let blank = memchr::memchr(b' ', rest)?;
        let message = rest[blank + 1..].strip_prefix(b"'")?.strip_suffix(b"'")?;
        let error =
            number(&rest[..blank]).filter(|&number| linux || !errors::is_of_other(number, message))?;
        return Some(if error == -2 { Ending::JustReturned } else { Ending::Error(error) });
    }
    let rest = tail.strip_prefix(b"= ")?;
    let blank = memchr::memchr(b' ', rest)?;
    let inner = rest[blank + 1..].strip_prefix(b"(0x")?.strip_suffix(b")")?;
    let hexadecimal =
        std::str::from_utf8(inner).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok())?;
    // Old versions print only the low 32 bits of a negative number in hexadecimal.
    let same = |value: &i64| *value as u64 == hexadecimal || u64::from(*value as u32) == hexadecimal;
    number(&rest[..blank]).filter(same).map(Ending::Result)
}

fn other(text: &[u8]) -> Body<'_> {
    const KNOWN: &[&[u8]] =
        &[b"-- UNKNOWN ", b"truss: ", b"<new process>", b"<new thread ", b"Process stopped because of:"];
    let text = text.trim_ascii_end();
    if let Some(value) = text.strip_prefix(b"process exit, rval = ").and_then(number) {
        return Body::Exited(value);
    }
    if let Some(rest) = text.strip_prefix(b"process killed, signal = ") {
        let plain = rest.strip_suffix(b" (core dumped)");
        let signal = number(plain.unwrap_or(rest));
        let killed = |signal| Body::Killed { signal, core_dumped: plain.is_some() };
        return signal.map_or(Body::Unreadable, killed);
    }
    if let Some(rest) = text.strip_prefix(b"SIGNAL ") {
        return signal(rest);
    }
    if text.starts_with(b"<thread ") && text.ends_with(b" exited>") {
        return Body::ThreadExited;
    }
    if text.is_empty() || KNOWN.iter().any(|known| text.starts_with(known)) || is_table(text) {
        return Body::Known;
    }
    Body::Unreadable
}

/// Parses a signal such as `20 (SIGCHLD) code=...`. Before FreeBSD 7, truss prints only the number.
fn signal(text: &[u8]) -> Body<'_> {
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    if number(&text[..end]).is_none() {
        return Body::Unreadable;
    }
    let inner = text[end..].strip_prefix(b" (").and_then(|rest| Some(&rest[..memchr::memchr(b')', rest)?]));
    Body::Signal(inner.unwrap_or(&text[..end]))
}

/// Returns whether this is a line of the table that `-c` prints.
fn is_table(text: &[u8]) -> bool {
    let mut words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let last: Vec<&[u8]> = words.by_ref().collect();
    let is_time =
        |word: &[u8]| word.contains(&b'.') && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let is_count = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let is_rule = |word: &[u8]| word.len() > 3 && word.iter().all(|&byte| byte == b'-');
    match last[..] {
        [b"syscall", b"seconds", b"calls", b"errors"] => true,
        [_, time, calls, errors] | [time, calls, errors] if is_time(time) => {
            is_count(calls) && is_count(errors)
        }
        [first, second, third] => is_rule(first) && is_rule(second) && is_rule(third),
        _ => false,
    }
}
