//! Tests lines of perf 4.x to 6.x. perf on this machine printed some; others were written according to
//! tools/perf/builtin-trace.c.

use super::line::{is_known, read, Body};
use super::*;
use iodock_event::constants::{CLONE_THREAD, O_CREAT, O_RDWR};
use iodock_event::{
    Batch, LossKind, Outcome, Phase, RawCall, Record, TaskEnd, AT_FDCWD, UNKNOWN, UNSHOWN_OFFSET,
};

fn open(text: &str, chunk_size: usize) -> Result<Box<dyn LogSource>, SourceError> {
    let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
    let input = Input::from_reader(Box::new(bytes), "perf.log", None)?;
    PerfTrace.open(input, &ReadOptions { workers: 0, chunk_size, ..ReadOptions::default() })
}

/// Merges all batches into one.
fn whole(text: &str) -> Batch {
    in_chunks(text, ReadOptions::default().chunk_size)
}

fn in_chunks(text: &str, chunk_size: usize) -> Batch {
    let mut source = open(text, chunk_size).unwrap();
    let mut all = Batch::default();
    while let Some(batch) = source.next_batch().unwrap() {
        batch.records.iter().for_each(|&record| all.push_copy(record, &batch));
        all.forks.extend(&batch.forks);
        all.counts.add(&batch.counts);
        all.losses.merge(&batch.losses);
    }
    all
}

/// Parses a log of one line and returns its only call.
fn one(line: &str) -> (RawCall, Batch) {
    let batch = whole(&format!("{line}\n"));
    let Some(Record::Call(raw)) = batch.records.first().copied() else { panic!("no call: {line}") };
    (raw, batch)
}

fn path(line: &str) -> String {
    let (raw, batch) = one(line);
    String::from_utf8_lossy(batch.text(raw.path)).into_owned()
}

#[test]
fn times_threads_and_results_are_read() {
    let (raw, _) = one(
        "21013440.281 ( 0.010 ms): my prog/1273 pread64(fd: 4, buf: 0x7fffbd620d50, count: 784, pos: 64)   = 784",
    );
    assert_eq!((raw.start, raw.duration, raw.tid), (21_013_440_281_000, 10_000, 1273));
    assert_eq!((raw.fd, raw.requested, raw.offset, raw.result), (4, 784, 64, 784));
    let (raw, _) = one("     0.100 (1234.567 ms): 77 read(buf: 0x7f, count: 10)      = -1 EAGAIN Resource temporarily unavailable");
    assert_eq!((raw.tid, raw.duration, raw.fd), (77, 1_234_567_000, 0));
    assert_eq!((raw.outcome, raw.errno.name()), (Outcome::Failed, "EAGAIN".into()));
    let (raw, _) = one("     0.100 ( 0.001 ms): poll(ufds: 0x7f, nfds: 1, timeout_msecs: 1)   = 0 (Timeout)");
    assert_eq!((raw.tid, raw.result, raw.outcome), (0, 0, Outcome::Succeeded));
    let (raw, _) =
        one("     0.100 ( 0.001 ms): a/b/5 fcntl(fd: 3</a, b: c>, cmd: GETFL)     = RDWR|LARGEFILE");
    assert_eq!((raw.tid, raw.fd, raw.flags, raw.result), (5, 3, 3, UNKNOWN));
    let (raw, _) = one("     0.100 (         ): sh/5 exit_group(error_code: 3)                       = ?");
    assert_eq!(raw.outcome, Outcome::NoResult);
    let (raw, _) = one("     0.100 ( 0.003 ms): sh/5 getppid()                     = ");
    assert_eq!((raw.outcome, raw.result), (Outcome::Succeeded, UNKNOWN));
}

#[test]
fn a_wrapped_duration_is_unknown_and_counted() {
    for duration in ["18446744073707.914", "9223372036855.000", "999999999999999.999"] {
        let (raw, batch) = one(&format!("     0.100 ({duration} ms): a/5 read(fd: 3, count: 10) = 10"));
        assert_eq!((raw.start, raw.duration, raw.result), (100_000, UNKNOWN, 10), "{duration}");
        assert_eq!(batch.losses.count(LossKind::IncredibleNumbers), 1, "{duration}");
        assert_eq!((batch.counts.timed, batch.counts.untimed), (0, 1));
    }
    let time = "999999999999999.999 ( 0.001 ms): a/5 read(fd: 3, count: 10) = 10\n";
    let all = whole(&format!("     0.100 ( 0.001 ms): a/5 close(fd: 3) = 0\n{time}"));
    assert_eq!(all.losses.count(LossKind::UnreadableLines), 1);
}

#[test]
fn arguments_that_perf_omits_are_0() {
    let (raw, _) =
        one("     0.1 ( 0.001 ms): x\n     0.100 ( 0.001 ms): a/5 pwrite64(fd: 4, buf: 0x7f, count: 2)  = 2"
            .lines()
            .last()
            .unwrap());
    assert_eq!((raw.fd, raw.offset, raw.requested), (4, 0, 2));
    let (raw, _) = one("     0.100 ( 0.001 ms): a/5 lseek(fd: 4, whence: END)     = 9");
    assert_eq!((raw.argument, raw.result), (2, 9));
    let (raw, _) =
        one("     0.100 ( 0.001 ms): a/5 sendfile(out_fd: 6, in_fd: 5, offset: 0x7f, count: 10) = 10");
    assert_eq!((raw.fd, raw.fd2, raw.offset, raw.requested), (5, 6, UNSHOWN_OFFSET, 10));
    let (raw, _) = one("     0.100 ( 0.001 ms): a/5 mmap(len: 100, prot: READ, flags: SHARED, fd: 5, off: 0x26000) = 0x7f66fcdc1000");
    assert_eq!((raw.fd, raw.offset, raw.flags, raw.result), (5, 0x26000, 1, 0x7f66_fcdc_1000));
}

#[test]
fn file_names_are_read_with_bpf_or_a_probe() {
    let line = |name: &str| {
        format!("     0.100 ( 0.001 ms): a/5 openat(dfd: CWD, filename: {name}, flags: RDWR|CREAT, mode: IRUGO) = 3")
    };
    let (raw, _) = one(&line("\"/etc/a\""));
    assert_eq!((raw.fd, raw.flags), (AT_FDCWD, O_RDWR | O_CREAT));
    assert_eq!(path(&line("\"/etc/a\"")), "/etc/a");
    assert_eq!(path(&line("\"/a, b: c) = 3\"")), "/a, b: c) = 3");
    assert_eq!(path(&line("\"\"")), "");
    assert_eq!(path(&line("/etc/old style")), "/etc/old style");
    let (raw, batch) = one(&line("0x6f8a20b1"));
    assert!(!raw.path.is_some());
    assert_eq!(batch.losses.count(LossKind::UnshownNames), 1);
    let prefixed =
        "     0.100 ( 0.001 ms): openat(dfd: AT_FDCWD, filename: \"a\", flags: O_RDWR|O_CREAT) = 3</a>";
    let (raw, batch) = one(prefixed);
    assert_eq!((raw.fd, raw.flags, raw.result), (AT_FDCWD, O_RDWR | O_CREAT, 3));
    assert_eq!(batch.text(raw.result_text), b"/a");
    let rename =
        "     0.100 ( 0.001 ms): renameat2(olddfd: CWD, oldname: \"a\", newdfd: CWD, newname: \"b\") = 0";
    let (raw, batch) = one(rename);
    assert_eq!((batch.text(raw.path), batch.text(raw.path2)), (&b"a"[..], &b"b"[..]));
    assert_eq!((raw.fd, raw.fd2), (AT_FDCWD, AT_FDCWD));
}

#[test]
fn calls_split_over_two_lines_are_joined() {
    let text = "     1.000 (         ): a/5 read(fd: 3, buf: 0x7f, count: 10)         ...\n\
                     1.100 ( 0.001 ms): a/6 close(fd: 9)          = 0\n\
                     1.000 ( 0.500 ms): a/5  ... [continued]: read())          = 7\n";
    let calls: Vec<RawCall> = whole(text).records.iter().filter_map(as_call).collect();
    assert_eq!(
        calls.iter().map(|raw| raw.phase).collect::<Vec<_>>(),
        [Phase::Enter, Phase::Whole, Phase::Exit]
    );
    assert_eq!((calls[2].fd, calls[2].requested, calls[2].result), (3, 10, 7));
    assert_eq!((calls[2].start, calls[2].duration), (1_000_000, 500_000));
    let lost = |text: &str, kind| whole(text).losses.count(kind);
    assert_eq!(lost(text, LossKind::OrphanResumed), 0);
    let end = text.lines().last().unwrap();
    assert_eq!(lost(end, LossKind::OrphanResumed), 1);
    assert_eq!(lost(text.lines().next().unwrap(), LossKind::UnfinishedAtEnd), 1);
}

#[test]
fn calls_of_several_cpus_are_sorted_by_their_ends() {
    let text = "     2.000 ( 1.000 ms): a/5 wait4(upid: 6)          = 6\n\
                     3.100 ( 0.100 ms): a/5 write(fd: 5, buf: 0x7f, count: 6)          = 6\n\
                         ? (         ): a/6  ... [continued]: clone())          = 0\n\
                     2.500 ( 0.100 ms): a/6 write(fd: 5, buf: 0x7f, count: 5)          = 5\n\
                     2.700 (         ): a/6 exit_group(error_code: 3)          = ?\n";
    let far = "  9900.000 ( 1.000 ms): a/5 openat(dfd: CWD, filename: \"/a\", flags: RDWR|CREAT) = 3</a>\n";
    for chunk_size in [1, 100, 250, 1 << 20] {
        let all = in_chunks(&format!("{text}{far}{far}"), chunk_size);
        let done: Vec<(u32, i64)> =
            all.records.iter().filter_map(as_call).map(|raw| (raw.tid, raw.result)).collect();
        assert_eq!(done[..4], [(6, 5), (6, UNKNOWN), (5, 6), (5, 6)], "{chunk_size}");
        assert!(matches!(all.records[2], Record::End(TaskEnd { tid: 6, exit_code: Some(3), .. })));
        let opened = all.records.iter().filter_map(as_call).next_back().unwrap();
        assert_eq!((all.text(opened.path), all.text(opened.result_text)), (&b"/a"[..], &b"/a"[..]));
    }
}

#[test]
fn lines_that_are_one_second_late_are_sorted() {
    let text = "  1900.000 ( 0.100 ms): a/5 write(fd: 5, buf: 0x7f, count: 6)          = 6\n\
                   800.000 ( 0.100 ms): a/6 write(fd: 5, buf: 0x7f, count: 5)          = 5\n";
    for chunk_size in [1, 100, 1 << 20] {
        let all = in_chunks(text, chunk_size);
        let threads: Vec<u32> = all.records.iter().filter_map(as_call).map(|raw| raw.tid).collect();
        assert_eq!(threads, [6, 5], "{chunk_size}");
    }
}

#[test]
fn rounded_times_do_not_reorder_the_calls_of_a_thread() {
    let text = "     0.001 ( 0.002 ms): a/5 openat(dfd: CWD, filename: \"/a\", flags: RDWR) = 3\n\
                     0.002 ( 0.000 ms): a/5 read(fd: 3, buf: 0x7f, count: 10)          = 7\n";
    let results: Vec<i64> = whole(text).records.iter().filter_map(as_call).map(|raw| raw.result).collect();
    assert_eq!(results, [3, 7]);
}

#[test]
fn with_too_many_open_calls_the_oldest_are_given_first() {
    let line = |at: u32, tid: u32| format!("{at:>6}.000 ( 0.001 ms): a/{tid} close(fd: 3) = 0\n");
    let text: String = (0..9000).map(|n| line(100 + n % 2, n)).collect();
    let all = in_chunks(&text, 4000);
    assert_eq!(all.records.len(), 9000);
    let times: Vec<i64> = all.records.iter().filter_map(as_call).map(|raw| raw.start).collect();
    assert!(times[times.len() - 4000..].is_sorted());
}

#[test]
fn a_call_without_an_end_in_perf_is_kept_and_counted() {
    let begun = "     1.000 (         ): a/5 write(fd: 3, buf: 0x7f, count: 10)         ...\n";
    let next = "     2.000 (         ): a/5 read(fd: 3, buf: 0x7f, count: 10)         ...\n";
    let end = "     2.000 ( 0.500 ms): a/5  ... [continued]: read())          = 7\n";
    let other = "     2.000 ( 0.500 ms): a/5  ... [continued]: close())          = 0\n";
    let whole_call = "     2.000 ( 0.500 ms): a/5 close(fd: 4)          = 0\n";
    let texts = [
        (format!("{begun}{next}{end}"), 0),
        (format!("{begun}{other}"), 1),
        (format!("{begun}{whole_call}"), 0),
    ];
    for (text, orphans) in texts {
        let all = whole(&text);
        let calls: Vec<RawCall> = all.records.iter().filter_map(as_call).collect();
        let endless = calls.iter().find(|raw| raw.phase == Phase::Exit && raw.requested == 10).unwrap();
        assert_eq!((endless.start, endless.result), (1_000_000, UNKNOWN));
        assert_eq!(endless.call.name(), "write");
        assert_eq!(all.losses.count(LossKind::DroppedRecords), 1);
        assert_eq!(all.losses.count(LossKind::OrphanResumed), orphans);
        assert_eq!(all.losses.count(LossKind::UnfinishedAtEnd), 0);
    }
}

fn as_call(record: &Record) -> Option<RawCall> {
    match record {
        Record::Call(raw) => Some(*raw),
        _ => None,
    }
}

#[test]
fn the_return_of_fork_in_the_child_is_not_counted_as_a_call() {
    let text = "     1.000 ( 0.100 ms): a/5 clone3(uargs: 0x7f, size: 88)    = 6\n\
                         ? (         ): a/6  ... [continued]: clone3())          = 0\n\
                     1.200 ( 0.001 ms): a/6 rseq(rseq: 0x7f)     = 0\n\
                     2.000 ( 0.100 ms): a/5 clone3(uargs: 0x7f, size: 88)    = 7\n\
                     2.200 ( 0.001 ms): a/7 dup2(oldfd: 8, newfd: 1)     = 1\n";
    let batch = whole(text);
    assert_eq!(batch.records.len(), 4);
    let flags: Vec<bool> = batch.forks.iter().map(|fork| fork.flags & CLONE_THREAD != 0).collect();
    assert_eq!(flags, [true, false]);
    let shown = one("     1.000 ( 0.100 ms): a/5 clone3(uargs: {.flags = (__u64)4001536,.exit_signal = (__u64)0,}, size: 88) = 6");
    assert_eq!(shown.0.flags & CLONE_THREAD, CLONE_THREAD);
}

#[test]
fn a_thread_may_continue_from_the_previous_chunk() {
    let child = "     1.100 ( 0.001 ms): a/6 rseq(rseq: 0x7f)     = 0\n";
    let work = "     1.200 ( 0.001 ms): a/6 munmap(addr: 0x7f, len: 4096)     = 0\n";
    let text = format!(
        "{child}{}     1.000 ( 0.300 ms): a/5 clone3(uargs: 0x7f, size: 88)    = 6\n",
        work.repeat(200)
    );
    let input =
        Input::from_reader(Box::new(std::io::Cursor::new(text.into_bytes())), "perf.log", None).unwrap();
    let options = ReadOptions { workers: 0, chunk_size: 4096, ..ReadOptions::default() };
    let mut source = PerfTrace.open(input, &options).unwrap();
    let (mut forks, mut count) = (Vec::new(), 0);
    while let Some(batch) = source.next_batch().unwrap() {
        forks.extend(batch.forks);
        count += 1;
    }
    assert!(count > 1);
    assert_eq!(forks.iter().map(|fork| fork.flags & CLONE_THREAD).collect::<Vec<_>>(), [CLONE_THREAD]);
}

#[test]
fn lines_that_are_not_calls_are_skipped() {
    for known in [
        "",
        " Summary of events:",
        " cat (1234), 146 events, 96.1%",
        "   syscall            calls  errors  total       min       avg       max       stddev",
        "                                     (msec)    (msec)    (msec)    (msec)        (%)",
        "   --------------- --------  ------ -------- --------- --------- ---------     ------",
        "   mmap                  8      0     0.120     0.012     0.015     0.019      5.42%",
        "\t\t\t\tENOENT: 2",
        "                                       __read (/usr/lib/libc.so.6)",
    ] {
        assert!(is_known(known.as_bytes()), "{known}");
    }
    assert!(!is_known(b"cat: /x: No such file or directory"));
    for event in [
        "     1.000 ( 0.000 ms): a/5 maj fault [f+0x1] => /lib/x@0x3 (d.)",
        "     1.000 (         ): a/5 sched:sched_switch(prev_pid: 1)",
    ] {
        assert!(matches!(read(event.as_bytes()), Some((_, Body::Event))), "{event}");
    }
    let dropped = whole("     1.000 ( 0.001 ms): a/6 close(fd: 9)          = 0\nLOST 12 events!\nword\n");
    assert_eq!(dropped.losses.count(LossKind::DroppedRecords), 12);
    assert_eq!(dropped.losses.count(LossKind::UnreadableLines), 1);
}

#[test]
fn calls_without_a_result_count_as_damaged() {
    let lost = |text: &str| {
        let good = "     0.100 ( 0.001 ms): a/5 close(fd: 3) = 0\n";
        let batch = whole(&format!("{good}{text}\n"));
        (batch.records.len() - 1, batch.losses.count(LossKind::UnreadableLines))
    };
    for end in ["", " 10", " # 10", " = 1x", " = 40y6", " = 1O", " = rdwr"] {
        assert_eq!(
            lost(&format!("     0.200 ( 0.001 ms): a/5 write(fd: 3, count: 10)   {end}")),
            (0, 1),
            "{end}"
        );
    }
    for end in [
        " = 10",
        " = 0x7f",
        " =",
        " = RDWR|LARGEFILE",
        " = O_RDWR|0x8000",
        " = 0 (Timeout)",
        " = 5 (sh)",
        " = ?",
    ] {
        assert_eq!(
            lost(&format!("     0.200 ( 0.001 ms): a/5 fcntl(fd: 3, cmd: GETFL)  {end}")),
            (1, 0),
            "{end}"
        );
    }
    assert_eq!(lost("     0.200 (         ): a/5 exit(error_code: 3)").1, 0);
}

#[test]
fn damaged_argument_names_make_arguments_unknown() {
    let good = "     0.100 ( 0.001 ms): a/5 close(fd: 3) = 0\n";
    let read = |line: &str| whole(&format!("{good}     0.200 ( 0.001 ms): a/5 {line}\n"));
    for line in ["write(fe: 3, buf: 0x7f, count: 10) = 10", "write(fd: 3, buf: 0x7f, cgunt: 10) = 10"] {
        let batch = read(line);
        assert_eq!((batch.records.len(), batch.losses.count(LossKind::UnreadableLines)), (1, 1), "{line}");
    }
    assert_eq!(read("write(fd: 3, bvf: 0x7f, count: 10) = 10").records.len(), 2);
    for line in [
        "write(fd: x, buf: 0x7f, count: 10) = 10",
        "write(fd: 3, buf: 0x7f, count: 1o) = 10",
        "openat(dfd: CWD, filename: \"/a\", flags: RDWP|CREAT) = 3",
    ] {
        let batch = read(line);
        assert_eq!(
            (batch.records.len(), batch.losses.count(LossKind::UnreadableArguments)),
            (2, 1),
            "{line}"
        );
    }
    for line in
        ["openat(dfd: CWD, filename: \"/a\", flags: CLOEXEC|0x8000) = 3", "write(fd: 3</a>, count: 10) = 10"]
    {
        assert_eq!(read(line).losses.counts.len(), 0, "{line}");
    }
}

#[test]
fn a_file_with_only_the_summary_is_refused() {
    let text = "\n Summary of events:\n\n cat (1234), 146 events, 96.1%\n";
    let error = open(text, 1 << 20).err().unwrap();
    assert!(error.message.contains("summary of perf trace -s"), "{error}");
    assert!(PerfTrace.confidence(&Head { bytes: text.as_bytes(), file: "x" }) >= 60);
}

#[test]
fn damaged_lines_are_counted() {
    let line = "     0.100 ( 0.001 ms): a/5 openat(dfd: CWD, filename: \"/etc/a\", flags: RDWR|CREAT) = 3";
    for end in 1..line.len() {
        let text = format!("{line}\n{}\n", &line[..end]);
        let batch = whole(&text);
        let lost = batch.losses.count(LossKind::UnreadableLines);
        let calls = batch.records.len();
        assert!(lost == 1 || calls == 2 || line[..end].trim().is_empty() || end < 21, "{}", &line[..end]);
    }
}

/// A log that perf 6.1 wrote (`perf trace --call-graph dwarf`), with another thread's line in between.
const WITH_STACKS: &str = "\
    40.989 ( 0.016 ms): solver/951 write(fd: 4, buf: 0x56403d6aa004, count: 3)                           = 3
                                       __GI___libc_write (/usr/lib/x86_64-linux-gnu/libc.so.6)
                                       write_step (/home/u/solver)
                                       main (/home/u/solver)
    41.000 (         ): solver/951 read(fd: 5, buf: 0x56403d6aa004, count: 9) ...
    41.010 ( 0.002 ms): solver/952 lseek(fd: 4, whence: SET)                                             = 0
                                       entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])
                                       __lseek64 (inlined)
                                       [0x1179] (/home/u/stripped)
    41.000 ( 0.040 ms): solver/951  ... [continued]: read())                                             = 9
                                       write_step (/home/u/solver)
    41.097 ( 0.014 ms): solver/951 close(fd: 4)                                                          = 0
    41.135 (         ): solver/951 exit_group()                                                          = ?
";

#[test]
fn a_stack_belongs_to_the_call_before_it() {
    use iodock_event::stacks::{frames, Frame};
    let named =
        |module: &'static [u8], function: &'static [u8]| Frame { module, function, ..Frame::default() };
    let step = named(b"/home/u/solver", b"write_step");
    let write = vec![
        named(b"/usr/lib/x86_64-linux-gnu/libc.so.6", b"__GI___libc_write"),
        step,
        named(b"/home/u/solver", b"main"),
    ];
    let lseek = vec![
        named(b"[inlined]", b"__lseek64"),
        Frame { offset: Some(0x1179), ..named(b"/home/u/stripped", b"") },
    ];
    let expected =
        [("write", write), ("lseek", lseek), ("read", vec![step]), ("close", vec![]), ("exit_group", vec![])];
    for chunk_size in [1, 40, 100, 300, 1 << 16] {
        let batch = in_chunks(WITH_STACKS, chunk_size);
        let calls = batch.records.iter().filter_map(|record| match record {
            Record::Call(raw) if raw.phase != Phase::Enter => Some(raw),
            _ => None,
        });
        let mut found: Vec<(String, Vec<Frame<'_>>)> = Vec::new();
        for raw in calls {
            found.push((raw.call.spec().name.to_string(), frames(batch.text(raw.stack)).collect()));
        }
        let found: Vec<(&str, Vec<Frame<'_>>)> =
            found.iter().map(|(name, frames)| (name.as_str(), frames.clone())).collect();
        assert_eq!(found, expected, "chunks of {chunk_size}");
        assert_eq!(batch.losses.count(LossKind::UnreadableLines), 0);
    }
}
