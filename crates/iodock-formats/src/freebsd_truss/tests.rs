//! Tests logs that were written according to the sources of truss, and single lines of different versions.

use super::*;
use iodock_event::{
    constants, Batch, Clock, LossKind, Outcome, RawCall, Record, AT_FDCWD, UNKNOWN, UNSHOWN_OFFSET,
};

fn fixture(name: &str) -> String {
    format!("{}/../../fixtures/freebsd-truss/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn drain(mut source: Box<dyn LogSource>) -> (Clock, Vec<Batch>) {
    let mut all = Vec::new();
    while let Some(batch) = source.next_batch().unwrap() {
        all.push(batch);
    }
    (source.clock(), all)
}

fn read_fixture(name: &str, chunk_size: usize) -> (Clock, Vec<Batch>) {
    let options = ReadOptions { workers: 0, chunk_size, ..ReadOptions::default() };
    drain(crate::open_log(&fixture(name), None, &options).unwrap())
}

fn read_text(text: &str) -> Vec<Batch> {
    let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
    let input = Input::from_reader(Box::new(bytes), "truss.log", None).unwrap();
    drain(FreebsdTruss.open(input, &ReadOptions { workers: 0, ..ReadOptions::default() }).unwrap()).1
}

fn calls(batches: &[Batch]) -> Vec<(RawCall, String, String)> {
    let text = |batch: &Batch, text| String::from_utf8_lossy(batch.text(text)).into_owned();
    let of = |batch: &Batch| {
        let calls = batch.records.iter().filter_map(|record| match record {
            Record::Call(raw) => Some((*raw, text(batch, raw.path), text(batch, raw.argv))),
            _ => None,
        });
        calls.collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

/// Parses a log of one line and returns its only call.
fn one(line: &str) -> RawCall {
    calls(&read_text(&format!("{line}\n")))[0].0
}

fn lost(batches: &[Batch], kind: LossKind) -> u64 {
    batches.iter().map(|batch| batch.losses.count(kind)).sum()
}

fn ends(batches: &[Batch]) -> Vec<(u32, Option<i32>, String)> {
    let of = |batch: &Batch| {
        let ends = batch.records.iter().filter_map(|record| match record {
            Record::End(end) => {
                Some((end.tid, end.exit_code, String::from_utf8_lossy(batch.text(end.signal)).into_owned()))
            }
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

#[test]
fn threads_processes_and_times_of_freebsd_are_read() {
    for chunk_size in [1 << 20, 400, 60] {
        let (clock, batches) = read_fixture("threads.truss", chunk_size);
        assert_eq!(clock, Clock::Relative);
        let all = calls(&batches);
        let first = |name: &str| all.iter().find(|(raw, ..)| raw.call.name() == name).unwrap().clone();
        assert_eq!(all.len(), 20, "{chunk_size}");
        let (exec, path, words) = first("execve");
        assert_eq!((exec.start, exec.duration), (1_411_111, 101_234));
        assert_eq!((path.as_str(), words.as_str()), ("/usr/local/bin/job", "job\0-o\0out, put"));
        let open = first("open").0;
        assert_eq!(
            (open.outcome, open.errno.name(), open.flags),
            (Outcome::Failed, "ENOENT".into(), constants::O_CLOEXEC)
        );
        let (openat, path, _) = first("openat");
        assert_eq!((openat.fd, openat.result, path.as_str()), (AT_FDCWD, 3, "/data/in put,\"x"));
        let fstat = first("fstat").0;
        assert_eq!((fstat.fd, fstat.stat_type, fstat.stat_size), (3, 0o10, 9000));
        let read = first("read").0;
        assert_eq!((read.fd, read.requested, read.result), (3, 4096, 4096));
        assert_eq!((first("pread").0.requested, first("pread").0.offset), (216, 128));
        assert_eq!((first("lseek").0.argument, first("lseek").0.result), (0, 4096));
        let (stat, path, _) = first("stat");
        assert_eq!((stat.stat_type, path.as_str()), (0o4, "/data"));
        let fcntl = first("fcntl").0;
        assert_eq!((fcntl.flags, fcntl.argument, fcntl.result), (constants::F_DUPFD_CLOEXEC, 10, 10));
        assert_eq!((first("pipe").0.fd, first("pipe").0.fd2), (4, 5));
        assert_eq!(first("ioctl").0.errno.name(), "ENOTTY");
        let writev = first("writev").0;
        assert_eq!((writev.tid, writev.requested, writev.errno.name()), (100_103, 16, "EBADF".into()));
        assert_eq!(first("sigreturn").0.outcome, Outcome::Succeeded);
        assert_eq!(all.iter().filter(|(raw, ..)| raw.tid == 739).count(), 15);
        assert_eq!(all.iter().filter(|(raw, ..)| raw.tid == 740).count(), 4);
        let again = all.iter().find(|(raw, ..)| raw.fd == 4 && raw.call.name() == "read").unwrap().0;
        assert_eq!(again.errno.name(), "EAGAIN");
        let forks: Vec<_> =
            batches.iter().flat_map(|b| &b.forks).map(|f| (f.parent_tid, f.child_tid)).collect();
        assert_eq!(forks, [(739, 740)]);
        let expected = [(740, Some(3), ""), (100_103, None, ""), (739, None, "SIGSEGV")];
        let expected = expected.map(|(tid, code, signal)| (tid, code, signal.to_string()));
        assert_eq!(ends(&batches), expected, "{chunk_size}");
        assert_eq!(lost(&batches, LossKind::UnreadableLines), 1);
        assert!(batches.iter().all(|batch| batch
            .losses
            .counts
            .keys()
            .all(|kind| *kind == LossKind::UnreadableLines)));
        let signals: u64 = batches.iter().filter_map(|batch| batch.counts.signals.get("SIGCHLD")).sum();
        assert_eq!(signals, 1);
    }
}

#[test]
fn logs_of_freebsd_5_are_read() {
    let (clock, batches) = read_fixture("freebsd5.truss", 1 << 20);
    let all = calls(&batches);
    assert_eq!((clock, all.len()), (Clock::None, 6));
    assert!(all.iter().all(|(raw, ..)| raw.tid == 739));
    assert_eq!((all[0].0.fd, all[0].0.requested), (6, 4096));
    assert_eq!((all[1].0.flags, all[1].0.argument), (constants::F_SETFL, constants::O_APPEND as i64));
    assert_eq!(all[2].0.flags, constants::O_WRONLY | constants::O_CREAT | constants::O_TRUNC);
    assert_eq!(all[5].0.argument, 0x20);
    assert_eq!(ends(&batches), []);
    assert_eq!(lost(&batches, LossKind::UnreadableLines), 1);
    assert_eq!(
        (lost(&batches, LossKind::MissingDurations), lost(&batches, LossKind::MissingTimestamps)),
        (6, 6)
    );
}

/// Returns a log whose only time column has these values.
fn rows(numbers: &[u64]) -> String {
    let line = |number: &u64| {
        format!("{}.{:09} close(3)\t\t\t = 0 (0x0)\n", number / 1000, number % 1000 * 1_000_000)
    };
    numbers.iter().map(line).collect()
}

#[test]
fn a_single_column_is_a_time_stamp_if_it_grows() {
    let columns = |numbers: &[u64]| {
        let found = Columns::find(rows(numbers).as_bytes());
        (found.stamp, found.duration)
    };
    let stamps: Vec<u64> = (10..30).collect();
    assert_eq!(columns(&stamps), (Some(0), None));
    assert_eq!(columns(&[3, 1, 9, 2, 6, 4, 4, 8, 1, 3]), (None, Some(0)));
    // These are durations that increase by chance.
    assert_eq!(columns(&[1, 2, 3]), (None, None));
    let damaged: Vec<u64> = stamps.iter().map(|&at| if at == 17 { 7017 } else { at }).collect();
    assert_eq!(columns(&damaged), (Some(0), None));
    let two = "  7: 0.000000002 0.000000001 a() = 0 (0x0)\n";
    let found = Columns::find(two.as_bytes());
    assert_eq!((found.stamp, found.duration), (Some(0), Some(1)));
    let raw = calls(&read_text(&rows(&stamps)))[3].0;
    assert_eq!((raw.start, raw.end, raw.duration), (UNKNOWN, 13_000_000, UNKNOWN));
}

#[test]
fn a_time_stamp_that_goes_back_is_counted() {
    let damaged: Vec<u64> = (10..30).map(|at| if at == 17 { 7017 } else { at }).collect();
    let batches = read_text(&rows(&damaged));
    assert_eq!(lost(&batches, LossKind::ClockSetBack), 1);
    let ends: Vec<i64> = calls(&batches).iter().map(|(raw, ..)| raw.end).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    assert_eq!(lost(&batches, LossKind::MissingDurations), 20);
}

#[test]
fn damaged_values_are_not_read_as_other_values() {
    let close = "0.000000001 0.000000001 close(3)\t\t\t = 0 (0x0)\n";
    let read = |line: &str| read_text(&format!("{close}0.000000002 0.000000001 {line}\n"));
    for line in [
        "write(3,\"x\",4096)\t = 4296 (0x1000)",
        "open(\"/a\",O_RDONLY,00)\t ERR#6 'No such file or directory'",
    ] {
        let batches = read(line);
        assert_eq!((calls(&batches).len(), lost(&batches, LossKind::UnreadableLines)), (1, 1), "{line}");
    }
    for line in [
        "write(s,\"x\",4096)\t = 4096 (0x1000)",
        "write(3,\"x\",4o96)\t = 4096 (0x1000)",
        "open(\"/a\",O_RDWP|O_CREAT,0644)\t = 3 (0x3)",
    ] {
        let batches = read(line);
        assert_eq!((calls(&batches).len(), lost(&batches, LossKind::UnreadableArguments)), (2, 1), "{line}");
    }
    for line in [
        "lseek(3,0x0,SEEK_SET)\t = -4 (0xfffffffffffffffc)",
        "lseek(3,0x0,SEEK_SET)\t = -4 (0xfffffffc)",
        "open(\"/a\",O_RDONLY,00)\t ERR#2 'Keine solche Datei'",
        "open(\"/a\",O_RDONLY|O_EXLOCK|O_FSYNC,00)\t = 3 (0x3)",
        "read(-1,0x7ff0,0x10)\t ERR#9 'Bad file descriptor'",
    ] {
        let batches = read(line);
        let lost: usize = batches.iter().map(|batch| batch.losses.counts.len()).sum();
        assert_eq!((calls(&batches).len(), lost), (2, 0), "{line}");
    }
    // The duration is longer than truss has been running.
    let batches = read_text("0.000000007 0.000000009 close(3)\t\t\t = 0 (0x0)\n");
    let raw = calls(&batches)[0].0;
    assert_eq!((raw.start, raw.end, raw.duration), (UNKNOWN, 7, UNKNOWN));
    assert_eq!(lost(&batches, LossKind::IncredibleNumbers), 1);
}

#[test]
fn arguments_have_the_order_and_numbers_of_freebsd() {
    let raw = one("sendfile(3,5,0x2000,4096,0x0,0x7fffffffe8a8,0x0) = 0 (0x0)");
    assert_eq!((raw.fd, raw.fd2, raw.offset, raw.requested), (3, 5, 8192, 4096));
    let raw = one("copy_file_range(3,0x0,4,0x7fffffffe8a8,100,0) = 100 (0x64)");
    assert_eq!((raw.fd, raw.offset, raw.fd2, raw.offset2), (3, UNKNOWN, 4, UNSHOWN_OFFSET));
    let raw = one("mmap(0x0,8192,PROT_READ,MAP_SHARED|MAP_ALIGNED(21),3,0x1000) = 34366169088 (0x800622000)");
    assert_eq!((raw.fd, raw.requested, raw.offset, raw.flags), (3, 8192, 4096, 1));
    let raw =
        one("mmap(0x0,32768,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANON,-1,0x0) = 34366169088 (0x800622000)");
    assert_eq!((raw.fd, raw.flags), (-1, constants::MAP_ANONYMOUS));
    assert_eq!(one("open(\"/x\",O_RDWR|O_FSYNC,00) = 3 (0x3)").flags, constants::O_RDWR | constants::O_SYNC);
    assert_eq!(one("linux_open(\"/x\",0x2,00) ERR#38 'Function not implemented'").errno.name(), "ENOSYS");
    assert_eq!(one("read(3,0x0,1) ERESTART").errno.name(), "ERESTART");
    assert_eq!(one("writev(3,[{\"a\",1},...],99) = 99 (0x63)").requested, UNKNOWN);
}

#[test]
fn lines_of_other_tracers_are_not_read() {
    for line in [
        "close(3) = 0",
        "close(3)\t\t= 0",
        "open(\"/x\", O_RDONLY)\tErr#2 ENOENT",
        "openat(AT_FDCWD, \"/x\", O_RDONLY) = -1 ENOENT (No such file or directory)",
        "close(3) = 0 (0x",
        "open(\"/x\",O_RDONLY,00) ERR#2 'No such",
        "exit(0)",
    ] {
        assert!(!is_own_line(line.as_bytes()), "{line}");
        let head = Head { bytes: line.as_bytes(), file: "x" };
        assert_eq!(FreebsdTruss.confidence(&head), 0, "{line}");
    }
    for name in ["threads.truss", "freebsd5.truss"] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        let head = Head { bytes: &bytes, file: name };
        let ranks: Vec<(u8, &str)> =
            crate::FORMATS.iter().map(|one| (one.confidence(&head), one.name())).collect();
        for (confidence, other) in ranks {
            assert_eq!(confidence >= 30, other == "freebsd-truss", "{name}: {other} {confidence}");
        }
    }
}

#[test]
fn a_table_of_counts_is_refused() {
    let error = crate::open_log(&fixture("counts_only.truss"), None, &ReadOptions::default()).err().unwrap();
    assert!(error.message.contains("truss -c") && error.hint.contains("-d -D"), "{error}");
}

#[test]
fn damaged_logs_never_panic() {
    let good = std::fs::read(fixture("threads.truss")).unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for _ in 0..2000 {
        let mut log = good.clone();
        for _ in 0..next(8) + 1 {
            let at = next(log.len());
            match next(3) {
                0 => log[at] = next(256) as u8,
                1 => log.truncate(at.max(1)),
                _ => log.insert(at, b"\"()[]{}\\,\t\n\0 0x9.:/="[next(20)]),
            }
        }
        let bytes = std::io::Cursor::new(log);
        let input = Input::from_reader(Box::new(bytes), "x", None).unwrap();
        let options = ReadOptions { workers: 0, chunk_size: 300, ..ReadOptions::default() };
        if let Ok(mut source) = FreebsdTruss.open(input, &options) {
            while let Ok(Some(_)) = source.next_batch() {}
        }
    }
}
