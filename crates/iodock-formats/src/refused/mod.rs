//! Logs that are recognised only to say clearly that they are not read: what they are, and what to do.

use crate::{Head, Input, LogFormat, LogSource, ReadOptions};
use iodock_event::SourceError;

/// A kind of log that iodock does not read.
pub struct Refused {
    /// What `--format` calls it.
    name: &'static str,
    /// Completes "is ..., which iodock does not read".
    what: &'static str,
    hint: &'static str,
    /// How a line speaks for this kind: 0 not at all, 3 as a line of it, 60 beyond doubt.
    weight: fn(&[u8]) -> usize,
}

const READ: &str = "iodock reads logs of strace (Linux) and of truss (illumos, Solaris)";
const ON_LINUX: &str = "record the program with iodock record, or with strace -f -ttt -T -o run.log COMMAND";

/// truss of AIX.
pub static AIX_TRUSS: Refused =
    Refused { name: "aix-truss", what: "a truss log of AIX", hint: READ, weight: aix_truss };
/// truss of FreeBSD.
pub static BSD_TRUSS: Refused =
    Refused { name: "freebsd-truss", what: "a truss log of FreeBSD", hint: READ, weight: bsd_truss };
/// kdump of the BSDs' ktrace.
pub static KDUMP: Refused =
    Refused { name: "kdump", what: "output of kdump (ktrace of a BSD system)", hint: READ, weight: kdump };
/// ltrace: library calls.
pub static LTRACE: Refused =
    Refused { name: "ltrace", what: "an ltrace log, of library calls", hint: ON_LINUX, weight: ltrace };
/// perf trace.
pub static PERF_TRACE: Refused =
    Refused { name: "perf-trace", what: "output of perf trace", hint: ON_LINUX, weight: perf_trace };
/// dtruss of macOS.
pub static DTRUSS: Refused =
    Refused { name: "dtruss", what: "output of dtruss (macOS)", hint: READ, weight: dtruss };
/// Default output of a DTrace script.
pub static DTRACE: Refused = Refused { name: "dtrace", what: "output of DTrace", hint: READ, weight: dtrace };

/// Lines of the head that are looked at.
const LOOKED_AT: usize = 200;

impl LogFormat for Refused {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_read(&self) -> bool {
        false
    }

    fn confidence(&self, head: &Head<'_>) -> u8 {
        let lines =
            || head.bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).take(LOOKED_AT);
        let weight: usize = lines().map(|line| (self.weight)(line.trim_ascii_end())).sum();
        match (weight, weight * 100 / lines().count().max(1)) {
            (0..=2, _) => 0,
            (_, share @ 0..=9) => 2 * share as u8,
            (_, share) => (50 + share / 4).min(96) as u8,
        }
    }

    /// # Errors
    /// Always: that is what it is for.
    fn open(&self, input: Input, _options: &ReadOptions) -> Result<Box<dyn LogSource>, SourceError> {
        Err(SourceError {
            file: input.file().to_string(),
            line: Some(1),
            message: format!("is {}, which iodock does not read", self.what),
            hint: self.hint.into(),
        })
    }
}

fn has(line: &[u8], mark: &[u8]) -> bool {
    memchr::memmem::find(line, mark).is_some()
}

/// The words of a line.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty())
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// `argc: 1` with a colon decides; and the kernel's own names of calls (kread, kioctl, statx with four arguments).
fn aix_truss(line: &[u8]) -> usize {
    const CALLS: &[&[u8]] = &[
        b"kread(",
        b"kwrite(",
        b"kioctl(",
        b"kopen(",
        b"klseek(",
        b"kfcntl(",
        b"kpread(",
        b"kpwrite(",
        b"kreadv(",
        b"kwritev(",
        b"__loadx(",
        b"getuidx(",
        b"getgidx(",
        b"_getpid(",
        b"_thread_self(",
        b"_sigaction(",
        b"sigprocmask(0, 0xF",
        b"vmgetinfo(",
        b"kthread_ctl(",
        b"thread_setmystate",
        b"_exit: ",
    ];
    let starts = |call: &&&[u8]| {
        let at = memchr::memmem::find(line, call);
        at.is_some_and(|at| at == 0 || matches!(line[at - 1], b' ' | b'\t'))
    };
    if has(line, b")\t argc: ") || has(line, b")  argc: ") {
        return 60;
    }
    if CALLS.iter().any(|call| starts(&call)) {
        3
    } else {
        0
    }
}

/// `= 3 (0x3)` at the end, or `ERR#2 'No such file or directory'`.
fn bsd_truss(line: &[u8]) -> usize {
    let tail = memchr::memrchr(b')', line).map_or(&line[..0], |at| line[at + 1..].trim_ascii_start());
    if tail.starts_with(b"ERR#") {
        return 3;
    }
    let Some(equals) = memchr::memmem::rfind(line, b" = ") else { return 0 };
    let mut result = words(&line[equals + 3..]);
    let (value, hexadecimal) = (result.next(), result.next());
    let shown_twice = hexadecimal.is_some_and(|word| word.starts_with(b"(0x") && word.ends_with(b")"));
    if value.is_some() && shown_twice && result.next().is_none() && line[..equals].contains(&b'(') {
        3
    } else {
        0
    }
}

/// `  1234 ls       CALL  open(0x28074c3a,0,0)`
fn kdump(line: &[u8]) -> usize {
    let mut words = words(line);
    let pid = words.next().is_some_and(is_number);
    // A thread id may stand between process and program.
    let kind = words
        .skip(1)
        .take(2)
        .any(|word| matches!(word, b"CALL" | b"RET" | b"NAMI" | b"GIO" | b"STRU" | b"CSW"));
    if pid && kind {
        3
    } else {
        0
    }
}

/// Library functions: `fopen("a", "r")     = 0x55d0c2`, `libc.so.6->malloc(5)`, `SYS_read(3, ...`.
fn ltrace(line: &[u8]) -> usize {
    const FUNCTIONS: &[&[u8]] = &[
        b"__libc_start_main(",
        b"SYS_",
        b"malloc(",
        b"free(",
        b"strlen(",
        b"strcmp(",
        b"memcpy(",
        b"fopen(",
        b"fclose(",
        b"printf(",
        b"puts(",
        b"setlocale(",
        b"strrchr(",
        b"getenv(",
        b"calloc(",
        b"fwrite(",
        b"fread(",
        b"fgets(",
        b"realloc(",
        b"__printf_chk(",
        b"__errno_location(",
        b"textdomain(",
        b"bindtextdomain(",
        b"__cxa_atexit(",
    ];
    let call =
        words(line).find(|word| !word.iter().all(|byte| b"0123456789.:[]pid".contains(byte))).unwrap_or(b"");
    let from_library = memchr::memmem::find(call, b"->").is_some_and(|at| call[at..].contains(&b'('));
    let known = FUNCTIONS.iter().any(|function| call.starts_with(function));
    if known || (from_library && has(line, b"= ")) {
        3
    } else {
        0
    }
}

/// `   0.123 ( 0.004 ms): ls/1234 openat(dfd: CWD, filename: "/x") = 3`
fn perf_trace(line: &[u8]) -> usize {
    let timed = has(line, b" ms): ") || has(line, b"         ): ");
    let summary = has(line, b"Summary of events:");
    if (timed && line.contains(&b'(')) || summary {
        3
    } else {
        0
    }
}

/// `SYSCALL(args) = return`, and results with the error number behind: `= 3 0`.
fn dtruss(line: &[u8]) -> usize {
    if words(line).take(2).any(|word| word == b"SYSCALL(args)") {
        return 60;
    }
    let twice = memchr::memmem::rfind(line, b"\t = ").is_some_and(|at| {
        let mut result = words(&line[at + 4..]);
        let value = result.next();
        let errno = result.next();
        value.is_some() && errno.is_some_and(|word| is_number(word) || word.starts_with(b"Err#"))
    });
    if twice {
        3
    } else {
        0
    }
}

/// `CPU     ID                    FUNCTION:NAME`, `  0  17  read:entry`
fn dtrace(line: &[u8]) -> usize {
    if has(line, b"FUNCTION:NAME") || line.starts_with(b"dtrace: ") {
        return 60;
    }
    let mut words = words(line);
    let numbers = words.next().is_some_and(is_number) && words.next().is_some_and(is_number);
    let probe = words.next().is_some_and(|word| word.ends_with(b":entry") || word.ends_with(b":return"));
    if numbers && probe {
        3
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;

    const SAMPLES: &[(&str, &str)] = &[
        ("aix-truss", "execve(\"/usr/bin/ls\", 0x2FF22B28, 0x2FF22B30)\t argc: 1\n\
          163910:\tkioctl(1, 22528, 0x00000000, 0x00000000)\t= 0\nkwrite(1, \" a b c\\n\", 4)\t= 4\n\
          open(\"/x\", O_RDONLY)\tErr#2  ENOENT\n"),
        ("freebsd-truss", "mmap(0x0,32768,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANON,-1,0x0) = 34366279680 (0x800622000)\n\
          open(\"/etc/libmap.conf\",O_RDONLY|O_CLOEXEC,0666)\t ERR#2 'No such file or directory'\nclose(3)\t\t = 0 (0x0)\n"),
        ("kdump", "  1234 ls       CALL  open(0x28074c3a,0,0)\n  1234 ls       NAMI  \"/etc\"\n  1234 ls       RET   open 3\n"),
        ("ltrace", "__libc_start_main(0x4016d0, 1, 0x7ffc) = 0\nmalloc(5)                  = 0x55d0\nfree(0x55d0)  = <void>\n"),
        ("perf-trace", "     0.000 ( 0.004 ms): ls/1234 openat(dfd: CWD, filename: \"/x\")      = 3\n\
          0.010 ( 0.002 ms): ls/1234 close(fd: 3)          = 0\n"),
        ("dtruss", "SYSCALL(args) \t\t = return\nopen(\"/dev/dtracehelper\\0\", 0x2, 0x7FFF)\t\t = 3 0\nclose(0x3)\t\t = 0 0\n"),
        ("dtrace", "CPU     ID                    FUNCTION:NAME\n  0  17  read:entry\n"),
    ];

    #[test]
    fn each_is_recognised_and_no_other() {
        for &(name, text) in SAMPLES {
            let head = Head { bytes: text.as_bytes(), file: "x" };
            for format in FORMATS {
                let confidence = format.confidence(&head);
                if format.name() == name {
                    assert!(confidence >= 60, "{name}: {confidence}");
                } else {
                    assert!(confidence < 50, "{name} is taken for {}: {confidence}", format.name());
                }
            }
        }
    }

    #[test]
    fn no_log_that_is_read_is_refused() {
        for text in [
            "execve(\"/usr/bin/true\", 0x08047DEC, 0x08047DF8)  argc = 1\nopen(\"/x\", O_RDONLY)\t\tErr#2 ENOENT\n",
            "1 1.5 read(3, \"kread( ERR# malloc(\", 9) = 9 <0.1>\n1 1.6 close(3) = 0 <0.1>\n",
            "1 read(3, \"SYSCALL(args)\", 20) = 13\n".repeat(9).as_str(),
        ] {
            let head = Head { bytes: text.as_bytes(), file: "x" };
            for format in FORMATS.iter().filter(|format| SAMPLES.iter().any(|(name, _)| *name == format.name())) {
                assert!(format.confidence(&head) < 60, "{text} is taken for {}", format.name());
            }
        }
    }

    #[test]
    fn the_message_says_what_and_what_to_do() {
        let path = std::env::temp_dir().join(format!("iodock-refused-{}", std::process::id()));
        for &(name, text) in SAMPLES {
            std::fs::write(&path, text).unwrap();
            let error = crate::open_log(path.to_str().unwrap(), None, &ReadOptions::default()).err().unwrap();
            assert!(error.message.ends_with("which iodock does not read"), "{name}: {error}");
            assert!(!error.hint.is_empty());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
