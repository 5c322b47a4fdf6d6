//! Records real programs, and checks how they end, what is recorded, and that the counts equal strace's.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use iodock_event::{Outcome, Phase, Record, RecordSource};
use iodock_journal::JournalReader;
use iodock_record::{attach, record, AttachOptions, ProgramExit, RecordError, RecordOptions, RecordOutcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, fs, thread, time::Duration};

#[path = "common/filters.rs"]
mod filters;

/// Some tests signal this process, so no tests run at the same time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = env::temp_dir().join(format!("iodock-record-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn compile(&self, name: &str, flags: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
        let program = self.0.join(name);
        let status =
            Command::new("gcc").arg(source).arg("-o").arg(&program).arg("-pthread").args(flags).status();
        assert!(status.expect("gcc runs").success());
        program
    }

    fn store(&self) -> PathBuf {
        self.0.join("run.iodock")
    }

    fn record(&self, command: &[&str]) -> Result<RecordOutcome, RecordError> {
        let mut options = RecordOptions::new(command.iter().map(Into::into).collect(), self.store());
        // This back end stores the calls themselves in the journal, including those of the dynamic linker.
        (options.force, options.backend) = (true, "ptrace".into());
        record(&options, Arc::default())
    }

    fn journal(&self) -> JournalReader {
        JournalReader::open(self.store().join("journal/main.journal")).expect("a journal")
    }

    /// Returns how each call with this name ended.
    fn ends(&self, name: &str) -> Vec<Outcome> {
        let (mut reader, mut ends) = (self.journal(), Vec::new());
        while let Some(batch) = reader.next_batch().expect("readable") {
            for record in &batch.records {
                match record {
                    Record::Call(raw) if raw.phase != Phase::Enter && raw.call.name() == name => {
                        ends.push(raw.outcome)
                    }
                    _ => {}
                }
            }
        }
        ends
    }

    /// Counts calls and errors by name.
    fn counts(&self) -> BTreeMap<String, (u64, u64)> {
        let mut counts = BTreeMap::new();
        let mut reader = self.journal();
        while let Some(batch) = reader.next_batch().expect("readable") {
            for record in &batch.records {
                if let Record::Call(raw) = record {
                    if raw.phase != Phase::Enter {
                        let count: &mut (u64, u64) = counts.entry(raw.call.name()).or_default();
                        count.0 += 1;
                        count.1 += u64::from(raw.outcome == Outcome::Failed);
                    }
                }
            }
        }
        counts
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the counts of `strace -f -c` for the calls that a recorder stops at.
fn strace_counts(command: &[&str], log: &Path) -> BTreeMap<String, (u64, u64)> {
    Command::new("strace")
        .args(["-f", "-c", "-o"])
        .arg(log)
        .args(command)
        .stdout(Stdio::null())
        .status()
        .expect("strace");
    let text = fs::read_to_string(log).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.contains("---") && !line.ends_with("total") && !line.ends_with("syscall"));
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let errors = if fields.len() == 6 { fields[4].parse().ok()? } else { 0 };
            Some((fields.last()?.to_string(), (fields.get(3)?.parse().ok()?, errors)))
        })
        .filter(|(name, _)| {
            let id = iodock_event::CallId::intern(name.as_bytes()).unwrap();
            // strace also counts mmap without a descriptor, and counts exit only in newer versions.
            id.spec().is_recorded() && name != "mmap" && !name.starts_with("exit")
        })
        .collect()
}

fn same_as_strace(place: &Place, command: &[&str]) {
    place.record(command).expect("recorded");
    let mut recorded = place.counts();
    recorded.retain(|name, _| name != "mmap" && !name.starts_with("exit"));
    assert_eq!(recorded, strace_counts(command, &place.0.join("strace.log")), "{command:?}");
}

/// Reading a file, such as the counters of a dead file system, may hang forever. This must not prevent the
/// end of a recording.
#[test]
fn counters_that_never_answer_do_not_hang_the_recorder() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let place = Place::new("silent");
    fs::create_dir_all(place.0.join("root/proc")).unwrap();
    let silent = place.0.join("root/proc/diskstats");
    assert!(Command::new("mkfifo").arg(&silent).status().expect("mkfifo runs").success());
    fs::write(place.0.join("root/proc/loadavg"), "0.25 0.18 0.12 1/80 11206\n").unwrap();
    let mut options = RecordOptions::new(["sleep", "0.5"].map(Into::into).to_vec(), place.store());
    options.backend = "ptrace".into();
    options.sampling.root = place.0.join("root");
    options.sampling.interval = Duration::from_millis(50);
    let (done, ended) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let _ = done.send(record(&options, Arc::default()));
    });
    let outcome = ended.recv_timeout(Duration::from_secs(60)).expect("it ends").expect("recorded");
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    let warned = outcome.warnings.iter().any(|warning| warning.contains("no answer from proc/diskstats"));
    assert!(warned, "{:?}", outcome.warnings);
    let mut reader = place.journal();
    while reader.next_batch().expect("readable").is_some() {}
    assert!(reader.take_samples().iter().any(|sample| sample.metric == "load_1min"));
}

#[test]
fn counts_equal_those_of_strace() {
    let _alone = alone();
    let place = Place::new("same");
    let folder = place.0.to_str().unwrap().to_string();
    for (name, flags) in [("zoo", &[][..]), ("zoo", &["-static"][..])] {
        let program = place.compile(name, flags);
        same_as_strace(&place, &[program.to_str().unwrap(), &folder]);
    }
    same_as_strace(&place, &["sh", "-c", "exec ls -l /usr > /dev/null"]);
    same_as_strace(
        &place,
        &["sh", "-c", "cat /etc/passwd | wc -l >/dev/null; ls /nothing 2>/dev/null; exit 0"],
    );
}

/// The kernel runs the program's filter after the tracer, so the tracer sees refused calls.
#[test]
fn calls_refused_by_the_programs_filter_are_recorded() {
    let _alone = alone();
    let place = Place::new("refused");
    let program = place.compile("refused", &[]);
    let program = program.to_str().unwrap();
    let outcome = place.record(&[program]).expect("recorded");
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    let strace = strace_counts(&[program], &place.0.join("strace.log"));
    let mut counts = place.counts();
    counts.retain(|name, _| name != "mmap" && !name.starts_with("exit"));
    assert_eq!(counts, strace);
    assert_eq!((counts["mkdir"], counts["fsync"]), ((3, 3), (1, 1)));
    // A signal handler answered these calls: they were not made, and did not fail.
    for name in ["pwrite64", "rmdir"] {
        assert_eq!(place.ends(name), [Outcome::NoResult], "{name}");
    }
    assert_eq!(place.ends("write"), [Outcome::Succeeded]);
}

#[test]
fn programs_may_enter_strict_mode() {
    let _alone = alone();
    let place = Place::new("strict");
    let program = place.compile("refused", &[]);
    let outcome = place.record(&[program.to_str().unwrap(), "strictly"]).expect("recorded");
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert_eq!(place.ends("write"), [Outcome::Succeeded]);
}

#[test]
fn the_exit_status_and_signal_of_the_program_are_passed_on() {
    let _alone = alone();
    let place = Place::new("ends");
    let exit = |command: &[&str]| place.record(command).map(|outcome| outcome.exit);
    assert_eq!(exit(&["true"]).unwrap(), ProgramExit::Code(0));
    assert_eq!(exit(&["sh", "-c", "exit 42"]).unwrap(), ProgramExit::Code(42));
    assert_eq!(exit(&["sh", "-c", "kill -TERM $$"]).unwrap(), ProgramExit::Signal(15));
    assert_eq!(exit(&["sh", "-c", "kill -9 $$"]).unwrap(), ProgramExit::Signal(9));
    assert_eq!(exit(&["/nowhere/nothing"]).unwrap_err().exit_status(), 127);
    assert_eq!(exit(&["no-such-program-at-all"]).unwrap_err().exit_status(), 127);
    assert_eq!(exit(&["/etc/passwd"]).unwrap_err().exit_status(), 126);
}

#[test]
fn a_script_without_an_interpreter_line_runs_in_the_shell() {
    let _alone = alone();
    let place = Place::new("text");
    let script = place.0.join("script");
    fs::write(&script, "exit $1\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let outcome = place.record(&[script.to_str().unwrap(), "9"]).unwrap();
    assert_eq!(outcome.exit, ProgramExit::Code(9));
}

#[test]
fn exec_in_a_thread_that_is_not_the_leader_is_recorded() {
    let _alone = alone();
    let place = Place::new("exec");
    let program = place.compile("threads_exec", &[]);
    for _ in 0..5 {
        let outcome = place.record(&[program.to_str().unwrap()]).unwrap();
        assert_eq!(outcome.exit, ProgramExit::Code(0));
        let mut reader = place.journal();
        let mut superseded = 0;
        while let Some(batch) = reader.next_batch().unwrap() {
            superseded += batch
                .records
                .iter()
                .filter(|record| matches!(record, Record::End(end) if end.superseded_by.is_some()))
                .count();
        }
        assert_eq!(superseded, 1);
        assert_eq!(place.counts()["execve"], (2, 0));
    }
}

#[test]
fn stops_and_signals_reach_the_program_unchanged() {
    let _alone = alone();
    let place = Place::new("stops");
    let program = place.compile("stopped", &[]);
    assert_eq!(place.record(&[program.to_str().unwrap()]).unwrap().exit, ProgramExit::Code(0));
}

#[test]
fn an_attached_process_is_left_running() {
    let _alone = alone();
    let place = Place::new("attach");
    let script = "exec 7</etc/passwd; while :; do read line <&7 || exec 7</etc/passwd; done";
    let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    let cancel = Arc::new(AtomicBool::new(false));
    let stop = cancel.clone();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(1500));
        stop.store(true, Ordering::SeqCst);
    });
    let outcome = attach(&AttachOptions::new(vec![child.id()], place.store()), cancel).unwrap();
    stopper.join().unwrap();
    assert_eq!(outcome.exit, ProgramExit::Running);
    assert!(child.try_wait().unwrap().is_none(), "it runs on");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    assert!(status.contains("TracerPid:\t0"), "{status}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(place.counts()["read"].0 > 100);
    let batch = place.journal().next_batch().unwrap().unwrap();
    let known = batch.records.iter().any(
        |record| matches!(record, Record::Descriptor(open) if open.fd == 7 && batch.text(open.target) == b"/etc/passwd"),
    );
    assert!(known, "descriptor 7 was open before");
}

#[test]
fn a_signal_to_the_recorder_reaches_the_program() {
    let _alone = alone();
    let place = Place::new("signal");
    let sender = thread::spawn(|| {
        thread::sleep(Duration::from_millis(700));
        // SAFETY: kill accesses no memory. The recording handles the signal in this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    });
    let outcome = place.record(&["sleep", "20"]).unwrap();
    sender.join().unwrap();
    assert_eq!(outcome.exit, ProgramExit::Signal(libc::SIGTERM));
    assert!(place.counts().contains_key("execve"));
}

#[test]
fn a_cancelled_recording_leaves_a_journal() {
    let _alone = alone();
    let place = Place::new("cancel");
    let cancel = Arc::new(AtomicBool::new(false));
    let stop = cancel.clone();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::SeqCst);
    });
    let command = ["sh", "-c", "trap '' TERM INT; sleep 20 & wait; sleep 20"];
    let options = RecordOptions::new(command.iter().map(Into::into).collect(), place.store());
    let outcome = record(&options, cancel).unwrap();
    stopper.join().unwrap();
    assert_eq!(outcome.exit, ProgramExit::Signal(libc::SIGKILL));
    assert!(outcome.killed >= 1);
    assert!(place.counts().contains_key("execve"));
}

#[test]
fn programs_run_in_a_container_that_refuses_faccessat2() {
    let _alone = alone();
    let place = Place::new("rights");
    let ended = thread::scope(|scope| {
        let recording = scope.spawn(|| {
            filters::refuse(libc::SYS_faccessat2, None, libc::EPERM).then(|| place.record(&["true"]))
        });
        recording.join().expect("no panic")
    });
    match ended {
        Some(recorded) => assert_eq!(recorded.expect("it runs").exit, ProgramExit::Code(0)),
        None => eprintln!("skipped: no filters of calls here"),
    }
}

#[test]
fn a_store_in_use_is_not_replaced() {
    let _alone = alone();
    let place = Place::new("busy");
    let begun = place.0.join("begun");
    let script = format!("echo > {}; sleep 1", begun.display());
    thread::scope(|scope| {
        let first = scope.spawn(|| place.record(&["sh", "-c", &script]));
        while !begun.exists() {
            thread::sleep(Duration::from_millis(10));
        }
        let error = place.record(&["true"]).expect_err("refused");
        assert!(matches!(error, RecordError::Store(_)), "{error:?}");
        assert!(
            error.to_string().ends_with("run.iodock: another recording is being written there"),
            "{error}"
        );
        first.join().expect("no panic").expect("recorded");
    });
    assert!(!place.counts().is_empty());
    place.record(&["true"]).expect("replaced");
}
