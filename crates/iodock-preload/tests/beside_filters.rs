//! Tests programs in which a thread or child sets a seccomp filter that forbids calls of the recorder: the
//! other threads and children behave as they do without a recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{programs, Folder};
use iodock_preload::format::header;
use iodock_preload::session::Session;
use std::process::Output;

/// Checks that the program succeeds with and without the recorder, and returns the recorded run.
fn same(what: &str) -> (Session, Folder, Output) {
    let all = common::same("beside_filters", &[what]);
    assert!(all.2.status.success(), "{what}: {:?}", all.2);
    all
}

#[test]
fn threads_that_execute_in_a_sandbox_have_separate_environments() {
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
fn a_filter_in_a_vfork_child_ends_the_recording_of_its_parent() {
    let (session, ..) = same("children");
    assert_eq!(programs(&session), 1);
    assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1);
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn vfork_children_may_set_their_own_filters() {
    for _ in 0..10 {
        same("renaming-children");
    }
}

#[test]
fn a_filter_for_all_threads_waits_for_each_busy_thread() {
    for _ in 0..3 {
        same("many");
    }
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn threads_may_set_their_first_filters_at_the_same_time() {
    for _ in 0..6 {
        same("at-once");
    }
}

#[test]
fn programs_may_execute_others_while_filters_are_refused() {
    same("refused");
}

#[test]
fn a_child_forked_without_libc_in_a_sandbox_runs() {
    same("by-hand");
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn children_forked_while_a_filter_is_set_for_all_threads_have_it() {
    same("forks");
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn an_exec_during_a_filter_for_all_threads_runs_without_the_library() {
    for _ in 0..4 {
        same("exec");
    }
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn threads_that_stop_recording_make_no_own_call_after_a_filter() {
    same("many-filters");
}

#[test]
fn a_child_with_its_own_thread_storage_shares_its_parents_sandbox() {
    same("own-storage");
}

#[test]
fn a_signal_handler_may_forbid_the_clock_during_a_call() {
    for what in ["clock", "strict"] {
        let (.., output) = same(what);
        assert_eq!(output.stdout, b"interrupted\n", "{what}");
    }
}
