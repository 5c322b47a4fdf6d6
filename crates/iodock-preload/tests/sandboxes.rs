//! Tests that programs in sandboxes, which kill the process for calls of a recorder or refuse these calls,
//! behave as they do without a recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, counts, programs, Counts, Folder};
use iodock_preload::format::header;
use iodock_preload::session::Session;
use std::process::{Command, Output};

fn same(what: &str) -> (Session, Folder, Output) {
    common::same("sandboxes", &[what])
}

/// Checks that no call is recorded after the program has set its filter.
fn left_alone(what: &str) -> Output {
    let (session, _folder, output) = same(what);
    assert_eq!(counts(&session).get("pread64"), None, "{what}");
    assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1, "{what}");
    output
}

#[test]
fn a_program_in_a_sandbox_is_not_recorded() {
    left_alone("sandbox");
}

#[test]
fn a_program_in_a_sandbox_without_a_clock_is_not_recorded() {
    left_alone("strict");
    assert_eq!(left_alone("without-clock").status.code(), Some(7));
}

/// The filter kills the process for every call that the program does not make itself.
#[test]
fn in_a_sandbox_only_the_programs_own_calls_are_made() {
    assert_eq!(left_alone("without-others").status.code(), Some(7));
}

#[test]
fn a_refused_filter_ends_the_recording_too() {
    left_alone("might-work");
}

#[test]
fn queries_about_sandboxes_do_not_end_the_recording() {
    let (session, ..) = same("probes");
    assert_eq!(counts(&session)["pread64"], 300);
    assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 0);
}

#[test]
fn programs_executed_in_a_sandbox_run_unchanged() {
    let (session, ..) = same("sandboxed-exec");
    assert_eq!(programs(&session), 1);
}

/// Returns the recorded calls of a program that makes 300 preads, in two threads and a child, in a container
/// that refuses call number `call` with EPERM.
fn recorded_where_refused(call: u32) -> (Session, Counts) {
    let folder = Folder::new();
    let session = common::session(&folder);
    let (program, library) = (compiled("sandboxes", &folder), session.library());
    let alone = Command::new(&program).arg("probes").output().expect("the program starts");
    let recorded = Command::new(&program)
        .args(["refused", &call.to_string(), "1"])
        .args([library.as_os_str(), session.path().as_os_str(), program.as_os_str(), "probes".as_ref()])
        .output()
        .expect("the program starts");
    assert_eq!((recorded.status, recorded.stdout), (alone.status, alone.stdout), "call {call} is refused");
    let counts = counts(&session);
    (session, counts)
}

#[test]
fn no_call_is_lost_if_a_container_refuses_optional_calls() {
    for (name, call) in [
        ("mremap", 25),
        ("getcwd", 79),
        ("getppid", 110),
        ("munlock", 150),
        ("gettid", 186),
        ("process_vm_readv", 310),
    ] {
        let (session, counts) = recorded_where_refused(call);
        assert_eq!(counts["pread64"], 300, "{name} is refused");
        assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 0, "{name} is refused");
    }
}

#[test]
fn unrecorded_calls_are_counted_if_a_container_leaves_no_memory() {
    let (session, counts) = recorded_where_refused(28);
    assert_eq!(counts.get("pread64"), None);
    assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1, "madvise is refused");
}
