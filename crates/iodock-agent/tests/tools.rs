//! Tests tools that the agent runs: it reads their output, and none of their processes remains.

mod tree;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tree::{has, Tree};

fn program(tree: &Tree, script: &str) {
    let path = tree.write("usr/lpp/mmfs/bin/mmpmon", script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn gpfs_counters_are_read_with_mmpmon() {
    let tree = Tree::new("gpfs");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mmpmon-p.txt");
    program(
        &tree,
        &format!(
            "#!/bin/sh\n[ \"$1\" = -p ] && read line && [ \"$line\" = fs_io_s ] && cat {}\n",
            fixture.display()
        ),
    );
    let text = tree.samples(&[]);
    has(&text, "iodock_mmpmon_fs_io_bytes_total{host=\"node7\",file_system=\"gpfs0\",target=\"gpfs.foobar.com\",operation=\"write\"} 2552776479");
    has(&text, "iodock_mmpmon_unreadable_lines{host=\"node7\"} 2");
}

/// Returns whether the process ends within a few seconds.
fn ends(pid: &str) -> bool {
    (0..200).any(|_| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let has_ended = stat.is_empty() || stat.contains(") Z");
        if !has_ended {
            thread::sleep(Duration::from_millis(50));
        }
        has_ended
    })
}

/// Waits until the tool has written its process id, which may be after the agent has ended.
fn pid(path: &Path) -> Option<String> {
    (0..12).find_map(|_| {
        thread::sleep(Duration::from_millis(25));
        fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))
    })
}

#[test]
fn a_hanging_tool_is_killed_with_its_children() {
    let tree = Tree::new("tool");
    let path = tree.0.join("pid");
    program(&tree, &format!("#!/bin/sh\nsleep 1000 &\necho $! > {}\nwait\ntrue\n", path.display()));
    let text = tree.samples(&["--deadline", "1"]);
    has(&text, "iodock_agent_source_done{host=\"node7\",source=\"gpfs-mmpmon\"} 0");
    assert!(ends(&pid(&path).expect("it ran")));
}

#[test]
fn a_tool_that_starts_after_its_time_limit_is_killed() {
    let tree = Tree::new("late");
    let path = tree.0.join("pid");
    program(&tree, &format!("#!/bin/sh\necho $$ > {}\nexec sleep 1000\n", path.display()));
    let mut ran = 0;
    for round in 0..20 {
        let _ = fs::remove_file(&path);
        tree.agent(&["--deadline", &format!("0.00{}", round % 10)]);
        if let Some(pid) = pid(&path) {
            ran += 1;
            assert!(ends(&pid), "{pid} is still there");
        }
    }
    println!("of 20 tools {ran} ran");
}

#[test]
fn the_error_of_a_failing_tool_is_reported() {
    for (script, why) in [
        (
            "echo '_ver_ 3'; echo 'mmpmon: not authorized' >&2; echo more >&2; exit 3",
            "exit status: 3, lines: 1; mmpmon: not authorized",
        ),
        ("true", "exit status: 0, lines: 0; it says nothing"),
    ] {
        let tree = Tree::new("failing");
        program(&tree, &format!("#!/bin/sh\n{script}\n"));
        let output = tree.agent(&[]);
        let notes = String::from_utf8_lossy(&output.stderr);
        assert!(notes.contains("bin/mmpmon: ") && notes.contains(why) && !notes.contains("more"), "{notes}");
        has(
            &String::from_utf8_lossy(&output.stdout),
            "iodock_agent_source_refused_files{host=\"node7\",source=\"gpfs-mmpmon\"} 1",
        );
    }
}
