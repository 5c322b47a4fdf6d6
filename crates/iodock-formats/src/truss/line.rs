//! Parses the meaning of a line, after its prefix.

use super::values::integer;

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    Call(Call<'a>),
    /// A signal: `Received signal #16, SIGUSR1, in pollsys() [caught]`.
    Signal {
        name: &'a [u8],
        default: bool,
    },
    /// The end of a process by a signal: `*** process killed ***`.
    Killed,
    /// The text after the colon of a line such as ` argv: ls -l`.
    Argv(&'a [u8]),
    Envp,
    /// A line that belongs to the line above: a buffer (-r, -w), a structure (-v), or wrapped arguments.
    Continuation,
    /// A known line that is not counted: a library call (-u), a fault, a stop, a table of -c, or a message.
    Known,
    Unreadable,
}

/// A call as the line shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    pub name: &'a [u8],
    /// The text between the brackets.
    pub arguments: &'a [u8],
    pub ending: Ending<'a>,
}

/// The text after a call's brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending<'a> {
    /// A result, `= 3` or `= 3 [4]`. The value is unknown if truss prints a name (`= SIGINT`).
    Result { value: Option<i64>, second: Option<i64> },
    /// An error such as `Err#2 ENOENT`: its name (empty if truss does not know it) and its number.
    Error { name: &'a [u8], number: i64 },
    /// The call has not ended: `(sleeping...)`, `(waiting for child to exit()/exec()...)`.
    Sleeping,
    /// The return of the parent's fork in the child, and the parent's id: `(returning as child ...) = 28115`.
    AsChild(i64),
    /// The return of lwp_create in the new thread: `(returning as new lwp ...)`.
    AsThread,
    /// A successful exec: `argc = 1`.
    Executed,
    /// A call that does not return, such as `_exit(0)`.
    Nothing,
}

/// Parses the text after the prefix. `indented` is as in `Prefix`; `stamped` says whether the line has time
/// columns.
#[inline]
pub fn body<'a>(text: &'a [u8], indented: bool, stamped: bool) -> Body<'a> {
    if let Some(open) = name_length(text) {
        if let Some(call) = call(text, open) {
            return Body::Call(call);
        }
    }
    match other(text) {
        Body::Unreadable if indented && !stamped => Body::Continuation,
        body => body,
    }
}

/// Returns the length of the call's name at the beginning of the text if a bracket follows directly.
#[inline]
fn name_length(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_'))?;
    (text[end] == b'(' && end > 0 && !text[0].is_ascii_digit()).then_some(end)
}

#[inline]
fn call(text: &[u8], open: usize) -> Option<Call<'_>> {
    let name = &text[..open];
    let arguments = open + 1;
    if let Some(head) = asleep(text) {
        let close = head.len().checked_sub(1).filter(|&close| head[close] == b')' && close >= arguments)?;
        return Some(Call { name, arguments: &text[arguments..close], ending: Ending::Sleeping });
    }
    let mut end = text.len();
    loop {
        let close = memchr::memrchr(b')', &text[arguments..end])? + arguments;
        let tail = text[close + 1..].trim_ascii();
        if let Some(ending) = ending(name, tail) {
            let call = Call { name, arguments: &text[arguments..close], ending };
            return (!holds_a_result(call.arguments)).then(|| turned(call));
        }
        end = close;
    }
}

/// Returns whether another call ends within these arguments, because two lines were merged. A string cannot
/// look like that, because truss prints a tab in a string as `\t`.
fn holds_a_result(arguments: &[u8]) -> bool {
    memchr::memmem::find_iter(arguments, b")\t").any(|at| {
        let tail = arguments[at + 1..].trim_ascii_start();
        tail.starts_with(b"= ") || tail.starts_with(b"Err#")
    })
}

/// Returns the call, if it has not returned yet.
fn asleep(text: &[u8]) -> Option<&[u8]> {
    if !text.ends_with(b"...)") {
        return None;
    }
    let head = text
        .strip_suffix(b"(sleeping...)")
        .or_else(|| text.strip_suffix(b"(waiting for child to exit()/exec()...)"))?;
    Some(head.trim_ascii_end())
}

/// Converts a call whose line is the return of fork or lwp_create in the new process or thread. The remark of
/// such a line contains brackets, too.
fn turned(call: Call<'_>) -> Call<'_> {
    if !call.arguments.ends_with(b" ...") {
        return call;
    }
    let remark = |remark: &[u8]| {
        let head = call.arguments.strip_suffix(remark)?.trim_ascii_end();
        head.strip_suffix(b")")
    };
    let Ending::Result { value, .. } = call.ending else { return call };
    if let Some(arguments) = remark(b"(returning as child ...") {
        Call { arguments, ending: Ending::AsChild(value.unwrap_or(0)), ..call }
    } else if let Some(arguments) = remark(b"(returning as new lwp ...") {
        Call { arguments, ending: Ending::AsThread, ..call }
    } else {
        call
    }
}

#[inline]
fn ending<'a>(name: &[u8], tail: &'a [u8]) -> Option<Ending<'a>> {
    match tail.first() {
        Some(b'=') => result(tail[1..].trim_ascii_start()),
        Some(b'E') => error(tail),
        Some(b'a') => {
            let count = tail.strip_prefix(b"argc = ")?;
            (integer(count)?.1 == count.len()).then_some(Ending::Executed)
        }
        None if ends_silently(name) => Some(Ending::Nothing),
        _ => None,
    }
}

/// Returns whether truss prints this call when it begins. An exec without `argc` is one, because truss lost
/// control of the new program.
fn ends_silently(name: &[u8]) -> bool {
    matches!(
        name,
        b"_exit"
            | b"exit"
            | b"lwp_exit"
            | b"context"
            | b"setcontext"
            | b"getcontext"
            | b"getsetcontext"
            | b"exec"
            | b"execve"
            | b"setustack"
            | b"getustack"
    )
}

/// Parses the result at the end of a call's line, such as `3`, `0xFEFA0000`, `3 [4]`, `0 [ 28116 ]` or
/// `SIGINT`.
#[inline]
fn result(text: &[u8]) -> Option<Ending<'_>> {
    let Some((value, length)) = integer(text) else {
        let is_signal = text.starts_with(b"SIG") && text.iter().all(u8::is_ascii_alphanumeric);
        return is_signal.then_some(Ending::Result { value: None, second: None });
    };
    let rest = text[length..].trim_ascii_start();
    if rest.is_empty() {
        return Some(Ending::Result { value: Some(value), second: None });
    }
    let inner = rest.strip_prefix(b"[")?.strip_suffix(b"]")?.trim_ascii();
    let (second, length) = integer(inner)?;
    let whole = length == inner.len();
    whole.then_some(Ending::Result { value: Some(value), second: Some(second) })
}

/// Parses an error such as `Err#13 EACCES [file_dac_read]`, where the brackets contain the missing privilege.
fn error(text: &[u8]) -> Option<Ending<'_>> {
    let rest = text.strip_prefix(b"Err#")?;
    let (number, length) = integer(rest)?;
    let rest = rest[length..].trim_ascii_start();
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let after = after.trim_ascii();
    let privilege = after.is_empty() || (after.starts_with(b"[") && after.ends_with(b"]"));
    (privilege && (name.is_empty() || name[0] == b'E')).then_some(Ending::Error { name, number })
}

/// Parses lines that are not calls.
fn other(text: &[u8]) -> Body<'_> {
    const KNOWN: &[&[u8]] = &[
        b"Base time stamp:",
        b"-> ",
        b"<- ",
        b"Stopped by signal #",
        b"Continued with signal #",
        b"Incurred fault #",
        b"siginfo: ",
        b"*** ",
        b"truss: ",
    ];
    if let Some(signal) = text.strip_prefix(b"Received signal #") {
        return received(signal);
    }
    if text == b"*** process killed ***" {
        return Body::Killed;
    }
    if let Some(arguments) = text.strip_prefix(b"argv:") {
        return Body::Argv(arguments);
    }
    if text.starts_with(b"envp:") {
        return Body::Envp;
    }
    if text.is_empty() || KNOWN.iter().any(|known| text.starts_with(known)) || is_table(text) {
        return Body::Known;
    }
    Body::Unreadable
}

/// Parses the text of a received signal, such as `16, SIGUSR1, in pollsys() [caught]`.
fn received(text: &[u8]) -> Body<'_> {
    let Some(comma) = memchr::memchr(b',', text) else { return Body::Unreadable };
    let name = text[comma + 1..].trim_ascii_start();
    let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(name.len());
    Body::Signal { name: &name[..end], default: text.ends_with(b"[default]") }
}

/// Returns whether this is a line of the table that `-c` prints.
pub fn is_table(text: &[u8]) -> bool {
    let mut words = text.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty());
    let (Some(first), second) = (words.next(), words.next()) else { return false };
    let is_time = |word: &[u8]| {
        let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
        digits > 0 && digits + 1 == word.len() && word.contains(&b'.')
    };
    let is_count = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let is_rule = |word: &[u8]| word.len() > 3 && word.iter().all(|&byte| byte == b'-');
    let Some(second) = second else { return is_rule(first) };
    match first {
        b"syscall" => second == b"seconds",
        b"signals" | b"faults" => second.starts_with(b"---"),
        b"sys" | b"usr" | b"user" => matches!(second, b"totals:" | b"time:"),
        b"elapsed:" => is_time(second),
        b"Library:" => second == b"Function",
        _ if is_rule(first) => is_rule(second),
        _ if is_time(second) => words.all(is_count),
        _ => (first.starts_with(b"SIG") || first.starts_with(b"FLT")) && is_count(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Body<'_> {
        body(text.as_bytes(), false, false)
    }

    fn ended(text: &str) -> Option<Ending<'_>> {
        match read(text) {
            Body::Call(call) => Some(call.ending),
            _ => None,
        }
    }

    #[test]
    fn results_at_the_end_of_lines_are_read() {
        let value = |value| Some(Ending::Result { value: Some(value), second: None });
        assert_eq!(ended("close(3)\t\t\t= 0"), value(0));
        assert_eq!(ended("mmap(0x0, 1, A|B, C, 3, 0) = 0xFEFA0000"), value(0xFEFA_0000));
        let two = Some(Ending::Result { value: Some(0), second: Some(28116) });
        assert_eq!(ended("pipe()\t= 0 [ 28116 ]"), two);
        assert_eq!(ended("pipe()\t= 0 [28116]"), two);
        let enoent = Ending::Error { name: b"ENOENT", number: 2 };
        assert_eq!(ended("open(\"/a\", O_RDONLY)\tErr#2 ENOENT"), Some(enoent));
        assert_eq!(ended("open(\"/a\", O_RDONLY)\tErr#2 ENOENT [ALL]"), Some(enoent));
        assert_eq!(ended("x()\tErr#999"), Some(Ending::Error { name: b"", number: 999 }));
        assert_eq!(ended("read(8, 0x1, 4)\t(sleeping...)"), Some(Ending::Sleeping));
        assert_eq!(ended("vfork()\t(waiting for child to exit()/exec()...)"), Some(Ending::Sleeping));
        assert_eq!(ended("forkx(0)\t(returning as child ...)\t= 28115"), Some(Ending::AsChild(28115)));
        assert_eq!(ended("lwp_create(0x0, 0, 0x0)\t(returning as new lwp ...)\t= 0"), Some(Ending::AsThread));
        assert_eq!(ended("execve(\"/a\", 0x1, 0x2)  argc = 1"), Some(Ending::Executed));
        assert_eq!(ended("_exit(0)"), Some(Ending::Nothing));
        assert_eq!(ended("read(3, \" ) = 1\", 9)\t= 6"), value(6));
        for cut in [
            "read(3, 0x1, 4)",
            "close(3",
            "close(3)\t= ",
            "close(3) = 3x",
            "close(3) Err#",
            "f(1) = -1 ENOENT (No)",
            "wpite(1, \" a\", 1)\t= 1\x0bclose(3)\t\t= 0",
        ] {
            assert_eq!(read(cut), Body::Unreadable, "{cut}");
        }
    }

    #[test]
    fn lines_that_are_not_calls_are_recognised() {
        let signal = read("Received signal #18, SIGCLD [default]");
        assert_eq!(signal, Body::Signal { name: b"SIGCLD", default: true });
        assert_eq!(read("*** process killed ***"), Body::Killed);
        assert_eq!(read("argv: ls -l"), Body::Argv(b" ls -l"));
        for known in [
            "-> libc:fopen(0x1, 0x2)",
            "<- libc:fopen() = 0x1",
            "Incurred fault #6, FLTBOUNDS  %pc = 0x08050A3B",
            "syscall               seconds   calls  errors",
            "read                     .000      12",
            "open                     .000      42      6",
            "                     --------  ------   ----",
            "sys totals:              .003     117     13",
            "usr time:                .001",
            "elapsed:                 .020",
            "SIGCHLD           3",
            "",
        ] {
            assert_eq!(read(known.trim_start()), Body::Known, "{known}");
        }
        assert_eq!(read("Nobody knows"), Body::Unreadable);
        assert_eq!(body(b"fd=8  ev=POLLIN", true, false), Body::Continuation);
        assert_eq!(body(b"fd=8  ev=POLLIN", true, true), Body::Unreadable);
    }
}
