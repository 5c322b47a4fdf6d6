//! Parses the columns before a call: thread, time, system call number (`-n`), instruction pointer (`-i`).

use super::eights;
use super::lexer::Lexer;
use iodock_event::{Clock, UNKNOWN};

const SECOND: i64 = 1_000_000_000;
/// Smallest number of seconds that is a time since the epoch (reached in 1973). No process id and no uptime
/// is that large.
const FIRST_EPOCH_SECOND: u64 = 100_000_000;

/// The columns at the beginning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Thread id; `None` if the line shows none.
    pub tid: Option<u32>,
    /// Whether the thread was shown as `[pid N]`, as on a terminal.
    pub bracketed: bool,
    pub stamp: Stamp,
}

/// The time at the beginning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub clock: Clock,
    /// Time in ns since the epoch, since midnight or since the previous line; [`UNKNOWN`] for
    /// [`Clock::None`].
    pub ns: i64,
    /// Resolution of the time, ns.
    pub resolution: i64,
}

const NO_STAMP: Stamp = Stamp { clock: Clock::None, ns: UNKNOWN, resolution: 0 };

/// Parses the prefix and leaves `lexer` after it.
#[inline(always)]
pub fn read(lexer: &mut Lexer<'_>) -> Prefix {
    let mut prefix = Prefix { tid: None, bracketed: false, stamp: NO_STAMP };
    let padded = lexer.peek() == b' ';
    lexer.skip_spaces();
    if lexer.peek() == b'[' {
        prefix.tid = bracketed_tid(lexer);
        prefix.bracketed = prefix.tid.is_some();
    } else if !padded {
        prefix.tid = plain_tid(lexer);
    }
    prefix.stamp = stamp(lexer);
    if lexer.peek() == b'(' && lexer.rest().starts_with(b"(+ ") {
        skip_past(lexer, b')');
    }
    while lexer.peek() == b'[' && skip_column(lexer) {}
    prefix
}

/// Parses a thread id as `1234 ` or `1234<comm> `.
#[inline(always)]
fn plain_tid(lexer: &mut Lexer<'_>) -> Option<u32> {
    // The lexer is not copied as a whole, because reading all its fields at once after separate writes would
    // stall the processor.
    let start = lexer.at;
    let tid = lexer.digits()?;
    let named = lexer.peek() == b'<' && skip_comm(lexer);
    if tid < FIRST_EPOCH_SECOND && (lexer.peek() == b' ' || named) {
        lexer.skip_spaces();
        return Some(tid as u32);
    }
    lexer.at = start;
    None
}

/// Parses a thread id as `[pid  1234] ` or `[pid 1234<comm>] `.
fn bracketed_tid(lexer: &mut Lexer<'_>) -> Option<u32> {
    let start = *lexer;
    if lexer.eat_word(b"[pid ") {
        lexer.skip_spaces();
        let tid = lexer.digits();
        let named = lexer.peek() != b'<' || skip_comm(lexer);
        if let (Some(tid), true, true) = (tid, named, lexer.eat(b']')) {
            lexer.skip_spaces();
            return u32::try_from(tid).ok();
        }
    }
    *lexer = start;
    None
}

/// Skips `<comm>`, a name of up to 15 arbitrary bytes. It ends at the first `>` that is followed by a
/// blank or by `]`.
fn skip_comm(lexer: &mut Lexer<'_>) -> bool {
    let rest = lexer.rest();
    let end =
        (1..rest.len().min(70)).find(|&at| rest[at] == b'>' && matches!(rest.get(at + 1), Some(b' ' | b']')));
    if let Some(end) = end {
        lexer.at += end + 1;
    }
    end.is_some()
}

/// Parses the time column, if there is one.
#[inline(always)]
fn stamp(lexer: &mut Lexer<'_>) -> Stamp {
    if let Some(stamp) = usual_stamp(lexer) {
        return stamp;
    }
    let start = *lexer;
    let Some(first) = lexer.digits() else { return NO_STAMP };
    let (clock, seconds) = match lexer.peek() {
        b':' => match clock_seconds(lexer, first) {
            Some(seconds) => (Clock::Day, seconds),
            None => {
                *lexer = start;
                return NO_STAMP;
            }
        },
        b'.' | b' ' if first >= FIRST_EPOCH_SECOND => (Clock::Epoch, first),
        b'.' | b' ' => (Clock::Relative, first),
        _ => {
            *lexer = start;
            return NO_STAMP;
        }
    };
    let point = lexer.at;
    let (fraction, resolution) = fraction(lexer);
    // `1. ` is the number of a line, not a time.
    if lexer.peek() != b' ' || lexer.at == point + 1 {
        *lexer = start;
        return NO_STAMP;
    }
    lexer.skip_spaces();
    let ns = (seconds as i64).saturating_mul(SECOND).saturating_add(fraction);
    Stamp { clock, ns, resolution }
}

/// Parses `HH:MM:SS.ffffff ` and `SSSSSSSSSS.ffffff `, the forms in nearly all logs, without a loop.
#[inline(always)]
fn usual_stamp(lexer: &mut Lexer<'_>) -> Option<Stamp> {
    let first = eights::values(eights::eight(lexer.text, lexer.at)?);
    let (clock, seconds, width) = match eights::are_digits(first) {
        true => (Clock::Epoch, epoch_seconds(lexer, first)?, 10),
        false => (Clock::Day, day_seconds(first)?, 8),
    };
    let micros = micros(eights::eight(lexer.text, lexer.at + width)?)?;
    lexer.at += width + 8;
    lexer.skip_spaces();
    Some(Stamp { clock, ns: seconds as i64 * SECOND + micros as i64 * 1000, resolution: 1000 })
}

/// Returns the seconds, which have ten digits. `first` contains the first eight.
fn epoch_seconds(lexer: &Lexer<'_>, first: u64) -> Option<u64> {
    let [tens, ones] = *lexer.text.get(lexer.at + 8..)?.first_chunk()?;
    let seconds = eights::number(first) * 100 + u64::from(tens.wrapping_sub(b'0')) * 10;
    let seconds = seconds + u64::from(ones.wrapping_sub(b'0'));
    (tens.is_ascii_digit() && ones.is_ascii_digit() && seconds >= FIRST_EPOCH_SECOND).then_some(seconds)
}

/// Returns the seconds of the day for `HH:MM:SS`. `values` is from [`eights::values`].
#[inline(always)]
fn day_seconds(values: u64) -> Option<u64> {
    const COLON: u64 = (b':' ^ b'0') as u64;
    const COLONS: u64 = COLON << 16 | COLON << 40;
    // This makes the colons zeros, so that all eight characters must be digits.
    let values = values ^ COLONS;
    let pairs = eights::pairs(values);
    let pair = |at: u32| pairs >> (8 * at) & 0xff;
    let (hours, minutes, seconds) = (pair(0), pair(3), pair(6));
    let is_time = eights::are_digits(values) && values & (0xff << 16 | 0xff << 40) == 0;
    (is_time && hours <= 23 && minutes <= 59 && seconds <= 60)
        .then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Parses the fraction `.ffffff ` of a second to µs.
#[inline(always)]
fn micros(word: u64) -> Option<u64> {
    const ENDS: u64 = 0xff << 56 | 0xff;
    if word & ENDS != u64::from(b' ') << 56 | u64::from(b'.') {
        return None;
    }
    // Two zeros are put before the six digits, so that there are eight.
    let values = (eights::values(word) & !ENDS) << 8;
    eights::are_digits(values).then(|| eights::number(values))
}

/// Parses `:MM:SS` after the hours.
#[inline]
fn clock_seconds(lexer: &mut Lexer<'_>, hours: u64) -> Option<u64> {
    let two = |at: usize| {
        let (&tens, &ones) = (lexer.text.get(at)?, lexer.text.get(at + 1)?);
        (tens.is_ascii_digit() && ones.is_ascii_digit())
            .then(|| u64::from(tens - b'0') * 10 + u64::from(ones - b'0'))
    };
    let minutes = two(lexer.at + 1)?;
    let seconds = two(lexer.at + 4)?;
    if lexer.text[lexer.at + 3] != b':' || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    lexer.at += 6;
    Some(hours * 3600 + minutes * 60 + seconds)
}

/// Parses a fraction such as `.123456` to ns, and returns its resolution in ns.
#[inline]
pub fn fraction(lexer: &mut Lexer<'_>) -> (i64, i64) {
    if lexer.peek() != b'.' {
        return (0, SECOND);
    }
    lexer.at += 1;
    let start = lexer.at;
    let mut value = 0i64;
    while let digit @ b'0'..=b'9' = lexer.peek() {
        if lexer.at - start < 9 {
            value = value * 10 + i64::from(digit - b'0');
        }
        lexer.at += 1;
    }
    static SCALE: [i64; 10] = [SECOND, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10, 1];
    let scale = SCALE[(lexer.at - start).min(9)];
    (value * scale, scale)
}

/// Skips a column such as `[ 257] `, `[00007f3c1b0e4a90] ` or `[????????????????] `.
fn skip_column(lexer: &mut Lexer<'_>) -> bool {
    let rest = lexer.rest();
    let width = rest.len().min(24);
    let end =
        rest[1..width].iter().position(|byte| !(byte.is_ascii_hexdigit() || matches!(byte, b' ' | b'?')));
    match end {
        Some(end) if end > 0 && rest[end + 1] == b']' => {
            lexer.at += end + 2;
            lexer.skip_spaces();
            true
        }
        _ => false,
    }
}

fn skip_past(lexer: &mut Lexer<'_>, byte: u8) {
    if let Some(at) = memchr::memchr(byte, lexer.rest()) {
        lexer.at += at + 1;
        lexer.skip_spaces();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parsed tid, clock, ns and resolution, and the rest of the line.
    fn parts(line: &'static str) -> (Option<u32>, Clock, i64, i64, &'static str) {
        let mut lexer = Lexer::new(line.as_bytes());
        let prefix = read(&mut lexer);
        let Stamp { clock, ns, resolution } = prefix.stamp;
        (prefix.tid, clock, ns, resolution, std::str::from_utf8(lexer.rest()).unwrap())
    }

    #[test]
    fn all_leading_columns_of_strace_are_read() {
        let none = (Clock::None, UNKNOWN, 0);
        let with = |tid, (clock, ns, resolution), rest| (tid, clock, ns, resolution, rest);
        let day = (Clock::Day, 10_532_989_554_000, 1000);
        let epoch = (Clock::Epoch, 1_795_229_749_117_596_000, 1000);
        for (line, expected) in [
            ("read(3) = 0", with(None, none, "read(3) = 0")),
            ("12    read(3) = 0", with(Some(12), none, "read(3) = 0")),
            ("12337 02:55:32.989554 read(", with(Some(12337), day, "read(")),
            ("02:55:32.989554 read(", with(None, day, "read(")),
            ("02:55:32 read(", with(None, (Clock::Day, 10_532_000_000_000, SECOND), "read(")),
            ("1795229749.117596 read(", with(None, epoch, "read(")),
            ("13381 1795229749.117596 read(", with(Some(13381), epoch, "read(")),
            ("1795229749 read(", with(None, (Clock::Epoch, 1_795_229_749_000_000_000, SECOND), "read(")),
            ("1795229749.117596001 read(", with(None, (Clock::Epoch, 1_795_229_749_117_596_001, 1), "read(")),
            ("     0.000123 read(", with(None, (Clock::Relative, 123_000, 1000), "read(")),
            ("12         0.000123 read(", with(Some(12), (Clock::Relative, 123_000, 1000), "read(")),
            ("12         3 read(", with(Some(12), (Clock::Relative, 3 * SECOND, SECOND), "read(")),
            ("     3 read(", with(None, (Clock::Relative, 3 * SECOND, SECOND), "read(")),
            ("[pid 12337] 02:55:32.989554 read(", with(Some(12337), day, "read(")),
            ("[pid    12] read(", with(Some(12), none, "read(")),
            ("[pid    12<a b>] read(", with(Some(12), none, "read(")),
            ("12337<comm> 02:55:32.989554 read(", with(Some(12337), day, "read(")),
            ("02:55:32.989554 (+     0.000012) read(", with(None, day, "read(")),
            ("02:55:32.989554 [ 257] openat(", with(None, day, "openat(")),
            ("12 [00007f3c1b0e4a90] read(", with(Some(12), none, "read(")),
            ("12 [   0] [00007f3c1b0e4a90] read(", with(Some(12), none, "read(")),
            ("[????????????????] +++ x", with(None, none, "+++ x")),
            ("[ Process PID=1 runs", with(None, none, "[ Process PID=1 runs")),
            ("02:55:3x.989554 read(0, 1)", with(None, none, "02:55:3x.989554 read(0, 1)")),
            ("179522974x.117596 read(", with(None, none, "179522974x.117596 read(")),
            ("0795229749.117596 read(", with(None, (Clock::Epoch, 795_229_749_117_596_000, 1000), "read(")),
            ("1. read(", with(None, none, "1. read(")),
            ("12:99:00 read(", with(None, none, "12:99:00 read(")),
            ("", with(None, none, "")),
        ] {
            assert_eq!(parts(line), expected, "{line}");
        }
    }
}
