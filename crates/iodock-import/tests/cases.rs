//! Compares every case in `fixtures/cases` with its truth, from the log to events and tables: calls, files,
//! other kinds, sizes, seconds, offsets, processes.

mod truth;

use std::path::{Path, PathBuf};
use truth::{read_json, Run};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases")
}

fn log_in(folder: &Path) -> PathBuf {
    let names = ["log", "log.xz"].map(|name| folder.join(name));
    names.into_iter().find(|path| path.exists()).expect("a case has a log")
}

fn folders(kind: &str) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(fixtures().join(kind)).expect("fixtures are there");
    let mut paths: Vec<PathBuf> = listing.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}

#[test]
fn the_strace_cases_give_their_known_results() {
    let mut differences = Vec::new();
    for folder in folders("strace") {
        let truth = read_json(&folder.join("truth.json"));
        let cwd = truth["initial_cwd"].as_str();
        let run = Run::of(&log_in(&folder), cwd);
        let found = run.compare(&truth, "total_ns");
        differences.extend(found.into_iter().map(|line| format!("{}: {line}", folder.display())));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_truss_cases_give_their_known_results() {
    let mut differences = Vec::new();
    for log in folders("truss").into_iter().filter(|path| path.to_string_lossy().contains(".truss")) {
        let name = log.to_string_lossy().replace(".truss", ".truth.json").replace(".json.xz", ".json");
        let truth = read_json(Path::new(&name));
        let run = Run::of(&log, truth["initial_cwd"].as_str());
        let found = run.compare(&truth, "sys_cpu");
        differences.extend(found.into_iter().map(|line| format!("{}: {line}", log.display())));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
