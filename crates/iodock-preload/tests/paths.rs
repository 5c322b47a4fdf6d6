//! Tests that recorded paths are the same as those that the program passed to the kernel.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, session, Folder};
use iodock_preload::format::header::NEXT_CHUNK;
use iodock_preload::reader::Entry;
use iodock_preload::session::used;

fn of(entry: Entry) -> Vec<Vec<u8>> {
    let Entry::Call(call) = entry else { return Vec::new() };
    let asked = ["access", "faccessat", "faccessat2", "readlink", "linkat", "mkdir", "chdir", "unlink"]
        .contains(&call.call.name().as_str());
    let paths = [call.path, call.path2];
    if asked {
        paths.into_iter().flatten().collect()
    } else {
        Vec::new()
    }
}

#[test]
fn paths_of_every_length_and_alignment_are_recorded() {
    let folder = Folder::new();
    let program = compiled("paths", &folder);
    for seed in ["1", "20261124", "88172645463325252"] {
        let place = Folder::new();
        let session = session(&place);
        let output = run(&session, &program, &[seed]);
        assert!(output.status.success(), "{output:?}");
        let mut told: Vec<&[u8]> = output.stdout.split(|&byte| byte == b'\n').collect();
        told.pop();
        let recorded: Vec<Vec<u8>> = entries(&session).into_iter().flat_map(of).collect();
        assert_eq!(recorded.len(), told.len());
        for (number, (recorded, told)) in recorded.iter().zip(told).enumerate() {
            assert_eq!(recorded, told, "path {number} of seed {seed}");
        }
    }
}

/// Both paths belong to the same set of a thread's cache of paths.
#[test]
fn alternating_paths_are_stored_once() {
    const ROUNDS: u64 = 10_000;
    let (folder, place) = (Folder::new(), Folder::new());
    let program = compiled("few_paths", &folder);
    let session = session(&place);
    assert!(run(&session, &program, &[&ROUNDS.to_string()]).status.success());
    let chunks = session.counter(NEXT_CHUNK).expect("counter");
    let bytes: u64 = (0..chunks).map(|index| u64::from(used(&session.head(index).expect("head")))).sum();
    let per_call = bytes as f64 / (2 * ROUNDS) as f64;
    assert!(per_call < 12.0, "{per_call} bytes a call");
}
