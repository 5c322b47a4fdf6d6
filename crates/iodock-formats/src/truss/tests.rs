//! Reads whole logs, and checks that each line yields a record, is a known line, or counts as a loss.

use super::reader::TrussReader;
use super::*;
use crate::{Chunk, Lines, LogReader};
use iodock_event::{
    constants, lwp, Batch, Clock, LossKind, Outcome, Phase, RawCall, Record, AT_FDCWD, UNKNOWN,
    UNSHOWN_OFFSET,
};
use std::sync::Arc;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Reads a log in chunks of `size` lines.
fn read(log: &[u8], size: usize) -> (Clock, Vec<Batch>) {
    let reader = TrussReader::new(Layout::find(log), "truss.log".into());
    let file: Arc<str> = "run.truss".into();
    let mut state = Default::default();
    let mut batches = Vec::new();
    let lines: Vec<&[u8]> = log.split_inclusive(|&byte| byte == b'\n').collect();
    let groups = lines.chunks(size).count();
    for (index, group) in lines.chunks(size).enumerate() {
        let mut chunk = Chunk::default();
        let bytes = group.concat();
        let first_line = (index * size) as u64 + 1;
        reader.parse(
            &Lines { bytes: &bytes, first_line, file: &file, at_end: index + 1 == groups },
            &mut chunk,
        );
        reader.settle(&mut state, &mut chunk);
        batches.push(chunk.batch);
    }
    let mut chunk = Chunk::default();
    reader.finish(&mut state, &mut chunk);
    batches.push(chunk.batch);
    (reader.clock(), batches)
}

/// Returns every call, with its path and second path.
fn calls(batches: &[Batch]) -> Vec<(RawCall, String, String)> {
    let mut out = Vec::new();
    for batch in batches {
        for record in &batch.records {
            if let Record::Call(raw) = record {
                let path = String::from_utf8_lossy(batch.text(raw.path)).into_owned();
                out.push((*raw, raw.call.name(), path));
            }
        }
    }
    out
}

fn lost(batches: &[Batch], kind: LossKind) -> u64 {
    batches.iter().map(|batch| batch.losses.count(kind)).sum()
}

fn ends(batches: &[Batch]) -> Vec<(u32, Option<i32>, String)> {
    let mut out = Vec::new();
    for batch in batches {
        for record in &batch.records {
            if let Record::End(end) = record {
                out.push((
                    end.tid,
                    end.exit_code,
                    String::from_utf8_lossy(batch.text(end.signal)).into_owned(),
                ));
            }
        }
    }
    out
}

/// Checks that counts, errors, bytes and CPU time by call agree with the case's known truth.
fn agrees_with_truth(name: &str) {
    let truth: serde_json::Value =
        serde_json::from_slice(&fixture(&format!("cases/truss/{name}.truth.json"))).unwrap();
    for size in [1, 3, 100_000] {
        let (_, batches) = read(&fixture(&format!("cases/truss/{name}.truss")), size);
        let all: Vec<_> = calls(&batches).into_iter().filter(|(raw, ..)| raw.phase != Phase::Enter).collect();
        assert_eq!(all.len() as u64, truth["calls_total"]);
        for (call, expected) in truth["syscalls"].as_object().unwrap() {
            let of: Vec<&RawCall> =
                all.iter().filter(|(_, name, _)| name == call).map(|(raw, ..)| raw).collect();
            let count = |outcome| of.iter().filter(|raw| raw.outcome == outcome).count() as u64;
            assert_eq!(count(Outcome::Succeeded), expected["success"], "{call}");
            assert_eq!(count(Outcome::Failed), expected["errors"], "{call}");
            assert_eq!(count(Outcome::NoResult), expected["noresult"], "{call}");
            for (errno, number) in expected["errno"].as_object().unwrap() {
                assert_eq!(of.iter().filter(|raw| raw.errno.name() == *errno).count() as u64, *number);
            }
            let cpu: i64 = of.iter().filter(|raw| raw.sys_cpu != UNKNOWN).map(|raw| raw.sys_cpu).sum();
            assert_eq!(cpu, expected["total_ns"], "{call}");
            let timed = of.iter().filter(|raw| raw.sys_cpu != UNKNOWN).count() as u64;
            assert_eq!(timed, expected["timed"], "{call}");
            let moved: i64 = of.iter().map(|raw| raw.result).filter(|&result| result > 0).sum();
            for (name, column) in [("read", "bytes_read"), ("write", "bytes_written")] {
                if call == name {
                    assert_eq!(moved, expected[column]);
                }
            }
        }
        for second in truth["per_second"].as_object().unwrap() {
            let within = |name: &str| -> i64 {
                let ends = |raw: &RawCall| (raw.end / 1_000_000_000).to_string() == *second.0;
                all.iter()
                    .filter(|(raw, n, _)| n == name && ends(raw))
                    .map(|(raw, ..)| raw.result.max(0))
                    .sum()
            };
            assert_eq!(serde_json::json!([within("read"), within("write")]), *second.1);
        }
        assert_eq!(lost(&batches, LossKind::UnreadableLines), 0);
        let signals: u64 = batches.iter().flat_map(|batch| batch.counts.signals.values()).sum();
        assert_eq!(signals, truth["other_lines"]["signals"].as_u64().unwrap_or(0));
        let sleeping: u64 = batches.iter().map(|batch| batch.counts.unfinished).sum();
        assert_eq!(sleeping, truth["other_lines"]["sleeping"].as_u64().unwrap_or(0));
    }
}

#[test]
fn sleeping_calls_of_an_attached_process_are_read() {
    agrees_with_truth("t2_attach_sleeping");
    let (clock, batches) = read(&fixture("cases/truss/t2_attach_sleeping.truss"), 50);
    assert_eq!(clock, Clock::Epoch);
    assert_eq!(lost(&batches, LossKind::UnfinishedAtEnd), 1);
    assert_eq!(lost(&batches, LossKind::MissingTimestamps), 0);
}

#[test]
fn a_log_without_times_is_read() {
    agrees_with_truth("t4_plain_no_times");
    let (clock, batches) = read(&fixture("cases/truss/t4_plain_no_times.truss"), 5);
    assert_eq!(clock, Clock::None);
    assert!(calls(&batches).iter().all(|(raw, ..)| raw.tid == 1 && raw.end == UNKNOWN));
    assert_eq!(ends(&batches), [(1, Some(0), String::new())]);
    assert_eq!(lost(&batches, LossKind::MissingTimestamps), 23);
}

#[test]
fn logs_with_every_option_are_read() {
    let log = fixture("truss/full.truss");
    for size in [1000, 40] {
        let (clock, batches) = read(&log, size);
        assert_eq!(clock, Clock::Epoch);
        let all = calls(&batches);
        let seventh = lwp::thread_id(28115, 7).unwrap();
        let by_name = |name: &str| all.iter().filter(|(_, n, _)| n == name).collect::<Vec<_>>();
        let first = |name: &str| by_name(name)[0].0;

        let exec = first("execve");
        let argv = batches[0].text(exec.argv);
        assert!(argv.starts_with(b"app\0-l\0/data/in\0put/") && argv.ends_with(b"\0/another"), "{argv:?}");
        assert_eq!((exec.outcome, exec.tid), (Outcome::Succeeded, 28115));
        assert_eq!((first("stat64").stat_type, first("stat64").stat_size), (0o10, 27144));
        assert_eq!(first("stat64").end, 1_700_000_000_501_000_000);
        assert_eq!((first("stat64").start, first("stat64").sys_cpu), (UNKNOWN, 100_000));
        assert_eq!((first("openat").fd, first("openat").flags), (AT_FDCWD, constants::O_CLOEXEC));
        assert_eq!((first("read").requested, first("read").result), (8192, 4096));
        assert_eq!(first("llseek").result, 1 << 32);
        assert_eq!((first("fcntl").argument, first("fcntl").result), (10, 10));
        assert_eq!((first("pipe").fd, first("pipe").fd2), (4, 5));
        let open = by_name("open")[0];
        assert_eq!(open.2.as_bytes(), "/data/na\u{fffd}me\"q".as_bytes());
        assert_eq!((open.0.outcome, open.0.errno.name()), (Outcome::Failed, "EACCES".to_string()));
        assert_eq!(open.0.flags, constants::O_WRONLY | constants::O_CREAT | constants::O_APPEND);
        assert_eq!(first("lwp_create").result, 7);
        assert_eq!((by_name("lwp_create").len(), by_name("forkx").len()), (1, 1));

        let forks: Vec<_> =
            batches.iter().flat_map(|b| &b.forks).map(|f| (f.parent_tid, f.child_tid)).collect();
        assert_eq!(forks, [(28115, 28116), (28115, 28116)]);
        let sleeper: Vec<_> = all
            .iter()
            .filter(|(raw, n, _)| raw.tid == seventh && n == "read")
            .map(|(raw, ..)| raw.phase)
            .collect();
        assert_eq!(sleeper, [Phase::Enter, Phase::Exit]);
        let waker = all.iter().find(|(raw, ..)| raw.tid == seventh && raw.phase == Phase::Exit).unwrap().0;
        assert_eq!((waker.end, waker.sys_cpu), (1_700_010_000_500_200_000, 1_234_500_000));
        let starts: Vec<_> = batches
            .iter()
            .flat_map(|b| &b.records)
            .filter_map(|record| match record {
                Record::Start(start) => Some((start.tid, start.tgid)),
                _ => None,
            })
            .collect();
        assert_eq!(starts, [(seventh, 28115)]);
        let expected = [
            (28116, None, "SIGSEGV".to_string()),
            (seventh, None, String::new()),
            (28115, Some(3), String::new()),
        ];
        assert_eq!(ends(&batches), expected);
        assert_eq!(lost(&batches, LossKind::UnreadableLines), 1);
        assert_eq!(batches[0].losses.first[&LossKind::UnreadableLines].line, 28);
    }
}

#[test]
fn any_thread_identifies_its_process() {
    let log = b"7/3:\tclose(3)\t= 0\n7/2:\tclose(4)\t= 0\n7/2:\t_exit(0)\n7/2:\tclose(4)\t= 0\n";
    for size in [1, 2, 4] {
        let (_, batches) = read(log, size);
        let thread = |lwp| lwp::thread_id(7, lwp).unwrap();
        let starts: Vec<u32> = batches
            .iter()
            .flat_map(|batch| &batch.records)
            .filter_map(|record| match record {
                Record::Start(start) => Some(start.tid),
                _ => None,
            })
            .collect();
        assert_eq!(starts, [7, thread(3), thread(2), 7, thread(2)]);
    }
}

#[test]
fn relative_times_are_added_up() {
    for size in [1, 2, 10] {
        let (clock, batches) = read(&fixture("truss/delta.truss"), size);
        assert_eq!(clock, Clock::Relative);
        let ends: Vec<i64> = calls(&batches).iter().map(|(raw, ..)| raw.end / 100_000_000).collect();
        assert_eq!(ends, [10, 15, 12, 20, 13]);
        assert_eq!(lost(&batches, LossKind::UnreadableLines), 1);
    }
}

#[test]
fn a_call_after_an_unreadable_time_is_not_read_as_a_structure() {
    for time in ["x.5000", "1e-320", "\u{fffd}.5000"] {
        let text = String::from_utf8(fixture("truss/delta.truss")).expect("text");
        let damaged = text.replacen("0.5000", time, 1);
        assert_ne!(damaged, text);
        let (_, batches) = read(damaged.as_bytes(), 10);
        assert_eq!((calls(&batches).len(), lost(&batches, LossKind::UnreadableLines)), (4, 2), "{time}");
    }
}

#[test]
fn a_call_after_a_message_in_one_line_is_read() {
    let text = String::from_utf8(fixture("truss/pid_stamps_in_spaces.truss")).expect("text");
    let damaged = text.replacen("2010 ]\n", "2010 ]\u{2}", 1);
    assert_ne!(damaged, text);
    let (_, batches) = read(damaged.as_bytes(), 10);
    assert_eq!((calls(&batches).len(), lost(&batches, LossKind::UnreadableLines)), (4, 2));
}

#[test]
fn an_offset_after_a_pointer_is_not_read_as_the_pointer() {
    let log = b"execve(\"/a\", 0x08047A9C, 0x08047AA4)  argc = 1\n\
        sendfile(4, 3, 0x08047A9C, 100)\t\t= 100\nsendfile(4, 3, 0x00000000, 100)\t\t= 100\n";
    let (_, batches) = read(log, 10);
    let offsets: Vec<i64> = calls(&batches).iter().skip(1).map(|(raw, ..)| raw.offset).collect();
    assert_eq!(offsets, [UNSHOWN_OFFSET, UNKNOWN]);
}

#[test]
fn logs_with_tabs_turned_into_spaces_are_read() {
    let (clock, batches) = read(&fixture("truss/pid_stamps_in_spaces.truss"), 10);
    assert_eq!(clock, Clock::Epoch);
    let all = calls(&batches);
    assert_eq!(all.len(), 5);
    assert!(all.iter().all(|(raw, ..)| raw.tid == 6428));
    assert_eq!((all[1].2.as_str(), all[1].0.end), ("/usr/bin/ls", 1_277_716_460_862_200_000));
    assert_eq!(lost(&batches, LossKind::UnreadableLines), 1);
}

#[test]
fn every_fixture_is_recognised() {
    for name in [
        "cases/truss/t2_attach_sleeping.truss",
        "cases/truss/t4_plain_no_times.truss",
        "truss/full.truss",
        "truss/delta.truss",
        "truss/pid_stamps_in_spaces.truss",
        "truss/counts_only.truss",
    ] {
        let bytes = fixture(name);
        let confidence = Truss.confidence(&Head { bytes: &bytes, file: name });
        assert!(confidence >= 60, "{name}: {confidence}");
    }
    for strace in [
        "execve(\"/bin/ls\", [\"ls\"], 0x7ffe /* 20 vars */) = 0\nbrk(NULL)                               = 0x55d\n",
        "12 1.5 openat(AT_FDCWD, \"/x\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.1>\n",
        "close(3)                                = 0\n",
    ] {
        let confidence = Truss.confidence(&Head { bytes: strace.as_bytes(), file: "x" });
        assert!(confidence < 30, "{strace}: {confidence}");
    }
}

#[test]
fn a_table_of_counts_is_refused() {
    let path = format!("{}/../../fixtures/truss/counts_only.truss", env!("CARGO_MANIFEST_DIR"));
    let error = crate::open_log(&path, None, &ReadOptions::default()).err().unwrap();
    assert!(error.message.contains("truss -c"), "{error}");
}

/// Returns the next number of a small deterministic generator.
fn next(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 11) as usize
}

#[test]
fn damaged_logs_never_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    for name in ["truss/full.truss", "truss/delta.truss", "cases/truss/t4_plain_no_times.truss"] {
        let good = fixture(name);
        for _ in 0..1500 {
            let mut log = good.clone();
            for _ in 0..next(&mut seed) % 8 + 1 {
                let at = next(&mut seed) % log.len();
                match next(&mut seed) % 4 {
                    0 => log[at] = next(&mut seed) as u8,
                    1 => log.truncate(at.max(1)),
                    2 => {
                        log.remove(at);
                    }
                    _ => log.insert(at, b"\"()[]\\\t\n\0 0x9.,:/="[next(&mut seed) % 18]),
                }
                if log.is_empty() {
                    log.push(b'\n');
                }
            }
            let (_, batches) = read(&log, 7);
            for (batch, text) in batches.iter().flat_map(|b| b.records.iter().map(move |record| (b, record)))
            {
                if let Record::Call(raw) = text {
                    batch.text(raw.path);
                    batch.text(raw.argv);
                }
            }
        }
    }
}

/// Checks that each single line is a record, a known line, or one loss.
#[test]
fn every_line_is_read_or_counted_as_damaged() {
    let junk = b"junk\n";
    for name in ["truss/full.truss", "truss/delta.truss"] {
        let good = fixture(name);
        let before = lost(&read(&good, 1).1, LossKind::UnreadableLines);
        let mut log = junk.to_vec();
        log.extend_from_slice(&good);
        assert_eq!(lost(&read(&log, 1).1, LossKind::UnreadableLines), before + 1);
    }
    let (_, batches) = read(b"close(3)\t\t= 0\nclose(3)\t\t", 5);
    assert_eq!(lost(&batches, LossKind::CutLines), 1);
    let (_, batches) = read(b"close(3)\t\t= 0\n\0\0\0\0\n", 5);
    assert_eq!(lost(&batches, LossKind::NulBytes), 1);
}

/// Measures the time per line; run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_line() {
    let line = "28115/7:\t 0.1960\t 0.0001\tread(8, \" T h e   q u i c k   b r\".., 4096)\t= 33\n\
                28115/4:\t 0.1960\t 0.0001\topen(\"/export/home/app/data.0001\", O_RDONLY)\t\tErr#2 ENOENT\n\
                28115/7:\t   T h e   q u i c k   b r o w n   f o x\\t j u m p s   o v e r\\n t\n\
                28115/7:\t 0.2147\t 0.0000\tclose(8)\t\t\t\t\t= 0\n";
    let log: Vec<u8> = line.as_bytes().repeat(2500);
    let reader = TrussReader::new(Layout::find(&log), "truss.log".into());
    let file: Arc<str> = "x".into();
    let (mut parsing, mut settling) = (0.0, 0.0);
    let mut state = Default::default();
    let mut batch = Batch::default();
    for _ in 0..100 {
        batch.clear();
        let mut chunk = Chunk { batch, ..Chunk::default() };
        let began = std::time::Instant::now();
        reader.parse(&Lines { bytes: &log, first_line: 1, file: &file, at_end: false }, &mut chunk);
        parsing += began.elapsed().as_secs_f64();
        let began = std::time::Instant::now();
        reader.settle(&mut state, &mut chunk);
        settling += began.elapsed().as_secs_f64();
        batch = chunk.batch;
    }
    println!("parse {:.0} ns a line, settle {:.0} ns a line", parsing * 1e3, settling * 1e3);
}
