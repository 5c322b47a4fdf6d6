//! Tests that programs whose seccomp filter forbids the recorder's own calls behave as they do without a
//! recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{same, Folder};
use iodock_preload::format::header;
use iodock_preload::session::Session;
use std::process::Output;

/// Number of runs, which is large enough for rare interleavings of threads.
const RUNS: usize = 12;

/// Checks that the program succeeds with and without the recorder, and returns the recorded run.
fn unharmed(arguments: &[&str]) -> (Session, Folder, Output) {
    let all = same("filters", arguments);
    assert!(all.2.status.success(), "{arguments:?}: {:?}", all.2);
    all
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn a_filter_for_all_threads_waits_for_calls_about_to_begin() {
    for what in ["readers", "renamers"] {
        for _ in 0..RUNS {
            unharmed(&[what]);
        }
    }
}

#[test]
fn accepted_and_refused_filters_may_be_set_together() {
    for _ in 0..RUNS {
        let (session, ..) = unharmed(&["refused"]);
        assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1);
    }
}

#[test]
fn programs_executed_after_recording_stopped_are_not_changed() {
    let closed = header::CLOSED.to_string();
    for what in [&["stopped"][..], &["gone", &closed], &["gone-clock", &closed]] {
        unharmed(what);
    }
}

#[test]
fn in_a_sandbox_a_limited_address_space_is_left_to_the_program() {
    let (.., output) = unharmed(&["narrow"]);
    assert_eq!(output.stdout, b"0\n");
}

#[test]
fn a_refused_strict_mode_does_not_end_the_recording() {
    for _ in 0..RUNS {
        unharmed(&["strict"]);
    }
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn vfork_children_may_set_filters() {
    for _ in 0..RUNS {
        let (.., output) = unharmed(&["twins"]);
        assert_eq!(output.stdout, b"0\n");
    }
}
