//! Compares every strace case with its known truth, as far as that is possible without tracking.

mod support;

use iodock_formats::ReadOptions;
use serde_json::Value;
use std::path::Path;
use support::{cases, json_of, read_file, small_chunks, CallTally, Tally};

fn call_from(truth: &Value) -> CallTally {
    let number = |name: &str| truth[name].as_i64().unwrap_or(0);
    let errno = truth["errno"].as_object().into_iter().flatten();
    CallTally {
        count: number("count") as u64,
        success: number("success") as u64,
        errors: number("errors") as u64,
        noresult: number("noresult") as u64,
        errno: errno.map(|(name, count)| (name.clone(), count.as_u64().unwrap())).collect(),
        timed: number("timed") as u64,
        total_ns: number("total_ns"),
        min_ns: truth["min_ns"].as_i64(),
        max_ns: truth["max_ns"].as_i64(),
        bytes_read: number("bytes_read"),
        bytes_written: number("bytes_written"),
    }
}

/// Describes the differences between `tally` and `truth`.
fn differences(tally: &Tally, truth: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, is: String, should: String| {
        if is != should {
            found.push(format!("{what}: {is}, should be {should}"));
        }
    };
    let number = |name: &str| truth[name].as_u64().unwrap();
    for (what, is) in [
        ("lines", tally.counts.lines),
        ("unfinished_lines", tally.counts.unfinished),
        ("resumed_lines", tally.counts.resumed),
        ("orphan_resumed", tally.counts.orphans),
        ("calls_total", tally.total()),
    ] {
        compare(what, is.to_string(), number(what).to_string());
    }
    compare("first", format!("{:?}", tally.first), format!("{:?}", truth["time_first_ns"].as_i64()));
    let last = truth["time_last_ns"].as_i64();
    let tolerated = tally.last >= last && tally.last.unwrap_or(0) <= last.unwrap_or(0) + 1_000_000_000;
    compare("last", tolerated.to_string(), "true".into());
    let signals: std::collections::BTreeMap<String, u64> =
        truth["signals"].as_object().unwrap().iter().map(|(k, v)| (k.clone(), v.as_u64().unwrap())).collect();
    compare("signals", format!("{:?}", tally.counts.signals), format!("{signals:?}"));
    let calls = truth["syscalls"].as_object().unwrap();
    compare("names", format!("{:?}", tally.calls.keys()), format!("{:?}", calls.keys()).replace("Keys", ""));
    for (name, call) in calls {
        let is = tally.calls.get(name).cloned().unwrap_or_default();
        compare(name, format!("{is:?}"), format!("{:?}", call_from(call)));
    }
    found.retain(|difference| !difference.starts_with("names"));
    found
}

fn check(log: &Path, truth: &Value) {
    for chunk_size in [1 << 20, 4096, 300] {
        let tally = read_file(log, &small_chunks(chunk_size)).unwrap_or_else(|error| panic!("{error}"));
        let found = differences(&tally, truth);
        assert!(found.is_empty(), "{} in chunks of {chunk_size}:\n{}", log.display(), found.join("\n"));
        let unread: u64 = tally.losses.counts.values().sum();
        if truth["syscalls"]["read"]["timed"] != 0 {
            assert_eq!(unread, truth["lines_unparsed"].as_u64().unwrap(), "{:?}", tally.losses);
        }
    }
}

#[test]
fn the_cases_give_their_known_results() {
    let mut checked = 0;
    for entry in std::fs::read_dir(cases().join("strace")).unwrap() {
        let folder = entry.unwrap().path();
        check(&folder.join("log.xz"), &json_of(&folder.join("truth.json.xz")));
        checked += 1;
    }
    assert!(checked >= 8);
}

#[test]
fn a_truncated_last_line_is_not_read_as_a_call() {
    let folder = cases().join("damaged");
    let truth = json_of(&folder.join("d01_cut_mid_line.expect.json.xz"));
    check(&folder.join("d01_cut_mid_line.log.xz"), &truth["truth"]);
}

#[test]
fn missing_durations_are_reported() {
    let folder = cases().join("damaged");
    let truth = json_of(&folder.join("d10_no_T.expect.json.xz"));
    let log = folder.join("d10_no_T.log.xz");
    check(&log, &truth["truth"]);
    let tally = read_file(&log, &small_chunks(1 << 20)).unwrap();
    assert!(tally.losses.count(iodock_event::LossKind::MissingDurations) > 1000);
}

#[test]
fn a_file_that_is_not_a_log_is_refused() {
    let folder = cases().join("damaged");
    let empty = read_file(&folder.join("d05_empty.log"), &small_chunks(1 << 20)).unwrap_err();
    assert!(empty.message.contains("empty") && !empty.hint.is_empty());
    let text = read_file(&folder.join("d08_not_a_trace_text.log"), &small_chunks(1 << 20)).unwrap_err();
    assert!(text.message.contains("not a trace log"), "{text}");
}

#[test]
fn chunk_borders_do_not_change_the_result() {
    for name in ["04_python_mix", "10c_fdzoo_yy", "12a_restart", "14_midnight"] {
        let log = cases().join("strace").join(name).join("log.xz");
        let whole = read_file(&log, &small_chunks(1 << 24)).unwrap();
        for chunk_size in [1, 777] {
            let parts = read_file(&log, &small_chunks(chunk_size)).unwrap();
            assert_eq!(whole.shown.len(), parts.shown.len(), "{name}");
            for (index, (one, other)) in whole.shown.iter().zip(&parts.shown).enumerate() {
                assert_eq!(one, other, "{name}, record {index}, chunks of {chunk_size}");
            }
            assert_eq!(whole.forks, parts.forks);
            let alone = read_file(&log, &ReadOptions { workers: 0, ..small_chunks(chunk_size) }).unwrap();
            assert_eq!(whole.shown, alone.shown);
        }
    }
}

#[test]
fn a_generated_log_gives_its_known_result() {
    let folder = std::env::temp_dir().join(format!("iodock-genlog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |command: &mut std::process::Command| assert!(command.status().unwrap().success());
    let source = cases().join("../genlog.rs");
    run(std::process::Command::new("rustc").arg("-O").arg("-o").arg(folder.join("genlog")).arg(source));
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let arguments = ["60000", "8", "300", "5", "--truth"];
    run(std::process::Command::new(folder.join("genlog"))
        .args(arguments)
        .arg(folder.join("truth.json"))
        .stdout(log));
    let truth = json_of(&folder.join("truth.json"));
    for chunk_size in [1 << 20, 10_000] {
        let tally = read_file(&folder.join("log"), &small_chunks(chunk_size)).unwrap();
        for (name, call) in truth["syscalls"].as_object().unwrap() {
            assert_eq!(tally.calls[name], call_from(call), "{name}");
        }
        assert_eq!(tally.total(), truth["calls_total"].as_u64().unwrap());
        assert_eq!(tally.counts.unfinished, truth["unfinished_lines"].as_u64().unwrap());
        assert!(tally.losses.counts.is_empty(), "{:?}", tally.losses);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
