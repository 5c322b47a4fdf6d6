//! Tests recorded stacks of calls: they are right, and programs whose stacks are hard to walk behave as
//! without a recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, same_with, session_with, Folder};
use iodock_event::stacks::{frames, Frame};
use iodock_preload::format::header;
use iodock_preload::reader::{CallRecord, Entry};
use iodock_preload::session::{Session, Stacks};
use std::process::Command;

/// Returns the program's own reads, which have 4 bytes.
fn reads(session: &Session) -> Vec<CallRecord> {
    let calls = entries(session).into_iter().filter_map(|entry| match entry {
        Entry::Call(call) if call.call.name() == "pread64" && call.requested == 4 => Some(*call),
        _ => None,
    });
    calls.collect()
}

/// Returns the number of recorded frames of each read.
fn depths(what: &str) -> Vec<usize> {
    let (session, _folder, output) = same_with("stacks", &[what], Stacks::All);
    let bytes: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    let reads = reads(&session);
    assert_eq!(reads.len() as u64, bytes / 4, "{what}");
    assert_eq!(session.counter(header::LOST_CALLS).expect("counter"), 0, "{what}");
    reads.iter().map(|read| read.stack.as_ref().map_or(0, |stack| frames(stack).count())).collect()
}

#[test]
fn an_ordinary_call_has_its_complete_stack() {
    let depths = depths("plain");
    // The frames are those of pread, read_some, main, two functions of libc, and _start.
    assert!(depths.iter().all(|&depth| depth >= 5), "{depths:?}");
}

#[test]
fn the_base_register_may_contain_any_value() {
    // The frames are those of pread, read_some and with_base. If %rbp is invalid, the stack ends there.
    assert!(depths("base").iter().all(|&depth| depth >= 3));
}

#[test]
fn stacks_of_coroutines_and_handlers_are_unknown() {
    assert!(depths("context").iter().all(|&depth| depth == 0));
    let unplaced = |what| {
        let (session, ..) = same_with("stacks", &[what], Stacks::All);
        session.counter(header::UNPLACED).expect("counter")
    };
    assert_eq!((unplaced("context"), unplaced("plain")), (1, 0));
    // In the second half the handler runs on the thread's own stack, which is known up to the frame that the
    // kernel pushes for a signal.
    let depths = depths("handler");
    let (other, own) = depths.split_at(depths.len() / 2);
    assert!(other.iter().all(|&depth| depth == 0) && own.iter().all(|&depth| depth >= 3), "{depths:?}");
}

#[test]
fn deep_stacks_may_be_abandoned_by_longjmp() {
    assert!(depths("long").iter().all(|&depth| depth >= 5));
}

#[test]
fn threads_may_run_on_stacks_of_the_program() {
    let depths = depths("mapped");
    assert!(depths.contains(&0) && depths.iter().any(|&depth| depth >= 4));
}

#[test]
fn a_call_site_is_in_the_programs_own_code() {
    let (session, ..) = same_with("stacks", &["plain"], Stacks::Sites);
    let reads = reads(&session);
    let found = reads.iter().all(|read| {
        let frames: Vec<_> = frames(read.stack.as_ref().expect("known")).collect();
        let own = |frame: &Frame<'_>| frame.module.ends_with(b"/stacks");
        let installed = frames.iter().take_while(|frame| !own(frame)).count();
        let callers = &frames[installed..];
        (1..=2).contains(&callers.len()) && callers.iter().all(own)
    });
    assert!(found && !reads.is_empty());
}

/// Programs of other tests that are hard to record also behave as without a recorder if stacks are recorded.
#[test]
fn hostile_programs_run_as_without_stacks() {
    for (name, what) in [
        ("hostile", "jumps"),
        ("hostile", "handlers-elsewhere"),
        ("hostile", "close-all"),
        ("hostile", "little-memory"),
        ("children", "threads"),
        ("children", "spawns"),
    ] {
        same_with(name, &[what], Stacks::All);
    }
}

/// The kernel chooses other addresses for each run.
#[test]
#[ignore = "part of `make test-all`: a storm of 200 runs"]
fn hostile_stacks_are_read_many_times_without_harm() {
    let folder = Folder::new();
    let program = compiled("stacks", &folder);
    let session = session_with(&folder, Stacks::All);
    for what in ["base", "context", "handler", "long", "mapped"] {
        let alone = Command::new(&program).arg(what).output().expect("the program starts");
        for _ in 0..40 {
            let recorded = run(&session, &program, &[what]);
            assert_eq!((recorded.stdout, recorded.status), (alone.stdout.clone(), alone.status), "{what}");
        }
    }
}
