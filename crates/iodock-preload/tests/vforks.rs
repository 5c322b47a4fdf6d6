//! Children that use their parent's memory until they execute or end: each call is attributed to the process
//! that made it.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, session, Folder};
use iodock_preload::format::{chunk, header};
use iodock_preload::reader::{Entry, Part};
use std::collections::BTreeMap;

/// Of each process: its reads, and the children that it has made.
type Made = BTreeMap<u32, (u64, u64)>;

struct Recorded {
    told: Made,
    made: Made,
    /// Reads that are lost, and counted as such.
    lost: u64,
    /// Processes in which recording stopped.
    stopped: u64,
    /// For calls that make children: the calling process and the result.
    forks: Vec<(u32, i64)>,
    /// Reads that were left.
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

/// A filter, also one of a child in its parent's memory, ends the recording of both.
#[test]
fn vfork_children_may_set_filters() {
    for what in ["sandbox", "childs_sandbox"] {
        assert_eq!(recorded(what).stopped, 1, "{what}");
    }
}

/// The end of a child in a sandbox is not that of its parent, whose chunk it writes into.
#[test]
fn a_child_that_ends_in_a_sandbox_does_not_end_the_recording() {
    let folder = Folder::new();
    let session = session(&folder);
    run(&session, &compiled("vforks", &folder), &["sandbox_killed"]);
    let mut bytes = Vec::new();
    session.chunk(0, &mut bytes).expect("a chunk");
    assert_eq!(bytes[chunk::OVER..chunk::OVER + 4], [0; 4]);
}

/// They no longer count as such that may be a child's parent.
#[test]
fn children_after_abandoned_calls_are_recorded() {
    let recorded = recorded("crowded");
    assert_eq!(recorded.made, recorded.told);
    assert_eq!((recorded.forks.len(), recorded.stopped), (13, 0));
    // The twelve reads that were left: one is noted, the others, deeper in the stack, look like a handler's.
    assert_eq!(recorded.no_return as u64 + recorded.lost, 12);
    assert!(recorded.no_return > 0);
}

/// More than can be kept apart: recording stops, which is counted, and nothing is another's.
#[test]
fn many_generations_of_vfork_children_are_recorded() {
    let recorded = recorded("deep");
    for (pid, counts) in &recorded.made {
        assert!(recorded.told.get(pid).is_some_and(|told| counts <= told), "{pid}: {counts:?}");
    }
    assert_eq!(recorded.stopped, 1);
}

/// What is begun and left may be lost, and is counted; nothing is another's.
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
