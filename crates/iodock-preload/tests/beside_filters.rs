//! Threads and children beside others that forbid themselves what a recorder does go on as they do alone.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{programs, Folder};
use iodock_preload::format::header;
use iodock_preload::session::Session;
use std::process::Output;

/// It ends well both ways.
fn same(what: &str) -> (Session, Folder, Output) {
    let all = common::same("beside_filters", &[what]);
    assert!(all.2.status.success(), "{what}: {:?}", all.2);
    all
}

#[test]
fn threads_that_execute_in_a_sandbox_have_each_an_environment_of_its_own() {
    for what in ["spawners", "large-spawners"] {
        let (session, ..) = same(what);
        assert_eq!(programs(&session), 1, "{what}");
    }
}

#[test]
fn an_environment_in_a_sandbox_may_be_large() {
    let (session, ..) = same("variables");
    assert_eq!(programs(&session), 1);
}

#[test]
fn filters_of_children_in_our_memory_end_the_recording_of_all() {
    let (session, ..) = same("children");
    assert_eq!(programs(&session), 1);
    assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1);
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn children_in_our_memory_with_filters_of_their_own() {
    for _ in 0..10 {
        same("renaming-children");
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
fn threads_that_set_their_first_filters_at_once() {
    for _ in 0..6 {
        same("at-once");
    }
}

#[test]
fn programs_executed_while_filters_are_refused() {
    same("refused");
}

#[test]
fn a_child_by_a_fork_past_libc_in_a_sandbox() {
    same("by-hand");
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn children_of_forks_as_a_filter_is_put_on_all_threads_are_in_it() {
    same("forks");
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn an_exec_as_a_filter_is_put_on_all_threads_is_not_in_it_with_our_library() {
    for _ in 0..4 {
        same("exec");
    }
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn threads_that_stop_recording_at_once_make_no_call_behind_a_filter() {
    same("many-filters");
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
