//! Tests lines of all versions and options, and the records that the reader makes of them.

use super::line::{self, Kind};
use super::names::call_id;
use iodock_event::{Batch, LossKind, Outcome, RawCall, Text, AT_FDCWD, NO_FD, UNKNOWN, UNSHOWN_OFFSET};

struct Read {
    raw: RawCall,
    batch: Batch,
}

impl Read {
    fn text(&self, text: Text) -> Option<&str> {
        text.is_some().then(|| std::str::from_utf8(self.batch.text(text)).unwrap())
    }
}

fn try_call(line: &str) -> Option<Read> {
    let (prefix, Kind::Call { name, text }) = line::read(line.as_bytes()) else { return None };
    let mut batch = Batch::default();
    let mut raw = RawCall::new(call_id(name)?, prefix.tid.unwrap_or(0));
    line::whole_call(text, &mut raw, &mut batch)?;
    Some(Read { raw, batch })
}

fn call(line: &str) -> Read {
    try_call(line).unwrap_or_else(|| panic!("not read: {line}"))
}

#[test]
fn text_copied_along_with_a_log_does_not_count_as_damage() {
    for line in [
        "Script started on 2026-03-01 10:00:00+00:00 [TERM=\"xterm\"]",
        "Script done on 2026-03-01 10:00:05+00:00",
        "```",
        "```console",
        "$ strace -f ./a.out",
        "# strace -p 7",
        "[user@host ~]$ sudo strace ls",
        "user@n1:~$ exit",
        "(env) user@host /tmp % strace -f x",
    ] {
        assert_eq!(kind(line), "Noise", "{line}");
    }
    for line in ["$ 5.00", "100 % of it", "a program's own line @ home", "x > strange"] {
        assert_eq!(kind(line), "Unknown", "{line}");
    }
}

fn kind(line: &str) -> String {
    let shown = format!("{:?}", line::read(line.as_bytes()).1);
    shown.split([' ', '{']).next().unwrap().to_string()
}

#[test]
fn results_of_all_kinds_are_read() {
    let result = |line: &str| {
        let Read { raw, .. } = call(line);
        (raw.outcome, raw.result, raw.errno.name(), raw.duration)
    };
    let none = String::new;
    let (yes, no, open) = (Outcome::Succeeded, Outcome::Failed, Outcome::NoResult);
    for (line, expected) in [
        ("close(3) = 0", (yes, 0, none(), UNKNOWN)),
        ("close(3)                                = 0 <0.000008>", (yes, 0, none(), 8000)),
        ("close(3) = 0 <0.000000008>", (yes, 0, none(), 8)),
        ("close(3) = 0 <0.008>", (yes, 0, none(), 8_000_000)),
        ("close(3) = 0 <12>", (yes, 0, none(), 12_000_000_000)),
        ("brk(NULL) = 0x55bdedbb0000", (yes, 0x55bd_edbb_0000, none(), UNKNOWN)),
        ("umask(077) = 022", (yes, 0o22, none(), UNKNOWN)),
        (
            "access(\"/x\", R_OK) = -1 ENOENT (No such file or directory) <0.000009>",
            (no, -1, "ENOENT".into(), 9000),
        ),
        ("ioctl(3, 0x1234, 0) = -1 (errno 22)", (no, -1, "EINVAL".into(), UNKNOWN)),
        (
            "read(3, 0x7ff, 10) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.06>",
            (no, -1, "ERESTARTSYS".into(), 60_000_000),
        ),
        ("exit_group(0) = ?", (open, UNKNOWN, none(), UNKNOWN)),
        ("exit_group(0)     = ? <0.000001>", (open, UNKNOWN, none(), UNKNOWN)),
        ("futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>) = ?", (open, UNKNOWN, none(), UNKNOWN)),
        ("read(0,  <detached ...>", (open, UNKNOWN, none(), UNKNOWN)),
        ("select(4, [3], NULL, NULL, NULL) = 1 (in [3])", (yes, 1, none(), UNKNOWN)),
        (
            "select(4, [3<a> 4<b>], NULL, NULL, {tv_sec=1, tv_usec=0}) = 0 (Timeout) <1.001>",
            (yes, 0, none(), 1_001_000_000),
        ),
        (
            "poll([{fd=3, events=POLLIN}], 1, 0) = 1 ([{fd=3, revents=POLLIN}]) <0.1>",
            (yes, 1, none(), 100_000_000),
        ),
        ("fcntl(1, F_GETFL) = 0x2 (flags O_RDWR)", (yes, 2, none(), UNKNOWN)),
        ("close(3) = -1 EIO (Input/output error) (INJECTED)", (no, -1, "EIO".into(), UNKNOWN)),
        ("getpid() = 7 /* 1234 in strace's PID NS */", (yes, 1234, none(), UNKNOWN)),
        ("restart_syscall(<... resuming interrupted read ...>) = 5", (yes, 5, none(), UNKNOWN)),
        ("lseek(3, 0, SEEK_END) = 18446744073709551000", (yes, -616, none(), UNKNOWN)),
        (
            "syscall_0x1b5(0x1, 0x2) = -1 ENOSYS (Function not implemented)",
            (no, -1, "ENOSYS".into(), UNKNOWN),
        ),
        ("????() = ?", (open, UNKNOWN, none(), UNKNOWN)),
    ] {
        assert_eq!(result(line), expected, "{line}");
    }
}

#[test]
fn hostile_file_names_are_read() {
    let read = call(
        r#"openat(AT_FDCWD, "a) = 3 <0.1>\n\" <unfinished ...>\\ \303\244", O_RDONLY) = -1 ENOENT (No such file or directory)"#,
    );
    assert_eq!(read.text(read.raw.path), Some("a) = 3 <0.1>\n\" <unfinished ...>\\ ä"));
    assert_eq!(read.raw.outcome, Outcome::Failed);
    let read = call(r#"openat(AT_FDCWD</tmp/a>, "x > y", O_RDONLY) = 3</tmp/a > b> <0.000012>"#);
    assert_eq!((read.raw.fd, read.text(read.raw.fd_text)), (AT_FDCWD, Some("/tmp/a")));
    assert_eq!((read.text(read.raw.result_text), read.raw.duration), (Some("/tmp/a > b"), 12_000));
    let read = call(r#"openat(AT_FDCWD, "x", O_RDONLY) = 3</tmp/x <1.5>"#);
    assert_eq!((read.text(read.raw.result_text), read.raw.duration), (Some("/tmp/x <1.5"), UNKNOWN));
    let read = call(r#"openat(AT_FDCWD, "x", O_RDONLY) = 3</tmp/x <1.5> <0.5>"#);
    assert_eq!((read.text(read.raw.result_text), read.raw.duration), (Some("/tmp/x <1.5"), 500_000_000));
    let read = call(r#"openat(AT_FDCWD, "\x2f\x74\xff", O_RDONLY) = 3"#);
    assert_eq!(read.batch.text(read.raw.path), b"/t\xff");
    let read = call(r#"open("abc"..., O_RDONLY) = 3"#);
    assert!(read.raw.path_cut);
    let read = call(r#"open(0x7fff, O_RDONLY) = -1 EFAULT (Bad address)"#);
    assert_eq!(read.text(read.raw.path), None);
    let read = call(r#"open("", O_RDONLY) = -1 ENOENT (No such file or directory)"#);
    assert_eq!(read.text(read.raw.path), Some(""));
}

#[test]
fn descriptors_with_names_are_read() {
    let read = call("write(1</dev/null<char 1:3>>, \"abc\", 3) = 3");
    assert_eq!(
        (read.raw.fd, read.raw.requested, read.text(read.raw.fd_text)),
        (1, 3, Some("/dev/null<char 1:3>"))
    );
    let read = call("close(4<TCP:[127.0.0.1:5->127.0.0.1:6]>) = 0");
    assert_eq!(read.text(read.raw.fd_text), Some("TCP:[127.0.0.1:5->127.0.0.1:6]"));
    let read = call("close(4</tmp/x>(deleted)) = 0");
    assert_eq!(read.text(read.raw.fd_text), Some("/tmp/x"));
    let read = call(r"close(4</tmp/a\76b\n>) = 0");
    assert_eq!(read.text(read.raw.fd_text), Some("/tmp/a>b\n"));
    let read = call("pipe2([3<pipe:[1]>, 4<pipe:[1]>], O_CLOEXEC) = 0");
    assert_eq!((read.raw.fd, read.raw.fd2, read.raw.flags), (3, 4, 0o2000000));
    let read =
        call("mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fc681730000");
    assert_eq!((read.raw.fd, read.raw.requested, read.raw.flags), (-1, 8192, 0x20));
    let read = call("mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</a,b>, 0x1000) = 0x7fc681730000");
    assert_eq!((read.raw.fd, read.raw.offset, read.raw.flags), (3, 4096, 1));
    let read = call("dup2(3</a>, 5) = 5</a>");
    assert_eq!((read.raw.fd, read.raw.fd2), (3, 5));
}

#[test]
fn messages_and_the_descriptors_in_them_are_read() {
    let items = |line: &str| {
        let read = call(line);
        read.batch.items.iter().map(|item| (item.fd, item.bytes)).collect::<Vec<_>>()
    };
    let message = |control: &str| {
        let rest = r#"msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=1}], msg_iovlen=1, "#;
        format!("{{{rest}msg_control={control}, msg_controllen=24, msg_flags=0}}")
    };
    for control in [
        "[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[3, 4</a]>]}]",
        "[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, [3, 4]}]",
        "{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, {3, 4}}",
        "[{cmsg_len=28, cmsg_level=SOL_SOCKET, cmsg_type=SCM_CREDENTIALS, cmsg_data={pid=9, uid=0, gid=0}}, \
         {cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[3, 4]}]",
    ] {
        let line = format!("sendmsg(3, {}, 0) = 1", message(control));
        assert_eq!(items(&line), [(3, UNKNOWN), (4, UNKNOWN)], "{line}");
        let line = format!("recvmmsg(3, [{{msg_hdr={}, msg_len=7}}], 1, 0, NULL) = 1", message(control));
        assert_eq!(items(&line), [(3, UNKNOWN), (4, UNKNOWN), (NO_FD, 7)], "{line}");
    }
    let two =
        r#"[{msg_hdr={msg_name=NULL, msg_iov=[]}, msg_len=5}, {msg_hdr={msg_name=NULL}, msg_len=6}, ...]"#;
    assert_eq!(items(&format!("sendmmsg(3, {two}, 9, 0) = 9")), [(NO_FD, 5), (NO_FD, 6)]);
    assert_eq!(items("sendmmsg(3, 0x7fff, 2, 0) = 2"), []);
}

#[test]
fn pairs_that_strace_left_out_are_counted() {
    for (pair, lost) in [("[3, 4]", 0), ("[3, ...]", 1), ("[...]", 1)] {
        let read = call(&format!("pipe2({pair}, 0) = 0"));
        assert_eq!(read.batch.losses.count(LossKind::CutDescriptors), lost, "{pair}");
    }
}

#[test]
fn requested_bytes_are_read() {
    let asked = |line: &str| call(line).raw.requested;
    for line in [
        r#"writev(1, [{iov_base="abc", iov_len=3}, {iov_base="d}, {\"", iov_len=7}], 2) = 10"#,
        r#"writev(1, [{"abc", 3}, {"de", 7}], 2) = 10"#,
        r#"preadv(1, [{iov_base="abc"..., iov_len=10}], 1, 5) = 10"#,
        r#"sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=10}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, 0) = 10"#,
        r#"sendmsg(3, {msg_name(0)=NULL, msg_iov(1)=[{"x", 10}], msg_controllen=0, msg_flags=0}, 0) = 10"#,
        r#"sendto(3, "abc", 10, 0, NULL, 0) = 10"#,
    ] {
        assert_eq!(asked(line), 10, "{line}");
    }
    assert_eq!(asked(r#"writev(1, [{iov_base="abc", iov_len=3}, ...], 9) = 30"#), UNKNOWN);
    assert_eq!(asked("writev(1, 0x7fff, 2) = -1 EFAULT (Bad address)"), UNKNOWN);
    let read = call(r#"pread64(3, "a"..., 4096, 8192) = 4096"#);
    assert_eq!((read.raw.requested, read.raw.offset), (4096, 8192));
    let read = call("sendfile(1, 3, [7] => [107], 100) = 100");
    assert_eq!((read.raw.fd2, read.raw.fd, read.raw.offset, read.raw.requested), (1, 3, 7, 100));
    let read = call("copy_file_range(3, [5], 4, NULL, 100, 0) = 100");
    assert_eq!((read.raw.fd, read.raw.fd2, read.raw.offset, read.raw.offset2), (3, 4, 5, UNKNOWN));
    // With `-e verbose=none` strace prints the address of the offset, so there is an offset.
    let read = call("sendfile(1, 3, 0x7fffaba772a8, 100) = 100");
    assert_eq!((read.raw.offset, read.raw.requested), (UNSHOWN_OFFSET, 100));
    let read = call("copy_file_range(3, 0x7fffaba772a8, 4, NULL, 100, 0) = 100");
    assert_eq!((read.raw.offset, read.raw.offset2), (UNSHOWN_OFFSET, UNKNOWN));
    assert_eq!(call("_llseek(3, 10, 0x7fffaba772a8, SEEK_SET) = 0").raw.offset, UNKNOWN);
    let read = call("_llseek(3, 10, [10], SEEK_SET) = 0");
    assert_eq!((read.raw.offset, read.raw.argument), (10, 0));
    let read = call("lseek(3, -5, SEEK_CUR) = 5");
    assert_eq!((read.raw.argument, read.raw.result), (1, 5));
    let read = call("newfstatat(3, \"\", {st_mode=S_IFREG|0644, st_size=46599, ...}, AT_EMPTY_PATH) = 0");
    assert_eq!((read.raw.stat_type, read.raw.stat_size, read.raw.flags), (0o10, 46599, 0x1000));
    let read = call("statx(AT_FDCWD, \"/\", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mask=STATX_ALL, stx_attributes=0, stx_mode=S_IFDIR|0755, stx_size=4096, ...}) = 0");
    assert_eq!((read.raw.stat_type, read.raw.stat_size), (0o4, 4096));
}

#[test]
fn commands_flags_and_programs_are_read() {
    let read = call("fcntl(3, F_DUPFD, 10) = 10");
    assert_eq!((read.raw.flags, read.raw.argument), (0, 10));
    let read = call("fcntl(3, F_SETFD, FD_CLOEXEC) = 0");
    assert_eq!((read.raw.flags, read.raw.argument), (2, 1));
    let read = call("fcntl(3, F_SETFL, O_RDONLY|O_APPEND) = 0");
    assert_eq!((read.raw.flags, read.raw.argument), (4, 0o2000));
    assert_eq!(call("fcntl(3, F_SETLK, {l_type=F_WRLCK}) = 0").raw.flags, super::arguments::OTHER_COMMAND);
    assert_eq!(call("openat2(3, \"x\", {flags=O_RDWR|O_CLOEXEC, resolve=0}, 24) = 4").raw.flags, 0o2000002);
    let read = call("7 clone(child_stack=0, flags=CLONE_VM|CLONE_FS|SIGCHLD, child_tidptr=0x7f) = 12");
    assert_eq!((read.raw.flags, read.batch.forks.len()), (0x300, 1));
    assert_eq!((read.batch.forks[0].parent_tid, read.batch.forks[0].child_tid), (7, 12));
    let read = call("clone3({flags=CLONE_VM|CLONE_THREAD, child_tid=0x7f, stack_size=0x7fff80} => {parent_tid=[456]}, 88) = 456");
    assert_eq!((read.raw.flags, read.batch.forks[0].child_tid), (0x10100, 456));
    assert_eq!(read.raw.fd, NO_FD);
    assert_eq!(call("clone3(0x7ffe8c2dff10, 88) = 456").raw.flags, 0);
    let read = call("clone3({flags=CLONE_PIDFD, pidfd=0x7ffd84526928, exit_signal=SIGCHLD, stack=NULL, stack_size=0} => {pidfd=[3]}, 88) = 11603");
    assert_eq!(read.raw.fd, 3);
    let read = call(
        "clone(child_stack=NULL, flags=CLONE_PIDFD|SIGCHLD, parent_tid=[4<anon_inode:[pidfd]>]) = 11610",
    );
    assert_eq!((read.raw.fd, read.text(read.raw.fd_text)), (4, Some("anon_inode:[pidfd]")));
    assert_eq!(
        call("clone(child_stack=NULL, flags=CLONE_PIDFD|SIGCHLD, parent_tid=0x7fffaba77398) = 9").raw.fd,
        NO_FD
    );
    assert_eq!(
        call("clone(child_stack=0, flags=CLONE_PARENT_SETTID|SIGCHLD, parent_tid=[9]) = 9").raw.fd,
        NO_FD
    );
    assert!(call("fork() = -1 EAGAIN (Resource temporarily unavailable)").batch.forks.is_empty());
    let read = call(r#"execve("/bin/sh", ["sh", "-c", "a\0b"..., ...], 0x7ff /* 41 vars */) = 0"#);
    assert_eq!((read.text(read.raw.path), read.text(read.raw.argv)), (Some("/bin/sh"), Some("sh\0-c\0a\0b")));
    let read = call(r#"execve("/bin/sh", [], NULL) = 0"#);
    assert_eq!(read.text(read.raw.argv), Some(""));
    assert_eq!(call("close_range(3, 4294967295, CLOSE_RANGE_CLOEXEC) = 0").raw.flags, 4);
    assert_eq!(call("ioctl(3, FIOCLEX) = 0").raw.flags, 0x5451);
    let read = call(r#"renameat2(AT_FDCWD, "a", 5, "b", RENAME_NOREPLACE) = 0"#);
    assert_eq!((read.raw.fd, read.raw.fd2), (AT_FDCWD, 5));
    assert_eq!((read.text(read.raw.path), read.text(read.raw.path2)), (Some("a"), Some("b")));
    assert_eq!(call("getcwd(\"/tmp\", 4096) = 5").raw.fd, NO_FD);
}

#[test]
fn asynchronous_requests_are_read() {
    let read = call(
        r#"io_submit(0x7f, 2, [{aio_data=0x10, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3</a>, aio_buf=0x5, aio_nbytes=512, aio_offset=1024}, {aio_data=0x20, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=4, aio_buf="x"..., aio_nbytes=100, aio_offset=0}]) = 2"#,
    );
    let items: Vec<_> = read.batch.items.iter().map(|i| (i.key, i.fd, i.write, i.bytes, i.offset)).collect();
    assert_eq!(items, [(16, 3, false, 512, 1024), (32, 4, true, 100, 0)]);
    assert_eq!((read.raw.items.start, read.raw.items.count), (0, 2));
    let read = call("io_submit(140, 1, {{data=7, pwrite, fildes=3, buf=0x5, nbytes=512, offset=1024}}) = 1");
    assert_eq!(
        (read.batch.items[0].key, read.batch.items[0].write, read.batch.items[0].bytes),
        (7, true, 512)
    );
    let read = call("io_getevents(0x7f, 1, 2, [{data=0x10, obj=0x5, res=512, res2=0}, {data=0x20, obj=0x6, res=-5, res2=0}], NULL) = 2");
    let items: Vec<_> = read.batch.items.iter().map(|i| (i.key, i.bytes)).collect();
    assert_eq!(items, [(16, 512), (32, -5)]);
}

#[test]
fn impossible_arguments_are_unknown() {
    for (line, lost) in [
        ("write(s, \"x\", 4096) = 4096", 1),
        ("write(1x, \"x\", 4096) = 4096", 1),
        ("write(3, \"x\", 40y6) = 4096", 1),
        ("openat(AT_FDCWD, \"/a\", O_RDWP|O_CREAT, 0644) = 3", 1),
        ("openat(AT_FDCWD</b>, \"/a\", O_RDWR|O_LARGEFILE|__O_SYNC|O_NOCTTY|0x8, 0644) = 3</a>", 0),
        ("openat(AT_FDCWD, \"/a\", O_ACCMODE|FASYNC) = 3", 0),
        ("open(\"/a\", 0x3 /* O_??? */) = 3", 0),
        ("read(3<socket:[1]>, \"x\"..., 0x1000 /* four */) = 1", 0),
        ("read(-1, NULL, 0) = -1 EBADF (Bad file descriptor)", 0),
        ("mmap(NULL, 4096, PROT_READ, MAP_ANONYMOUS, -1, 0) = 0x7f00", 0),
        ("dup2(3, 4) = 4", 0),
        ("pipe([3, 4]) = 0", 0),
    ] {
        assert_eq!(call(line).batch.losses.count(LossKind::UnreadableArguments), lost, "{line}");
    }
}

#[test]
fn lines_that_are_not_calls_are_recognised() {
    for (line, expected) in [
        ("12 +++ exited with 0 +++", "End"),
        ("12 --- SIGCHLD {si_signo=SIGCHLD} ---", "Signal"),
        ("12 --- stopped by SIGSTOP ---", "Signal"),
        ("strace: Process 12 attached", "Noise"),
        ("Process 12 attached (waiting for parent)", "Noise"),
        ("Process 12 detached", "Noise"),
        ("[ Process PID=12 runs in 32 bit mode. ]", "Noise"),
        ("strace: [ Process PID=12 runs in x32 mode. ]", "Noise"),
        (" > /lib/x86_64-linux-gnu/libc.so.6(__read+0xe) [0xfb19e]", "Noise"),
        (" | 00000  61 62 63 0a                                       abc.             |", "Noise"),
        (" * 10 bytes in buffer 0", "Noise"),
        ("", "Noise"),
        ("% time     seconds  usecs/call     calls    errors syscall", "Noise"),
        ("------ ----------- ----------- --------- --------- ----------------", "Row"),
        (" 38.42    0.000073          24         3           read", "Row"),
        ("  0.00    0.000000           0         1         1 access", "Row"),
        ("100.00    0.000190           5        36         2 total", "Row"),
        ("read(3,  <unfinished ...>", "Begun"),
        ("execve(\"/bin/cat\", [\"cat\"], 0x7ffe /* 3 vars */ <pid changed to 27891 ...>", "Begun"),
        ("<... read resumed>\"abc\", 10) = 3", "Resumed"),
        ("<... read resumed> \"abc\", 10) = 3", "Resumed"),
        ("<... wait4 resumed> <unfinished ...>) = ?", "Resumed"),
        ("<... ???? resumed>) = ?", "Resumed"),
        ("hello, world", "Unknown"),
        ("Makefile:12: (x) = 3", "Unknown"),
        ("12 --- SIGCHLD {si_signo=SIG", "Unknown"),
    ] {
        assert_eq!(kind(line), expected, "{line}");
    }
}

#[test]
fn truncated_lines_are_not_read_as_calls() {
    let line = r#"12 openat(AT_FDCWD, "/tmp/a", O_RDONLY) = 3"#;
    for length in 0..line.len() {
        assert!(try_call(&line[..length]).is_none(), "{}", &line[..length]);
    }
}

#[test]
fn two_lines_joined_into_one_are_not_read_as_a_call() {
    for line in [
        r#"write(3, ""..., 48) = 48 <0.000049>1 1795338799.3 write(3, ""..., 49) = 49 <0.000075>"#,
        r#"write(3, "abc", 3) = 31 1795338799.3 read(3, "x", 10) = 10 <0.5>"#,
        r#"write(3, "abc", 3) = -1 ENOSPC (No space1 1795338799.3 read(3, "x", 10) = 10 <0.5>"#,
    ] {
        assert!(try_call(line).is_none(), "{line}");
    }
}

#[test]
fn a_duration_is_not_read_as_a_result() {
    for line in ["close(3) = <0.5>", "close(3) =<0.5>", "close(3)=  <0.5>", "close(3) = ", "close(3) ="] {
        assert!(try_call(line).is_none(), "{line}");
    }
}

#[test]
fn ends_of_tasks_are_read() {
    let end = |text: &str| {
        let mut batch = Batch::default();
        let end = line::task_end(text.as_bytes(), 5, 9, &mut batch)?;
        let signal =
            end.signal.is_some().then(|| String::from_utf8_lossy(batch.text(end.signal)).into_owned());
        Some((end.exit_code, signal, end.core_dumped, end.superseded_by))
    };
    assert_eq!(end("exited with 3 +++"), Some((Some(3), None, false, None)));
    assert_eq!(end("killed by SIGSEGV (core dumped) +++"), Some((None, Some("SIGSEGV".into()), true, None)));
    assert_eq!(end("superseded by execve in pid 7 +++"), Some((None, None, false, Some(7))));
    assert_eq!(end("exited with 3"), None);
    assert_eq!(end("something +++"), None);
}
