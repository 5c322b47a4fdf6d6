//! What the first lines of a log say about the rest.

use super::line::{read, Body, Start};
use crate::strace;
use iodock_event::Clock;

/// Lines of the head that are looked at.
const LOOKED_AT: usize = 1000;

/// Functions that no kernel has a call of, and that most programs call.
#[rustfmt::skip]
const LIBRARY: &[&[u8]] = &[
    b"__libc_start_main", b"malloc", b"free", b"calloc", b"realloc", b"strlen", b"strcmp", b"strncmp", b"strcpy", b"strcat",
    b"strdup", b"strchr", b"strrchr", b"strstr", b"strtok", b"memcpy", b"memset", b"memmove", b"fopen", b"fopen64", b"fclose",
    b"fread", b"fwrite", b"fgets", b"fputs", b"fseek", b"fflush", b"printf", b"puts", b"putchar", b"sprintf", b"snprintf",
    b"setlocale", b"getenv", b"atoi", b"textdomain", b"bindtextdomain", b"gettext", b"dcgettext", b"qsort", b"opendir",
    b"readdir64", b"closedir", b"getopt_long",
];

/// How a log's lines are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub clock: Clock,
    /// ns of a stamp's last digit.
    pub resolution: Option<i64>,
    /// Are numbers of calls those of x86-64?
    pub x86_64: bool,
    /// Are calls `read@SYS`, so that their ends are called as those of libraries?
    pub suffixed: bool,
}

/// The first lines, counted.
#[derive(Debug, Default)]
pub struct Survey {
    /// Lines of system calls.
    pub system: usize,
    /// Lines that only a log of library calls has.
    pub library: usize,
    /// The title of a table of `-c`.
    pub table: Option<u64>,
    /// Ends of processes and programs, as only ltrace prints them.
    events: usize,
    /// Lines that strace could have written, a library's call among them.
    as_strace: usize,
    /// Lines that only strace writes.
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
        // The dynamic linker's first calls on x86-64, and on no machine with other numbers.
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

    /// 0 to 100. A program under strace may print such lines on the same terminal.
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

/// `malloc(`, `libc.so.6->puts(`, `puts@libc.so.6(` behind what stands before a call.
fn is_of_library(line: &[u8]) -> bool {
    let Some(open) = memchr::memchr(b'(', line) else { return false };
    let before = &line[..open];
    let name = before.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let has = |sign: &[u8]| memchr::memmem::find(name, sign).is_some();
    let fortified = name.starts_with(b"__") && name.ends_with(b"_chk");
    let of_libc = name.starts_with(b"__ctype_") || name == b"__errno_location" || name == b"__cxa_atexit";
    LIBRARY.contains(&name) || fortified || of_libc || has(b"->") || has(b"@")
}

/// `= -1 ENOENT (...)`, `= ?`, `+++ exited with 0 +++`, `--- SIGCHLD {...} ---`: ltrace says these in other words.
fn is_of_strace(line: &[u8]) -> bool {
    let has = |sign: &[u8]| memchr::memmem::find(line, sign).is_some();
    has(b" = -1 E") || has(b" = ?") || has(b"+++ exited with ") || (has(b"--- SIG") && has(b" {"))
}

/// The title of the table that `-c` prints.
fn is_title(line: &[u8]) -> bool {
    let words = [&b"%"[..], b"time", b"seconds", b"usecs/call", b"calls", b"function"];
    line.starts_with(b"% time") && line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).eq(words)
}
