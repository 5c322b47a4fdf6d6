//! Runs the same program under perf trace and strace, and compares the results call by call.

mod truth;

use iodock_event::{CallClass, CallId, ErrnoId, LossKind, NONE, UNKNOWN};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use truth::Run;

/// The test compares only calls after `getsid`. Before it, Python loads itself, from files whose names depend
/// on the tracer.
const PROGRAM: &str = "
import mmap, os, subprocess, threading
os.getsid(0)
f = os.open('one.dat', os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(f, b'x' * 5000); os.lseek(f, 100, 0); os.read(f, 200); os.lseek(f, 0, 0); os.read(f, 10)
os.pwrite(f, b'yy', 4000); os.pread(f, 50, 10); os.pread(f, 50, 0)
os.readv(f, [bytearray(10), bytearray(20)]); os.preadv(f, [bytearray(10), bytearray(20)], 7)
os.fsync(f); os.ftruncate(f, 3000); g = os.dup(f); os.write(g, b'abc'); os.close(f)
r, w = os.pipe(); os.write(w, b'1' * 7); os.read(r, 100)
def work():
    h = os.open('two.dat', os.O_WRONLY | os.O_CREAT | os.O_APPEND); os.write(h, b'z' * 77); os.close(h)
    os.write(g, b'thread')
thread = threading.Thread(target=work); thread.start(); thread.join()
os.rename('two.dat', 'three.dat'); os.mkdir('d'); os.rmdir('d')
for name in ['/nope/x', 'na me, fd: 3)']:
    try: os.close(os.open(name, os.O_RDONLY))
    except OSError: pass
child = os.fork()
if child == 0:
    os.write(g, b'child'); os._exit(3)
os.waitpid(child, 0)
os.write(g, b'parent')
subprocess.run(['/bin/cat', 'one.dat'], stdout=subprocess.DEVNULL)
os.sendfile(w, g, 0, 10)
m = mmap.mmap(g, 100); m[0]; m.close(); os.write(g, b'end')
";

/// Family of the call, bytes, offset and error.
type Row = (String, i64, i64, String);

/// Returns the path of the Python interpreter itself. The first `python` in PATH may be a shell script, which
/// starts processes of its own.
fn python() -> Option<String> {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    Some(String::from_utf8(asked.stdout).ok()?.trim().to_string())
}

fn traced(tool: &str, arguments: &[&str], scratch: &Path) -> Option<Run> {
    let (folder, log) = (scratch.join("work"), scratch.join(format!("{tool}.log")));
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).ok()?;
    let mut command = Command::new(tool);
    command.args(arguments).arg(&log).arg(python()?).args(["-S", "-c", PROGRAM]).current_dir(&folder);
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().ok()?;
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    if !output.status.success() || !text.contains("getsid(") {
        eprintln!("{tool}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(Run::of(&log, Some("/w")))
}

/// Returns the number of calls after `getsid` by name, counted in a log's text, for calls that the program
/// itself makes.
fn calls_in(log: &str) -> BTreeMap<String, usize> {
    let names = ["write", "read", "pread64", "pwrite64", "preadv", "readv", "lseek", "fsync", "close"];
    let mut found = BTreeMap::new();
    for line in log.lines().skip_while(|line| !line.contains("getsid(")) {
        for name in names {
            let begins = line.match_indices(&format!("{name}(")).any(|(at, _)| line[..at].ends_with(' '));
            if begins && !line.contains("[continued]") {
                *found.entry(name.to_string()).or_default() += 1;
            }
        }
    }
    found
}

/// Returns the operations of each task on files. Tasks are in the order of their first appearance.
fn work(run: &Run) -> Vec<Vec<Row>> {
    let events = &run.events;
    let mut tasks: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
    let mut begun = false;
    for row in 0..events.len() {
        let call = CallId(events.call[row]);
        begun |= call.name() == "getsid";
        let spec = call.spec();
        let counts =
            matches!(spec.class, CallClass::Data | CallClass::Metadata | CallClass::Seek | CallClass::Sync);
        if begun && counts {
            let errno = match events.errno[row] {
                u16::MAX => String::new(),
                id => ErrnoId(id).name().to_string(),
            };
            // perf shows only the address of sendfile's offset, so the offset is not compared.
            let offset = if call.family() == "sendfile" { UNKNOWN } else { events.offset[row] };
            let done = (call.family(), events.bytes[row], offset, errno);
            tasks.entry(events.utid[row]).or_default().push(done);
        }
    }
    tasks.into_values().collect()
}

#[test]
fn perf_trace_gives_the_same_calls_bytes_and_offsets_as_strace() {
    let scratch = std::env::temp_dir().join(format!("iodock-perf-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let strace = traced("strace", &["-f", "-ttt", "-T", "-o"], &scratch);
    // On a busy machine perf drops events, and does not always report this. It is detected if a call has no
    // end, or if perf's log has fewer calls than that of strace.
    let log = |tool: &str| std::fs::read_to_string(scratch.join(format!("{tool}.log"))).unwrap_or_default();
    let called = calls_in(&log("strace"));
    let perf = (0..6).filter_map(|_| traced("perf", &["trace", "-o"], &scratch)).find(|perf| {
        perf.imported.losses.count(LossKind::DroppedRecords) == 0 && calls_in(&log("perf")) == called
    });
    let (Some(strace), Some(perf)) = (strace, perf) else {
        eprintln!("skipped: perf trace or strace does not work here, or perf drops events in each trace");
        std::fs::remove_dir_all(&scratch).ok();
        return;
    };
    let (expected, found) = (work(&strace), work(&perf));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    assert_eq!(perf.imported.losses.count(LossKind::UnreadableLines), 0, "{:?}", perf.imported.losses);
    let durations = perf.events.dur.iter().filter(|&&dur| dur != UNKNOWN).count();
    assert!(durations * 10 > perf.events.len() * 9);
    // Threads and children must have the parents that strace shows.
    let origins = |run: &Run| {
        run.tables.tasks.iter().map(|task| (task.how, task.parent_utid == NONE)).collect::<Vec<_>>()
    };
    assert_eq!(origins(&perf), origins(&strace));
    let codes = |run: &Run| {
        run.tables.tasks.iter().map(|task| task.exit_code).filter(|&code| code == Some(3)).count()
    };
    assert_eq!(codes(&perf), 1);
    std::fs::remove_dir_all(&scratch).unwrap();
}
