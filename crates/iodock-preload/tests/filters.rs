//! Programs that forbid themselves the recorder's own calls go on as they do alone.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{same, Folder};
use iodock_preload::format::header;
use iodock_preload::session::Session;
use std::process::Output;

/// Often enough to meet what happens now and then.
const RUNS: usize = 12;

/// It ends well both ways.
fn unharmed(arguments: &[&str]) -> (Session, Folder, Output) {
    let all = same("filters", arguments);
    assert!(all.2.status.success(), "{arguments:?}: {:?}", all.2);
    all
}

#[test]
#[ignore = "part of `make test-all`: a race that is tried often"]
fn a_filter_for_all_threads_waits_for_what_they_are_about_to_call() {
    for what in ["readers", "renamers"] {
        for _ in 0..RUNS {
            unharmed(&[what]);
        }
    }
}

#[test]
fn filters_that_are_accepted_next_to_refused_ones() {
    for _ in 0..RUNS {
        let (session, ..) = unharmed(&["refused"]);
        assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 1);
    }
}

#[test]
fn what_is_executed_in_a_sandbox_is_left_alone_where_nothing_is_recorded_any_more() {
    let closed = header::CLOSED.to_string();
    for what in [&["stopped"][..], &["gone", &closed], &["gone-clock", &closed]] {
        unharmed(what);
    }
}

#[test]
fn a_sandbox_leaves_a_limited_address_space_to_the_program() {
    let (.., output) = unharmed(&["narrow"]);
    assert_eq!(output.stdout, b"0\n");
}

#[test]
fn strict_mode_that_is_refused() {
    for _ in 0..RUNS {
        unharmed(&["strict"]);
    }
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn filters_of_children_in_their_parents_memory() {
    for _ in 0..RUNS {
        let (.., output) = unharmed(&["twins"]);
        assert_eq!(output.stdout, b"0\n");
    }
}
