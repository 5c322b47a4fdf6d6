//! Tests that threads and children of every kind, and the programs that they execute, are recorded and behave
//! as they do without a recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{counts, entries, programs, Folder};
use iodock_preload::format::header;
use iodock_preload::reader::Entry;
use iodock_preload::session::Session;
use std::process::Output;

fn same(what: &str) -> (Session, Folder, Output) {
    common::same("children", &[what])
}

#[test]
fn a_thousand_threads_with_small_stacks_are_recorded() {
    let (session, ..) = same("threads");
    assert_eq!(counts(&session)["pread64"], 10_000);
    assert_eq!(counts(&session)["exit"], 1000);
}

#[test]
fn a_thousand_threads_at_once_are_recorded() {
    let (session, ..) = same("threads-at-once");
    assert_eq!(counts(&session)["pread64"], 20_000);
    assert_eq!(session.counter(header::LOST_STREAMS).expect("counter"), 0);
}

#[test]
fn exec_in_a_thread_is_recorded() {
    let (session, ..) = same("exec-in-thread");
    assert_eq!(programs(&session), 2);
}

#[test]
fn spawned_programs_have_the_environment_they_were_given() {
    let (session, ..) = same("spawns");
    assert_eq!(counts(&session)["execve"], 5);
    // The programs are recorded although they get an empty environment.
    assert_eq!(programs(&session), 6);
}

#[test]
fn programs_with_other_preloaded_libraries_are_recorded() {
    let (session, ..) = same("others");
    assert_eq!(programs(&session), 4);
}

#[test]
fn programs_that_cannot_open_the_library_run_unchanged() {
    let (session, ..) = same("out-of-reach");
    assert_eq!((programs(&session), counts(&session)["execve"]), (1, 3));
}

#[test]
fn every_kind_of_clone_is_recorded() {
    same("clones");
}

#[test]
fn threads_created_without_libc_are_recorded() {
    for what in ["raw-threads", "raw-threads-with-storage"] {
        let (session, ..) = same(what);
        assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1, "{what}");
    }
}

#[test]
fn a_vfork_child_in_another_pid_namespace_is_recorded() {
    let (session, _folder, output) = same("name-space");
    if output.stdout == b"may not\n" {
        eprintln!("skipped: only root may make a name space of process ids");
        return;
    }
    let told = entries(&session).into_iter().filter_map(|entry| match entry {
        Entry::Call(call) if call.call.name() == "execve" => call.path,
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [&b"/nowhere/true"[..], b"/bin/true"]);
    assert_eq!(programs(&session), 2);
}

#[test]
fn hundreds_of_short_processes_are_recorded() {
    let (session, ..) = same("bomb");
    assert_eq!(counts(&session)["exit_group"], 501);
}
