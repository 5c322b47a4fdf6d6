//! Reads several logs in one file, and logs with text before each line, in all formats except strace.

mod support;

use iodock_event::{LossKind, SourceError};
use iodock_formats::{open_input, Input, LineRange, ReadOptions};
use std::io::Cursor;
use support::{small_chunks, Tally};

fn read_with(log: &str, options: &ReadOptions) -> Result<(&'static str, Tally), SourceError> {
    let input = Input::from_reader(Box::new(Cursor::new(log.as_bytes().to_vec())), "test.log", None)?;
    let mut source = open_input(input, None, options)?;
    Ok((source.format(), Tally::of(source.as_mut())?))
}

fn read(log: &str) -> Result<(&'static str, Tally), SourceError> {
    read_with(log, &small_chunks(200))
}

/// Returns a log of 40 calls of a process, one millisecond apart.
fn perf(process: u32) -> String {
    let line = |at: u32| {
        format!("{:10}.000 ( 0.010 ms): my prog/{process} write(fd: 3, buf: 0x7ffe, count: 10)    = 10\n", at)
    };
    (0..40).map(line).collect()
}

fn freebsd() -> String {
    (1..41).map(|at| format!("0.{at:03}000000 write(3,\"abc\"...,10)\t\t = 10 (0xa)\n")).collect()
}

fn solaris() -> String {
    let base = "Base time stamp:  1699999990.0017  [ Tue Nov 14 22:13:10 UTC 2023 ]\n";
    let line = |at: u32| format!("17/1:\t\t 0.{at:03}0\twrite(3, \" a b\", 10)\t\t= 10\n");
    base.to_string() + &(1..41).map(line).collect::<String>()
}

/// Returns a log of 40 system calls, each after a library call.
fn ltrace() -> String {
    let line = |at: u32| {
        format!("10:00:00.{at:03}000 strlen(\"abc\") = 3 <0.000010>\n10:00:00.{at:03}100 SYS_write(3, \"abc\", 10) = 10 <0.000010>\n")
    };
    (1..41).map(line).collect()
}

const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600          60        10           read
 40.00    0.000400          40        10         2 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000          50        20         2 total
";

/// Returns the lines at which further logs begin, as the error names them.
fn beginnings(log: &str) -> String {
    let error = read(log).map(|(format, _)| panic!("{format}\n{log}")).unwrap_err();
    let message = error.message;
    message
        .split(" at line")
        .nth(1)
        .unwrap_or_else(|| panic!("{message}"))
        .trim_start_matches(['s', ' '])
        .into()
}

#[test]
fn two_logs_in_a_file_are_not_read_as_one() {
    for (log, second) in [(perf(77), "41"), (freebsd(), "41"), (solaris(), "42"), (ltrace(), "82")] {
        assert_eq!(beginnings(&log.repeat(2)), second, "{log}");
        let all = ReadOptions { lines: Some(LineRange { first: 1, last: None }), ..small_chunks(200) };
        let (_, both) = read_with(&log.repeat(2), &all).unwrap();
        assert_eq!(both.losses.count(LossKind::ClockSetBack), 1, "{log}");
        let (_, alone) = read(&log).unwrap();
        assert!(
            alone.losses.counts.keys().all(|kind| *kind == LossKind::MissingDurations),
            "{:?}",
            alone.losses
        );
        assert_eq!(alone.calls["write"].count, 40);
    }
    assert_eq!(beginnings(&(perf(77) + &perf(78))), "41");
    assert_eq!(beginnings(&perf(77).repeat(3)), "41, 81");
}

#[test]
fn fences_and_prompts_separate_logs() {
    for (log, command) in [
        (perf(77), "perf trace -o x ./a"),
        (freebsd(), "truss -d ./a"),
        (solaris(), "truss ./a"),
        (ltrace(), "ltrace -S ./a"),
    ] {
        let of = |log: &str| format!("$ {command}\n{log}");
        let begins = 2 + log.lines().count();
        let stamped = |log: &str| {
            log.replace("10:00:00.", "10:00:01.").replace("0.0", "1.0").replace("write(", "read(")
        };
        assert_eq!(beginnings(&(of(&log) + &of(&stamped(&log)))), begins.to_string(), "{log}");
        let fenced = format!("```\n{log}```\n");
        let (_, alone) = read(&fenced).unwrap();
        assert_eq!(alone.losses.count(LossKind::UnreadableLines), 0, "{:?}", alone.losses);
        assert_eq!(beginnings(&fenced.repeat(2)), begins.to_string());
    }
}

#[test]
fn a_call_of_an_ended_process_begins_another_log() {
    let ended = "close(3)\t\t\t = 0 (0x0)\nexit(0x0)\t\t\t\t\nprocess exit, rval = 0\n";
    assert_eq!(beginnings(&ended.repeat(2)), "4");
    assert_eq!(read(ended).unwrap().1.calls["close"].count, 1);
}

#[test]
fn text_before_each_line_is_removed() {
    let before =
        |log: &str, lead: &str| log.lines().map(|line| format!("{lead}{line}\n")).collect::<String>();
    for (name, log) in
        [("perf-trace", perf(77)), ("freebsd-truss", freebsd()), ("truss", solaris()), ("ltrace", ltrace())]
    {
        let (_, plain) = read(&log).unwrap();
        for lead in ["[pod-1] ", "2026-01-01T00:00:00.123456789Z stderr F ", "> ", "app-1  | "] {
            let (format, led) = read(&before(&log, lead)).unwrap_or_else(|error| panic!("{lead}{error}"));
            assert_eq!((format, &led.shown), (name, &plain.shown), "{lead}");
            assert_eq!(led.losses.counts, plain.losses.counts, "{lead}");
        }
    }
    for lead in ["[pod-1] ", "> ", "2026-01-01T00:00:00.123456789Z stderr F "] {
        let (format, led) = read(&before(TABLE, lead)).unwrap_or_else(|error| panic!("{lead}{error}"));
        assert_eq!((format, led.losses.counts.len(), led.counts.lines), ("strace-c", 0, 6), "{lead}");
    }
    let several = before(&perf(77), "[pod-1] ") + &before(&perf(78), "[pod-2] ");
    assert!(read(&several).unwrap_err().message.contains("several logs"));
}

#[test]
fn arguments_with_names_are_not_read_as_strace() {
    let line = "a b c 1 openat(dfd: CWD, filename: \"/data/a\", flags: RDONLY) = 3\n";
    assert!(read(&line.repeat(9)).is_err());
}
