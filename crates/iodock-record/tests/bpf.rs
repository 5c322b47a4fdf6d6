//! Compares `--backend bpf` with `--backend ptrace`: the same program must give the same calls, field by
//! field. The tests need root and a kernel that accepts BPF programs. Otherwise each prints that it was
//! skipped.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "common/both.rs"]
mod both;

use both::{place, Recorded};
use iodock_bpf::calls::CallsSource;
use iodock_event::{LossKind, Losses, Outcome, Phase, RawCall, Record, RecordSource, UNKNOWN};
use iodock_journal::JournalReader;
use iodock_record::{record, ProgramExit, RecordError, RecordOptions};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

/// Flag of clone (linux/sched.h).
const CLONE_FILES: u64 = 0x400;

const SHARED: &str = "../iodock-preload/tests/programs";

#[test]
fn every_field_equals_that_of_ptrace() {
    for program in ["calls", "fields"] {
        let Some(place) = place(program) else { return };
        let compiled = place.compile(SHARED, program, &[]).expect("compiled");
        let folder = place.0.join("work");
        let command = [compiled.as_str(), folder.to_str().expect("text"), "97"];
        fs::create_dir(&folder).expect("a folder to work in");
        let mine = place.record("bpf", &command);
        assert_eq!(mine.outcome.exit, ProgramExit::Code(0), "{program}");
        assert_eq!(mine.losses.counts, BTreeMap::new(), "{program}");
        fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(&folder)).expect("the folder anew");
        let other = place.record("ptrace", &command);
        let (ours, theirs) = (mine.fields(), other.fields());
        for (index, (our, their)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(our, their, "{program}: call {index}");
        }
        assert_eq!(ours.len(), theirs.len(), "{program}");
        assert_eq!(mine.counts(), other.counts(), "{program}");
        assert_eq!((mine.births(), mine.ends().len()), (other.births(), other.ends().len()), "{program}");
        assert!(ours.len() > 30, "{program}");
    }
}

/// The kernel's programs leave out values that the previous record contained, so similar calls may be
/// confused.
#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn repeated_calls_are_distinguished_from_similar_ones() {
    let Some(place) = place("again") else { return };
    let program = place.compile("tests/programs", "again", &[]).expect("compiled");
    let file = place.0.join("file");
    let file = file.to_str().expect("text");
    let foreign_work = ["32-bit calls too"].repeat(usize::from(runs(&[&program, file, "32"])));
    let command = [&[program.as_str(), file], &foreign_work[..]].concat();
    // The same program runs at the same time without being recorded: tasks of both reuse each other's stacks
    // in the kernel.
    let beside = place.0.join("beside");
    let mut other = Command::new(&program).arg(&beside).spawn().expect("started");
    let mine = place.record("bpf", &command);
    assert!(other.wait().expect("ended").success());
    let theirs = place.record("ptrace", &command);
    assert_eq!((mine.outcome.exit, theirs.outcome.exit), (ProgramExit::Code(0), ProgramExit::Code(0)));
    let foreign = |recorded: &Recorded| recorded.losses.count(LossKind::ForeignCalls);
    assert_eq!((mine.losses.counts.len(), foreign(&mine)), (foreign_work.len(), foreign(&theirs)));
    for (index, (our, their)) in mine.fields().iter().zip(&theirs.fields()).enumerate() {
        assert_eq!(our, their, "call {index}");
    }
    assert_eq!(mine.counts(), theirs.counts());
    assert!(mine.count("pread64") > 160_000, "{}", mine.count("pread64"));
    assert_eq!((mine.births(), mine.ends().len()), (theirs.births(), theirs.ends().len()));
}

fn runs(command: &[&str]) -> bool {
    Command::new(command[0]).args(&command[1..]).status().is_ok_and(|status| status.success())
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn static_programs_and_scripts_are_recorded_completely() {
    let Some(place) = place("static") else { return };
    let Some(program) = place.compile(SHARED, "calls", &["-static"]) else {
        eprintln!("skipped: no static libc here");
        return;
    };
    let script = place.0.join("script");
    fs::write(&script, format!("#!{program} {}\n", place.text())).expect("written");
    let rights = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&script, rights).expect("made executable");
    for command in [vec![program.as_str(), place.text(), "97"], vec![script.to_str().expect("text"), "97"]] {
        let mine = place.record("bpf", &command);
        let other = place.record("ptrace", &command);
        assert_eq!(mine.fields(), other.fields(), "{command:?}");
        assert_eq!(mine.counts(), other.counts(), "{command:?}");
    }
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn exec_in_threads_and_ended_leaders_are_recorded() {
    let Some(place) = place("threads") else { return };
    let program = place.compile("tests/programs", "threads_exec", &[]).expect("compiled");
    let mine = place.record("bpf", &[&program]);
    let other = place.record("ptrace", &[&program]);
    assert_eq!(mine.outcome.exit, other.outcome.exit);
    assert_eq!(mine.births(), other.births());
    let superseded = |recorded: &Recorded| recorded.ends().iter().filter(|(_, by)| *by).count();
    assert_eq!(superseded(&mine), superseded(&other));
    assert_eq!(mine.count("execve"), other.count("execve"));
}

#[test]
fn a_call_in_progress_keeps_its_original_descriptor() {
    let Some(place) = place("flight") else { return };
    let program = place.compile("tests/programs", "flight", &[]).expect("compiled");
    let mine = place.record("bpf", &[&program]);
    let calls: Vec<&RawCall> = mine
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Call(raw) => Some(raw),
            _ => None,
        })
        .collect();
    let begun = calls.iter().position(|raw| raw.phase == Phase::Enter).expect("a beginning of its own");
    let (entered, closed) = (calls[begun], calls[begun + 1]);
    assert_eq!((entered.call.name(), closed.call.name()), ("read".into(), "close".into()));
    assert_eq!(entered.fd, closed.fd);
    let ended = calls.iter().find(|raw| raw.phase == Phase::Exit).expect("its end");
    assert_eq!((ended.tid, ended.start, ended.result), (entered.tid, entered.start, 1));
}

#[test]
fn a_killed_program_is_recorded_to_its_last_call() {
    let Some(place) = place("killed") else { return };
    let program = place.compile(SHARED, "hostile", &[]).expect("compiled");
    let mine = place.record("bpf", &[&program, "killed"]);
    assert_eq!(mine.outcome.exit, ProgramExit::Signal(libc::SIGKILL));
    let last = mine.calls().filter(|(raw, _)| raw.call.name() == "pread64").last();
    assert_eq!(last.map(|(raw, _)| raw.offset), Some(50_000));
    assert_eq!(mine.ends(), [(None, false)]);
}

#[test]
fn call_times_are_within_the_run_and_ordered_by_end() {
    let Some(place) = place("times") else { return };
    let program = place.compile(SHARED, "calls", &[]).expect("compiled");
    let now = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.expect("after 1970").as_nanos() as i64
    };
    let before = now();
    let mine = place.record("bpf", &[&program, place.text(), "97"]);
    let after = now();
    let mut last = 0;
    for (raw, _) in mine.calls() {
        assert!(raw.start >= before && raw.start <= after, "{before} {} {after}", raw.start);
        if raw.outcome != Outcome::NoResult {
            assert!(raw.end_time() >= last, "{raw:?}");
            last = raw.end_time();
        }
    }
    assert!(last > before);
}

/// The program makes so few calls that the smallest buffers hold all records, even if the reader never runs.
#[test]
fn no_call_that_fits_the_buffers_is_dropped() {
    let Some(place) = place("few") else { return };
    let loop_of = "i=0; while [ $i -lt 20 ]; do /bin/true; v=$(cat /dev/null); i=$((i+1)); done";
    let mine = place.record("bpf", &["/bin/sh", "-c", loop_of]);
    assert_eq!(mine.outcome.losses.count(LossKind::DroppedRecords), 0);
    assert_eq!((mine.count("execve"), mine.births()), (41, 41));
    let mine = place.record("bpf", &["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=8000"]);
    assert_eq!(mine.outcome.losses.count(LossKind::DroppedRecords), 0);
    assert!(mine.count("write") >= 8_000, "{} {:?}", mine.count("write"), mine.losses);
}

/// The program makes more calls than the buffers can hold. On a machine that delays the reader for a long
/// time, records are lost, but the recorder counts them.
#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn each_call_of_a_flood_is_recorded_or_counted_as_dropped() {
    let Some(place) = place("flood") else { return };
    let copied = |count: u64| {
        let blocks = format!("count={count}");
        let mine = place.record("bpf", &["dd", "if=/dev/zero", "of=/dev/null", "bs=1", &blocks]);
        let dropped = mine.outcome.losses.count(LossKind::DroppedRecords);
        (mine.calls().count() as u64 + dropped, dropped)
    };
    let (few, none) = copied(1_000);
    let (many, _) = copied(1_000_000);
    assert_eq!(none, 0);
    assert_eq!(many - few, 2 * 999_000);
}

/// The program submits a thousand requests at a time. The recorder decodes a part of them and counts the
/// others.
#[test]
fn requests_beyond_the_examined_ones_are_counted() {
    let Some(place) = place("many") else { return };
    let program = place.compile("tests/programs", "many", &[]).expect("compiled");
    let file = place.0.join("written");
    let command = [program.as_str(), file.to_str().expect("text")];
    let lost = |backend: &str| {
        let mine = place.record(backend, &command);
        assert_eq!(mine.outcome.exit, ProgramExit::Code(0), "{backend}");
        mine.losses.count(LossKind::TooManyRequests)
    };
    assert_eq!(lost("ptrace"), 0);
    // The calls are io_getevents (twice), io_submit and sendmmsg.
    assert_eq!(lost("bpf"), 2 * (1_000 - 512) + (1_000 - 256) + (1_000 - 256));
}

#[test]
fn calls_of_other_abis_are_counted_and_their_children_followed() {
    let Some(place) = place("foreign") else { return };
    let program = place.compile("tests/programs", "foreign", &[]).expect("compiled");
    let file = place.0.join("shared");
    let mine = place.record("bpf", &[program.as_str(), file.to_str().expect("text")]);
    if mine.outcome.exit == ProgramExit::Code(77) {
        eprintln!("skipped: this kernel has no 32-bit calls");
        return;
    }
    assert_eq!(mine.outcome.exit, ProgramExit::Code(0));
    assert_eq!(mine.losses.count(LossKind::ForeignCalls), 71);
    assert_eq!(mine.forks.len(), 1);
    assert_eq!(mine.forks[0] & CLONE_FILES, CLONE_FILES);
}

/// Refused calls fail with an error, as in strace. Calls that the filter answers with SIGSYS were not made,
/// and moved no bytes.
#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn calls_refused_by_the_programs_filter_are_recorded_as_by_ptrace() {
    let Some(place) = place("refused") else { return };
    let program = place.compile("tests/programs", "refused", &[]).expect("compiled");
    let mine = place.record("bpf", &[&program]);
    assert_eq!(mine.outcome.exit, ProgramExit::Code(0));
    let other = place.record("ptrace", &[&program]);
    assert_eq!(mine.counts(), other.counts());
    for recorded in [&mine, &other] {
        for name in ["pwrite64", "rmdir"] {
            let trapped: Vec<_> = recorded.calls().filter(|(raw, _)| raw.call.name() == name).collect();
            assert_eq!(trapped.len(), 1, "{name}");
            let (raw, (path, _)) = trapped[0];
            assert_eq!((raw.outcome, raw.duration), (Outcome::NoResult, UNKNOWN), "{name}");
            assert_eq!(path, if name == "rmdir" { "/nowhere" } else { "" });
        }
    }
}

/// Records of ends of tasks may be lost. The recorder must end anyway, and report its losses.
#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn a_recorder_stopped_during_many_forks_still_ends() {
    let Some(place) = place("storm") else { return };
    let storm = place.compile("tests/programs", "storm", &[]).expect("compiled");
    let store = place.0.join("run.iodock");
    let test = env::current_exe().expect("this program");
    let mut recorder = Command::new(test)
        .args(["--exact", "records_a_program_for_another_test", "--include-ignored"])
        .env("IODOCK_TEST_STORE", &store)
        .env("IODOCK_TEST_PROGRAM", &storm)
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    let started = store.join("journal/main.calls");
    until("the recording begins", || started.exists().then_some(()));
    let pid = recorder.id() as libc::pid_t;
    // SAFETY: kill accesses no memory, and the process is a child that was not waited for.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    std::thread::sleep(Duration::from_secs(6));
    // SAFETY: kill accesses no memory, and the process is a child that was not waited for.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    let status = until("the recorder ends", || recorder.try_wait().expect("a child"));
    assert!(status.success(), "{status}");
    let (mut born, mut losses) = (0, Losses::default());
    let mut look = |source: &mut dyn RecordSource| {
        while let Some(batch) = source.next_batch().expect("readable") {
            born += batch.records.iter().filter(|record| matches!(record, Record::Start(_))).count() as u64;
            losses.merge(&batch.losses);
        }
    };
    look(&mut JournalReader::open(store.join("journal/main.journal")).expect("a journal"));
    look(&mut CallsSource::open(&started).expect("a file of calls"));
    let dropped = losses.count(LossKind::DroppedRecords);
    assert!(born + dropped > 60_000, "{born} were born, {dropped} records dropped");
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    for _ in 0..4_000 {
        if let Some(found) = found() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    panic!("not within 2 minutes: {what}");
}

/// This is no test. Another test runs it as its recorder, in a separate process.
#[test]
#[ignore = "run by another test"]
fn records_a_program_for_another_test() {
    let (Some(store), Some(program)) = (env::var_os("IODOCK_TEST_STORE"), env::var_os("IODOCK_TEST_PROGRAM"))
    else {
        return;
    };
    let mut options = RecordOptions::new(vec![program], store.into());
    options.backend = "bpf".into();
    record(&options, Arc::default()).expect("recorded");
}

#[test]
fn a_program_without_its_interpreter_is_reported_as_not_found() {
    let Some(place) = place("broken") else { return };
    let program = place.0.join("broken");
    fs::write(&program, "#!/no/such/interpreter\n").expect("written");
    let rights = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&program, rights).expect("made executable");
    let refused = place.try_record("bpf", &[program.to_str().expect("text")]);
    assert!(matches!(refused.map(drop), Err(RecordError::NotFound(_))));
    assert!(!place.0.join("run.iodock").exists());
}
