//! Tests recorded Python frames, and that programs whose frames are hard to read run as without a recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{entries, run, session_with, Folder};
use iodock_event::stacks::frames;
use iodock_preload::reader::Entry;
use iodock_preload::session::Stacks;
use std::path::{Path, PathBuf};
use std::process::Command;

const CASES: [&str; 7] = ["collected", "deep", "forks", "exits", "signals", "called_back", "mapped"];

/// Returns the interpreter behind `python3`, and those in the variable `IODOCK_TEST_PYTHONS`, separated by
/// colons.
fn interpreters() -> Vec<PathBuf> {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let found =
        asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default();
    let named = std::env::var("IODOCK_TEST_PYTHONS").unwrap_or_default();
    let all = std::iter::once(found.as_str()).chain(named.split(':')).filter(|path| !path.is_empty());
    all.map(PathBuf::from).collect()
}

fn source() -> String {
    format!("{}/tests/programs/hostile.py", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the cases a number of times with each interpreter, and compares the results.
fn same_in_runs(stacks: Stacks, runs: u32) {
    for python in interpreters() {
        for case in CASES {
            let folder = Folder::new();
            let session = session_with(&folder, stacks);
            let file = folder.0.join("file").display().to_string();
            let source = source();
            let arguments = ["-B", "-W", "ignore", source.as_str(), case, file.as_str()];
            let alone = Command::new(&python).args(arguments).output().expect("the program starts");
            assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
            for number in 0..runs {
                let recorded = run(&session, &python, &arguments);
                let said = String::from_utf8_lossy(&recorded.stderr);
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                assert_eq!(
                    (text(&recorded.stdout), recorded.status),
                    (text(&alone.stdout), alone.status),
                    "{python:?} {case}, run {number}: {said}"
                );
            }
        }
    }
}

#[test]
fn hostile_python_programs_run_as_without_recording() {
    same_in_runs(Stacks::Sites, 1);
    same_in_runs(Stacks::All, 1);
}

#[test]
fn python_lines_are_recorded_in_threads_created_by_c() {
    for python in interpreters() {
        let folder = Folder::new();
        let session = session_with(&folder, Stacks::Sites);
        let file = folder.0.join("file").display().to_string();
        run(&session, &python, &["-B", &source(), "called_back", &file]);
        let calls = entries(&session).into_iter().filter_map(|entry| match entry {
            Entry::Call(call) if call.call.name() == "pwrite64" => Some(*call),
            _ => None,
        });
        let innermost = calls.map(|call| {
            let stack = call.stack.expect("known");
            let frame = frames(&stack)
                .find(|frame| Path::new(&*String::from_utf8_lossy(frame.file)).ends_with("hostile.py"));
            String::from_utf8_lossy(frame.expect("a line").function).into_owned()
        });
        let functions: Vec<String> = innermost.collect();
        assert_eq!(functions.len(), 50);
        assert!(
            functions.iter().all(|function| function == "called_back.<locals>.<lambda>"),
            "{functions:?}"
        );
    }
}

/// The kernel chooses other addresses for each run.
#[test]
#[ignore = "part of `make test-all`: a storm of 210 runs with each interpreter"]
fn hostile_python_programs_run_unchanged_many_times() {
    same_in_runs(Stacks::Sites, 15);
    same_in_runs(Stacks::All, 15);
}
