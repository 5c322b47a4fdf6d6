//! Reads the kernel's messages from /dev/kmsg (Documentation/ABI/testing/dev-kmsg). Reading does not wait,
//! and is limited to the kernel's buffer. So a round reads at most one or two megabytes, however much a
//! driver writes.

use super::Reading;
use crate::clock::now;
use crate::events::LogRead;
use crate::logs::{skipped, Sieve, LONGEST_LINE};
use crate::sample::printable;
use iodock_counters::numbers::whole;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub const SOURCE: &str = "kernel-log";
const LOG: &str = "kmsg";
/// Size of the buffer for one record: the kernel's CONSOLE_EXT_LOG_MAX. Reading fails with a smaller buffer.
const RECORD: usize = 8192;
/// Largest number of records in one round. The kernel's buffer holds fewer, but a file in its place may hold
/// more.
const MOST_RECORDS: u64 = 1_000_000;

/// Returns the path of the kernel's log.
pub fn path(root: &Path) -> PathBuf {
    root.join("dev/kmsg")
}

pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)
}

pub fn read(reading: &Reading) {
    let Some((logs, positions)) = reading.logs() else { return };
    let path = path(reading.root());
    let Some(clock) = Clock::read(reading) else { return };
    let mut position =
        positions.get(LOG).map_or_else(|| Position::first(&clock), |text| Position::of(text, &clock));
    // Reading a newly opened file starts at the beginning of the kernel's buffer.
    let Some(mut file) = logs.kernel().or_else(|| reading.opened(&path, open(&path))) else { return };
    reading.announce(&path);
    let mut sieve = Sieve::new(&logs.rules, SOURCE);
    let mut lost = 0;
    let taken = records(&mut file, |record| match record {
        Some(record) => position.take(record, &clock, &mut sieve),
        None => lost += 1,
    });
    if let Err(error) = taken {
        reading.refuse(&path, &error);
    } else if !reading.remaining().is_zero()
        && file.metadata().is_ok_and(|known| known.file_type().is_char_device())
    {
        // The file stays open only if the result is in time. Otherwise the result is discarded, and the next
        // round opens the file again to read the same messages.
        logs.keep_kernel(file);
    }
    let mut events = sieve.events();
    // The kernel reports that messages were overwritten, but not their number.
    let text = "messages of the kernel were overwritten before they were read";
    events.extend((lost > 0).then(|| skipped(SOURCE, lost, text.into())));
    reading.log(LogRead { events, log: LOG.into(), position: position.text(&clock) });
}

/// Calls `take` with each record, or with `None` where the kernel has overwritten some. Fails if the file
/// cannot be read.
fn records(file: &mut File, mut take: impl FnMut(Option<&[u8]>)) -> io::Result<()> {
    if !file.metadata()?.file_type().is_char_device() {
        return lines(file, |line| take(Some(line)));
    }
    let mut buffer = [0; RECORD];
    for _ in 0..MOST_RECORDS {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => take(Some(&buffer[..read])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => take(None),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a copy of the log, for example one that a site sent for support.
fn lines(file: &mut File, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut faults = crate::lines::Faults::default();
    crate::lines::each_line(file, &mut faults, |line, _| take(line))
}

/// The machine's boot, and the time to which the kernel's time stamps refer.
struct Clock {
    boot: String,
    /// Time of the boot, ns since the epoch.
    begin: i64,
    now_us: u64,
}

impl Clock {
    fn read(reading: &Reading) -> Option<Clock> {
        let boot = reading.word(&reading.root().join("proc/sys/kernel/random/boot_id"))?;
        let uptime = reading.word(&reading.root().join("proc/uptime"))?;
        let text = std::str::from_utf8(&uptime).ok()?;
        let seconds: f64 = text.split(' ').next()?.parse().ok()?;
        let seconds = (0.0..1e10).contains(&seconds).then_some(seconds)?;
        let begin = now() - (seconds * 1e9) as i64;
        Some(Clock { boot: printable(&boot), begin, now_us: (seconds * 1e6) as u64 })
    }
}

/// Position in the messages of a boot: the number of the next record, and the time of the agent's start,
/// before which messages are old.
struct Position {
    next: u64,
    since_us: u64,
}

impl Position {
    /// Returns the position of the first agent on this machine. Earlier messages are old for it.
    fn first(clock: &Clock) -> Position {
        Position { next: 0, since_us: clock.now_us }
    }

    /// Parses a saved position. After another boot, all messages are new.
    fn of(text: &str, clock: &Clock) -> Position {
        let mut words = text.split(' ');
        let is_same_boot = words.next() == Some(&clock.boot);
        let mut number =
            || words.next().and_then(|word| word.parse().ok()).filter(|_| is_same_boot).unwrap_or(0);
        Position { next: number(), since_us: number() }
    }

    fn text(&self, clock: &Clock) -> String {
        format!("{} {} {}", clock.boot, self.next, self.since_us)
    }

    /// Parses a record `6,339,5140900,-,caller=T1;text`, which may be followed by lines that describe a
    /// device.
    fn take(&mut self, record: &[u8], clock: &Clock, sieve: &mut Sieve) {
        let Some(end) = memchr::memchr(b';', record) else { return };
        let mut fields = record[..end].split(|byte| *byte == b',').map(whole);
        let (Some(_), Some(number), Some(time_us)) =
            (fields.next().flatten(), fields.next().flatten(), fields.next().flatten())
        else {
            return;
        };
        if number < self.next || time_us < self.since_us {
            return;
        }
        self.next = number.saturating_add(1);
        let text = &record[end + 1..];
        let text = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len()).min(LONGEST_LINE)];
        let time = i64::try_from(time_us).unwrap_or(i64::MAX).saturating_mul(1000);
        sieve.line(text, || clock.begin.saturating_add(time).min(now()));
    }
}
