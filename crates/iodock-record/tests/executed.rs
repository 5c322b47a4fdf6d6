//! Tests `--backend rewrite` with programs that the library does not reach, or that must not get its
//! variables.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::filters::refuse;
use common::{counts, Place};
use iodock_event::{LossKind, Record};
use iodock_record::backends::reason::Reason;
use iodock_record::ProgramExit;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Program that installs a filter which forbids nothing, and then executes its arguments. After that it is
/// not recorded.
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
fn programs_executed_under_a_filter_are_reported_as_not_recorded() {
    let place = Place::new("static");
    let Some(program) = place.static_program() else { return };
    let (source, confined) = (place.0.join("confined.c"), place.0.join("confined"));
    fs::write(&source, CONFINED).expect("written");
    let built = Command::new("gcc").arg("-o").arg(&confined).arg(&source).status();
    assert!(built.expect("gcc runs").success());
    let shell = format!("cd {}; {} {program}; true", place.text(), confined.display());
    let (outcome, records, _) = place.record("rewrite", &["/bin/sh", "-c", &shell]);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert_eq!(outcome.losses.count(LossKind::StoppedProcesses), 1);
    assert_eq!(counts(&records)["execve"].0, 2);
}

#[test]
fn a_static_program_is_traced_and_reported() {
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
fn a_static_child_of_a_dynamic_program_is_traced() {
    let place = Place::new("below");
    let Some(program) = place.static_program() else { return };
    // The commands are dynamic and static programs, also programs that a static one starts or becomes.
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
    // These are sh and cat. Programs that static ones start are traced until their library is loaded.
    assert_eq!(by_rewrite.losses.count(LossKind::BeforeLoad), 2);
    let (traced, seen) = (counts(&traced), counts(&seen));
    assert_eq!(counts(&all), traced);
    for name in ["write", "execve", "fork", "clone", "vfork", "exit_group", "dup2"] {
        assert_eq!(seen.get(name), traced.get(name), "{name}");
    }
}

/// The dynamic linker of such a program can't load the library (32 bit), or its libc is incompatible (musl).
#[test]
fn a_program_with_another_dynamic_linker_is_traced_without_the_recorders_variables() {
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

/// Spack and Nix, for example, install dynamic linkers in deep folders.
#[test]
fn a_dynamic_linker_is_recognised_by_its_name_at_any_path() {
    let place = Place::new("deep");
    let folder = place.0.join("x".repeat(200)).join("y".repeat(100));
    fs::create_dir_all(&folder).expect("made");
    let linker = folder.join("ld-linux-x86-64.so.2");
    std::os::unix::fs::symlink("/lib64/ld-linux-x86-64.so.2", &linker).expect("linked");
    let deep = format!("-Wl,--dynamic-linker={}", linker.display());
    let program = place.compile_with(&["gcc", &deep], "told", "told").expect("gcc");
    let out = place.0.join("out");
    let (outcome, ..) = place.record("rewrite", &["env", "-i", &program, out.to_str().expect("text")]);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert_eq!(fs::read_to_string(&out).expect("written"), "told 0\n");
}

#[test]
fn a_static_program_executed_without_free_descriptors_is_traced() {
    let place = Place::new("full");
    let Some(program) = place.static_program() else { return };
    let script = format!("ulimit -n 6; exec 3<&1 4<&1 5<&1; exec {program}");
    let command = ["sh", "-c", script.as_str()];
    let (by_ptrace, traced, _) = place.record("ptrace", &command);
    let (by_rewrite, seen, _) = place.record("rewrite", &command);
    assert_eq!(by_rewrite.exit, by_ptrace.exit);
    assert_eq!(by_rewrite.losses.count(LossKind::UnreachedPrograms), 0);
    assert_eq!(counts(&seen).get("write"), counts(&traced).get("write"));
    assert!(counts(&seen).contains_key("write"));
}

#[test]
fn programs_in_a_chroot_are_traced_without_proc() {
    let place = Place::new("chroot");
    let Some(program) = place.static_program() else { return };
    let inside = Path::new("/").join(Path::new(&program).file_name().expect("a name"));
    let command = ["unshare", "-r", "chroot", place.text(), inside.to_str().expect("text")];
    if !Command::new(command[0]).args(&command[1..]).output().is_ok_and(|done| done.status.success()) {
        eprintln!("no chroot for this user here: not looked at");
        return;
    }
    let (by_ptrace, traced, _) = place.record("ptrace", &command);
    let (by_rewrite, seen, _) = place.record("rewrite", &command);
    for outcome in [&by_ptrace, &by_rewrite] {
        assert_eq!(outcome.exit, ProgramExit::Code(0));
    }
    assert!(counts(&traced)["write"].0 >= 2);
    if by_rewrite.losses.count(LossKind::UnreachedPrograms) > 0 {
        eprintln!("a kernel that names no name spaces without /proc: counted");
        return;
    }
    assert_eq!(counts(&seen)["write"], counts(&traced)["write"]);
}

#[test]
fn ldd_does_not_list_the_recorders_library() {
    let place = Place::new("listed");
    let out = place.0.join("out");
    let script = format!("ldd /bin/cat > {0} && LD_TRACE_LOADED_OBJECTS=1 cat >> {0}", out.display());
    let (outcome, _, _) = place.record("rewrite", &["sh", "-c", script.as_str()]);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    let listed = fs::read_to_string(&out).expect("written");
    assert!(listed.matches("libc.so.6 =>").count() == 2 && !listed.contains("iodock"), "{listed}");
}

/// All calls are recorded, including those of programs without the recorder's variables.
#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn an_exec_accepts_as_many_arguments_as_without_recording() {
    let place = Place::new("arguments");
    let told = place.compile_with(&["gcc", "-O1"], "told", "told").expect("gcc");
    let source = place.0.join("writes.c");
    fs::write(&source, "#include <unistd.h>\nint main(void) { return write(1, \"\", 0) != 0; }\n")
        .expect("written");
    for kind in ["-no-pie", "-static"] {
        let writes = place.0.join(format!("writes{kind}"));
        let built = Command::new("gcc").args([kind, "-o"]).arg(&writes).arg(&source).status();
        if !built.expect("gcc runs").success() {
            eprintln!("no static libc here: not looked at");
            continue;
        }
        let (file, writes) = (place.0.join("number"), writes.to_str().expect("text"));
        let command = [&*told, file.to_str().expect("text"), writes];
        let number = || {
            let text = fs::read_to_string(&file).expect("written");
            text.rsplit_once(' ').expect("a number").1.to_string()
        };
        let alone = Command::new(command[0]).args(&command[1..]).status();
        assert!(alone.expect("it runs").success());
        let without = number();
        let (_, traced, _) = place.record("ptrace", &command);
        let traced = counts(&traced);
        for complete in [false, true] {
            let (outcome, records, _) = place.record_more("rewrite", complete, &command);
            assert_eq!(outcome.exit, ProgramExit::Code(0));
            assert_eq!(number(), without);
            assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
            let recorded = counts(&records);
            assert!(traced["execve"].1 > 3 && traced["write"].0 > 5);
            for name in ["execve", "write"] {
                assert_eq!(recorded[name], traced[name], "{kind} {name}, complete: {complete}");
            }
        }
    }
}

#[test]
fn programs_in_a_landlock_sandbox_are_traced() {
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
#[ignore = "part of `make test-all`: valgrind"]
fn valgrind_finds_no_fault_in_the_library() {
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

/// Makes the call fail as on kernels before Linux 4.14.
fn refuse_to_wipe_memory_on_fork() -> bool {
    refuse(libc::SYS_madvise, Some((2, libc::MADV_WIPEONFORK as u32)), libc::EINVAL)
}

#[test]
fn a_first_program_that_cannot_load_the_library_is_a_loss() {
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
fn after_a_failed_exec_the_library_continues_recording() {
    let place = Place::new("fails");
    let Some(program) = place.static_program() else { return };
    // The static program may not be executed. The thread requests tracing, and then its exec fails.
    let rights = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
    fs::set_permissions(&program, rights).expect("not executable");
    let script = format!("exec {program} || cat /dev/null");
    let command = ["bash", "-c", "-O", "execfail", script.as_str()];
    let (outcome, records, _) = place.record("rewrite", &command);
    assert_eq!(outcome.exit, ProgramExit::Code(0));
    assert_eq!(counts(&records)["execve"], (3, 1));
    assert_eq!(outcome.losses.count(LossKind::UnreachedPrograms), 0);
}
