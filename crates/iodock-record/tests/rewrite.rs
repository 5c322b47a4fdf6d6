//! `--backend rewrite` against `--backend ptrace`: the same program gives the same calls, processes and
//! bytes, but for what the dynamic linker does before the recorder is there.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use iodock_event::{Batch, LossKind, Losses, Outcome, Phase, Record, RecordSource};
use iodock_journal::JournalReader;
use iodock_preload::calls::{recover, CallsSource, Ending};
use iodock_record::backends::reason::Reason;
use iodock_record::{record, ProgramExit, RecordOptions, RecordOutcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::{env, fs};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Place(PathBuf, #[allow(dead_code)] MutexGuard<'static, ()>);

impl Place {
    fn new(name: &str) -> Place {
        let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let path = env::temp_dir().join(format!("iodock-rewrite-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("temporary folder");
        Place(path, guard)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("text")
    }

    fn compile(&self, name: &str) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../iodock-preload/tests/programs");
        let program = self.0.join(name);
        let source = source.join(format!("{name}.c"));
        let status =
            Command::new("gcc").args(["-O2", "-w", "-o"]).arg(&program).arg(source).arg("-pthread").status();
        assert!(status.expect("gcc runs").success());
        program.to_str().expect("text").into()
    }

    /// One of this crate's own; `None` where that compiler is not there, or can't.
    fn compile_with(&self, compiler: &[&str], name: &str, program: &str) -> Option<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
        let program = self.0.join(program);
        let built = Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-w", "-o"])
            .arg(&program)
            .arg(source)
            .output();
        if !built.is_ok_and(|built| built.status.success()) {
            eprintln!("{} can't compile here: not looked at", compiler.join(" "));
            return None;
        }
        Some(program.to_str().expect("text").into())
    }

    /// `None` where there is no static libc.
    fn static_program(&self) -> Option<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/programs/between.c");
        let program = self.0.join("between");
        let built = Command::new("gcc").args(["-static", "-w", "-o"]).arg(&program).arg(source).status();
        if !built.expect("gcc runs").success() {
            eprintln!("no static libc here: not looked at");
            return None;
        }
        Some(program.to_str().expect("text").into())
    }

    fn record(&self, backend: &str, command: &[&str]) -> (RecordOutcome, Vec<Record>, Vec<String>) {
        self.record_more(backend, false, command)
    }

    fn record_more(
        &self,
        backend: &str,
        complete: bool,
        command: &[&str],
    ) -> (RecordOutcome, Vec<Record>, Vec<String>) {
        let store = self.0.join("run.iodock");
        let mut options = RecordOptions::new(command.iter().map(Into::into).collect(), store.clone());
        (options.force, options.backend, options.complete) = (true, backend.into(), complete);
        let mut outcome = record(&options, Arc::default()).expect("recorded");
        let mut reader = JournalReader::open(store.join("journal/main.journal")).expect("a journal");
        let mut kept = Kept::default();
        while let Some(batch) = reader.next_batch().expect("readable") {
            kept.take(&batch);
        }
        if let Ok(mut traced) = JournalReader::open(store.join("journal/main.traced")) {
            while let Some(batch) = traced.next_batch().expect("readable") {
                kept.take(&batch);
            }
            assert!(!traced.is_cut());
        }
        let calls = store.join("journal/main.calls");
        if calls.exists() {
            let mut calls = calls_of(outcome.backend, &calls);
            while let Some(batch) = calls.next_batch().expect("readable") {
                kept.take(&batch);
            }
        }
        outcome.losses.merge(&kept.losses);
        (outcome, kept.records, kept.paths)
    }
}

fn calls_of(backend: &str, path: &Path) -> Box<dyn RecordSource> {
    if backend == "bpf" {
        return Box::new(iodock_bpf::calls::CallsSource::open(path).expect("a file of calls"));
    }
    let (file, session) = recover(path).expect("a file of calls");
    assert!(session.is_none());
    let mut calls = CallsSource::open(file, None).expect("readable");
    calls.set_ending(Ending::default());
    Box::new(calls)
}

#[derive(Default)]
struct Kept {
    records: Vec<Record>,
    paths: Vec<String>,
    losses: Losses,
}

impl Kept {
    fn take(&mut self, batch: &Batch) {
        for record in &batch.records {
            let path = match record {
                Record::Call(raw) => String::from_utf8_lossy(batch.text(raw.path)).into_owned(),
                _ => String::new(),
            };
            self.paths.push(path);
        }
        self.records.extend_from_slice(&batch.records);
        self.losses.merge(&batch.losses);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Calls and errors by name, from the first call that a program's own code made.
fn counts(records: &[Record]) -> BTreeMap<String, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for record in records {
        match record {
            Record::Call(raw) if raw.phase != Phase::Enter => {
                let count: &mut (u64, u64) = counts.entry(raw.call.name()).or_default();
                count.0 += 1;
                count.1 += u64::from(raw.outcome == Outcome::Failed);
            }
            _ => {}
        }
    }
    counts
}

fn read_and_written(records: &[Record], name: &str) -> i64 {
    let calls = records.iter().filter_map(|record| match record {
        Record::Call(raw) if raw.phase != Phase::Enter && raw.call.name() == name => Some(raw.result.max(0)),
        _ => None,
    });
    calls.sum()
}

#[test]
fn the_same_calls_as_ptrace() {
    let place = Place::new("calls");
    let program = place.compile("calls");
    let (outcome, rewritten, paths) = place.record("rewrite", &[&program, place.text(), "997"]);
    assert_eq!((outcome.exit, outcome.killed, outcome.failure), (ProgramExit::Code(0), 0, None));
    assert_eq!(outcome.losses.count(LossKind::DroppedRecords), 0);
    // The program itself, /bin/true twice, a shell.
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
fn times_lie_in_the_run_and_ends_do_not_step_back() {
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

/// Forbids itself nothing, by a filter, and executes its arguments: behind a filter the library makes no calls of
/// its own, so it can't ask for a tracer.
const CONFINED: &str = "
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **arguments) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (count < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
    return execv(arguments[1], arguments + 1);
}
";

#[test]
fn a_program_that_it_does_not_reach_is_said() {
    let place = Place::new("static");
    let Some(program) = place.static_program() else { return };
    let (source, confined) = (place.0.join("confined.c"), place.0.join("confined"));
    fs::write(&source, CONFINED).expect("written");
    let built = Command::new("gcc").arg("-o").arg(&confined).arg(&source).status();
    assert!(built.expect("gcc runs").success());
    let shell = format!("cd {}; {} {program}; true", place.text(), confined.display());
    let (outcome, records, _) = place.record("rewrite", &["/bin/sh", "-c", &shell]);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 1);
    assert_eq!(counts(&records)["execve"].0, 3);
}

/// Everything of a call but its times; results that are addresses or process ids don't compare.
fn fields(raw: &iodock_event::RawCall, path: &str) -> String {
    let result = match raw.call.name().as_str() {
        "mmap" | "fork" | "vfork" | "clone" | "clone3" => 0,
        _ => raw.result,
    };
    // Where the test itself prints may be a file, which grows.
    let size = if (0..=2).contains(&raw.fd) { 0 } else { raw.stat_size };
    format!(
        "{} fd {} {} requested {} offset {} {} argument {} flags {:x} stat {} {size} result {result} {:?} {} {path}",
        raw.call.name(),
        raw.fd,
        raw.fd2,
        raw.requested,
        raw.offset,
        raw.offset2,
        raw.argument,
        raw.flags,
        raw.stat_type,
        raw.outcome,
        raw.errno.name(),
    )
}

/// The calls of the first thread from its chdir on.
fn own_calls(records: &[Record], paths: &[String]) -> Vec<String> {
    let calls = records.iter().zip(paths).filter_map(|(record, path)| match record {
        Record::Call(raw) if raw.phase != Phase::Enter => Some((raw, path)),
        _ => None,
    });
    let first = calls.clone().next().map(|(raw, _)| raw.tid);
    let own = calls.filter(|(raw, _)| Some(raw.tid) == first).map(|(raw, path)| fields(raw, path));
    own.skip_while(|line| !line.starts_with("chdir")).collect()
}

#[test]
fn every_field_is_that_of_ptrace() {
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
fn a_static_program_is_recorded_from_outside_and_that_is_said() {
    let place = Place::new("static");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../iodock-preload/tests/programs/calls.c");
    let program = place.0.join("static");
    let mut build = Command::new("gcc");
    build.args(["-static", "-w", "-o"]).arg(&program).arg(source).arg("-pthread");
    if !build.status().expect("gcc runs").success() {
        eprintln!("no static libc here: not looked at");
        return;
    }
    let script = place.0.join("script");
    fs::write(&script, format!("#!{} {}\n", program.display(), place.text())).expect("written");
    let rights = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&script, rights).expect("made executable");
    for command in
        [vec![program.to_str().expect("text"), place.text(), "97"], vec![script.to_str().expect("text")]]
    {
        let (outcome, records, _) = place.record("rewrite", &command);
        assert_eq!(outcome.reason, Reason::Static);
        assert!(matches!(outcome.backend, "ptrace" | "bpf"), "{}", outcome.backend);
        assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
        assert!(records.iter().filter(|record| matches!(record, Record::Call(_))).count() > 2);
    }
}

#[test]
fn a_static_program_below_a_dynamic_one_is_traced() {
    let place = Place::new("below");
    let Some(program) = place.static_program() else { return };
    // Dynamic, static, and again: below the static one too, and in its place.
    let work = format!("cat {0} > /dev/null; {0} cat /dev/null; {0} {0} sh -c true; exec {0} true", program);
    let script = format!("cd {}; {work}", place.text());
    let command = ["sh", "-c", script.as_str()];
    let (by_ptrace, traced, _) = place.record("ptrace", &command);
    let (by_rewrite, seen, _) = place.record("rewrite", &command);
    let (by_both, all, _) = place.record_more("rewrite", true, &command);
    for outcome in [&by_ptrace, &by_rewrite, &by_both] {
        assert_eq!(outcome.exit, ProgramExit::Code(0));
        assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
    }
    assert_eq!(by_both.losses.count(LossKind::BeforeLoad), 0);
    // sh and cat; what static programs start is traced up to its library.
    assert_eq!(by_rewrite.losses.count(LossKind::BeforeLoad), 2);
    let (traced, seen) = (counts(&traced), counts(&seen));
    assert_eq!(counts(&all), traced);
    for name in ["write", "execve", "fork", "clone", "vfork", "exit_group", "dup2"] {
        assert_eq!(seen.get(name), traced.get(name), "{name}");
    }
}

/// The dynamic linker of such a program can't load the library (of 32 bit), or its libc would not bear it (musl).
#[test]
fn a_program_of_another_dynamic_linker_is_traced_and_told_nothing() {
    let place = Place::new("foreign");
    let linker = place.0.join("ld-other.so");
    std::os::unix::fs::symlink("/lib64/ld-linux-x86-64.so.2", &linker).expect("linked");
    let other = format!("-Wl,--dynamic-linker={}", linker.display());
    for compiler in [&["gcc", other.as_str()][..], &["gcc", "-m32"], &["musl-gcc"]] {
        let Some(program) = place.compile_with(compiler, "told", "told") else { continue };
        let out = place.0.join("out");
        let script = format!("{program} {}; echo $?", out.display());
        let command = ["sh", "-c", script.as_str()];
        let (by_ptrace, traced, _) = place.record("ptrace", &command);
        let (by_rewrite, seen, _) = place.record("rewrite", &command);
        assert_eq!(fs::read_to_string(&out).expect("written"), "not told 0\n", "{compiler:?}");
        assert_eq!((by_ptrace.exit, by_rewrite.exit), (ProgramExit::Code(0), ProgramExit::Code(0)));
        assert_eq!(by_rewrite.losses.count(LossKind::UnreachedPrograms), 0, "{compiler:?}");
        assert_eq!(counts(&seen).get("write"), counts(&traced).get("write"), "{compiler:?}");
    }
}

#[test]
fn who_asks_what_a_program_would_load_is_not_told_of_the_library() {
    let place = Place::new("listed");
    let out = place.0.join("out");
    let script = format!("ldd /bin/cat > {0} && LD_TRACE_LOADED_OBJECTS=1 cat >> {0}", out.display());
    let (outcome, _, _) = place.record("rewrite", &["sh", "-c", script.as_str()]);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    let listed = fs::read_to_string(&out).expect("written");
    assert!(listed.matches("libc.so.6 =>").count() == 2 && !listed.contains("iodock"), "{listed}");
}

#[test]
fn an_exec_takes_as_many_arguments_as_without_us() {
    let place = Place::new("arguments");
    let program = place.compile_with(&["gcc", "-O1"], "told", "told").expect("gcc");
    let (alone, recorded) = (place.0.join("alone"), place.0.join("recorded"));
    assert!(Command::new(&program).arg(&alone).arg("count").status().expect("it runs").success());
    let (outcome, _, _) = place.record("rewrite", &[&program, recorded.to_str().expect("text"), "count"]);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    let number =
        |path| fs::read_to_string(path).expect("written").rsplit_once(' ').map(|(_, n)| n.to_string());
    assert_eq!(number(&recorded), number(&alone));
    // What goes without our variables is traced.
    assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
}

#[test]
fn behind_a_sandbox_of_files_programs_are_traced() {
    let place = Place::new("landlock");
    let sandbox = place.compile_with(&["gcc", "-O1"], "sandbox_of_files", "sandbox").expect("gcc");
    let said = place.0.join("said");
    let script = format!("exec {sandbox} sh -c 'cat /etc/hostname' 2> {}", said.display());
    let (outcome, _, paths) = place.record("rewrite", &["sh", "-c", script.as_str()]);
    if outcome.exit == ProgramExit::Code(77) {
        eprintln!("no Landlock here: not looked at");
        return;
    }
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert_eq!(fs::read_to_string(&said).expect("there"), "", "the dynamic linker complains of nothing");
    assert!(paths.iter().any(|path| path == "/etc/hostname"));
    assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
}

#[test]
fn valgrind_finds_no_fault_of_ours() {
    let place = Place::new("valgrind");
    let command = ["valgrind", "-q", "--error-exitcode=9", "cat", "/etc/hostname"];
    if !Command::new(command[0]).args(&command[1..]).output().is_ok_and(|done| done.status.success()) {
        eprintln!("no valgrind here: not looked at");
        return;
    }
    let (outcome, _, paths) = place.record("rewrite", &command);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert!(paths.iter().any(|path| path == "/etc/hostname"));
}

/// As kernels before 4.14 do, on this thread, in its threads and programs.
fn refuse_to_wipe_memory_on_fork() -> bool {
    let number = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
    let advice = std::mem::offset_of!(libc::seccomp_data, args) as u32 + 2 * 8;
    let statement = |code: u32, to: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: to, k };
    let load = |at: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, at);
    let is_equal = |to: u8, k: u32| statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, to, k);
    let give = |k: u32| statement(libc::BPF_RET | libc::BPF_K, 0, k);
    let mut filter = [
        load(number),
        is_equal(3, libc::SYS_madvise as u32),
        load(advice),
        is_equal(1, libc::MADV_WIPEONFORK as u32),
        give(libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        give(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a filter that lives as long as the call; it is this thread's alone.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    }
}

#[test]
fn a_first_program_in_which_the_library_can_not_begin_is_a_loss() {
    let place = Place::new("not-begun");
    let unreached = std::thread::scope(|scope| {
        let recording = scope.spawn(|| {
            refuse_to_wipe_memory_on_fork().then(|| place.record("rewrite", &["cat", "/etc/hostname"]).0)
        });
        recording.join().expect("no panic").map(|outcome| outcome.losses.count(LossKind::UnreachedPrograms))
    });
    match unreached {
        Some(unreached) => assert!(unreached > 0),
        None => eprintln!("no filters of calls here: not looked at"),
    }
    let (outcome, _, _) = place.record("rewrite", &["cat", "/etc/hostname"]);
    assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
}

#[test]
fn an_exec_that_fails_leaves_the_program_to_its_library() {
    let place = Place::new("fails");
    let Some(program) = place.static_program() else { return };
    // A static program that nobody may execute: it is asked for, and then refused.
    let rights = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
    fs::set_permissions(&program, rights).expect("not executable");
    let script = format!("exec {program} || cat /dev/null");
    let command = ["bash", "-c", "-O", "execfail", script.as_str()];
    let (outcome, records, _) = place.record("rewrite", &command);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert_eq!(counts(&records)["execve"], (3, 1));
    assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
}

#[test]
fn a_process_with_an_id_of_its_own_name_space_is_recorded_to_its_end() {
    let place = Place::new("namespace");
    let file = |name: &str| place.0.join(name).to_str().expect("text").to_string();
    let (one, two) = (file("one"), file("two"));
    // Quiet for long enough that the recorder might take it for gone.
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

/// Before 6.14 a limit of ids is the whole machine's.
fn name_spaces_limit_their_ids() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers: Vec<u32> = release.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    let own = ["--fork", "--pid", "--mount-proc", "test", "-w", "/proc/sys/kernel/pid_max"];
    numbers >= vec![6, 14] && Command::new("unshare").args(own).status().is_ok_and(|status| status.success())
}

#[test]
fn a_process_whose_id_was_anothers_has_its_own_beginning_and_end() {
    let place = Place::new("ids");
    if !name_spaces_limit_their_ids() {
        eprintln!("skipped: ids can't be limited here: that takes root and Linux 6.14");
        return;
    }
    // Ids are given again from 300 on: here after twenty processes, which takes less than a process has time to end.
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
    // The recording's first process, and that of the name space, whose parent has seen another id.
    assert_eq!(orphans, 2);
}

#[test]
fn cancelling_kills_what_is_born_meanwhile_too() {
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
    // It would not have come back while one of them sleeps.
    assert_eq!(outcome.exit, ProgramExit::Signal(libc::SIGKILL));
    assert!(outcome.killed > 1);
}
