//! Compares logs of the installed strace with the table that the same strace prints (`-C`). Passes with a
//! note if strace is not installed or must not trace.

mod support;

use iodock_event::LossKind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{bytes_of, read_file, small_chunks, Tally};

/// A program with unusual file names, threads in children of a shell, failures, pipes and signals.
const PROGRAM: &str = r#"
cd "$1"; mkdir -p 'd > e, f'; cd 'd > e, f'
printf 'abc' > 'a) = 3 <0.1>'; printf 'x' > "$(printf 'new\nline\\\377 <unfinished ...>')"
cat ./* /nonexistent 2> /dev/null | wc -c > n; (sleep 0.01 & wait); cp n m; mv m o; ln -s o l; ls -la > /dev/null
dd if=/dev/zero of=z bs=4096 count=20 2> /dev/null; rm z; sh -c 'kill -9 $$'; find . | sort > s; true
"#;

const OPTIONS: &[&str] = &[
    "-f",
    "-f -t",
    "-f -tt -T",
    "-f -ttt -T",
    "-f -r",
    "-f -r -T -ttt",
    "-f -tt -T -y",
    "-f -ttt -T -yy",
    "-f -tt -T -v",
    "-f -tt -T -x",
    "-f -tt -T -xx",
    "-f -tt -T -xx -y -s 4",
    "-f -tt -T -s 0",
    "-f -tt -T -s 5000 -v -yy",
    "-f -n -tt",
    "-f -i -T",
    "-f -n -i -ttt -T",
    "-f -Y -ttt -T",
    "-f -tt -T -Z",
    "-f -tt -T -z",
    "-f --absolute-timestamps=format:time,precision:ns -T",
    "-f --absolute-timestamps=format:unix,precision:s --syscall-times=ns",
    "-f --relative-timestamps=ms --syscall-times=ms",
    "-f --absolute-timestamps=precision:ms --syscall-times=s",
    "-f --decode-fds=all -ttt -T",
    "-f --decode-pids=comm,pidns -tt -T",
    "-f -X raw -tt -T",
    "-f -X verbose -tt -T",
    "-tt -T",
];

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("iodock-strace-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn strace(options: &str, log: Option<&Path>, folder: &Path) -> Option<std::process::Output> {
    let mut command = Command::new("strace");
    command.args(options.split(' '));
    if let Some(log) = log {
        command.arg("-C").arg("-o").arg(log);
    }
    command.args(["sh", "-c", PROGRAM, "sh"]).arg(folder).stdin(Stdio::null());
    let output = command.output().ok()?;
    output.status.success().then_some(output)
}

/// Returns the calls and errors by name from the table at the end of a log.
fn table(log: &[u8]) -> BTreeMap<String, (u64, u64)> {
    let text = String::from_utf8_lossy(log);
    let start = text.rfind("% time").expect("a table");
    let mut calls = BTreeMap::new();
    for line in text[start..].lines().skip(2).take_while(|line| !line.starts_with("---")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let errors = if words.len() == 6 { words[4].parse().unwrap() } else { 0 };
        calls.insert(words[words.len() - 1].to_string(), (words[3].parse().unwrap(), errors));
    }
    calls
}

/// Returns the number of calls that returned, because strace counts a call when it returns.
fn returned(tally: &Tally) -> BTreeMap<String, (u64, u64)> {
    let calls = tally.calls.iter().filter(|(_, call)| call.count > call.noresult);
    calls.map(|(name, call)| (name.clone(), (call.count - call.noresult, call.errors))).collect()
}

#[test]
#[ignore = "part of `make test-all`: strace with 29 sets of options"]
fn counts_equal_those_of_strace() {
    for (index, options) in OPTIONS.iter().enumerate() {
        let folder = scratch(&index.to_string());
        let log = folder.join("log");
        if strace(options, Some(&log), &folder).is_none() {
            eprintln!("skipped {options}: this strace can't");
            std::fs::remove_dir_all(&folder).unwrap();
            continue;
        }
        // With -z or -Z the end of a call may be on its own line, and small chunks would separate it from its
        // beginning.
        let filtered = options.contains("-z") || options.contains("-Z");
        let sizes: &[usize] = if filtered { &[1 << 24] } else { &[1 << 20, 2000] };
        for &chunk_size in sizes {
            let tally = read_file(&log, &small_chunks(chunk_size))
                .unwrap_or_else(|error| panic!("{options}: {error}"));
            if !filtered {
                assert_eq!(returned(&tally), table(&bytes_of(&log)), "{options}, chunks of {chunk_size}");
            }
            for kind in [LossKind::UnreadableLines, LossKind::OrphanResumed, LossKind::CutLines] {
                assert_eq!(tally.losses.count(kind), 0, "{options}: {:?}", tally.losses);
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// A program whose threads interrupt one another, so that most calls take two lines.
const THREADS: &str = "
import os, subprocess, sys, threading
def work(name):
    for size in range(150):
        with open(name, 'ab', 0) as file: file.write(b'x' * size)
        with open(name, 'rb') as file: file.read()
threads = [threading.Thread(target=work, args=(f'{sys.argv[1]}/f{n}',)) for n in range(4)]
for thread in threads: thread.start()
subprocess.run(['true'])
for thread in threads: thread.join()
";

#[test]
#[ignore = "part of `make test-all`: strace of threads, four times"]
fn threads_are_joined_as_strace_joins_them() {
    for options in ["-f -tt -T", "-f", "-f -ttt -T -yy", "-f -r -n -i -x"] {
        let folder = scratch(&format!("threads{}", options.len()));
        let log = folder.join("log");
        let mut command = Command::new("strace");
        command.args(options.split(' ')).arg("-C").arg("-o").arg(&log);
        let status = command.args(["python3", "-c", THREADS]).arg(&folder).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("skipped {options}: no strace or no python3");
            continue;
        }
        for chunk_size in [1 << 20, 3000] {
            let tally = read_file(&log, &small_chunks(chunk_size)).unwrap();
            assert_eq!(returned(&tally), table(&bytes_of(&log)), "{options}, chunks of {chunk_size}");
            assert!(tally.counts.unfinished > 50 && tally.losses.count(LossKind::UnreadableLines) == 0);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn the_detaching_of_strace_is_recognised() {
    let log = scratch("attach").join("log");
    let Ok(mut sleeper) = Command::new("sleep").arg("30").spawn() else { return };
    let tracer = Command::new("strace")
        .args(["-f", "-tt", "-T", "-o"])
        .arg(&log)
        .args(["-p", &sleeper.id().to_string()])
        .spawn();
    std::thread::sleep(std::time::Duration::from_millis(700));
    if let Ok(mut tracer) = tracer {
        Command::new("kill").args(["-INT", &tracer.id().to_string()]).status().unwrap();
        tracer.wait().unwrap();
        let text = bytes_of(&log);
        if memchr::memmem::find(&text, b"<detached ...>").is_some() {
            let tally = read_file(&log, &small_chunks(1 << 20)).unwrap();
            let calls: u64 = tally.calls.values().map(|call| call.noresult).sum();
            assert_eq!((calls, tally.losses.counts.len()), (1, 0), "{}", String::from_utf8_lossy(&text));
        }
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

/// The program checks that a signal answered two of its calls, and then exits with 0.
#[test]
fn calls_refused_by_a_seccomp_filter_have_no_result() {
    let folder = scratch("refused");
    let program = folder.join("refused");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../iodock-record/tests/programs/refused.c");
    let compiled = Command::new("cc").arg(source).arg("-o").arg(&program).status();
    assert!(compiled.is_ok_and(|status| status.success()));
    for options in ["-f -ttt -T", "-f -T -y", "-f -z", "-tt", "-f -r -T -e trace=!openat"] {
        let log = folder.join("log");
        let mut command = Command::new("strace");
        command.args(options.split(' ')).arg("-o").arg(&log).arg(&program);
        if !command.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped {options}: this strace can't");
            continue;
        }
        for chunk_size in [1 << 20, 3000] {
            let tally = read_file(&log, &small_chunks(chunk_size)).unwrap();
            let late = tally.losses.count(LossKind::LateRefusals);
            let refused = ["pwrite64", "rmdir"].map(|name| &tally.calls[name]);
            let without: u64 = refused.iter().map(|call| call.noresult).sum();
            assert_eq!((without + late, late), (2, if chunk_size < 1 << 20 { late } else { 0 }), "{options}");
            assert_eq!(refused[0].bytes_written, if refused[0].noresult == 1 { 0 } else { 18 });
            assert_eq!((tally.calls["write"].success, tally.calls["write"].bytes_written), (1, 1));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
