//! Threads and children of every kind, and what is executed: recorded, and as they are alone.
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
fn a_thousand_threads_with_small_stacks() {
    let (session, ..) = same("threads");
    assert_eq!(counts(&session)["pread64"], 10_000);
    assert_eq!(counts(&session)["exit"], 1000);
}

#[test]
fn a_thousand_threads_at_once() {
    let (session, ..) = same("threads-at-once");
    assert_eq!(counts(&session)["pread64"], 20_000);
    assert_eq!(session.counter(header::LOST_STREAMS).expect("counter"), 0);
}

#[test]
fn exec_in_a_thread() {
    let (session, ..) = same("exec-in-thread");
    assert_eq!(programs(&session), 2);
}

#[test]
fn spawned_programs_and_their_environment() {
    let (session, ..) = same("spawns");
    assert_eq!(counts(&session)["execve"], 5);
    // Though they get an empty environment.
    assert_eq!(programs(&session), 6);
}

#[test]
fn programs_with_other_libraries_to_preload() {
    let (session, ..) = same("others");
    assert_eq!(programs(&session), 4);
}

#[test]
fn programs_that_can_not_open_the_library() {
    let (session, ..) = same("out-of-reach");
    assert_eq!((programs(&session), counts(&session)["execve"]), (1, 3));
}

#[test]
fn every_kind_of_clone() {
    same("clones");
}

#[test]
fn threads_made_by_hand() {
    for what in ["raw-threads", "raw-threads-with-storage"] {
        let (session, ..) = same(what);
        assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1, "{what}");
    }
}

#[test]
fn a_child_of_vfork_in_another_name_space_is_recorded() {
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
fn many_short_processes() {
    let (session, ..) = same("bomb");
    assert_eq!(counts(&session)["exit_group"], 501);
}
