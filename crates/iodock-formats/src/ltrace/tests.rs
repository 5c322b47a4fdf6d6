//! Tests lines that ltrace 0.7.3 printed, and lines that were written according to the sources of 0.7.91.

use super::line::{read, Body};
use super::*;
use crate::FORMATS;
use iodock_event::constants::{CLONE_THREAD, O_CREAT, O_TRUNC, O_WRONLY};
use iodock_event::{
    Batch, Clock, LossKind, Losses, Outcome, Phase, RawCall, Record, TaskEnd, AT_FDCWD, UNKNOWN,
    UNSHOWN_OFFSET,
};
use std::collections::BTreeMap;

fn fixture(name: &str) -> String {
    let path = format!("{}/../../fixtures/ltrace/{name}", env!("CARGO_MANIFEST_DIR"));
    // The log is valid UTF-8, because ltrace prints other bytes as escapes.
    std::fs::read_to_string(path).unwrap()
}

fn open(text: &str, chunk_size: usize) -> Result<Box<dyn LogSource>, SourceError> {
    let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
    let input = Input::from_reader(Box::new(bytes), "run.ltrace", None)?;
    Ltrace.open(input, &ReadOptions { workers: 0, chunk_size, ..ReadOptions::default() })
}

/// Reads a log in chunks and merges all batches into one. Also returns the clock.
fn in_chunks(text: &str, chunk_size: usize) -> (Clock, Batch) {
    try_in_chunks(text, chunk_size).unwrap()
}

fn try_in_chunks(text: &str, chunk_size: usize) -> Result<(Clock, Batch), SourceError> {
    let mut source = open(text, chunk_size)?;
    let mut all = Batch::default();
    while let Some(batch) = source.next_batch()? {
        batch.records.iter().for_each(|&record| all.push_copy(record, &batch));
        all.forks.extend(&batch.forks);
        all.counts.add(&batch.counts);
        all.losses.merge(&batch.losses);
    }
    Ok((source.clock(), all))
}

fn whole(text: &str) -> Batch {
    in_chunks(text, ReadOptions::default().chunk_size).1
}

fn calls(batch: &Batch) -> Vec<RawCall> {
    let call = |record: &Record| match record {
        Record::Call(raw) => Some(*raw),
        _ => None,
    };
    batch.records.iter().filter_map(call).collect()
}

/// Parses a log of one line and returns its only call.
fn one(line: &str) -> (RawCall, Batch) {
    let batch = whole(&format!("{line}\n"));
    let Some(&raw) = calls(&batch).first() else { panic!("no call: {line}") };
    (raw, batch)
}

fn path(line: &str) -> Option<String> {
    let (raw, batch) = one(line);
    raw.path.is_some().then(|| String::from_utf8_lossy(batch.text(raw.path)).into_owned())
}

/// Counts completed calls by name. A call of exit has only one record.
fn by_name(batch: &Batch) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for raw in calls(batch).iter().filter(|raw| raw.phase != Phase::Enter) {
        *names.entry(raw.call.name()).or_default() += 1;
    }
    names
}

fn counted(losses: &Losses) -> Vec<(&'static str, u64)> {
    losses.counts.iter().map(|(kind, &count)| (kind.name(), count)).collect()
}

#[test]
fn a_real_log_has_the_calls_that_strace_shows() {
    // These counts are from `strace -f ./copy` on the same machine, without its execve. A futex at the end of
    // the thread is restarted.
    let of_strace = "access 2, arch_prctl 1, brk 3, clock_nanosleep 1, clone 1, clone3 1, close 3, exit 1, exit_group 2, getrandom 1, \
        lseek 1, madvise 1, mmap 10, mprotect 4, munmap 1, newfstatat 2, openat 5, pipe2 1, pread64 2, prlimit64 1, \
        pwrite64 1, read 4, rseq 2, rt_sigaction 1, rt_sigprocmask 5, set_robust_list 3, set_tid_address 1, \
        unlink 1, wait4 1, write 1";
    for (name, clock, futexes) in [("default.ltrace", Clock::Day, 5), ("described.ltrace", Clock::Epoch, 1)] {
        for chunk_size in [1, 300, 1 << 20] {
            let (shown, batch) = in_chunks(&fixture(name), chunk_size);
            assert_eq!(shown, clock);
            let mut names = by_name(&batch);
            assert_eq!(names.remove("futex"), Some(futexes), "{name} {chunk_size}");
            let names: Vec<String> = names.iter().map(|(name, count)| format!("{name} {count}")).collect();
            assert_eq!(names.join(", "), of_strace, "{name} {chunk_size}");
            // The two losses are the junk line, and a rename whose file name contains `",`.
            assert_eq!(batch.losses.count(LossKind::UnreadableLines), 2, "{name} {chunk_size}");
            assert_eq!(batch.counts.signals.get("SIGCHLD"), Some(&1));
            let ends: Vec<Option<i32>> = batch.records.iter().filter_map(exit_code).collect();
            assert_eq!(ends, [Some(3), Some(0), Some(0)]);
            let forks: Vec<bool> = batch.forks.iter().map(|fork| fork.flags & CLONE_THREAD != 0).collect();
            assert_eq!((batch.counts.orphans, forks), (0, vec![false, true]), "{name} {chunk_size}");
            let bytes = |name: &str| {
                calls(&batch)
                    .iter()
                    .filter(|raw| raw.call.name() == name)
                    .map(|raw| raw.result.max(0))
                    .sum::<i64>()
            };
            assert_eq!((bytes("read"), bytes("write"), bytes("pwrite64")), (832 + 70 + 70 + 64, 70, 70));
        }
    }
}

fn exit_code(record: &Record) -> Option<Option<i32>> {
    match record {
        Record::End(end) => Some(end.exit_code),
        _ => None,
    }
}

#[test]
fn information_missing_from_a_real_log_is_counted() {
    let (_, default) = in_chunks(&fixture("default.ltrace"), 1 << 20);
    assert_eq!(
        counted(&default.losses),
        [("unreadable-lines", 2), ("unshown-names", 7), ("unshown-arguments", 6)]
    );
    let first = &default.losses.first[&LossKind::UnreadableLines];
    assert_eq!(
        (first.file.as_str(), first.line, first.sample.as_str()),
        ("run.ltrace", 31, "this line is junk")
    );
    let (_, described) = in_chunks(&fixture("described.ltrace"), 1 << 20);
    assert_eq!(counted(&described.losses), [("unreadable-lines", 2)]);
    let opened: Vec<(String, u64)> = calls(&described)
        .iter()
        .filter(|raw| raw.call.name() == "openat")
        .map(|raw| (String::from_utf8_lossy(described.text(raw.path)).into_owned(), raw.flags))
        .collect();
    assert_eq!(opened[2], ("/tmp/ltf/in".to_string(), 0));
    assert_eq!(opened[3], ("/tmp/ltf/a \"copy\", 2".to_string(), O_WRONLY | O_CREAT | O_TRUNC));
}

#[test]
fn call_names_marked_with_sys_are_recognised() {
    for chunk_size in [1, 100, 1 << 20] {
        let (clock, batch) = in_chunks(&fixture("suffixed.ltrace"), chunk_size);
        assert_eq!(clock, Clock::Day);
        let names: Vec<String> =
            by_name(&batch).iter().map(|(name, count)| format!("{name} {count}")).collect();
        assert_eq!(
            names.join(", "),
            "arch_prctl 1, brk 1, clone3 1, close 1, exit 1, exit_group 1, mmap 1, newfstatat 1, openat 2, read 1, rseq 1, write 1"
        );
        assert_eq!(counted(&batch.losses), [("unreadable-lines", 1)], "{chunk_size}");
        let read = calls(&batch)
            .into_iter()
            .find(|raw| raw.call.name() == "read" && raw.phase == Phase::Exit)
            .unwrap();
        assert_eq!(
            (read.tid, read.fd, read.requested, read.result, read.duration),
            (700, 3, 4096, 3, 300_000)
        );
        let killed = batch.records.iter().find_map(|record| match record {
            Record::End(TaskEnd { tid: 701, signal, .. }) => Some(*signal),
            _ => None,
        });
        assert_eq!(batch.text(killed.unwrap()), b"SIGKILL");
    }
}

#[test]
fn leading_columns_are_read() {
    let call = "SYS_close(3)    = 0";
    for (before, tid, start) in [
        ("", 0, UNKNOWN),
        ("17 ", 17, UNKNOWN),
        ("[pid 17] ", 17, UNKNOWN),
        ("16:42:49 ", 0, 60_169_000_000_000),
        ("17 16:42:49.903645 ", 17, 60_169_903_645_000),
        ("[pid 17] 1795968169.903645 ", 17, 1_795_968_169_903_645_000),
        ("  0.000071 [0x7f07a7371d07] ", 0, 71_000),
        ("17   0.000071 16:42:49.903645 [0x7f07a7371d07]     ", 17, 60_169_903_645_000),
    ] {
        let (raw, _) = one(&format!("{before}{call}"));
        assert_eq!((raw.tid, raw.start, raw.fd), (tid, start, 3), "{before}");
    }
    for before in ["17:", "24:00:00 ", "16:42:4x.903645 ", "0.00071 ", "[pid x] ", "a "] {
        assert!(!is_call(&format!("{before}{call}")), "{before}");
    }
}

fn is_call(line: &str) -> bool {
    line::is_system_call(line.as_bytes())
}

#[test]
fn times_over_midnight_and_relative_times_are_read() {
    let day = "23:59:59.900000 SYS_close(3) = 0 <0.000010>\n00:00:00.100000 SYS_close(4) = 0 <0.000010>\n";
    let sums = "  1.000000 SYS_close(3) = 0 <0.000010>\n  0.500000 SYS_read(3 <unfinished ...>\n  0.500000 free(0x5)  = <void>\n  0.500000 <... SYS_read resumed> , \"\", 5) = 0 <0.900000>\n";
    for chunk_size in [1, 1 << 20] {
        let starts: Vec<i64> = calls(&in_chunks(day, chunk_size).1).iter().map(|raw| raw.start).collect();
        assert_eq!(starts, [86_399_900_000_000, 86_400_100_000_000]);
        let (clock, batch) = in_chunks(sums, chunk_size);
        let starts: Vec<i64> = calls(&batch).iter().map(|raw| raw.start).collect();
        assert_eq!((clock, starts), (Clock::Relative, vec![1_000_000_000, 1_500_000_000, 1_500_000_000]));
        assert_eq!(counted(&batch.losses), []);
    }
    let without = whole("SYS_close(3) = 0\nSYS_close(4) = 0\n");
    assert_eq!(counted(&without.losses), [("missing-durations", 2), ("missing-timestamps", 2)]);
}

#[test]
fn results_and_errors_are_read() {
    for (line, outcome, result, errno) in [
        ("SYS_read(3, \"x\", 10) = 1", Outcome::Succeeded, 1, ""),
        ("SYS_brk(0)   = 0x5649ac40a000", Outcome::Succeeded, 0x5649_ac40_a000, ""),
        ("SYS_access(\"/a\", 04)   = -2 <0.000018>", Outcome::Failed, -1, "ENOENT"),
        ("SYS_readv(99, 0x7ffd98811840, 2) = 18446744073709551607", Outcome::Failed, -1, "EBADF"),
        ("SYS_mmap(0, 8192, 3, 34, -1, 0) = 0xfffffffffffffff4", Outcome::Failed, -1, "ENOMEM"),
        ("SYS_readv(99, 0x98811840, 2) = 4294967287", Outcome::Failed, -1, "EBADF"),
        ("SYS_lseek(3, 0, 2) = 4294967287", Outcome::Succeeded, 4_294_967_287, ""),
        ("SYS_futex(0x7f, 265, 0x45bc, 0) = -512", Outcome::Failed, -1, "ERESTARTSYS"),
        ("SYS_500(1, 2, 3, 4)        = -38", Outcome::Failed, -1, "ENOSYS"),
        ("shmat@SYS(3, nil, 0) = nil", Outcome::Succeeded, 0, ""),
        ("SYS_umask(022) = 022", Outcome::Succeeded, 0o22, ""),
    ] {
        let (raw, _) = one(line);
        let name = if raw.errno.is_some() { raw.errno.name() } else { String::new() };
        assert_eq!((raw.outcome, raw.result, name.as_str()), (outcome, result, errno), "{line}");
    }
}

#[test]
fn arguments_are_read() {
    let (raw, _) = one("SYS_pread(4, 0x7ffc6d034930, 784, 64) = 784");
    assert_eq!((raw.call.name().as_str(), raw.fd, raw.requested, raw.offset), ("pread64", 4, 784, 64));
    for fd in ["0xffffff9c", "-100", "AT_FDCWD", "0xffffffffffffff9c"] {
        assert_eq!(one(&format!("SYS_openat({fd}, \"/a\", 0x80000, 00) = 3")).0.fd, AT_FDCWD, "{fd}");
    }
    let (raw, batch) = one("SYS_sendfile(6, 5, 0x7f, 10) = 10");
    assert_eq!((raw.fd, raw.fd2, raw.offset, raw.requested), (5, 6, UNSHOWN_OFFSET, 10));
    assert_eq!(batch.losses.count(LossKind::UnshownArguments), 0);
    let copied = whole("SYS_arch_prctl(4098, 0x7f, 0, 34) = 0\nSYS_326(5, 0, 6, 0) = 10\n");
    let raw = calls(&copied)[1];
    assert_eq!(
        (raw.call.name().as_str(), raw.fd, raw.fd2, raw.requested),
        ("copy_file_range", 5, 6, UNKNOWN)
    );
    assert_eq!(copied.losses.count(LossKind::UnshownArguments), 1);
    let (raw, batch) = one("SYS_mmap(0, 0xb597, 1, 2)  = 0x7f0a43eba000");
    assert_eq!((raw.requested, batch.losses.count(LossKind::UnshownArguments)), (0xb597, 1));
    assert_eq!(
        one("SYS_mmap(0, 8192, 3, 34)  = 0x7f0a43eba000").1.losses.count(LossKind::UnshownArguments),
        0
    );
    let (raw, _) = one("SYS_mmap2(0, 8192, 1, 2, 5, 3)  = 0x7f0a43eba000");
    assert_eq!((raw.fd, raw.offset), (5, 3 * 4096));
    let (raw, _) = one("SYS_write(1, \"say \"hi\", 2) = 3\\n\", 16) = 16");
    assert_eq!((raw.requested, raw.result), (16, 16));
}

#[test]
fn quoted_file_names_are_read() {
    for (shown, name) in [
        ("\"/etc/a\"", Some("/etc/a")),
        ("\"\"", Some("")),
        ("\"a\"b\"", Some("a\"b")),
        ("\"e\", 2) = 3\"", Some("e\", 2) = 3")),
        (r#""t\tab\\ caf\303\251""#, Some("t\tab\\ café")),
        ("0x7fe6cdb8e0b1", None),
        ("nil", None),
        ("0", None),
    ] {
        let line = format!("SYS_openat(-100, {shown}, 0x80000, 00) = 3");
        assert_eq!(path(&line).as_deref(), name, "{shown}");
        let unshown = one(&line).1.losses.count(LossKind::UnshownNames);
        assert_eq!(unshown, u64::from(shown.starts_with("0x")), "{shown}");
    }
    assert!(one("SYS_open(\"/tmp/longlonglonglonglonglonglon\"..., 0, 00) = 3").0.path_cut);
    let (raw, batch) = one("SYS_rename(\"/a \"b\" c\", \"/x\") = -2");
    assert_eq!((batch.text(raw.path), batch.text(raw.path2)), (&b"/a \"b\" c"[..], &b"/x"[..]));
    let (raw, batch) = one("SYS_readlink(\"/proc/self/exe\", \"/usr/bin/cat\", 100) = 12");
    assert_eq!(batch.text(raw.path), b"/proc/self/exe");
}

#[test]
fn calls_split_over_two_lines_are_joined() {
    let begun = "7 10:00:00.000100 SYS_read(3 <unfinished ...>\n";
    let other = "8 10:00:00.000200 SYS_close(9) = 0 <0.000010>\n";
    let end = "7 10:00:00.000900 <... SYS_read resumed> , \"abc\", 10) = 3 <0.000700>\n";
    for chunk_size in [1, 1 << 20] {
        let (_, batch) = in_chunks(&format!("{begun}{other}{end}"), chunk_size);
        let all = calls(&batch);
        let phases: Vec<Phase> = all.iter().map(|raw| raw.phase).collect();
        assert_eq!(phases, [Phase::Enter, Phase::Whole, Phase::Exit]);
        assert_eq!((all[2].fd, all[2].requested, all[2].result), (3, 10, 3));
        assert_eq!((all[2].start, all[2].duration), (36_000_000_100_000, 700_000));
        assert_eq!((batch.counts.unfinished, batch.counts.resumed, batch.counts.timed), (1, 1, 2));
        assert_eq!(counted(&batch.losses), []);
        let lost = |text: &str| counted(&in_chunks(text, chunk_size).1.losses);
        assert_eq!(lost(&format!("{other}{end}")), [("orphan-resumed", 1)]);
        assert_eq!(lost(&format!("{other}{begun}")), [("unfinished-at-end", 1)]);
        // The end of the call is missing, because its thread continued.
        let (_, went_on) = in_chunks(&format!("{begun}{}{other}", other.replace("8 ", "7 ")), chunk_size);
        let results: Vec<(String, Outcome)> =
            calls(&went_on).iter().skip(1).map(|raw| (raw.call.name(), raw.outcome)).collect();
        assert_eq!(results[0], ("read".into(), Outcome::NoResult));
        assert_eq!(results.len(), 3);
    }
}

#[test]
fn a_successful_execve_is_recognised() {
    let text = "7 10:00:00.000100 SYS_execve(\"/bin/wc\", 0x7f, 0x7e <no return ...>\n7 10:00:00.000500 --- Called exec() ---\n7 10:00:00.000600 SYS_brk(0) = 0x55\n";
    for chunk_size in [1, 1 << 20] {
        let (_, batch) = in_chunks(text, chunk_size);
        let all = calls(&batch);
        let execve = all.iter().find(|raw| raw.phase == Phase::Exit).unwrap();
        assert_eq!(batch.text(execve.path), b"/bin/wc");
        assert_eq!((execve.outcome, execve.result, execve.end), (Outcome::Succeeded, 0, 36_000_000_500_000));
        assert_eq!(batch.losses.count(LossKind::UnfinishedAtEnd), 0);
    }
}

#[test]
fn lines_that_are_not_system_calls_are_skipped() {
    for line in [
        "7 malloc(5)                  = 0x55d0",
        "7 free(0x55d0)               = <void>",
        "getopt_long(2, 0x7f, \"n\", { \"number\", 0 }) = -1 <0.000100>",
        "cat->fopen(\"/a\", \"r\" <unfinished ...>",
        "[pid 7] 10:00:00 <... fopen resumed> )   = 0x55",
        "std::ostream::operator<<(int)(0x60, 5) = 0x60",
        "puts@libc.so.6(\"a\") = 2",
        "time(nil) =",
    ] {
        assert!(matches!(read(line.as_bytes()), Some((_, Body::Library | Body::Either(_)))), "{line}");
    }
    let signal = read(b"7 --- SIGCHLD (Child exited) ---").map(|(_, body)| body);
    assert_eq!(signal, Some(Body::Signal(b"SIGCHLD")));
    for line in ["", " > /bin/a(main+0x1d) [401136]", "\ta.c:12", "\t\t\tmain (ip = 0x401136)"] {
        assert!(matches!(read(line.as_bytes()), Some((_, Body::Known))), "{line}");
    }
    for line in [
        "cat: /x: No such file or directory",
        "SYS_write(1, \"yo\\n\", 3yo",
        ")                          = 3",
        "SYS_read(3, \"a\", 4) = ",
        "SYS_read(3, \"a\", 4) = 3x",
        "SYS_read(3, \"a\", 4) = 3 <0.001>",
        "+++ exited with 0 +++",
        "--- SIGCHLD {si_signo=SIGCHLD} ---",
        "\tindented",
    ] {
        assert!(read(line.as_bytes()).is_none(), "{line}");
    }
}

#[test]
fn damaged_calls_are_counted() {
    let losses = |line: &str| {
        let stamp = "10:00:00.000100";
        let batch = whole(&format!("{stamp} SYS_close(3) = 0 <0.000010>\n{stamp} {line}\n"));
        (calls(&batch).len() - 1, counted(&batch.losses))
    };
    // The first line consists of two merged lines, and the second has a string that is not closed.
    for line in [
        "SYS_read(3, \"a\", SYS_close(3) = 0 <0.000010>",
        "SYS_read(3, \"a, 4) = 1 <0.000010>",
        "SYS_read(3,4) = 1 <0.000010>x",
    ] {
        assert_eq!(losses(line), (0, vec![("unreadable-lines", 1)]), "{line}");
    }
    for line in [
        "SYS_read(x, \"a\", 4) = 1 <0.000010>",
        "SYS_read(3, \"a\", 4o) = 1 <0.000010>",
        "SYS_read(3) = 1 <0.000010>",
    ] {
        assert_eq!(losses(line), (1, vec![("unreadable-arguments", 1)]), "{line}");
    }
    assert_eq!(losses("SYS_close(4) = 0\0 <0.000010>"), (0, vec![("nul-bytes", 1)]));
    let cut = whole("SYS_close(3) = 0\nSYS_read(3, \"\", 400) = 1");
    assert_eq!(cut.losses.count(LossKind::CutLines), 1);
    let line = "17 16:42:49.903645 SYS_read(3, \"a\", 10) = 1 <0.000018>";
    for end in 1..line.len() {
        let batch = whole(&format!("{line}\n{}\n", &line[..end]));
        // A line without its duration counts as complete.
        let is_whole = line[..end].trim_end().ends_with("= 1");
        assert_eq!(calls(&batch).len(), 1 + usize::from(is_whole), "{}", &line[..end]);
        assert_eq!(batch.losses.count(LossKind::UnreadableLines), u64::from(!is_whole), "{}", &line[..end]);
    }
}

fn confidence(text: &str) -> Vec<(&'static str, u8)> {
    let head = Head { bytes: text.as_bytes(), file: "x" };
    let of = |format: &&'static dyn LogFormat| (format.name(), format.confidence(&head));
    let mut sure: Vec<_> = FORMATS.iter().map(of).filter(|(_, sure)| *sure > 88).collect();
    sure.sort();
    sure
}

#[test]
fn the_ltrace_reader_claims_only_its_own_logs() {
    for name in ["default.ltrace", "described.ltrace", "suffixed.ltrace"] {
        assert_eq!(confidence(&fixture(name)), [("ltrace", 98)], "{name}");
    }
    let of_libraries = "__libc_start_main(0x4016d0, 1, 0x7ffc) = 0\nmalloc(5)                  = 0x55d0\nread(3, \"\", 0) = 0\n";
    assert_eq!(confidence(of_libraries), [("ltrace", 98)]);
    let strace = "openat(AT_FDCWD, \"/a\", O_RDONLY) = -1 ENOENT (No such file or directory)\nwrite(1, \"SYS_read(\", 9) = 9\nexit_group(0) = ?\n+++ exited with 0 +++\n";
    let text = format!("{}SYS_read(3, \"x\", 1) = 1\n", strace.repeat(3));
    assert!(matches!(confidence(&text)[..], [("strace", _)]));
}

#[test]
fn logs_without_system_calls_are_refused() {
    let text = "7 malloc(5)                  = 0x55d0\n7 free(0x55d0)  = <void>\n";
    let error = open(text, 1 << 20).err().unwrap();
    assert!(error.message.contains("without a system call") && error.hint.contains("-S"), "{error}");
    let table = "hello\n% time     seconds  usecs/call     calls      function\n------ ----------- ----------- --------- --------------------\n 34.99    0.000169          21         8 SYS_mmap\n";
    let error = open(table, 1 << 20).err().unwrap();
    assert_eq!((error.line, error.message.contains("table of ltrace -c")), (Some(2), true), "{error}");
    assert!(Ltrace.confidence(&Head { bytes: table.as_bytes(), file: "x" }) > 90);
}

#[test]
fn damage_is_read_the_same_in_chunks_of_any_size() {
    let good: String =
        fixture("default.ltrace").lines().skip(30).map(|line| line.to_string() + "\n").collect();
    for (at, sign) in (0..good.len()).step_by(97).zip(b"\"\n() =<9,x-".iter().cycle()) {
        let mut bad = good.clone().into_bytes();
        bad[at] = *sign;
        let bad = String::from_utf8(bad).unwrap();
        let of = |chunk_size: usize| {
            // A damaged time may look like the start of another log.
            let (_, batch) = try_in_chunks(&bad, chunk_size).map_err(|error| error.message)?;
            let phases: Vec<Phase> = calls(&batch).iter().map(|raw| raw.phase).collect();
            Ok::<_, String>((batch.records.len(), phases, counted(&batch.losses)))
        };
        assert_eq!(of(1), of(1 << 20), "{at} {sign}");
    }
}
