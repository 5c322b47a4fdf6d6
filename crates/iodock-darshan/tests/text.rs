//! Checks that the output of darshan-parser has the same content as its logs, except for values that
//! darshan-parser rounds or omits.

mod support;

use iodock_darshan::{Counted, Fault, Limits, Log, Module, Written};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use support::{losses, read, sample};

/// Returns the texts in `fixtures/darshan/text`, or in the folder that `IODOCK_DARSHAN_TEXTS` names.
fn texts() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/darshan/text");
    let folder = std::env::var_os("IODOCK_DARSHAN_TEXTS").map_or(here, PathBuf::from);
    let files =
        std::fs::read_dir(folder).expect("texts are there").map(|entry| entry.expect("readable").path());
    let mut texts: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    texts.sort();
    texts
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/darshan/text").join(name);
    std::fs::read_to_string(path).expect("a text of this name")
}

fn assert_same_counters(text: &Counted, log: &Counted, of: &str) {
    let all =
        |counted: &Counted| counted.records().map(|record| (record.id(), record.rank())).collect::<Vec<_>>();
    assert_eq!(all(text), all(log), "{of}");
    for (from_text, from_log) in text.records().zip(log.records()) {
        assert_eq!(from_text.file(), from_log.file(), "{of}");
        let counters: Vec<_> = from_log.counters().filter(|(name, _)| !DROPPED.contains(name)).collect();
        assert_eq!(from_text.counters().collect::<Vec<_>>(), counters, "{of}");
        let all: Vec<_> = from_log.fractions().collect();
        assert_eq!(from_text.fractions().count(), all.len(), "{of}");
        for ((name, value), (also, whole)) in from_text.fractions().zip(all) {
            let is_zeroed = ZEROED.contains(&name) && matches!(log.version, Some(2 | 3));
            let is_swapped = SWAPPED.contains(&name) && log.version < Some(4) && of.contains("ppc64");
            let is_near = (value - whole).abs() <= 5.1e-7 + whole.abs() * 1e-15;
            assert!(name == also && (is_near || is_zeroed || is_swapped), "{of}: {name} {value} {whole}");
        }
    }
}

/// Values that darshan-parser drops or prints wrongly; see `tests/pydarshan/values.py`.
const DROPPED: [&str; 4] = ["POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FSEEKS"];
const ZEROED: [&str; 2] = ["POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES"];
const SWAPPED: [&str; 3] = ["POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME"];

#[test]
fn a_text_has_the_same_values_as_its_log() {
    for path in texts() {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = Log::open(&path, Limits::default()).expect("a text");
        let log = read(&sample(&name)).expect("a whole log");
        assert_eq!((text.written, &text.format), (Written::Text, &log.format));
        let modules = |log: &Log| log.counted.iter().map(|counted| counted.module).collect::<Vec<_>>();
        assert_eq!(modules(&text), modules(&log), "{name}");
        for (text, log) in text.counted.iter().zip(&log.counted) {
            assert_same_counters(text, log, &name);
        }
        same_job(&text, &log);
        same_layouts(&text, &log, &name);
        let bins = |log: &Log| {
            let maps = log.heatmaps.iter();
            maps.map(|map| (map.id, map.rank, map.read.clone(), map.written.clone())).collect::<Vec<_>>()
        };
        assert_eq!(bins(&text), bins(&log), "{name}");
        assert!(
            !losses(&text).iter().any(|loss| loss.1.contains("lines") || loss.1.contains("incomplete")),
            "{name}"
        );
    }
}

fn same_job(text: &Log, log: &Log) {
    let (text, log) = (text.job.as_ref().expect("its head"), log.job.as_ref().expect("its head"));
    assert_eq!((text.uid, text.id, text.processes), (log.uid, log.id, log.processes));
    assert_eq!((text.start.s, text.end.s, &text.command), (log.start.s, log.end.s, &log.command));
    assert_eq!((text.metadata.as_slice(), text.mounts.len()), (log.metadata.as_slice(), log.mounts.len()));
    assert!((text.run_time_s() - log.run_time_s()).abs() < 1e-4);
}

/// Compares layouts. Since 3.5.0, darshan-parser prints layouts of version 1 like those of version 2.
fn same_layouts(text: &Log, log: &Log, name: &str) {
    assert_eq!(text.lustre.len(), log.lustre.len(), "{name}");
    for (text, log) in text.lustre.iter().zip(&log.lustre) {
        assert_eq!(
            (text.id, text.rank, text.components.len()),
            (log.id, log.rank, log.components.len()),
            "{name}"
        );
        for (text, log) in text.components.iter().zip(&log.components) {
            assert_eq!(
                (text.stripe_bytes, text.stripe_count, &text.targets),
                (log.stripe_bytes, log.stripe_count, &log.targets)
            );
            assert_eq!((text.pattern, &text.pool), (log.pattern, &log.pool), "{name}");
        }
    }
}

#[test]
fn modules_missing_from_a_text_are_named() {
    let log = read(fixture("apmpi-apxc.txt").as_bytes()).expect("a text");
    let unread = |name: &str, bytes| (format!("{name} module"), "darshan-unread-module", bytes);
    assert!(losses(&log).contains(&unread("APXC", 1374)) && losses(&log).contains(&unread("APMPI", 504)));
    let log = read(fixture("mpi-io-test-ppc64-3.1.6.txt").as_bytes()).expect("a text");
    assert!(losses(&log).contains(&("DXT_POSIX module".into(), "darshan-missing-module", 296)));
}

#[test]
fn damaged_lines_are_counted() {
    let text = fixture("ior-hdf5.txt").replacen("POSIX_READS\t", "POSIX_READS ", 1) + "this line is junk\n";
    let log = read(text.as_bytes()).expect("a text");
    let line = 1 + text.lines().position(|line| line.contains("POSIX_READS ")).expect("it is there");
    assert!(losses(&log).contains(&(format!("line {line}"), "darshan-unreadable-lines", 2)));
    let posix = log.module(Module::POSIX).expect("its other counters");
    assert_eq!(
        (posix.len(), posix.total("POSIX_READS"), posix.total("POSIX_WRITES").is_some()),
        (1, None, true)
    );
}

#[test]
fn a_truncated_text_keeps_its_complete_records() {
    let text = fixture("mpi-io-test-x86_64-3.5.0.txt");
    let whole = read(text.as_bytes()).expect("a text").records();
    let mut kept = Vec::new();
    for part in 2..=10 {
        let cut = &text[..text.len() * part / 10];
        match read(cut.as_bytes()) {
            Ok(log) => {
                kept.push(log.records());
                let told = ["darshan-cut-region", "darshan-incomplete-records", "darshan-missing-module"];
                assert!(part == 10 || losses(&log).iter().any(|loss| told.contains(&loss.1)), "{part}");
            }
            Err(fault) => assert!(matches!(fault, Fault::NoRecords) && kept.is_empty()),
        }
    }
    assert!(kept.is_sorted() && kept.len() > 3, "{kept:?}");
    assert_eq!(kept.last(), Some(&whole));
}

#[test]
fn a_text_without_records_is_not_read_as_a_job_without_io() {
    let text = fixture("ior-hdf5.txt");
    let head: String =
        text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert!(matches!(read(head.as_bytes()), Err(Fault::NoRecords)));
    let text = "# darshan log version: 3.41\n# nprocs: 4\n# no module data available.\n";
    let log = read(text.as_bytes()).expect("a job without files");
    assert_eq!(losses(&log), [("job data".into(), "darshan-cut-region", 1)]);
    let before_modules = head.split("# log file regions").next().expect("the job");
    let log = read(before_modules.as_bytes()).expect("the job is there");
    assert!(log.job.is_some());
    assert_eq!(losses(&log), [("header".into(), "darshan-cut-region", 1)]);
}

#[test]
fn long_lines_do_not_use_memory() {
    let long = format!("# darshan log version: 3.41\nPOSIX\t{}\n", "9".repeat(1 << 20));
    let log = Log::read(Cursor::new(long), Limits::default()).expect("a text");
    assert!(losses(&log).contains(&("line 2".into(), "darshan-unreadable-lines", 1)));
}
