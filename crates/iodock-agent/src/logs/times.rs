//! Finds the time at which a line of a log was written, and the text after it.

use iodock_counters::numbers::whole;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A line of syslog in one of two formats. `Nov 22 08:00:01 oss1 kernel: text` (RFC 3164) has a local time
/// without a year. The other is `2026-11-22T08:00:01.25+09:00 oss1 kernel: text` (RFC 3339).
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    when: When,
    /// Name of the program, without its process number. Empty if the line does not contain it.
    pub program: &'a [u8],
    /// Text from the program's name on. For the kernel it is only the message, without `[ 1234.567890]`.
    pub text: &'a [u8],
}

/// Time as the line contains it. It is converted only for the few lines that are events, because converting
/// local time takes longer than all other steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Nothing,
    /// Time in ns since the epoch.
    At(i64),
    /// Local time: month (0 is January), day, hour, minute, second.
    Local([i32; 5]),
}

impl Line<'_> {
    /// Returns whether the time is local, without a time zone and without a fraction of a second.
    pub fn is_local(&self) -> bool {
        matches!(self.when, When::Local(_))
    }

    /// Returns the time in ns since the epoch, at most `now`. `None` if the line has no valid time.
    pub fn time(&self, now: i64) -> Option<i64> {
        let time = match self.when {
            When::Nothing => None,
            When::At(time) => Some(time),
            When::Local(parts) => last_such_day(parts, now),
        };
        time.filter(|time| (0..=now).contains(time))
    }
}

pub fn line(line: &[u8]) -> Line<'_> {
    let known = rfc3339(line).map(|(time, rest)| (When::At(time), rest));
    let known = known.or_else(|| rfc3164(line).map(|(parts, rest)| (When::Local(parts), rest)));
    let (when, rest) = known.unwrap_or((When::Nothing, line));
    let host = rest.iter().position(|byte| *byte == b' ').filter(|_| when != When::Nothing);
    let text = host.map_or(rest, |end| &rest[end + 1..]);
    let end = text.iter().position(|byte| b"[: ".contains(byte)).filter(|_| host.is_some()).unwrap_or(0);
    let (program, text) = match &text[..end] {
        program @ b"kernel" => (program, without_stamp(text[end..].strip_prefix(b":").unwrap_or(text))),
        program => (program, text),
    };
    Line { when, program, text }
}

/// Returns the text after the `[ 1234.567890]` that printk.time adds.
fn without_stamp(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_start();
    let Some((stamp, rest)) =
        text.strip_prefix(b"[").and_then(|rest| Some(rest.split_at(memchr::memchr(b']', rest)?)))
    else {
        return text;
    };
    match stamp.iter().all(|byte| b" .".contains(byte) || byte.is_ascii_digit()) {
        true => rest[1..].trim_ascii_start(),
        false => text,
    }
}

fn rfc3339(line: &[u8]) -> Option<(i64, &[u8])> {
    let end = line.iter().position(|byte| *byte == b' ')?;
    let text = &line[..end];
    let number = |range: std::ops::Range<usize>| text.get(range).and_then(whole).map(|number| number as i64);
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| text.get(*at) != Some(mark)) {
        return None;
    }
    let days = days_from_civil(number(0..4)?, number(5..7)?, number(8..10)?)?;
    let seconds = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
    let (fraction, zone) = fraction(text.get(19..)?);
    let offset = match zone {
        b"Z" | b"z" => 0,
        zone => {
            let sign = match zone.first()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            sign * (zone.get(1..3).and_then(whole)? * 3600 + zone.get(4..6).and_then(whole)? * 60) as i64
        }
    };
    let time = (days * 86_400 + seconds - offset).checked_mul(SECOND)?.checked_add(fraction)?;
    Some((time, &line[end + 1..]))
}

/// Parses a fraction such as `.123456`. Returns it in nanoseconds, with the text after it.
fn fraction(text: &[u8]) -> (i64, &[u8]) {
    let Some(digits) = text.strip_prefix(b".") else { return (0, text) };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let known = &digits[..end.min(9)];
    let value = whole(known).unwrap_or(0) as i64 * 10i64.pow(9 - known.len() as u32);
    (value, &digits[end..])
}

/// Returns the number of days since the epoch (Howard Hinnant, chrono-compatible low-level date algorithms).
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    Some(year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

fn rfc3164(line: &[u8]) -> Option<([i32; 5], &[u8])> {
    let head = line.get(..16)?;
    let month = MONTHS.iter().position(|month| line.starts_with(month))?;
    let number = |range: std::ops::Range<usize>| whole(head[range].trim_ascii()).map(|number| number as i32);
    if head[3] != b' ' || head[6] != b' ' || head[9] != b':' || head[12] != b':' || head[15] != b' ' {
        return None;
    }
    let parts = [month as i32, number(4..6)?, number(7..9)?, number(10..12)?, number(13..15)?];
    Some((parts, &line[16..]))
}

/// Returns the latest time with this month, day and time of day, for a line without a year. The line's clock
/// may be slightly ahead of `now`.
fn last_such_day([month, day, hour, minute, second]: [i32; 5], now: i64) -> Option<i64> {
    let year = local_year(now);
    let at = |year| local(year, month, day, [hour, minute, second]);
    at(year).filter(|time| *time <= now.saturating_add(DAY)).or_else(|| at(year - 1))
}

/// Returns the local year, counted from 1900.
fn local_year(now: i64) -> i32 {
    let seconds = now / SECOND;
    // SAFETY: zeroes are a valid tm, and both pointers are to variables of this function.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut parts);
        parts.tm_year
    }
}

fn local(year: i32, month: i32, day: i32, [hour, minute, second]: [i32; 3]) -> Option<i64> {
    // SAFETY: zeroes are a valid tm.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year, month, day);
    (parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_isdst) = (hour, minute, second, -1);
    // SAFETY: mktime reads and writes only the structure that it gets.
    let seconds = unsafe { libc::mktime(&mut parts) };
    seconds.checked_mul(SECOND).filter(|time| *time >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22T08:00:00Z in ns since the epoch.
    const NOW: i64 = 1_795_334_400 * SECOND;

    #[test]
    fn times_with_a_zone_are_converted() {
        let read = |text: &'static str| line(text.as_bytes()).time(NOW);
        let whole = line(b"2026-11-22T16:59:01.25+09:00 oss1 kernel: x");
        assert_eq!(whole.time(NOW), Some(NOW - 59 * SECOND + SECOND / 4));
        assert_eq!((whole.program, whole.text), (&b"kernel"[..], &b"x"[..]));
        assert_eq!(read("2026-11-22T07:59:01Z oss1 mmfs[12]: x"), Some(NOW - 59 * SECOND));
        assert_eq!(read("2024-02-29T00:00:00-01:30 h p: x"), Some(1_709_170_200 * SECOND));
        // The following lines are later than now, or have no valid date.
        for bad in [
            "2027-11-22T07:59:01Z h p: x",
            "9999-11-22T07:59:01Z h p: x",
            "2026-13-22T07:59:01Z h p: x",
            "2026-11-22T07:59:01 h p: x",
            "",
            "é",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_time_without_a_year_belongs_to_the_most_recent_such_day() {
        let at = |text: &'static str| line(text.as_bytes()).time(NOW).expect("a time");
        let hours = |time: i64| (NOW - time) / (3600 * SECOND);
        // The limits are wide enough for any time zone of the test machine.
        assert!(hours(at("Nov 20 08:00:00 oss1 kernel: x")) / 24 <= 3);
        assert!((355..=370).contains(&(hours(at("Nov 25 08:00:00 oss1 kernel: x")) / 24)));
        assert_eq!(line(b"Nov 22 08:00:0x oss1 kernel: x").time(NOW), None);
    }

    #[test]
    fn the_program_and_the_text_of_a_line_are_found() {
        assert_eq!(line(b"Nov  2 08:00:01 oss1 systemd[1]: x").program, b"systemd");
        assert_eq!(line(b"Nov"), Line { when: When::Nothing, program: b"", text: b"Nov" });
        let kernel = line(b"Nov  2 08:00:01 oss1 kernel: [ 12.345678] sd 0:0:0:0: [sda] x");
        assert_eq!(kernel.text, b"sd 0:0:0:0: [sda] x");
        assert_eq!(line(b"Nov  2 08:00:01 oss1 mmfs[7]: [E] x").text, b"mmfs[7]: [E] x");
    }
}
