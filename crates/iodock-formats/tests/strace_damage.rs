//! Reads damaged, compressed and unusual logs. The reader must keep readable parts, count the rest, and not
//! panic.

mod support;

use iodock_event::LossKind;
use iodock_formats::ReadOptions;
use std::io::Write;
use support::{bytes_of, cases, read_file, read_strace, small_chunks, Random, Tally};

fn log(name: &str) -> Vec<u8> {
    bytes_of(&cases().join("strace").join(name).join("log.xz"))
}

fn read(log: &[u8]) -> Tally {
    read_strace(log, &small_chunks(5000)).unwrap()
}

#[test]
fn foreign_and_missing_line_ends_are_read() {
    let good = log("12a_restart");
    let plain = read(&good);
    let text = String::from_utf8(good.clone()).unwrap();
    assert_eq!(read(text.replace('\n', "\r\n").as_bytes()).shown, plain.shown);
    let unended = read(text.trim_end().as_bytes());
    assert_eq!((unended.shown, unended.counts.lines), (plain.shown, plain.counts.lines));
}

#[test]
fn garbage_lines_are_counted_and_other_lines_kept() {
    let good = log("14_midnight");
    let plain = read(&good);
    let mut random = Random(7);
    let mut mixed = Vec::new();
    let mut garbage = 0;
    for line in good.split_inclusive(|&byte| byte == b'\n') {
        if random.below(3) == 0 {
            let length = 1 + random.below(60);
            mixed.push(b'#');
            mixed.extend((0..length).map(|_| 128 + random.below(128) as u8));
            mixed.push(b'\n');
            garbage += 1;
        }
        mixed.extend_from_slice(line);
    }
    let tally = read(&mixed);
    assert_eq!(tally.shown, plain.shown);
    assert_eq!(tally.losses.count(LossKind::UnreadableLines), garbage);
    let first = &tally.losses.first[&LossKind::UnreadableLines];
    assert_eq!(first.file, "test.log");
    let first_line = mixed.split(|&byte| byte == b'\n').position(|line| line.first() == Some(&b'#')).unwrap();
    assert_eq!(first.line, first_line as u64 + 1);
    assert!(first.sample.starts_with('#'));
}

#[test]
fn nul_bytes_at_the_end_count_as_one_loss() {
    let mut cut = log("18_header8k");
    let plain = read(&cut);
    cut.extend_from_slice(&vec![0; 3 << 20]);
    let options = ReadOptions { longest_line: 1 << 20, ..small_chunks(1 << 16) };
    for options in [options, small_chunks(1 << 20)] {
        let tally = read_strace(&cut, &options).unwrap();
        assert_eq!(tally.shown, plain.shown);
        assert_eq!(tally.losses.count(LossKind::NulBytes), 1);
        assert_eq!(tally.counts.lines, plain.counts.lines + 1);
    }
}

#[test]
fn nul_bytes_in_a_log_lose_only_their_lines() {
    let mut holed = log("18_header8k");
    let plain = read(&holed);
    holed[50_000..60_000].fill(0);
    let tally = read(&holed);
    assert_eq!(tally.losses.count(LossKind::NulBytes), 1);
    let lost = plain.counts.lines - tally.counts.lines;
    assert!(plain.total() - tally.total() <= lost + 1 && tally.total() > 1000);
}

#[test]
fn a_log_emptied_while_written_is_read_after_the_nul_bytes() {
    let mut log = vec![0; 100_000];
    log.extend_from_slice(b"5 1.1 close(3) = 0\n5 1.2 close(4) = 0\n");
    let tally = read(&log);
    assert_eq!((tally.calls["close"].count, tally.losses.count(LossKind::NulBytes)), (2, 1));
}

#[test]
fn a_line_of_5_mb_is_read() {
    let text = "x".repeat(5 << 20);
    let long = format!(
        "5 1795229749.1 write(3, \"{text}\", 5242880) = 5242880 <0.1>\n5 1795229749.3 close(3) = 0 <0.1>\n"
    );
    for chunk_size in [1 << 16, 1 << 20, 1 << 24] {
        let tally = read_strace(long.as_bytes(), &small_chunks(chunk_size)).unwrap();
        assert_eq!((tally.calls["write"].bytes_written, tally.calls["close"].count), (5 << 20, 1));
        let options = ReadOptions { longest_line: 1 << 20, ..small_chunks(chunk_size) };
        let tally = read_strace(long.as_bytes(), &options).unwrap();
        assert_eq!(tally.calls["close"].count, 1);
        if chunk_size < 1 << 24 {
            assert_eq!(tally.losses.first[&LossKind::LongLines].line, 1);
            assert_eq!(tally.counts.lines, 2);
        }
    }
}

#[test]
fn a_first_line_longer_than_the_head_is_recognised() {
    let path = std::env::temp_dir().join(format!("iodock-long-{}.log", std::process::id()));
    let text = "y".repeat(3 << 20);
    std::fs::write(
        &path,
        format!("5 1795229749.1 write(3, \"{text}\", 9) = 9 <0.1>\n5 1795229749.3 close(3) = 0 <0.1>\n"),
    )
    .unwrap();
    assert_eq!(read_file(&path, &ReadOptions::default()).unwrap().total(), 2);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_log_truncated_anywhere_loses_at_most_its_last_line() {
    let good = log("12a_restart");
    let plain = read(&good);
    for end in (200..good.len()).step_by(13) {
        let tally = read(&good[..end]);
        let lines = good[..end].iter().filter(|&&byte| byte == b'\n').count();
        assert!(tally.losses.count(LossKind::CutLines) <= 1);
        assert_eq!(tally.losses.count(LossKind::UnreadableLines), 0, "cut at {end}");
        let whole = tally.shown.iter().zip(&plain.shown).take_while(|(one, other)| one == other).count();
        assert!(whole + 6 >= lines.saturating_sub(8), "cut at {end}: {whole} of {lines}");
    }
}

#[test]
fn damaged_logs_never_panic_and_account_for_every_line() {
    let good = log("10c_fdzoo_yy");
    let mut random = Random(42);
    for round in 0..60 {
        let mut damaged = good[random.below(good.len() / 2)..].to_vec();
        for _ in 0..1 + random.below(200) {
            let at = random.below(damaged.len() - 100);
            match random.below(5) {
                0 => damaged[at] = random.below(256) as u8,
                1 => drop(damaged.drain(at..at + random.below(90))),
                2 => damaged.insert(at, b"\n\0\"\\<>(),"[random.below(9)]),
                3 => damaged.copy_within(at..at + 40, at / 2),
                _ => damaged[at..at + 1 + random.below(20)].fill(random.below(256) as u8),
            }
        }
        let newlines = damaged.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let tally = read_strace(&damaged, &small_chunks(1 + random.below(10_000))).unwrap();
        assert_eq!(tally.counts.lines, newlines + u64::from(damaged.last() != Some(&b'\n')), "round {round}");
        let signals: u64 = tally.counts.signals.values().sum();
        let lost: u64 = tally.losses.counts.values().sum();
        assert!(tally.records + signals + lost + 400 >= tally.counts.lines, "round {round}");
    }
}

fn packed(bytes: &[u8], ending: &str) -> Vec<u8> {
    match ending {
        "gz" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => zstd::encode_all(bytes, 1).unwrap(),
    }
}

#[test]
fn compressed_logs_are_recognised_by_their_bytes() {
    let good = log("01_dd");
    let plain = read(&good);
    let (first, second) = good.split_at(good.len() / 3);
    for ending in ["gz", "xz", "zst"] {
        let parts = [packed(first, ending), packed(second, ending)].concat();
        let path = std::env::temp_dir().join(format!("iodock-packed-{}-{ending}.log", std::process::id()));
        std::fs::write(&path, &parts).unwrap();
        let tally = read_file(&path, &ReadOptions::default()).unwrap();
        assert_eq!(tally.shown, plain.shown, "{ending}");
        let whole = packed(&good, ending);
        let cut = read(&whole[..whole.len() * 2 / 3]);
        assert!(cut.losses.count(LossKind::CutLines) >= 1, "{ending}: {:?}", cut.losses);
        assert!(cut.total() > 100 && cut.total() < plain.total(), "{ending}: {}", cut.total());
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn output_of_the_program_between_lines_is_skipped() {
    let mixed = "execve(\"/bin/sh\", [\"sh\"], 0x7ff /* 3 vars */) = 0\nhello\nwrite(1, \"hello\\n\", 6)                  = 6\n\
                 write(2, \"a\\nb\\n\", 4a\nb\n)                  = 4\n\
                 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 12 attached\n <unfinished ...>\n[pid    12] read(0,  <unfinished ...>\n\
                 [pid    11] <... clone resumed>, child_tidptr=0x1) = 12\n\
                 [pid    11] clone(child_stack=NULL, flags=SIGCHLDstrace: Process 13 attached\n, child_tidptr=0x1) = 13\nno newline[pid    12] <... read resumed>\"\", 10)   = 0\n\
                 [pid    12] +++ exited with 0 +++\nexit_group(0)                           = ?\n+++ exited with 0 +++\n";
    let tally = read(mixed.as_bytes());
    assert_eq!(tally.calls["write"].bytes_written, 10);
    assert_eq!((tally.calls["read"].count, tally.calls["read"].success), (1, 1));
    assert_eq!(tally.losses.count(LossKind::UnreadableLines), 2);
    assert_eq!(tally.forks, [(11, 12), (11, 13)]);
    assert!(tally.shown[0].starts_with("11 execve"), "{}", tally.shown[0]);
}

#[test]
fn threads_that_end_or_change_their_number_are_followed() {
    let tally = read(
        b"1 read(3,  <unfinished ...>\n2 futex(0x1, FUTEX_WAIT, 0, NULL <unfinished ...>\n\
          3 execve(\"/bin/x\", [\"x\"], 0x1 <unfinished ...>\n1 <... read resumed>)             = ?\n\
          2 +++ killed by SIGKILL +++\n1 +++ superseded by execve in pid 3 +++\n1 <... execve resumed>)            = 0\n\
          9 <... write resumed>)            = 5\n1 pause( <unfinished ...>\n",
    );
    assert_eq!((tally.calls["read"].noresult, tally.calls["futex"].noresult), (1, 1));
    assert_eq!((tally.calls["execve"].count, tally.calls["execve"].success), (1, 1));
    assert_eq!((tally.counts.orphans, tally.losses.count(LossKind::OrphanResumed)), (1, 1));
    assert_eq!(tally.calls["write"].bytes_written, 5);
    assert_eq!((tally.calls["pause"].noresult, tally.losses.count(LossKind::UnfinishedAtEnd)), (1, 1));
}

#[test]
fn times_over_midnight_and_relative_times_add_up() {
    let days = read(
        b"23:59:59.5 close(1) = 0\n00:00:01.0 close(1) = 0\n23:59:59.0 close(1) = 0\n00:00:02 close(1) = 0\n",
    );
    assert_eq!(
        (days.first, days.last),
        (Some(86_399_500_000_000), Some(2 * 86_400_000_000_000 + 2_000_000_000))
    );
    let small = read_strace(
        b"23:59:59 close(1) = 0\n00:00:01 close(1) = 0\n23:59:59 close(1) = 0\n00:00:02 close(1) = 0\n",
        &small_chunks(1),
    )
    .unwrap();
    assert_eq!(small.last, days.last);
    for chunk_size in [1, 1000] {
        let log = b"     0.000000 close(1) = 0\n     0.500000 close(1) = 0\n     1.000000 close(1) = 0\n";
        let sums = read_strace(log, &small_chunks(chunk_size)).unwrap();
        assert_eq!((sums.first, sums.last), (Some(0), Some(1_500_000_000)));
    }
}

/// The clock is set back by an hour for thread 1, and thread 2 continues with the new clock.
const SET_BACK: &[u8] = b"1 1790007200.000000 close(1) = 0 <0.1>\n1 1790007200.500000 close(1) = 0 <0.1>\n\
    1 1790003600.500000 close(1) = 0 <0.1>\n2 1790003601.000000 close(1) = 0 <0.1>\n1 1790003601.500000 close(1) = 0 <0.1>\n";

#[test]
fn a_clock_set_back_is_reported_and_time_continues() {
    for chunk_size in [1, 5000] {
        let tally = read_strace(SET_BACK, &small_chunks(chunk_size)).unwrap();
        assert_eq!(
            (tally.first, tally.last),
            (Some(1_790_007_200_000_000_000), Some(1_790_007_201_600_000_000))
        );
        assert_eq!(tally.losses.count(LossKind::ClockSetBack), 1);
        assert_eq!(tally.losses.first[&LossKind::ClockSetBack].line, 3);
    }
}

#[test]
fn a_clock_that_was_set_back_is_not_taken_for_midnight() {
    let log = b"1 10:00:00.5 close(1) = 0\n1 09:00:00.0 close(1) = 0\n1 09:00:00.5 close(1) = 0\n";
    for chunk_size in [1, 5000] {
        let tally = read_strace(log, &small_chunks(chunk_size)).unwrap();
        assert_eq!((tally.first, tally.last), (Some(36_000_500_000_000), Some(36_001_000_000_000)));
        assert_eq!(tally.losses.count(LossKind::ClockSetBack), 1);
    }
}

#[test]
fn a_call_during_which_the_clock_was_set_back_has_no_negative_duration() {
    let log = b"1 1790007200.000000 read(3,  <unfinished ...>\n2 1790003600.000000 close(1) = 0\n\
        1 1790003600.250000 <... read resumed>\"a\", 1) = 1\n1 1790003600.500000 close(1) = 0\n";
    for chunk_size in [1, 5000] {
        let tally = read_strace(log, &small_chunks(chunk_size)).unwrap();
        assert_eq!(tally.losses.count(LossKind::ClockSetBack), 1);
        assert_eq!(tally.last, Some(1_790_007_200_250_000_000));
    }
}

#[test]
fn consecutive_logs_are_not_taken_for_a_changed_clock() {
    let log = b"1 1790007200.0 close(1) = 0\n1 1790007201.0 close(1) = 0\n2 1790007200.5 close(1) = 0\n2 1790007201.5 close(1) = 0\n";
    for chunk_size in [1, 5000] {
        let tally = read_strace(log, &small_chunks(chunk_size)).unwrap();
        assert_eq!(
            (tally.first, tally.last),
            (Some(1_790_007_200_000_000_000), Some(1_790_007_201_500_000_000))
        );
        assert_eq!(tally.losses.count(LossKind::ClockSetBack), 0);
    }
}

#[test]
fn a_log_without_readable_lines_gives_an_error() {
    let error = read_strace(b"hello\nworld\n", &ReadOptions::default()).unwrap_err();
    assert!(error.message.contains("no line of it can be read as strace"), "{error}");
    let table = b"% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n 38.42    0.000073          24         3           read\n";
    let error = read_strace(table, &ReadOptions::default()).unwrap_err();
    assert!(error.message.contains("summary table"), "{error}");
}

#[test]
fn long_hostile_lines_are_read_in_linear_time() {
    for part in [
        "<a,",
        "<a>b",
        "<a",
        "<<",
        "/*",
        "\"a\",",
        "[{",
        "(",
        "\\",
        "a=<,",
        "=> ",
        "{a=[<",
        "[pid 1",
        " <unfinished ...>",
    ] {
        let body = part.repeat((1 << 18) / part.len());
        for call in [
            "read(3, ",
            "writev(3, ",
            "sendmsg(3, ",
            "execve(",
            "clone(",
            "<... read resumed>",
            "mmap(",
            "io_submit(1, 1, [",
        ] {
            let log = format!("1 close(1) = 0\n1 {call}{body}\n1 {call}{body}) = 0 <0.1>\n1 close(1) = 0\n");
            assert_eq!(read_strace(log.as_bytes(), &ReadOptions::default()).unwrap().calls["close"].count, 2);
        }
    }
}

/// With `-r` strace prints the time since the previous line, whatever kind of line that is.
#[test]
fn relative_times_of_signals_are_added_up() {
    let log = b"7      0.000000 brk(NULL) = 0x1 <0.000001>\n\
        7      0.000500 --- SIGPIPE {si_signo=SIGPIPE} ---\n\
        7      0.000020 close(3) = 0 <0.000001>\n";
    let tally = read(log);
    assert!(tally.shown[1].contains("520000"), "{:?}", tally.shown);
}

/// If strace filters calls, the execve of a thread ends in this way, and its leader continues it.
#[test]
fn a_thread_that_calls_execve_becomes_the_leader() {
    let log = b"8 1.0 execve(\"/bin/cat\", [\"cat\"], 0x7 /* 3 vars */ <pid changed to 7 ...>\n\
        7 1.1 +++ superseded by execve in pid 8 +++\n\
        7 1.2 <... execve resumed>) = 0 <0.2>\n";
    let tally = read(log);
    assert_eq!((tally.counts.orphans, tally.counts.unfinished), (0, 1), "{:?}", tally.shown);
    assert!(tally.losses.first.is_empty(), "{:?}", tally.losses.first);
}
