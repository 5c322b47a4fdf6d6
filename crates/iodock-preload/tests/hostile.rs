//! Tests that programs which are hard to record print the same and end in the same way with and without the
//! recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, counts, entries, run, Folder};
use iodock_preload::format::header;
use iodock_preload::reader::Entry;
use iodock_preload::session::{self, Session};
use std::process::{Command, Output};

fn same(what: &str) -> (Session, Output, Folder) {
    let (session, folder, output) = common::same("hostile", &[what]);
    (session, output, folder)
}

fn all_of_them(what: &str) {
    let (session, output, _folder) = same(what);
    let made: u64 = String::from_utf8_lossy(&output.stderr).trim().parse().expect("a number of calls");
    assert_eq!(counts(&session)["pread64"], made);
    assert_eq!(session.counter(header::LOST_CALLS).expect("counter"), 0);
}

#[test]
fn signal_handlers_may_do_io_at_any_moment() {
    all_of_them("handlers");
}

#[test]
fn signal_handlers_may_have_their_own_stack() {
    all_of_them("handlers-elsewhere");
}

#[test]
fn signal_handlers_may_never_return() {
    let (session, ..) = same("jumps");
    assert!(counts(&session)["pread64"] > 1000);
}

#[test]
fn threads_cancelled_in_a_call_run_their_cleanup_handlers() {
    same("cancellation");
}

#[test]
fn programs_may_close_all_descriptors() {
    let (session, ..) = same("close-all");
    assert_eq!(counts(&session)["read"], 2);
}

#[test]
fn bad_pointers_and_fault_handlers_behave_as_without_recording() {
    same("faults");
}

#[test]
fn errors_before_a_path_is_read_stay_the_same() {
    same("bad-paths");
}

#[test]
fn a_full_address_space_does_not_harm_the_program() {
    let (session, ..) = same("little-memory");
    assert_eq!(counts(&session)["pread64"], 100_000);
}

/// Checks that all 50,000 reads of a case are recorded, and that the session's file takes less than 4 MiB.
fn reads_and_little_memory(what: &str) {
    let (session, ..) = same(what);
    assert_eq!(counts(&session)["pread64"], 50_000);
    let blocks = std::os::unix::fs::MetadataExt::blocks(&session.file.metadata().expect("metadata"));
    assert!(blocks * 512 < 4 << 20, "{blocks} blocks");
}

#[test]
fn programs_may_lock_all_their_memory() {
    reads_and_little_memory("locked");
}

#[test]
fn programs_may_lock_as_much_memory_as_their_limit() {
    reads_and_little_memory("locked-within");
}

#[test]
fn programs_may_give_up_rights_root_and_descriptors() {
    reads_and_little_memory("given-up");
}

#[test]
fn a_small_address_space_limit_does_not_harm_the_program() {
    let folder = Folder::new();
    let program = compiled("calls", &folder);
    let session = common::session(&folder);
    let shell = format!("ulimit -v 100000; {} {} 50000 | tail -1", program.display(), folder.0.display());
    let output = run(&session, "/bin/bash".as_ref(), &["-c", &shell]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{output:?}");
    assert_eq!(counts(&session)["pread64"], 50_000 + 3 * 101 + 3);
}

#[test]
fn programs_with_their_own_system_calls_are_named() {
    let folder = Folder::new();
    let program = compiled("own_calls", &folder);
    let session = common::session(&folder);
    assert!(run(&session, &program, &[]).status.success());
    assert!(run(&session, "/bin/cat".as_ref(), &["/proc/version"]).status.success());
    assert_eq!(session::with_calls_of_their_own(&session).expect("read"), [program]);
}

#[test]
fn libraries_loaded_later_are_examined_too() {
    let folder = Folder::new();
    let program = compiled("loads", &folder);
    let library = folder.0.join("own.so");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/own_calls.c");
    let made = Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(made.expect("a C compiler").success());
    let session = common::session(&folder);
    let own = || session::with_calls_of_their_own(&session).expect("read");
    assert!(run(&session, &program, &["libm.so.6", "libm.so.6"]).status.success());
    assert!(own().is_empty());
    assert!(run(&session, &program, &[&library.to_string_lossy()]).status.success());
    assert_eq!(own(), [library]);
    // dlmopen loads libm into a new namespace, with a second copy of libc. The copy's call sites are not
    // patched, so libc counts as a file with system calls of its own.
    assert!(run(&session, &program, &["apart", "libm.so.6"]).status.success());
    assert_eq!(own().len(), 2, "{:?}", own());
}

#[test]
fn libraries_loaded_by_a_path_relative_to_the_program_are_examined() {
    let folder = Folder::new();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/own_calls.c");
    let (program, library) = (folder.0.join("program"), folder.0.join("libown.so"));
    std::fs::write(folder.0.join("main.c"), "int main(void) { return 0; }").expect("written");
    let made = |arguments: &[&std::ffi::OsStr]| {
        assert!(Command::new("cc")
            .args(["-O2", "-w"])
            .args(arguments)
            .status()
            .expect("a C compiler")
            .success());
    };
    let shared = ["-shared", "-fPIC", "-Wl,-soname,./libown.so", "-o"].map(std::ffi::OsStr::new);
    made(&[&shared[..], &[library.as_ref(), source.as_ref()]].concat());
    let main = folder.0.join("main.c");
    made(&["-Wl,--no-as-needed".as_ref(), "-o".as_ref(), program.as_ref(), main.as_ref(), library.as_ref()]);
    let session = common::session(&folder);
    let recorded = Command::new(&program)
        .current_dir(&folder.0)
        .env("LD_PRELOAD", session.library())
        .env("IODOCK_SESSION", session.path())
        .status();
    assert!(recorded.expect("the program starts").success());
    let found = session::with_calls_of_their_own(&session).expect("read");
    assert_eq!(found.iter().map(|path| path.canonicalize().expect("there")).collect::<Vec<_>>(), [library]);
}

#[test]
fn an_overlong_argument_is_truncated() {
    let folder = Folder::new();
    let session = common::session(&folder);
    let long = "x".repeat(9000);
    assert!(run(&session, "/bin/true".as_ref(), &[&long, "second"]).status.success());
    let command = entries(&session).into_iter().find_map(|entry| match entry {
        Entry::Process(process) => Some(process.command),
        _ => None,
    });
    let command = command.expect("the process");
    assert!(
        command.len() == 8191 && command.starts_with(b"/bin/true\0xxx") && command.ends_with(b"xxx"),
        "{}",
        command.len()
    );
}

#[test]
fn a_signal_handler_may_interrupt_an_exec_with_another_exec() {
    let folder = Folder::new();
    let program = compiled("interrupted_exec", &folder);
    let script = folder.0.join("script");
    std::fs::write(&script, "#!/bin/sh\n").expect("written, not to be executed");
    let session = common::session(&folder);
    let output = run(&session, &program, &[&script.to_string_lossy()]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"0 wrong\n"[..]));
    assert!(counts(&session)["execve"] > 500);
}

#[test]
fn a_killed_program_loses_at_most_its_last_call() {
    let (session, ..) = same("killed");
    assert_eq!(counts(&session)["pread64"], 50_001);
}

#[test]
fn libraries_may_be_loaded_and_unloaded() {
    same("libraries");
}
