//! Tests damaged files, missing permissions and broken outputs: readable data are shown, and the rest is
//! reported.

mod tree;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};
use tree::{check_form, fifo, has, sum, Tree};

const DISK: &str = "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n";

fn notes(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn heavily_damaged_files_are_reported() {
    let tree = Tree::new("damaged");
    tree.write("proc/diskstats", "junk\n");
    tree.write("proc/self/mountstats", "device srv:/x mou?ted on /x with fstype nfs4\n");
    tree.write("sys/fs/cgroup/cgroup.controllers", "io\n");
    tree.write("sys/fs/cgroup/a.service/io.stat", "junk\n");
    tree.write("proc/pressure/io", "junk\n");
    let output = tree.agent(&[]);
    let text = String::from_utf8_lossy(&output.stdout);
    for source in ["diskstats", "mountstats", "cgroup_io", "pressure"] {
        has(&text, &format!("iodock_{source}_unreadable_lines{{host=\"node7\"}} 1"));
        assert!(notes(&output).contains(&format!("{source}: unreadable lines: 1")), "{}", notes(&output));
    }
    assert!(notes(&output).contains("a.service/io.stat"));
}

#[test]
fn load_without_an_owner_is_shown_without_jobs() {
    let tree = Tree::new("nobody");
    tree.write("proc/diskstats", DISK);
    let text = tree.samples(&["--jobs", "0"]);
    has(&text, "iodock_diskstats_bytes_total{host=\"node7\",target=\"sda\",operation=\"write\"} 3584");
}

#[test]
fn duplicate_lines_give_one_series() {
    let tree = Tree::new("twice");
    tree.write("proc/diskstats", DISK.repeat(2));
    let some = |total: u64| format!("some avg10=0 avg60=0 avg300=0 total={total}\n");
    tree.write("proc/pressure/io", some(1_000_000) + &some(2_000_000));
    let output = tree.agent(&[]);
    let text = String::from_utf8_lossy(&output.stdout);
    check_form(&text);
    has(
        &text,
        "iodock_pressure_time_seconds_total{host=\"node7\",target=\"io\",operation=\"some\"} 1.000000",
    );
    assert!(notes(&output).contains("listed twice, the first counts: diskstats  sda"), "{}", notes(&output));
}

#[test]
fn overflowing_numbers_count_as_unreadable() {
    let tree = Tree::new("overflow");
    tree.write("proc/diskstats", format!("8 0 sda 1 2 {} 4 5 6 7 8 9 10 11\n", u64::MAX));
    let text = tree.samples(&[]);
    has(&text, "iodock_diskstats_unreadable_lines{host=\"node7\"} 1");
    assert!(!text.contains("sda"));
}

/// A loop of links is an error even for root.
#[test]
fn files_without_permission_are_reported_once() {
    let tree = Tree::new("refused");
    fs::create_dir_all(tree.0.join("sys/kernel/debug")).expect("a folder");
    symlink("lustre", tree.0.join("sys/kernel/debug/lustre")).expect("a link");
    let target = tree.0.join("proc/fs/lustre/mdt/lfs-MDT0000");
    fs::create_dir_all(&target).expect("a folder");
    symlink("job_stats", target.join("job_stats")).expect("a link");
    let output = tree.agent(&[]);
    let notes = notes(&output);
    assert_eq!(notes.matches("sys/kernel/debug/lustre: ").count(), 1, "{notes}");
    assert_eq!((notes.matches("lfs-MDT0000/job_stats: ").count(), notes.lines().count()), (1, 2), "{notes}");
}

#[test]
fn different_names_that_are_not_utf8_stay_different() {
    let tree = Tree::new("names");
    for name in [&b"l-MDT\xff"[..], b"l-MDT\xfe"] {
        let folder = tree.0.join("proc/fs/lustre/mdt").join(OsStr::from_bytes(name));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("md_stats"), "open 5 samples [reqs]\n").expect("a file");
    }
    assert_eq!(sum(&tree.samples(&[]), "iodock_mdt_md_stats_operations_total{"), 10);
}

fn with_outputs(tree: &Tree, stdout: Stdio, stderr: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iodock-agent"));
    command.args(["once", "--root"]).arg(&tree.0);
    command.stdout(stdout).stderr(stderr).spawn().expect("runs").wait_with_output().expect("ends")
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("/dev/full").into()
}

#[test]
fn a_failing_output_does_not_affect_the_others() {
    let tree = Tree::new("outputs");
    tree.write("proc/diskstats", format!("{DISK}junk\n"));
    let output = with_outputs(&tree, Stdio::piped(), full());
    let text = String::from_utf8_lossy(&output.stdout);
    check_form(&text);
    assert!(text.contains("sda") && output.status.success());
    let output = with_outputs(&tree, full(), Stdio::piped());
    assert_eq!(output.status.code(), Some(1));
    assert!(notes(&output).contains("could not be written") && notes(&output).contains("unreadable"));
    let help = Command::new(env!("CARGO_BIN_EXE_iodock-agent")).arg("--help").stdout(full()).output();
    assert_eq!(help.expect("runs").status.code(), Some(1));
}

#[test]
fn an_unresolvable_host_name_does_not_hang_the_agent() {
    let tree = Tree::new("host");
    fifo(&tree, "proc/sys/kernel/hostname");
    tree.write("proc/diskstats", DISK);
    let text = tree.samples(&["--deadline", "0.5"]);
    has(&text, "iodock_diskstats_bytes_total{target=\"sda\",operation=\"write\"} 3584");
}

#[test]
fn a_missing_root_gives_an_error() {
    let run = |root: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iodock-agent"));
        command.args(["once", "--root"]).arg(OsStr::from_bytes(root)).output().expect("runs")
    };
    let output = run(b"/nonexistent\n");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(notes(&output).contains("--root /nonexistent\\x0a: ") && notes(&output).contains("hint: "));
    // The folder's name is not valid text, and must not be confused with another one.
    let tree = Tree::new("root");
    let root = tree.0.join(OsStr::from_bytes(b"r\xff"));
    fs::create_dir_all(root.join("proc")).expect("a folder");
    fs::write(root.join("proc/diskstats"), DISK).expect("a file");
    assert!(String::from_utf8_lossy(&run(root.as_os_str().as_bytes()).stdout).contains("sda"));
}
