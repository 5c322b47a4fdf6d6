//! Tests that the lines of each tool match that tool only, and that logs which iodock reads match none.

use super::*;
use crate::{open_log, ReadOptions, FORMATS};
use std::path::Path;

/// Lines from the tools' manual pages and sources, and from users.
const SAMPLES: &[(&str, &str)] = &[
    ("aix-truss", "execve(\"/usr/bin/ls\", 0x2FF22B28, 0x2FF22B30)\t argc: 1\n\
      163910:\tkioctl(1, 22528, 0x00000000, 0x00000000)\t= 0\nkwrite(1, \" a b c\\n\", 4)\t= 4\n\
      open(\"/x\", O_RDONLY)\tErr#2  ENOENT\n"),
    ("kdump", "  1234 ls       CALL  open(0x28074c3a,0,0)\n  1234 ls       NAMI  \"/etc\"\n  1234 ls       RET   open 3\n"),
    ("kdump", "  4411 100095 my prog    1.25 CALL  read(0x3,0x7ff,0x10)\n  4411 100095 my prog    1.26 GIO   fd 3 read 2 bytes\n"),
    ("dtruss", "SYSCALL(args) \t\t = return\nopen(\"/dev/dtracehelper\\0\", 0x2, 0x7FFF)\t\t = 3 0\nclose(0x3)\t\t = 0 0\n"),
    ("dtruss", "  501/0x1a2b:  read(0x3, \"abc\\0\", 0x1000)   = 4096 0\n  501/0x1a2b:  open(\"/nope\\0\", 0x0, 0x0)   = -1 Err#2\n"),
    ("dtrace", "CPU     ID                    FUNCTION:NAME\n  0  17  read:entry\n"),
    ("dtrace", "dtrace: script 'x.d' matched 4 probes\ndtrace: error on enabled probe ID 3 (ID 7: syscall::read:entry)\n"),
    ("dtrace", "CPU FUNCTION\n  0  -> read\n  0  <- read\n"),
    ("sysdig", "1 01:40:19.601363716 1 httpd (7513) > read fd=14(<f>/a) size=8000\n\
      2 01:40:19.601374197 1 httpd (7513) < read res=85 data=GET /a\n"),
    ("bpftrace", "Attaching 2 probes...\n@reads[ls]: 12\n@writes[cat]: 3\n"),
    ("bcc", "PID    COMM               FD ERR PATH\n1576   snmpd              11   0 /proc/sys/net\n"),
    ("ftrace", "# tracer: nop\n#\n              ls-1234    [001] ....  123.456789: sys_openat(dfd: ffffff9c, filename: 7ffd)\n"),
    ("ftrace", "cpus=2\n  ls-1234  [000]  123.456: sys_enter_read: fd: 0x3\n  ls-1234  [000]  123.457: sys_exit_read: 0x10\n"),
    ("perf-script", "ls  1234 [000]  123.456789: syscalls:sys_enter_read: fd: 0x3, buf: 0x7f\n\
      ls  1234 [000]  123.456799: syscalls:sys_exit_read: 0x10\n"),
    ("perf.data", "PERFILE2\x01\x02"),
    ("lttng", "[12:34:56.123456789] (+0.000001234) host syscall_entry_openat: { cpu_id = 1 }, { dfd = -100 }\n\
      [12:34:56.123456999] (+0.000000210) host syscall_exit_openat: { cpu_id = 1 }, { ret = 3 }\n"),
    ("auditd", "type=SYSCALL msg=audit(1364481363.243:24287): arch=c000003e syscall=2 success=no exit=-13\n\
      type=CWD msg=audit(1364481363.243:24287):  cwd=\"/home\"\n"),
    ("uftrace", "# DURATION     TID     FUNCTION\n   0.508 us [ 772037] | __monstartup();\n"),
    ("valgrind", "SYSCALL[1234,1](257) sys_openat ( -100, 0x4a(a), 0 ) --> [pre-success] Success(0x3)\nSYSCALL[1234,1](3) sys_close ( 3 )[sync] --> Success(0x0)\n"),
    ("qemu-strace", "1234 openat(AT_FDCWD,\"/etc/ld.so.cache\",O_RDONLY|O_CLOEXEC) = 3\n\
      1234 read(3,0x4080,832) = 832\n1234 access(\"/x\",R_OK) = -1 errno=2 (No such file or directory)\n"),
    ("gvisor", "I0101 12:34:56.1 1 strace.go:567] [   1:   1] app E openat(AT_FDCWD /, 0x7f /a, O_RDONLY, 0o0)\n\
      I0101 12:34:56.2 1 strace.go:605] [   1:   1] app X openat(AT_FDCWD /, 0x7f /a, O_RDONLY, 0o0) = 3 (0x3) (10us)\n"),
    ("fs_usage", "15:51:36.123456  open              F=3   (R_____)  /etc/hosts    0.000045   ls.12345\n\
      15:51:36.223456  read              F=3    B=0x1000                  0.000012 W ls.12345\n"),
    ("procmon", "\u{feff}\"Time of Day\",\"Process Name\",\"PID\",\"Operation\",\"Path\",\"Result\",\"Detail\"\n\
      \"9:11:12.1234567 AM\",\"a.exe\",\"12\",\"ReadFile\",\"C:\\a\",\"SUCCESS\",\"Offset: 0, Length: 4,096\"\n"),
    ("procmon", "<?xml version=\"1.0\"?>\n<procmon><processlist>\n"),
    ("drstrace", "NtQuerySystemInformation\n\targ 0: 0x32\n    succeeded =>\nNtClose\n\targ 0: 0x4\n"),
    ("tusc", "( Attached to process 1234 (\"ls\") [64-bit] )\nopen(\"/etc/hosts\", O_RDONLY, 0) ......... = 3\n"),
    ("par", "    0mS[  0] ls(1234): open(\"/etc\", O_RDONLY) OK\n    1mS[  0] ls(1234): END-open() = 3\n"),
    ("darshan", "# darshan log version: 3.41\n# exe: ./a.out\n"),
    ("blkparse", "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n  8,0    3        2     0.000001829   697  P   R [kjournald]\n"),
    ("fatrace", "cat(123): O /etc/hosts\ncat(123): RC /etc/hosts\n"),
    ("ld-debug", "      1234:\tfind library=libc.so.6 [0]; searching\n      1234:\tcalling init: /lib/libc.so.6\n"),
];

fn head(text: &str) -> Head<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Head { bytes: text.as_bytes(), file: "x" }
}

#[test]
fn every_pattern_is_a_regular_expression() {
    for signature in SIGNATURES {
        for pattern in signature.title.iter().chain(signature.lines) {
            let built = RegexSetBuilder::new([pattern]).unicode(false).build();
            assert!(built.is_ok(), "{}: {pattern}", signature.name);
        }
        let sampled = SAMPLES.iter().any(|(name, _)| *name == signature.name);
        assert!(sampled, "{} has no sample", signature.name);
    }
    assert!(patterns().is_some());
}

#[test]
fn each_refused_format_is_recognised() {
    for &(name, text) in SAMPLES {
        assert_eq!(recognised(&head(text)).map(|signature| signature.name), Some(name), "{text}");
    }
}

#[test]
fn the_message_names_the_format_and_the_remedy() {
    let path = std::env::temp_dir().join(format!("iodock-refused-{}", std::process::id()));
    for &(name, text) in SAMPLES {
        std::fs::write(&path, text).unwrap();
        for format in [None, Some("strace"), Some("truss"), Some(name)] {
            let opened = open_log(path.to_str().unwrap(), format, &ReadOptions::default());
            let error = opened.err().unwrap_or_else(|| panic!("{name} is read as {format:?}"));
            assert!(error.message.ends_with("which iodock does not read"), "{name}: {error}");
            assert!(!error.hint.is_empty());
        }
    }
    std::fs::remove_file(&path).unwrap();
}

fn fixtures(folder: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(folder)];
    // Some formats share a folder, so a format's folder may not exist.
    folders.retain(|folder| folder.is_dir());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

#[test]
fn output_of_dtruss_with_messages_between_calls_is_recognised() {
    for path in fixtures("public/dtruss-with-messages") {
        if !path.ends_with("expected.txt") {
            let opened = open_log(path.to_str().unwrap(), None, &ReadOptions::default());
            let error = opened.err().unwrap();
            assert!(error.message.starts_with("is output of dtruss (macOS"), "{}: {error}", path.display());
        }
    }
}

#[test]
fn no_supported_log_is_refused() {
    let of_formats = FORMATS.iter().flat_map(|format| fixtures(format.name()));
    for path in fixtures("cases").into_iter().chain(of_formats) {
        let name = path.to_string_lossy().into_owned();
        if name.contains(".json") || std::fs::metadata(&path).unwrap().len() == 0 {
            continue;
        }
        let input = crate::Input::open(&name).unwrap();
        let found = recognised(&Head { bytes: input.head(), file: &name });
        assert!(found.is_none(), "{name} is taken for {}", found.unwrap().name);
    }
    for text in [
        "execve(\"/usr/bin/true\", 0x08047DEC, 0x08047DF8)  argc = 1\nopen(\"/x\", O_RDONLY)\t\tErr#2 ENOENT\n",
        "1 1.5 read(3, \"kread( ERR# malloc(\", 9) = 9 <0.1>\n1 1.6 close(3) = 0 <0.1>\n",
        "1 read(3, \"SYSCALL(args)\", 20) = 13\n".repeat(9).as_str(),
        "12:34:56.123456789 write(1, \"h a: { \", 7) = 7\n".repeat(3).as_str(),
        "write(1, \"  ls-1 [000] 1.2: a: b:c: \", 9) = 9\n".repeat(3).as_str(),
        "exit(0)                                 = ?\nexit_group(0)  = ?\n",
        "statx(AT_FDCWD, \"/a\", 0, 0, NULL) = 0\nstatx(AT_FDCWD, \"/b\", 0, 0, NULL) = 0\n",
        "fcntl(3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)\nread(3, \"\", 0) = 0\n",
        "read(3, \"\", 0) = 0\ndtrace: x\nread(3, \"\", 0) = 0\ndtrace: y\nclose(3) = 0\n",
    ] {
        assert!(recognised(&head(text)).is_none(), "{text}");
        assert!(FORMATS.iter().any(|format| format.confidence(&head(text)) >= 30), "{text}");
    }
}
