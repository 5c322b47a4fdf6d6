//! Tests that programs which remove the recorder's mappings behave as they do without a recorder, and that
//! processes in which recording stops are counted.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod common;

use common::{counts, same};
use iodock_preload::format::header;

fn taken(arguments: &[&str]) -> (u64, u64) {
    let (session, _folder, output) = same("takes_maps", arguments);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let stopped = session.counter(header::STOPPED_PROCESSES).expect("a counter");
    (counts(&session).get("pread64").copied().unwrap_or(0), stopped)
}

#[test]
fn changes_of_maps_outside_the_recorders_memory_lose_no_call() {
    let all = ["munmap", "syscall", "none", "read-only", "dontfork", "dontneed", "remove", "wipe"];
    for how in all {
        assert_eq!(taken(&[how]), (3000, 0), "{how}");
    }
    for how in ["munmap", "read-only", "dontfork", "dontneed"] {
        assert_eq!(taken(&[how, "private"]), (3000, 0), "{how}, private ones too");
    }
}

#[test]
fn replacing_the_recorders_memory_stops_the_recording() {
    for how in ["over", "move", "shrink", "move-over"] {
        let (reads, stopped) = taken(&[how]);
        assert!(reads <= 1000 && stopped > 0, "{how}: {reads} {stopped}");
    }
}

#[test]
fn recorded_threads_survive_a_replaced_map() {
    for _ in 0..20 {
        let (_, stopped) = taken(&["over-threads"]);
        assert!(stopped > 0);
    }
}
