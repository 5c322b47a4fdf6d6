//! Finds the layout of a log from its first lines.

use super::line::{read, Body, Start};
use crate::strace;
use iodock_event::Clock;

/// Number of lines at the beginning of the log that are examined.
const LOOKED_AT: usize = 1000;

/// Names of library functions that most programs call and that are not system calls.
#[rustfmt::skip]
const LIBRARY: &[&[u8]] = &[
    b"__libc_start_main", b"malloc", b"free", b"calloc", b"realloc", b"strlen", b"strcmp", b"strncmp", b"strcpy", b"strcat",
    b"strdup", b"strchr", b"strrchr", b"strstr", b"strtok", b"memcpy", b"memset", b"memmove", b"fopen", b"fopen64", b"fclose",
    b"fread", b"fwrite", b"fgets", b"fputs", b"fseek", b"fflush", b"printf", b"puts", b"putchar", b"sprintf", b"snprintf",
    b"setlocale", b"getenv", b"atoi", b"textdomain", b"bindtextdomain", b"gettext", b"dcgettext", b"qsort", b"opendir",
    b"readdir64", b"closedir", b"getopt_long",
];

/// The layout of a log's lines.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub clock: Clock,
    /// Resolution of the time stamps, ns.
    pub resolution: Option<i64>,
    /// Whether the call numbers are those of x86-64.
    pub x86_64: bool,
    /// Whether calls are printed as `read@SYS`. Their ends then look like the ends of library calls.
    pub suffixed: bool,
}

/// Counts of features in the first lines.
#[derive(Debug, Default)]
pub struct Survey {
    /// Number of lines with system calls.
    pub system: usize,
    /// Number of lines that appear only in logs of library calls.
    pub library: usize,
    /// Line number of the header of a table (`-c`).
    pub table: Option<u64>,
    /// Number of ends of processes and programs in ltrace's own wording.
    events: usize,
    /// Number of lines that strace could also have written, including library calls.
    as_strace: usize,
    /// Number of lines that only strace writes.
    of_strace: usize,
    day: usize,
    epoch: usize,
    relative: usize,
    unstamped: usize,
    resolution: Option<i64>,
    x86_64: bool,
    suffixed: bool,
}

impl Survey {
    pub fn of(head: &[u8]) -> Survey {
        let mut survey = Survey::default();
        let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
        for (line, number) in whole.split(|&byte| byte == b'\n').take(LOOKED_AT).zip(1..) {
            survey.look(line.trim_ascii_end(), number);
        }
        survey
    }

    fn look(&mut self, line: &[u8], number: u64) {
        if is_title(line) {
            self.table.get_or_insert(number);
            return;
        }
        self.suffixed |= memchr::memmem::find(line, b"@SYS(").is_some();
        match read(line) {
            Some((start, Body::Call(call) | Body::Resumed(call))) => self.system_call(&start, call.name),
            Some((start, Body::Begun { name, .. })) => self.system_call(&start, name),
            Some((_, Body::Executed | Body::Exited(_))) => self.events += 1,
            Some((_, Body::Library)) if is_of_library(line) => self.library += 1,
            Some((_, Body::Known | Body::Signal(_))) => {}
            _ if strace::is_own_line(line) => {
                self.as_strace += 1;
                self.of_strace += usize::from(is_of_strace(line));
            }
            _ => {}
        }
    }

    fn system_call(&mut self, start: &Start, name: &[u8]) {
        self.system += 1;
        // arch_prctl is one of the first system calls of the dynamic linker on x86-64, and has other numbers
        // on all other machines.
        self.x86_64 |= name == b"arch_prctl";
        let Some(stamp) = start.stamp else {
            self.unstamped += 1;
            return;
        };
        self.resolution = Some(stamp.resolution);
        match stamp.clock {
            Clock::Day => self.day += 1,
            Clock::Epoch => self.epoch += 1,
            Clock::Relative => self.relative += 1,
            Clock::None => self.unstamped += 1,
        }
    }

    /// Returns the confidence from 0 to 100. A program that runs under strace may print such lines on the
    /// same terminal.
    pub fn confidence(&self) -> u8 {
        let own = self.system + self.library + self.events;
        let others = if self.system > 0 { self.of_strace } else { self.as_strace };
        match (self.system + self.library, self.table) {
            (0, None) => 0,
            (0, Some(_)) => 95,
            _ if own > others => 98,
            _ => 0,
        }
    }

    pub fn layout(&self) -> Layout {
        let votes = [
            (self.unstamped, Clock::None),
            (self.relative, Clock::Relative),
            (self.day, Clock::Day),
            (self.epoch, Clock::Epoch),
        ];
        let clock = votes.into_iter().max_by_key(|&(votes, _)| votes).map_or(Clock::None, |(_, clock)| clock);
        let resolution = self.resolution.filter(|_| clock != Clock::None);
        Layout { clock, resolution, x86_64: self.x86_64, suffixed: self.suffixed }
    }
}

/// Returns whether the line is a library call, such as `malloc(`, `libc.so.6->puts(` or `puts@libc.so.6(`,
/// after the columns before the call.
fn is_of_library(line: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'(', line) else { return false };
    let before = &line[..open];
    let name = before.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let has = |sign: &[u8]| memchr::memmem::find(name, sign).is_some();
    let fortified = name.starts_with(b"__") && name.ends_with(b"_chk");
    let of_libc = name.starts_with(b"__ctype_") || name == b"__errno_location" || name == b"__cxa_atexit";
    LIBRARY.contains(&name) || fortified || of_libc || has(b"->") || has(b"@")
}

/// Returns whether the line has a form of strace that ltrace prints differently: `= -1 ENOENT (...)`, `= ?`,
/// `+++ exited with 0 +++`, `--- SIGCHLD {...} ---`.
fn is_of_strace(line: &[u8]) -> bool {
    let has = |sign: &[u8]| memchr::memmem::find(line, sign).is_some();
    has(b" = -1 E") || has(b" = ?") || has(b"+++ exited with ") || (has(b"--- SIG") && has(b" {"))
}

/// Returns whether the line is the header of the table that `-c` prints.
fn is_title(line: &[u8]) -> bool {
    let words = [&b"%"[..], b"time", b"seconds", b"usecs/call", b"calls", b"function"];
    line.starts_with(b"% time") && line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).eq(words)
}
