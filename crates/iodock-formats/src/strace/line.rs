//! Classifies one line: a call, a part of a call, an event of a process, or something else.

use super::eights;
use super::lexer::Lexer;
use super::prefix::{self, Prefix};
use super::{arguments, ending};
use crate::runs::is_of_terminal;
use crate::strace_table;
use iodock_event::{Action, Batch, Fork, Outcome, RawCall, TaskEnd, Text};
use memchr::memmem;

pub const UNFINISHED: &[u8] = b"<unfinished ...>";
const DETACHED: &[u8] = b"<detached ...>";
const PID_CHANGED: &[u8] = b"<pid changed to ";

/// The meaning of a line after its prefix. Each text starts after the part that identifies the meaning, and
/// ends at the line's end.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// A call, `name(`...; the text follows the bracket.
    Call {
        name: &'a [u8],
        text: &'a [u8],
    },
    /// The beginning of a call, `name(`... `<unfinished ...>`; the text is between these parts.
    Begun {
        name: &'a [u8],
        text: &'a [u8],
    },
    /// The end of a call, `<... name resumed>`...; the text follows.
    Resumed {
        name: &'a [u8],
        text: &'a [u8],
    },
    /// The end of a process, such as `+++ exited with 0 +++`.
    End {
        text: &'a [u8],
    },
    /// A signal, such as `--- SIGCHLD {...} ---` or `--- stopped by SIGSTOP ---`; the name under which it is
    /// counted.
    Signal {
        name: &'a [u8],
    },
    /// A known line that yields no record: a table header, a stack, contents (`-e read`), or a message of
    /// strace.
    Noise,
    /// A row or a rule of a table, if the line is inside a table.
    Row,
    Unknown,
}

/// Parses a line without its newline. The function is inlined, because passing the result took a tenth of the
/// time.
#[inline(always)]
pub fn read(line: &[u8]) -> (Prefix, Kind<'_>) {
    let mut lexer = Lexer::new(line);
    let prefix = prefix::read(&mut lexer);
    let kind = match lexer.peek() {
        b'a'..=b'z' | b'_' | b'?' | b'A'..=b'Z' => call(lexer),
        b'<' => resumed(lexer),
        b'+' if lexer.eat_word(b"+++ ") => Kind::End { text: lexer.rest() },
        b'-' if lexer.eat_word(b"--- ") => signal(lexer),
        _ => Kind::Unknown,
    };
    match kind {
        Kind::Unknown if is_noise(line) => (prefix, Kind::Noise),
        Kind::Unknown if is_row(line.trim_ascii()) => (prefix, Kind::Row),
        kind => (prefix, kind),
    }
}

#[inline(always)]
fn call(mut lexer: Lexer<'_>) -> Kind<'_> {
    let name = call_name(&mut lexer);
    if name.is_empty() || !lexer.eat(b'(') {
        return Kind::Unknown;
    }
    let text = lexer.rest();
    // Most lines end with a duration or a digit, so comparing two bytes suffices for most lines.
    match text.ends_with(b".>").then(|| begun_length(text)).flatten() {
        Some(length) => Kind::Begun { name, text: text[..length].trim_ascii_end() },
        None => Kind::Call { name, text },
    }
}

/// Returns the length of the text before `<unfinished ...>` or `<pid changed to 7 ...>`. If strace filters
/// calls, the second form ends the execve of a thread that continues under its leader's id.
fn begun_length(text: &[u8]) -> Option<usize> {
    if text.ends_with(UNFINISHED) {
        return Some(text.len() - UNFINISHED.len());
    }
    let numbered = text.strip_suffix(b" ...>")?;
    let digits = numbered.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    numbered[..numbered.len() - digits].strip_suffix(PID_CHANGED).map(<[u8]>::len)
}

/// Returns the name of a call: lower-case letters, digits and `_`; `????` if strace does not know it; with
/// `#64` for x32. Returns an empty text if it is not a name.
#[inline(always)]
fn call_name<'a>(lexer: &mut Lexer<'a>) -> &'a [u8] {
    let start = lexer.at;
    lexer.at += eights::eight(lexer.text, start).map_or(0, eights::leading_letters);
    while matches!(lexer.peek(), b'a'..=b'z' | b'0'..=b'9' | b'_' | b'?' | b'#') {
        lexer.at += 1;
    }
    let name = &lexer.text[start..lexer.at];
    if name.len() <= 40 {
        name
    } else {
        b""
    }
}

fn resumed(mut lexer: Lexer<'_>) -> Kind<'_> {
    if !lexer.eat_word(b"<... ") {
        return Kind::Unknown;
    }
    let name = call_name(&mut lexer);
    if name.is_empty() || !lexer.eat_word(b" resumed>") {
        return Kind::Unknown;
    }
    lexer.skip_spaces();
    Kind::Resumed { name, text: lexer.rest() }
}

fn signal(mut lexer: Lexer<'_>) -> Kind<'_> {
    let start = lexer.at;
    if lexer.eat_word(b"stopped by ") {
        lexer.word();
    } else if lexer.word().is_empty() {
        return Kind::Unknown;
    }
    let name = &lexer.text[start..lexer.at];
    if lexer.text.trim_ascii_end().ends_with(b"---") {
        Kind::Signal { name }
    } else {
        Kind::Unknown
    }
}

/// Returns whether the line is a line of strace that is neither a call nor damaged.
fn is_noise(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    text.is_empty()
        || line.starts_with(b" > ")
        || line.starts_with(b" | ")
        || (line.starts_with(b" * ") && line.windows(17).any(|part| part == b" bytes in buffer "))
        || is_message(text)
        || is_of_terminal(text)
        || is_title(text)
}

fn is_message(text: &[u8]) -> bool {
    const NUMBERED: [&[u8]; 4] = [b" attached", b" detached", b" resumed", b" suspended"];
    if text.starts_with(b"strace: ") || text.starts_with(b"[ Process PID=") {
        return true;
    }
    let Some(rest) = text.strip_prefix(b"Process ") else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && NUMBERED.iter().any(|&what| rest[digits..].starts_with(what))
}

/// Returns whether the line is the header of a table of `-c` or `-C`, with any columns.
pub fn is_title(text: &[u8]) -> bool {
    text.starts_with(b"System call usage summary") || strace_table::is_header(text)
}

fn is_row(text: &[u8]) -> bool {
    strace_table::is_row(text) || strace_table::is_rule(text)
}

/// Fills `raw` from the text of a whole call. Returns `None` if the line was cut or garbled.
#[inline(always)]
pub fn whole_call(text: &[u8], raw: &mut RawCall, batch: &mut Batch) -> Option<()> {
    let mut lexer = Lexer::new(text);
    let closed = arguments::read(&mut lexer, raw, batch);
    if !closed {
        // strace detached from the process during the call.
        return text.ends_with(DETACHED).then(|| raw.outcome = Outcome::NoResult);
    }
    ending::read(&mut lexer, raw, batch)?;
    note_fork(raw, batch);
    Some(())
}

/// Fills `raw` from the text of a call that has only begun.
pub fn begun_call(text: &[u8], raw: &mut RawCall, batch: &mut Batch) {
    arguments::read(&mut Lexer::new(text), raw, batch);
}

/// Fills in the result and the duration from the text after a `resumed>` whose beginning is lost.
pub fn orphaned_end(text: &[u8], raw: &mut RawCall, batch: &mut Batch) -> Option<()> {
    let mut lexer = Lexer::new(text);
    while lexer.next_argument() {}
    // These brackets were opened in the part that is lost.
    while matches!(lexer.peek(), b']' | b'}') {
        lexer.at += 1;
        while lexer.next_argument() {}
    }
    if lexer.peek() != b')' {
        return text.ends_with(DETACHED).then(|| raw.outcome = Outcome::NoResult);
    }
    ending::read(&mut lexer, raw, batch)?;
    note_fork(raw, batch);
    Some(())
}

#[inline]
fn note_fork(raw: &RawCall, batch: &mut Batch) {
    let forks = matches!(raw.call.spec().action, Action::Fork | Action::Vfork | Action::Clone);
    if !forks || raw.outcome != Outcome::Succeeded {
        return;
    }
    if let Some(child_tid) = u32::try_from(raw.result).ok().filter(|&child| child > 0) {
        batch.forks.push(Fork { parent_tid: raw.tid, child_tid, flags: raw.flags, call: raw.call });
    }
}

/// Parses the end of a process: `exited with 0 +++`, `killed by SIGKILL (core dumped) +++` or `superseded by
/// execve in pid 5 +++`.
pub fn task_end(text: &[u8], tid: u32, time: i64, batch: &mut Batch) -> Option<TaskEnd> {
    let mut end =
        TaskEnd { tid, time, exit_code: None, signal: Text::NONE, core_dumped: false, superseded_by: None };
    let mut lexer = Lexer::new(text.strip_suffix(b" +++")?);
    if lexer.eat_word(b"exited with ") {
        end.exit_code = Some(lexer.integer()? as i32);
    } else if lexer.eat_word(b"killed by ") {
        let signal = lexer.word();
        if signal.is_empty() {
            return None;
        }
        end.signal = batch.push_text(signal);
        end.core_dumped = memmem::find(lexer.rest(), b"core dumped").is_some();
    } else if lexer.eat_word(b"superseded by execve in pid ") {
        end.superseded_by = Some(lexer.digits()? as u32);
    } else {
        return None;
    }
    Some(end)
}
