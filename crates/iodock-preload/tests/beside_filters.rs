//! Threads and children beside others that forbid themselves what a recorder does: each is recorded as what it is.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{counts, entries, programs, Folder};
use iodock_preload::format::header;
use iodock_preload::reader::Entry;
use iodock_preload::session::Session;
use std::collections::BTreeSet;
use std::process::Output;

/// It ends well both ways.
fn same(what: &str) -> (Session, Folder, Output) {
    let all = common::same("beside_filters", &[what]);
    assert!(all.2.status.success(), "{what}: {:?}", all.2);
    all
}

#[test]
fn threads_that_execute_in_a_sandbox_have_each_an_environment_of_its_own() {
    let (session, ..) = same("spawners");
    assert_eq!(counts(&session)["execve"], 12 * 30);
    assert_eq!(programs(&session), 1);
}

#[test]
fn an_environment_in_a_sandbox_may_be_large() {
    let (session, ..) = same("variables");
    assert_eq!((counts(&session)["execve"], programs(&session)), (3, 1));
}

#[test]
fn sandboxes_of_overlapping_children_in_our_memory_end_with_them() {
    let (session, ..) = same("children");
    // true in the sandbox; then a shell and cat, each with the library in it.
    assert_eq!(counts(&session)["execve"], 30 + 40);
    assert_eq!(programs(&session), 1 + 40);
    let renamed = entries(&session).into_iter().filter(|entry| match entry {
        Entry::Call(call) => call.call.name() == "rename" && call.path.is_some() && call.path2.is_some(),
        _ => false,
    });
    assert_eq!(renamed.count(), 20);
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn what_children_in_our_memory_do_in_their_sandboxes_is_theirs() {
    for _ in 0..10 {
        let (session, ..) = same("renaming-children");
        let renames: Vec<(u32, u32)> = entries(&session)
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Call(call) if call.call.name() == "rename" => Some((call.pid, call.tid)),
                _ => None,
            })
            .collect();
        assert_eq!(renames.len(), 60);
        assert!(renames.iter().all(|(pid, tid)| pid == tid), "no thread's");
        assert_eq!(renames.iter().collect::<BTreeSet<_>>().len(), 60);
    }
}

#[test]
fn a_filter_for_many_busy_threads_waits_for_each() {
    for _ in 0..3 {
        same("many");
    }
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn threads_that_set_their_first_filters_at_once_lose_nothing() {
    for _ in 0..6 {
        let (session, ..) = same("at-once");
        assert_eq!(counts(&session)["pread64"], 320_000);
    }
}

#[test]
fn what_is_made_by_fork_beside_a_filter_that_is_refused_is_recorded() {
    let (session, ..) = same("refused");
    assert_eq!(programs(&session), 41);
}

#[test]
fn calls_of_a_child_that_does_not_know_its_number_are_not_its_parents() {
    let (session, ..) = same("by-hand");
    assert_eq!(counts(&session)["pread64"], 100);
    assert!(session.counter(header::LOST_CALLS).expect("counter") >= 100);
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn children_of_forks_as_a_filter_is_put_on_all_threads_are_in_it() {
    same("forks");
}

#[test]
fn a_child_with_storage_of_its_own_is_in_its_makers_sandbox() {
    same("own-storage");
}

#[test]
fn a_handler_may_forbid_the_clock_while_a_call_waits() {
    for what in ["clock", "strict"] {
        let (.., output) = same(what);
        assert_eq!(output.stdout, b"interrupted\n", "{what}");
    }
}
