//! Tests that every call that strace sees after the library is loaded is recorded, and no other.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, counts, session, Counts, Folder};
use iodock_event::CallId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The progress of a program in loading the library, as strace shows it.
#[derive(Clone, Copy, PartialEq)]
enum Loading {
    Begun,
    /// The library has queried the working directory, and will close the session's file as its last step.
    Closes,
    Done,
}

/// Returns the number of calls by name in an `strace -f` log, for each process from the time when the library
/// was loaded.
fn traced(log: &str) -> Counts {
    let mut loading: BTreeMap<&str, Loading> = BTreeMap::new();
    let mut made: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let mut asking = BTreeSet::new();
    for (index, line) in log.lines().enumerate() {
        let (pid, rest) = line.split_once(' ').expect("pid first");
        let rest = rest.trim_start();
        let loading = loading.entry(pid).or_insert(if index > 0 { Loading::Done } else { Loading::Begun });
        let (name, resumed) = match rest.strip_prefix("<... ") {
            Some(resumed) => (resumed.split(' ').next().unwrap_or_default(), true),
            None => (rest.split('(').next().unwrap_or_default(), false),
        };
        if asks_for_count(rest) {
            asking.insert(pid);
        }
        if asking.contains(pid) {
            if name == "close" {
                asking.remove(pid);
            }
            continue;
        }
        let recorded = CallId::intern(name.as_bytes()).is_some_and(|id| id.spec().is_recorded());
        let anonymous = name == "mmap" && rest.contains(", -1, ");
        let made = made.entry(pid).or_default();
        let own = is_name_of_library(made, rest) || is_kind_of_slow_open(made, rest);
        if *loading == Loading::Done
            && recorded
            && !resumed
            && !anonymous
            && !own
            && !rest.starts_with(['+', '-'])
        {
            if name == "execve" {
                take_look_away(made, rest);
            }
            made.push((name, rest));
        }
        *loading = match (name, *loading) {
            ("getcwd", Loading::Begun) => Loading::Closes,
            ("close", Loading::Closes) if !resumed => Loading::Done,
            ("execve", _) if rest.ends_with("= 0") => Loading::Begun,
            (_, before) => before,
        };
    }
    let mut counts = Counts::new();
    made.into_values().flatten().for_each(|(name, _)| *counts.entry(name.to_string()).or_default() += 1);
    counts
}

/// Whether the call opens a file in /proc with the kernel's count of calls, which the library then reads and
/// closes.
fn asks_for_count(rest: &str) -> bool {
    ["open(\"/proc/self/io\"", "open(\"/proc/thread-self/io\""].iter().any(|open| rest.starts_with(open))
}

/// Whether this is the call by which the library queries the file name of code that was just mapped.
fn is_name_of_library(made: &[(&str, &str)], rest: &str) -> bool {
    let is_code = |map: &str| map.contains("PROT_EXEC") && map.contains("MAP_DENYWRITE");
    rest.starts_with("readlink(\"/proc/self/fd/")
        && made.last().is_some_and(|(name, map)| *name == "mmap" && is_code(map))
}

/// Whether this is the call by which the library queries the type of a file after a slow open. If strace
/// shows another thread's call during the open, the open's result is on a separate line.
fn is_kind_of_slow_open(made: &[(&str, &str)], rest: &str) -> bool {
    let asked = rest.strip_prefix("lseek(").and_then(|rest| rest.split_once(", 0, SEEK_CUR"));
    let opened = made.last().filter(|(name, _)| *name == "openat").map(|(_, open)| open);
    asked.zip(opened).is_some_and(|((fd, _), open)| {
        open.ends_with("<unfinished ...>") || open.rsplit_once(" = ").is_some_and(|(_, result)| fd == result)
    })
}

/// Calls by which the library examines a program and checks what that program can load.
const LOOK: [&str; 7] = ["newfstatat", "openat", "pread64", "fstat", "fgetxattr", "close", "open"];

/// Removes the calls by which the library examines a program before an exec. The process makes no other calls
/// in between.
fn take_look_away(made: &mut Vec<(&str, &str)>, exec: &str) {
    let path = exec.split('"').nth(1).unwrap_or_default();
    let looks = format!("newfstatat(AT_FDCWD, \"{path}\", ");
    let look = made.iter().rposition(|(_, rest)| rest.starts_with(&looks));
    for (name, rest) in made.drain(look.expect("it looks at the program")..) {
        assert!(LOOK.contains(&name), "{rest}");
    }
}

fn compare(program: &Path, arguments: &[&str]) {
    let folder = Folder::new();
    let (session, log) = (session(&folder), folder.0.join("log"));
    let preload = format!("LD_PRELOAD={}", session.library().display());
    let path = format!("IODOCK_SESSION={}", session.path().display());
    let output = Command::new("strace")
        .args(["-f", "-qq", "-E", &preload, "-E", &path, "-o"])
        .arg(&log)
        .arg(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let Ok(output) = output else {
        eprintln!("no strace here: not compared");
        return;
    };
    assert!(output.status.success(), "{} {:?}: {output:?}", program.display(), arguments);
    let mut seen = traced(&std::fs::read_to_string(&log).expect("log"));
    let mut recorded = counts(&session);
    // This call is the library's own; it marks the library's start.
    seen.remove("getcwd");
    recorded.remove("getcwd");
    assert!(!seen.is_empty());
    assert_eq!(seen, recorded, "{} {arguments:?}", program.display());
}

fn compare_if_there(name: &str, arguments: &[&str]) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.exists());
    match found {
        Some(program) => compare(&program, arguments),
        None => eprintln!("no {name} here: not compared"),
    }
}

#[test]
fn calls_threads_forks_and_execs_are_recorded_as_by_ptrace() {
    let folder = Folder::new();
    let program = compiled("calls", &folder);
    compare(&program, &[folder.0.to_str().expect("text"), "97"]);
}

#[test]
fn python_is_recorded_as_by_ptrace() {
    compare_if_there("python3.11", &["-c", "import json, subprocess; subprocess.run(['echo', 'hi'])"]);
}

#[test]
fn git_is_recorded_as_by_ptrace() {
    compare_if_there("git", &["log", "-3", "--stat"]);
}

#[test]
fn grep_is_recorded_as_by_ptrace() {
    compare_if_there("grep", &["-r", "iodock", "src"]);
}

#[test]
fn a_shell_is_recorded_as_by_ptrace() {
    compare_if_there(
        "bash",
        &["-c", "for i in 1 2 3; do (echo $i | cat) > /dev/null; done; ls | sort | wc -l"],
    );
}

#[test]
fn sqlite_is_recorded_as_by_ptrace() {
    let statement = "create table t(a); insert into t values(1),(2); select sum(a) from t;";
    let folder = Folder::new();
    let database = folder.0.join("database");
    compare_if_there("sqlite3", &[database.to_str().expect("text"), statement]);
}
