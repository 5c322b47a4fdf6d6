//! Small logs of strace, and functions to read them.

use super::{small_chunks, Tally};
use iodock_event::SourceError;
use iodock_formats::{open_input, Input, ReadOptions};
use std::io::Cursor;

pub const BARE: &str = r#"execve("/opt/app", ["app", "in.nml"], 0x7ffc0a0 /* 9 vars */) = 0
openat(AT_FDCWD, "/data/a &amp; b", O_RDONLY|O_CLOEXEC) = 3
read(3, "Mar 01 10:00:00 n1 a[1]: read(3)"..., 4096) = 4096
read(3, "", 4096)                       = 0
close(3)                                = 0
access("/etc/x", F_OK)     = -1 ENOENT (No such file or directory)
+++ exited with 0 +++
"#;

pub const THREADS: &str = r#"4123  openat(AT_FDCWD, "/data/a", O_RDONLY) = 3
4124  openat(AT_FDCWD, "/data/b", O_RDONLY <unfinished ...>
4123  read(3, "abc"..., 4096) = 4096
4124  <... openat resumed>) = 4
4124  close(4) = 0
4123  close(3) = 0
4124  +++ exited with 0 +++
4123  +++ exited with 0 +++
"#;

pub const STAMPED: &str = r#"17 23:59:59.100000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000031>
17 23:59:59.900000 read(3, "abc"..., 4096) = 4096 <0.000120>
18 00:00:00.100000 read(3, "abc"..., 4096) = 4096 <0.000120>
17 00:00:00.300000 close(3) = 0 <0.000010>
"#;

pub const EPOCH: &str = r#"1795229749.117596 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3</data/a> <0.000031>
1795229749.127596 read(3</data/a>, "abc"..., 4096) = 4096 <0.000120>
1795229749.137596 close(3</data/a>) = 0 <0.000010>
"#;

pub const TERMINAL: &str = r#"clone(child_stack=NULL, flags=SIGCHLD) = 1501
strace: Process 1501 attached
[pid  1501] openat(AT_FDCWD, "/data/a", O_RDONLY) = 3
[pid  1500] --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=1501} ---
[pid  1501] close(3) = 0
[pid  1501] +++ exited with 0 +++
close(7) = 0
"#;

pub const LOGS: [&str; 5] = [BARE, THREADS, STAMPED, EPOCH, TERMINAL];

pub fn read_with(log: &[u8], options: &ReadOptions) -> Result<Tally, SourceError> {
    let input = Input::from_reader(Box::new(Cursor::new(log.to_vec())), "test.log", None)?;
    Tally::of(open_input(input, None, options)?.as_mut())
}

pub fn read(log: &str) -> Tally {
    read_with(log.as_bytes(), &small_chunks(64))
        .unwrap_or_else(|error| panic!("{error}: {}\n{log}", error.hint))
}

/// Returns a log of many calls without an end. An end would mark the first of several logs.
pub fn long(times: usize) -> String {
    BARE.lines().take(6).map(|line| format!("{line}\n")).collect::<String>().repeat(times)
}

pub fn with_leads(log: &str, lead: impl Fn(usize) -> String) -> String {
    log.lines().enumerate().map(|(index, line)| format!("{}{line}\n", lead(index))).collect()
}
