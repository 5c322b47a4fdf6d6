//! The times before the calls and the durations after them.

use iodock_event::{Clock, Record, UNKNOWN};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const HALF_DAY: i64 = DAY / 2;
/// Smallest number of seconds that is a time since the epoch (reached in 1973). No pause between two lines is
/// that long.
const FIRST_EPOCH_SECOND: i64 = 100_000_000;

/// A time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub clock: Clock,
    /// Time in ns since the epoch, since midnight or since the previous line.
    pub ns: i64,
    /// Resolution of the time, ns.
    pub resolution: i64,
}

/// Parses a time stamp such as `16:42:49 `, `16:42:49.903645 `, `1795968169.903645 ` or `  0.000093 `. Also
/// returns the text after it.
pub fn read(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let text = text.trim_ascii_start();
    let (first, rest) = digits(text)?;
    let (clock, seconds, rest) = match rest.strip_prefix(b":") {
        Some(rest) => {
            let (minutes, rest) = two(rest)?;
            let (seconds, rest) = two(rest.strip_prefix(b":")?)?;
            (first <= 23 && minutes <= 59 && seconds <= 60).then_some(())?;
            (Clock::Day, first * 3600 + minutes * 60 + seconds, rest)
        }
        None if first >= FIRST_EPOCH_SECOND => (Clock::Epoch, first, rest),
        None => (Clock::Relative, first, rest),
    };
    let (part, rest) = match micros(rest) {
        Some((part, rest)) => (Some(part), rest),
        // Only `-t` prints whole seconds.
        None if clock == Clock::Day => (None, rest),
        None => return None,
    };
    let ns = seconds.checked_mul(SECOND)?.checked_add(part.unwrap_or(0))?;
    let resolution = if part.is_some() { 1000 } else { SECOND };
    Some((Stamp { clock, ns, resolution }, rest.strip_prefix(b" ")?))
}

/// Returns that one of two time columns which does not depend on the previous line.
pub fn better(one: Option<Stamp>, other: Stamp) -> Stamp {
    one.filter(|one| one.clock != Clock::Relative).unwrap_or(other)
}

/// Parses a duration such as `<0.000093>` to ns.
pub fn duration(text: &[u8]) -> Option<i64> {
    let (seconds, rest) = digits(text.strip_prefix(b"<")?)?;
    let (part, rest) = micros(rest)?;
    (rest == b">").then_some(())?;
    seconds.checked_mul(SECOND)?.checked_add(part)
}

fn digits(text: &[u8]) -> Option<(i64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&text[..length]).ok()?.parse().ok()?;
    Some((number, &text[length..]))
}

fn two(text: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = digits(text)?;
    (text.len() - rest.len() == 2).then_some((number, rest))
}

/// Parses a fraction of a second such as `.903645` to ns. Also returns the text after it.
fn micros(text: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = digits(text.strip_prefix(b".")?)?;
    (text.len() - rest.len() == 7).then_some((number * 1000, rest))
}

/// The time within one chunk. Days and sums count from the first line of the chunk, until
/// [`Timeline::settle`] adds those of the preceding chunks.
#[derive(Debug, Default)]
pub struct Times {
    /// Times of the first and the last line, within their day, ns.
    first: Option<i64>,
    last: Option<i64>,
    /// Midnights so far, or the sum of the times between lines, in ns.
    base: i64,
}

impl Times {
    /// Returns the time of a line; [`UNKNOWN`] if its stamp has another form than those of the log.
    pub fn time(&mut self, clock: Clock, stamp: Option<Stamp>) -> i64 {
        let Some(stamp) = stamp.filter(|stamp| stamp.clock == clock) else { return UNKNOWN };
        match clock {
            Clock::Day => {
                if self.last.is_some_and(|last| stamp.ns + HALF_DAY < last) {
                    self.base = self.base.saturating_add(DAY);
                }
                self.first.get_or_insert(stamp.ns);
                self.last = Some(stamp.ns);
                self.base.saturating_add(stamp.ns)
            }
            Clock::Relative => {
                self.base = self.base.saturating_add(stamp.ns);
                self.base
            }
            Clock::Epoch => stamp.ns,
            Clock::None => UNKNOWN,
        }
    }
}

/// The time over all chunks so far.
#[derive(Debug, Default)]
pub struct Timeline {
    last: Option<i64>,
    base: i64,
    chunk_base: i64,
}

impl Timeline {
    /// Moves the times of a chunk after those of the previous chunks.
    pub fn settle(&mut self, times: &Times, records: &mut [Record]) {
        if self.last.zip(times.first).is_some_and(|(last, first)| first + HALF_DAY < last) {
            self.base = self.base.saturating_add(DAY);
        }
        for record in records {
            match record {
                Record::Call(raw) => {
                    raw.start = moved(raw.start, self.base);
                    raw.end = moved(raw.end, self.base);
                }
                Record::End(end) => end.time = moved(end.time, self.base),
                _ => {}
            }
        }
        self.chunk_base = self.base;
        self.base = self.base.saturating_add(times.base);
        self.last = times.last.or(self.last);
    }

    /// Converts a time within the last settled chunk to a time of the log.
    pub fn of_chunk(&self, time: i64) -> i64 {
        moved(time, self.chunk_base)
    }
}

fn moved(time: i64, by: i64) -> i64 {
    if time == UNKNOWN {
        time
    } else {
        time.saturating_add(by)
    }
}
