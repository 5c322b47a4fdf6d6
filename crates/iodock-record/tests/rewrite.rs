//! Compares `--backend rewrite` with `--backend ptrace`: the same program must give the same calls, processes
//! and bytes, except for the dynamic linker's calls before the library is loaded.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{counts, fields::fields, read_and_written, Place};
use iodock_event::{LossKind, Outcome, Phase, Record};
use iodock_record::{record, ProgramExit, RecordOptions};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::Arc;

#[test]
fn rewrite_records_the_same_calls_as_ptrace() {
    let place = Place::new("calls");
    let program = place.compile("calls");
    let (outcome, rewritten, paths) = place.record("rewrite", &[&program, place.text(), "997"]);
    assert_eq!((outcome.exit, outcome.killed, outcome.failure), (ProgramExit::Code(0), 0, None));
    assert_eq!(outcome.losses.count(LossKind::DroppedRecords), 0);
    // The processes are the program itself, /bin/true twice, and a shell.
    assert_eq!(outcome.losses.count(LossKind::BeforeLoad), 4);
    let (_, traced, _) = place.record("ptrace", &[&program, place.text(), "997"]);
    let (rewritten_counts, traced_counts) = (counts(&rewritten), counts(&traced));
    let own = [
        "write",
        "pwritev",
        "readv",
        "unlink",
        "lseek",
        "clone",
        "clone3",
        "vfork",
        "execve",
        "exit",
        "exit_group",
    ];
    for name in own {
        assert_eq!(rewritten_counts.get(name), traced_counts.get(name), "{name}");
    }
    assert_eq!(read_and_written(&rewritten, "write"), read_and_written(&traced, "write"));
    assert!(paths.iter().any(|path| path == "small-30"));
    let births =
        |records: &[Record]| records.iter().filter(|record| matches!(record, Record::Start(_))).count();
    assert_eq!(births(&rewritten), births(&traced));
}

#[test]
fn call_times_are_within_the_run_and_ordered_by_end() {
    let place = Place::new("times");
    let program = place.compile("calls");
    let before = now();
    let (_, records, _) = place.record("rewrite", &[&program, place.text(), "97"]);
    let after = now();
    let mut last = 0;
    for record in &records {
        let Record::Call(raw) = record else { continue };
        assert!(raw.start >= before && raw.start <= after, "{before} {} {after}", raw.start);
        if raw.outcome != Outcome::NoResult && raw.phase != Phase::Enter && raw.call.name() != "execve" {
            assert!(raw.end_time() >= last, "{raw:?}");
            last = raw.end_time();
        }
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_nanos() as i64
}

#[test]
fn a_killed_program_is_recorded_to_its_last_call() {
    let place = Place::new("killed");
    let program = place.compile("hostile");
    let (outcome, records, _) = place.record("rewrite", &[&program, "killed"]);
    assert_eq!(outcome.exit, ProgramExit::Signal(libc::SIGKILL));
    assert_eq!(counts(&records)["pread64"].0, 50_001);
    let ends: Vec<_> = records.iter().filter(|record| matches!(record, Record::End(_))).collect();
    assert_eq!(ends.len(), 1);
}

/// Returns the calls of the first thread from its chdir on. The type of an opened file is left out,
/// because `rewrite` reads it only after a slow open.
fn own_calls(records: &[Record], paths: &[String]) -> Vec<String> {
    let calls = records.iter().zip(paths).filter_map(|(record, path)| match record {
        Record::Call(raw) if raw.phase != Phase::Enter => Some((raw, path)),
        _ => None,
    });
    let first = calls.clone().next().map(|(raw, _)| raw.tid);
    let own = calls.filter(|(raw, _)| Some(raw.tid) == first).map(|(raw, path)| {
        let mut raw = *raw;
        if raw.call.name().starts_with("open") {
            raw.stat_type = 0;
        }
        fields(&raw, path)
    });
    own.skip_while(|line| !line.starts_with("chdir")).collect()
}

#[test]
fn every_field_equals_that_of_ptrace() {
    for program in ["calls", "fields", "anything"] {
        let place = Place::new(program);
        let compiled = place.compile(program);
        let folder = place.0.join("work");
        let command = [compiled.as_str(), folder.to_str().expect("text"), "97"];
        fs::create_dir(&folder).expect("a folder to work in");
        let (outcome, rewritten, rewritten_paths) = place.record("rewrite", &command);
        assert_eq!(outcome.exit, ProgramExit::Code(0), "{program}");
        fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(&folder)).expect("the folder anew");
        let (_, traced, traced_paths) = place.record("ptrace", &command);
        let (rewritten, traced) =
            (own_calls(&rewritten, &rewritten_paths), own_calls(&traced, &traced_paths));
        for (index, (mine, other)) in rewritten.iter().zip(&traced).enumerate() {
            assert_eq!(mine, other, "{program}: call {index}");
        }
        assert_eq!(rewritten.len(), traced.len(), "{program}");
        assert!(rewritten.len() > 30, "{program}");
    }
}

#[test]
fn a_process_in_another_pid_namespace_is_recorded_to_its_end() {
    let place = Place::new("namespace");
    let file = |name: &str| place.0.join(name).to_str().expect("text").to_string();
    let (one, two) = (file("one"), file("two"));
    // The process makes no call for so long that the recorder checks whether it has ended.
    let script = format!("echo 1 > {one}; sleep 2.6; echo 2 > {two}");
    let command = ["unshare", "--fork", "--pid", "sh", "-c", script.as_str()];
    if !Command::new(command[0])
        .args(&command[1..4])
        .arg("-c")
        .arg("true")
        .status()
        .is_ok_and(|s| s.success())
    {
        eprintln!("no name spaces for this user: not looked at");
        return;
    }
    let (outcome, records, paths) = place.record("rewrite", &command);
    assert_eq!((outcome.exit, outcome.killed), (ProgramExit::Code(0), 0));
    assert!(paths.contains(&one) && paths.contains(&two), "{:?}", counts(&records));
}

/// Returns whether a pid namespace has its own limit of ids. Before Linux 6.14 the limit applies to the whole
/// machine.
fn name_spaces_limit_their_ids() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers: Vec<u32> = release.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    let own = ["--fork", "--pid", "--mount-proc", "test", "-w", "/proc/sys/kernel/pid_max"];
    numbers >= vec![6, 14] && Command::new("unshare").args(own).status().is_ok_and(|status| status.success())
}

#[test]
fn a_process_with_a_reused_id_has_its_own_start_and_end() {
    let place = Place::new("ids");
    if !name_spaces_limit_their_ids() {
        eprintln!("skipped: ids can't be limited here: that takes root and Linux 6.14");
        return;
    }
    // Linux reuses ids from 300 on, so here after twenty processes. This takes less time than a process needs
    // to end.
    let script = "echo 320 > /proc/sys/kernel/pid_max; i=0; while [ $i -lt 900 ]; do (exit $((i % 3 + 40))); i=$((i+1)); done";
    let command = ["unshare", "--fork", "--pid", "--mount-proc", "sh", "-c", script];
    let (outcome, records, _) = place.record("rewrite", &command);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    let (mut living, mut codes) = (BTreeMap::new(), BTreeMap::<_, u32>::new());
    let mut orphans = 0;
    for record in &records {
        match record {
            Record::Start(start) => {
                orphans += u32::from(start.parent_tid.is_none());
                assert_eq!(living.insert(start.tid, start.time), None, "{start:?} is not the first's end");
            }
            Record::End(end) => {
                let began = living.remove(&end.tid);
                assert!(began.is_none_or(|began| began <= end.time), "{end:?} began {began:?}");
                *codes.entry(end.exit_code).or_default() += 1;
            }
            _ => {}
        }
    }
    assert_eq!([40, 41, 42].map(|code| codes.get(&Some(code)).copied()), [Some(300); 3], "{codes:?}");
    // These are the first process of the recording, and that of the namespace, whose parent has another id
    // inside it.
    assert_eq!(orphans, 2);
}

#[test]
fn cancelling_also_kills_new_processes() {
    let place = Place::new("cancel");
    let script = "trap '' TERM; while :; do sleep 77 & sleep 0.001; done";
    let store = place.0.join("run.iodock");
    let mut options = RecordOptions::new(["sh", "-c", script].map(Into::into).to_vec(), store);
    (options.force, options.backend) = (true, "rewrite".into());
    let cancel = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let outcome = std::thread::scope(|scope| {
        let recording = scope.spawn(|| record(&options, cancel.clone()).expect("recorded"));
        std::thread::sleep(std::time::Duration::from_millis(700));
        cancel.store(true, std::sync::atomic::Ordering::SeqCst);
        recording.join().expect("no panic")
    });
    // If new processes were not killed, the recording would not have ended while one of them sleeps.
    assert_eq!(outcome.exit, ProgramExit::Signal(libc::SIGKILL));
    assert!(outcome.killed > 1);
}

#[test]
fn a_program_without_libc_makes_only_its_own_calls() {
    let place = Place::new("without-libc");
    let bare = ["gcc", "-nostdlib", "-fPIE"];
    for options in [&["-pie"][..], &["-static"]] {
        let Some(program) = place.compile_with(&[&bare, options].concat(), "without_libc", "bare") else {
            return;
        };
        let own = place.record("ptrace", &[&program]).1;
        let complete = place.record_more("rewrite", true, &[&program]).1;
        assert_eq!(counts(&complete), counts(&own), "{options:?}");
        assert!(!counts(&own).contains_key("close"), "{options:?}");
        let by_shell = ["sh", "-c", &format!("{program}; exit 0")].map(String::from);
        let by_shell: Vec<&str> = by_shell.iter().map(String::as_str).collect();
        let (own, complete) =
            (place.record("ptrace", &by_shell).1, place.record_more("rewrite", true, &by_shell).1);
        assert_eq!(counts(&complete).get("close"), counts(&own).get("close"), "{options:?}");
        assert_eq!(counts(&complete).get("write"), counts(&own).get("write"), "{options:?}");
    }
}
