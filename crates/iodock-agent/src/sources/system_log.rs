//! Reads syslog files: those that `--log` names, else the first usual file that exists. If a file was
//! rotated, the old file is read to its end; truncated files are read from their beginning. Of very many
//! messages only a part is read.

use super::{is_gone, kernel_log, Reading};
use crate::clock::now;
use crate::events::LogRead;
use crate::logs::{skipped, times, Sieve};
use crate::sample::printable;
use iodock_counters::numbers::whole;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub const SOURCE: &str = "system-log";
const USUAL: [&str; 2] = ["var/log/messages", "var/log/syslog"];
/// Largest number of bytes of a file that one round reads: about 300,000 lines. Earlier lines are skipped,
/// which the agent reports.
const MOST_BYTES: u64 = 32 << 20;
/// Number of bytes that are read at once. A longer line is skipped.
const BUFFER: usize = 256 << 10;

pub fn read(reading: &Reading) {
    let Some((logs, positions)) = reading.logs() else { return };
    // If the kernel's log can be read, the kernel's messages in syslog are skipped, so that they do not count
    // twice.
    let has_kernel = kernel_log::open(&kernel_log::path(reading.root())).is_ok();
    for path in files(reading, logs.files.as_deref()) {
        let log = format!("file {}", printable(path.as_os_str().as_bytes()));
        let mut sieve = Sieve::new(&logs.rules, SOURCE);
        let before = positions.get(&log).map(|text| LogPosition::of(text));
        reading.announce(&path);
        let mut last = Moment::default();
        match follow(&path, before, &mut |line| take(line, has_kernel, &mut sieve, &mut last)) {
            Ok((place, bytes)) => {
                let mut events = sieve.events();
                let text = || format!("{}: {bytes} bytes", path.display());
                events.extend((bytes > 0).then(|| skipped(SOURCE, 1, printable(text().as_bytes()))));
                reading.log(LogRead { events, log, position: place.text() });
            }
            Err(error) => reading.refuse(&path, &error),
        }
    }
}

/// Returns the files to read, whether or not they exist.
pub fn files(reading: &Reading, named: Option<&[PathBuf]>) -> Vec<PathBuf> {
    let below = |path: &Path| reading.root().join(path.strip_prefix("/").unwrap_or(path));
    match named {
        Some(files) => files.iter().map(|path| below(path)).collect(),
        None => USUAL
            .iter()
            .map(|path| reading.root().join(path))
            .find(|path| path.is_file())
            .into_iter()
            .collect(),
    }
}

/// Keeps the converted time of lines that begin with the same time. Converting times is slow, and if there
/// are many lines, most have the same second.
#[derive(Default)]
struct Moment {
    begin: [u8; STAMP],
    time: i64,
}

/// Length of a time such as `Nov 22 08:00:01`.
const STAMP: usize = 15;

impl Moment {
    fn of(&mut self, line: &[u8], found: &times::Line) -> i64 {
        let begin = line.first_chunk::<STAMP>();
        if found.is_local() && begin == Some(&self.begin) {
            return self.time;
        }
        let now = now();
        self.time = found.time(now).unwrap_or(now);
        self.begin = begin.copied().unwrap_or_default();
        self.time
    }
}

fn take(line: &[u8], has_kernel: bool, sieve: &mut Sieve, last: &mut Moment) {
    let found = times::line(line);
    if !(has_kernel && found.program == b"kernel") {
        sieve.line(found.text, || last.of(line, &found));
    }
}

/// Identity of a file and the position in it. All fields are zero if the file did not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LogPosition {
    device: u64,
    inode: u64,
    offset: u64,
}

impl LogPosition {
    fn of(text: &str) -> LogPosition {
        let mut numbers = text.split(' ').map_while(|word| whole(word.as_bytes()));
        let mut number = || numbers.next().unwrap_or(0);
        LogPosition { device: number(), inode: number(), offset: number() }
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.device, self.inode, self.offset)
    }

    fn is_of(&self, known: &fs::Metadata) -> bool {
        (self.device, self.inode) == (known.dev(), known.ino())
    }
}

/// Calls `line` with the lines after `before`. If that is `None`, all existing lines are old. Returns the new
/// position and the number of bytes skipped. Fails if the file cannot be read.
fn follow(
    path: &Path,
    before: Option<LogPosition>,
    line: &mut dyn FnMut(&[u8]),
) -> io::Result<(LogPosition, u64)> {
    let mut file = match fs::metadata(path) {
        // A file that appears later is new, even if it has the inode of the old one.
        Err(error) if is_gone(&error) => {
            let old = before.and_then(|before| Some((rotated(path, before)?, before.offset)));
            let skipped =
                old.map_or(Ok(0), |(mut old, begin)| rest(&mut old, begin, line).map(|(_, more)| more));
            return Ok((LogPosition::default(), skipped?));
        }
        // Opening a pipe would wait for a program that writes to it.
        Ok(known) if !known.is_file() => return Err(io::Error::other("not a file")),
        known => known.and_then(|_| File::open(path))?,
    };
    let known = file.metadata()?;
    let here = |offset| LogPosition { device: known.dev(), inode: known.ino(), offset };
    let Some(before) = before else { return Ok((here(known.len()), 0)) };
    let (mut begin, mut skipped) = (before.offset, 0);
    if !before.is_of(&known) {
        if let Some(mut old) = rotated(path, before) {
            skipped += rest(&mut old, before.offset, line)?.1;
        }
        begin = 0;
    } else if known.len() < before.offset {
        // The file was truncated, so all of its content is new.
        begin = 0;
    }
    let (end, more) = rest(&mut file, begin, line)?;
    Ok((here(end), skipped + more))
}

/// Finds the file of this position under its new name.
fn rotated(path: &Path, before: LogPosition) -> Option<File> {
    let (folder, name) = (path.parent()?, path.file_name()?);
    let is_like = |entry: &fs::DirEntry| entry.file_name().as_bytes().starts_with(name.as_bytes());
    let mut entries = fs::read_dir(folder).ok()?.flatten().filter(is_like);
    let old = entries.find(|entry| entry.metadata().is_ok_and(|known| before.is_of(&known)))?;
    File::open(old.path()).ok()
}

/// Calls `line` with the complete lines from `begin` on. Returns the end of the last one, and the number of
/// bytes skipped.
fn rest(file: &mut File, begin: u64, line: &mut dyn FnMut(&[u8])) -> io::Result<(u64, u64)> {
    let length = file.metadata()?.len();
    let from = begin.max(length.saturating_sub(MOST_BYTES));
    let skipped = from - begin.min(from);
    file.seek(SeekFrom::Start(from))?;
    // Reading may start within a line. The rest of this line is skipped.
    let mut is_cut = skipped > 0;
    let (mut buffer, mut filled, mut end) = (vec![0; BUFFER], 0, from);
    loop {
        let read = file.read(&mut buffer[filled..])?;
        filled += read;
        let mut at = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer[..filled]) {
            if !std::mem::take(&mut is_cut) {
                line(&buffer[at..newline]);
            }
            at = newline + 1;
        }
        if at == 0 && filled == buffer.len() {
            (at, is_cut) = (filled, true);
        }
        end += at as u64;
        buffer.copy_within(at..filled, 0);
        filled -= at;
        // The limit is needed because a program may write as fast as the agent reads.
        if read == 0 || end - from > MOST_BYTES {
            return Ok((end, skipped));
        }
    }
}

#[cfg(test)]
mod tests;
