//! Tests children that use their parent's memory until they execute a program or end: each recorded call
//! belongs to the process that made it.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, session, Folder};
use iodock_preload::format::{chunk, header};
use iodock_preload::reader::{Entry, Part};
use std::collections::BTreeMap;

/// For each process the number of its reads, and of children that it has created.
type Made = BTreeMap<u32, (u64, u64)>;

struct Recorded {
    told: Made,
    made: Made,
    /// Number of reads that are counted as lost.
    lost: u64,
    /// Number of processes in which recording stopped.
    stopped: u64,
    /// The calling process and the result of each call that created a child.
    forks: Vec<(u32, i64)>,
    /// Number of reads that are recorded as abandoned.
    no_return: usize,
}

fn recorded(what: &str) -> Recorded {
    let folder = Folder::new();
    let session = session(&folder);
    let output = run(&session, &compiled("vforks", &folder), &[what]);
    assert!(output.status.success(), "{what}: {output:?}");
    let mut told = Made::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        told.insert(numbers[0] as u32, (numbers[1], numbers[2]));
    }
    let (mut made, mut forks, mut no_return) = (Made::new(), Vec::new(), 0);
    for entry in entries(&session) {
        let Entry::Call(call) = entry else { continue };
        let counts = made.entry(call.pid).or_default();
        match &*call.call.name() {
            "pread64" if call.part == Part::Whole => counts.0 += 1,
            "read" if call.part == Part::NoReturn => no_return += 1,
            "vfork" | "clone" if call.result > 0 => {
                counts.1 += 1;
                forks.push((call.pid, call.result));
            }
            _ => {}
        }
    }
    let counter = |at| session.counter(at).expect("a counter");
    let (lost, stopped) = (counter(header::LOST_CALLS), counter(header::STOPPED_PROCESSES));
    Recorded { told, made, lost, stopped, forks, no_return }
}

fn all_of_it(what: &str) -> Recorded {
    let recorded = recorded(what);
    assert_eq!(recorded.made, recorded.told, "{what}");
    assert_eq!(recorded.lost, 0, "{what}");
    for (_, child) in &recorded.forks {
        assert!(recorded.told.contains_key(&(*child as u32)), "{what}: {child}");
    }
    recorded
}

#[test]
fn vfork_children_may_end_like_a_thread() {
    let recorded = all_of_it("exits");
    assert_eq!(recorded.forks.len(), 40);
}

#[test]
fn vfork_children_may_have_children() {
    let recorded = all_of_it("grandchildren");
    assert_eq!(recorded.forks.len(), 40);
}

#[test]
fn signal_handlers_may_run_as_the_parent_of_a_vfork_continues() {
    all_of_it("handlers");
}

#[test]
fn handlers_that_never_return_may_run_as_the_parent_continues() {
    all_of_it("jumps");
}

#[test]
fn signal_handlers_may_run_after_each_instruction() {
    all_of_it("steps");
}

#[test]
#[ignore = "part of `make test-all`: takes each instruction"]
fn a_signal_handler_may_run_after_any_single_instruction() {
    all_of_it("interrupted");
}

/// If a parent or its child by vfork sets a filter, the recording of both ends.
#[test]
fn vfork_children_may_set_filters() {
    for what in ["sandbox", "childs_sandbox"] {
        assert_eq!(recorded(what).stopped, 1, "{what}");
    }
}

/// A child by vfork that ends in a sandbox must not mark its parent's chunk, to which it writes, as over.
#[test]
fn a_child_that_ends_in_a_sandbox_does_not_end_the_recording() {
    let folder = Folder::new();
    let session = session(&folder);
    run(&session, &compiled("vforks", &folder), &["sandbox_killed"]);
    let mut bytes = Vec::new();
    session.chunk(0, &mut bytes).expect("a chunk");
    assert_eq!(bytes[chunk::OVER..chunk::OVER + 4], [0; 4]);
}

/// Abandoned calls are not taken for the vfork that created a child.
#[test]
fn children_after_abandoned_calls_are_recorded() {
    let recorded = recorded("crowded");
    assert_eq!(recorded.made, recorded.told);
    assert_eq!((recorded.forks.len(), recorded.stopped), (13, 0));
    // Twelve reads were abandoned. One is recorded without a result; the others are deeper in the stack, like
    // calls of a handler, and are counted as lost.
    assert_eq!(recorded.no_return as u64 + recorded.lost, 12);
    assert!(recorded.no_return > 0);
}

/// The recorder can't distinguish this number of generations. It must stop recording, count that, and assign
/// no call to another process.
#[test]
fn many_generations_of_vfork_children_are_recorded() {
    let recorded = recorded("deep");
    for (pid, counts) in &recorded.made {
        assert!(recorded.told.get(pid).is_some_and(|told| counts <= told), "{pid}: {counts:?}");
    }
    assert_eq!(recorded.stopped, 1);
}

/// An abandoned call may be lost if it is counted as lost. No call may be assigned to another process.
#[test]
#[ignore = "part of `make test-all`: takes each instruction"]
fn calls_may_be_abandoned_after_each_instruction() {
    let recorded = recorded("leaves");
    let mut missing = 0;
    for (pid, (reads, _)) in &recorded.made {
        let told = recorded.told.get(pid).map_or(0, |counts| counts.0);
        assert!(*reads <= told, "{pid}: {reads} of {told}");
        missing += told - reads;
    }
    assert!(missing <= recorded.lost, "{missing} are missing, {} lost", recorded.lost);
}
