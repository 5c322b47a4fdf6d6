//! Parses one line into time, thread and meaning.

/// Nanoseconds in a millisecond.
const MILLISECOND: i64 = 1_000_000;
/// Limit for the length of a program's name. perf prints at most 14 bytes of it.
const LONGEST_COMM: usize = 16;

/// Beginning of the lines of a stack, which belong to the previous call. Lines of calls have a shorter
/// indentation.
pub const INDENT: &[u8] = &[b' '; 20];

/// The columns before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Time in ns; `None` for `?`, which means that perf did not see the beginning of the call.
    pub time: Option<i64>,
    /// Duration in ns; `None` if the call has not ended, or if `wrapped`.
    pub duration: Option<i64>,
    /// Whether perf computed a negative duration and printed it as an unsigned number, such as
    /// `18446744073707.914 ms`.
    pub wrapped: bool,
    /// Thread id; 0 if the line shows none.
    pub tid: u32,
}

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    Call(Call<'a>),
    /// The beginning of a call, `name(arguments) ...`. Another thread's line precedes its end.
    Begun(Call<'a>),
    /// The end of a call: `... [continued]: name()) = 3`.
    Continued(Call<'a>),
    /// A page fault (`-F`) or a tracepoint (`-e`).
    Event,
}

/// A call as the line shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    pub name: &'a [u8],
    pub arguments: &'a [u8],
    /// The text after ` = `. It is empty if perf prints nothing there, and `None` if there is no `=`.
    pub result: Option<&'a [u8]>,
}

/// Parses a line. Returns `None` if it lacks the time and duration that every call has.
pub fn read(line: &[u8]) -> Option<(Start, Body<'_>)> {
    let text = line.trim_ascii_start();
    let (time, rest) = match text.strip_prefix(b"? (") {
        Some(rest) => (None, rest),
        None => {
            let (time, length) = milliseconds(text)?;
            (Some(time?), text[length..].strip_prefix(b" (")?)
        }
    };
    let close = rest.iter().take(24).position(|&byte| byte == b')')?;
    let inner = rest[..close].trim_ascii();
    let (duration, wrapped) = match inner {
        b"" => (None, false),
        _ => {
            let (duration, length) = milliseconds(inner)?;
            (inner[length..].trim_ascii() == b"ms").then_some(())?;
            (duration, duration.is_none())
        }
    };
    let rest = rest[close + 1..].strip_prefix(b": ")?;
    let (tid, rest) = thread(rest);
    Some((Start { time, duration, wrapped, tid }, body(rest)?))
}

/// Parses milliseconds such as `12.345` to ns (`None` beyond 63 bits). Also returns the length of the text.
fn milliseconds(text: &[u8]) -> Option<(Option<i64>, usize)> {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    if whole == 0 || whole > 15 || text.get(whole) != Some(&b'.') || digits(whole + 1) != 3 {
        return None;
    }
    let number = |part: &[u8]| part.iter().fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let part = number(&text[whole + 1..whole + 4]) * 1000;
    let ns = number(&text[..whole]).checked_mul(MILLISECOND).and_then(|ns| ns.checked_add(part));
    Some((ns, whole + 4))
}

/// Parses `cat/1261 `, `1261 ` or nothing. The program's name may contain any character.
fn thread(text: &[u8]) -> (u32, &[u8]) {
    let mut from = 0;
    loop {
        let digits = text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&text[from..from + digits]).ok().and_then(|text| text.parse().ok());
        if let (Some(tid), Some(b' ')) = (number, text.get(from + digits)) {
            return (tid, &text[from + digits + 1..]);
        }
        match memchr::memchr(b'/', &text[from..text.len().min(LONGEST_COMM).max(from)]) {
            Some(slash) => from += slash + 1,
            None => return (0, text),
        }
    }
}

fn body(text: &[u8]) -> Option<Body<'_>> {
    if let Some(rest) =
        text.strip_prefix(b" ... [continued]: ").or_else(|| text.strip_prefix(b"... [continued]: "))
    {
        let open = name_length(rest)?;
        let (_, result) = ending(rest);
        return Some(Body::Continued(Call { name: &rest[..open], arguments: b"", result }));
    }
    let Some(open) = name_length(text) else { return is_event(text).then_some(Body::Event) };
    let name = &text[..open];
    if let Some(begun) = text.strip_suffix(b" ...") {
        if let Some(close) =
            memchr::memrchr(b')', begun).filter(|&close| begun[close + 1..].trim_ascii().is_empty())
        {
            let arguments = begun.get(open + 1..close)?;
            return Some(Body::Begun(Call { name, arguments, result: None }));
        }
    }
    let (end, result) = ending(text);
    Some(Body::Call(Call { name, arguments: text.get(open + 1..end)?, result }))
}

fn name_length(text: &[u8]) -> Option<usize> {
    let length = text.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    (length > 0 && text[length] == b'(' && !text[0].is_ascii_digit()).then_some(length)
}

/// Finds the end of the arguments and the text after ` = `. A result contains neither `)` before ` = ` nor `=
/// ` after it.
fn ending(text: &[u8]) -> (usize, Option<&[u8]>) {
    let mut end = text.len();
    while let Some(equals) = memchr::memrchr(b'=', &text[..end]) {
        let before = text[..equals].trim_ascii_end();
        let spaced = matches!(text.get(equals + 1), None | Some(b' '));
        if spaced && before.len() < equals && before.ends_with(b")") {
            return (before.len() - 1, Some(text[equals + 1..].trim_ascii()));
        }
        end = equals;
    }
    let whole = text.strip_suffix(b")").unwrap_or(text);
    (whole.len(), None)
}

/// Returns whether the text is an event that is not a call, such as `maj fault [...]` or
/// `sched:sched_switch(...)`.
fn is_event(text: &[u8]) -> bool {
    let word = text.split(|byte| matches!(byte, b' ' | b'(')).next().unwrap_or_default();
    matches!(word, b"maj" | b"min" | b"majfault" | b"minfault") || memchr::memchr(b':', word).is_some()
}

/// Returns whether perf prints this line besides calls: a line of the summary of `-S`, of a call chain, or a
/// message.
pub fn is_known(line: &[u8]) -> bool {
    const REMARKS: &[&[u8]] = &[
        b"Summary of events:",
        b"syscall ",
        b"(msec)",
        b"Unknown tp ID ",
        b"Invalid syscall ",
        b"Problems ",
    ];
    let text = line.trim_ascii();
    if text.is_empty() || line.starts_with(INDENT) || REMARKS.iter().any(|remark| text.starts_with(remark)) {
        return true;
    }
    let ends_in_percent = text.ends_with(b"%");
    if ends_in_percent && memchr::memmem::find(text, b" events, ").is_some() {
        return true;
    }
    let is_number =
        |word: &[u8]| word.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'%' | b'-'));
    let mut words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let rule = first.iter().all(|&byte| byte == b'-');
    let rest: Vec<&[u8]> = words.collect();
    let columns = rest.len() >= 3 && line.starts_with(b" ");
    (rule && first.len() > 3) || (columns && rest.iter().all(|word| is_number(word))) || is_errno_count(text)
}

/// Returns whether the text is a count of errors, such as `ENOENT: 12`.
fn is_errno_count(text: &[u8]) -> bool {
    let Some(colon) = memchr::memmem::find(text, b": ") else { return false };
    text.starts_with(b"E")
        && text[..colon].iter().all(u8::is_ascii_uppercase)
        && text[colon + 2..].iter().all(u8::is_ascii_digit)
}

/// Returns the number in `LOST 12 events!`.
pub fn lost(line: &[u8]) -> Option<u64> {
    let number = line.trim_ascii().strip_prefix(b"LOST ")?.strip_suffix(b" events!")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}
