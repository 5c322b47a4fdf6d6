//! Parses the text after a call's closing bracket: result, error, duration.

use super::eights;
use super::lexer::Lexer;
use super::prefix::fraction;
use super::values::{descriptor_name, push_unescaped};
use iodock_event::{Batch, ErrnoId, Outcome, RawCall, Text, UNKNOWN};
use memchr::{memmem, memrchr};

const SECOND: i64 = 1_000_000_000;
/// Length in bytes of the longest duration with its brackets, `<18446744073709551615.999999999>`. A longer
/// text is not a duration.
const LONGEST_DURATION: usize = 34;

/// Parses `) = 3</path> <0.000012>`, from the bracket on. Returns `None` if the text is different.
#[inline(always)]
pub fn read(lexer: &mut Lexer<'_>, raw: &mut RawCall, batch: &mut Batch) -> Option<()> {
    if !lexer.eat(b')') {
        return None;
    }
    lexer.skip_spaces();
    if !lexer.eat(b'=') {
        return None;
    }
    lexer.skip_spaces();
    if usual(lexer, raw) {
        return Some(());
    }
    take_duration(lexer, raw);
    if lexer.eat(b'?') {
        return without_number(lexer, raw);
    }
    raw.result = lexer.integer()?;
    raw.outcome = Outcome::Succeeded;
    match lexer.peek() {
        0 if lexer.at_end() => {}
        b'<' => raw.result_text = result_name(lexer, batch),
        // Two lines were merged, so neither the result nor the duration can be trusted.
        b' ' if memmem::find(lexer.rest(), b") = ").is_some() => return None,
        b' ' => after_number(lexer, raw),
        _ => return None,
    }
    Some(())
}

/// Parses `512 <0.000012>`, the ending of most calls. Returns `false` for any other text, without consuming
/// it.
#[inline(always)]
fn usual(lexer: &mut Lexer<'_>, raw: &mut RawCall) -> bool {
    let start = lexer.at;
    let result = lexer.digits();
    let octal = lexer.text.get(start) == Some(&b'0') && lexer.at > start + 1;
    let duration = match lexer.rest() {
        [b' ', b'<', time @ .., b'>'] if !octal => usual_duration(time),
        _ => None,
    };
    let (Some(result), Some(duration)) = (result, duration) else {
        lexer.at = start;
        return false;
    };
    raw.result = result as i64;
    raw.outcome = Outcome::Succeeded;
    raw.duration = duration;
    true
}

/// Parses a duration such as `0.000012` to ns.
#[inline(always)]
fn usual_duration(time: &[u8]) -> Option<i64> {
    const POINT: u64 = 0xff << 8;
    let word =
        eights::eight(time, 0).filter(|word| time.len() == 8 && word & POINT == u64::from(b'.') << 8)?;
    let values = eights::values(word) & !POINT;
    let seconds = values & 0xff;
    let micros = eights::number(values & !0xff);
    eights::are_digits(values).then(|| seconds as i64 * SECOND + micros as i64 * 1000)
}

/// Removes the duration ` <0.000012>` from the end of the text and stores it.
#[inline]
fn take_duration(lexer: &mut Lexer<'_>, raw: &mut RawCall) {
    let text = lexer.text;
    if text.last() != Some(&b'>') {
        return;
    }
    let Some((at, duration)) = last_duration(text, lexer.at) else { return };
    // A name may look like a duration, as in `= 3</tmp/a <1.0>`. If it were removed, the name's bracket would
    // not be closed.
    let rest = text[lexer.at..at - 1].trim_ascii_end();
    let bracket = rest.iter().take(22).position(|&byte| byte == b'<');
    let named = bracket.is_some_and(|at| at > 0 && rest[at - 1].is_ascii_digit());
    if named && !matches!(rest.last(), Some(b'>' | b')')) {
        return;
    }
    raw.duration = duration;
    lexer.text = &text[..lexer.at + rest.len()];
}

/// Returns the position of the `<` of a duration ` <0.000012>` at the text's end, and its value in ns.
#[inline]
fn last_duration(text: &[u8], start: usize) -> Option<(usize, i64)> {
    let usual = text.len().checked_sub(10).filter(|&at| at > start && text[at] == b'<');
    let from = text.len().saturating_sub(LONGEST_DURATION).max(start);
    let at = match usual {
        Some(at) => at,
        None => from + memrchr(b'<', &text[from..])?,
    };
    let mut inner = Lexer::new(&text[..text.len() - 1]);
    inner.at = at + 1;
    let seconds = inner.digits()?;
    let (part, _) = fraction(&mut inner);
    if !inner.at_end() || at <= start || text[at - 1] != b' ' {
        return None;
    }
    Some((at, (seconds as i64).saturating_mul(SECOND).saturating_add(part)))
}

/// Parses a missing result: `?`, or `? ERESTARTSYS (To be restarted if SA_RESTART is set)`.
fn without_number(lexer: &mut Lexer<'_>, raw: &mut RawCall) -> Option<()> {
    lexer.skip_spaces();
    if lexer.peek() == b'E' {
        raw.outcome = Outcome::Failed;
        raw.errno = ErrnoId::intern(lexer.word()).unwrap_or(ErrnoId::NONE);
        raw.result = -1;
    } else {
        raw.outcome = Outcome::NoResult;
        raw.duration = UNKNOWN;
    }
    Some(())
}

/// Returns the name of a returned descriptor, which is the text up to the last `>`.
fn result_name(lexer: &mut Lexer<'_>, batch: &mut Batch) -> Text {
    match memrchr(b'>', lexer.rest()) {
        Some(_) if lexer.rest().ends_with(b">") => {
            let inner = &lexer.rest()[1..lexer.rest().len() - 1];
            push_unescaped(inner, memchr::memchr(b'\\', inner).is_some(), batch)
        }
        _ => descriptor_name(lexer, batch),
    }
}

/// Parses the text after a result: ` ENOENT (No such file or directory)`, ` (errno 22)`, ` (Timeout)` or `
/// (flags O_RDWR)`.
fn after_number(lexer: &mut Lexer<'_>, raw: &mut RawCall) {
    lexer.skip_spaces();
    if raw.result == -1 && lexer.peek() == b'E' {
        raw.outcome = Outcome::Failed;
        raw.errno = ErrnoId::intern(lexer.word()).unwrap_or(ErrnoId::NONE);
    } else if raw.result == -1 && lexer.eat_word(b"(errno ") {
        raw.outcome = Outcome::Failed;
        let number = lexer.digits().and_then(|number| i32::try_from(number).ok());
        raw.errno = number.map_or(ErrnoId::NONE, ErrnoId::from_linux);
    } else if lexer.peek() == b'/' && memmem::find(lexer.rest(), b"in strace's PID NS").is_some() {
        lexer.at += 2;
        lexer.skip_spaces();
        raw.result = lexer.integer().unwrap_or(raw.result);
    }
}
