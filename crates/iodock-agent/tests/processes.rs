//! Tests the owners of processes and cgroups, and that nothing is counted twice.

mod tree;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use tree::{check_form, fifo, has, sum, Tree};

/// Creates a process in a fake /proc.
fn process(tree: &Tree, pid: u32, cgroup: &str, environment: &str, read: u64) {
    let file = |name: &str, text: &str| tree.write(&format!("proc/{pid}/{name}"), text);
    file("io", &format!("rchar: {read}\nwchar: 1\nsyscr: 2\nsyscw: 3\nread_bytes: 4\nwrite_bytes: 5\ncancelled_write_bytes: 0\n"));
    file("cgroup", cgroup);
    file("environ", environment);
    file("status", "Name:\ta\nUid:\t1000\t1000\t1000\t1000\n");
    file("stat", &format!("{pid} (tar) S 1 {pid} 77 0 -1"));
}

#[test]
fn processes_are_summed_by_job_or_else_by_session() {
    let tree = Tree::new("processes");
    tree.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nsato:x:1000:1000::/home/sato:/bin/sh\n");
    process(&tree, 10, "0::/system.slice/slurmstepd.scope/job_7/step_0\n", "", 100);
    process(&tree, 11, "0::/system.slice/slurmstepd.scope/job_7/step_1\n", "SLURM_JOB_ID=8\0", 1000);
    process(&tree, 12, "0::/\n", "PJM_JOBID=30005\0", 5);
    process(&tree, 13, "0::/user.slice\n", "HOME=/\0", 70);
    process(&tree, 14, "0::/user.slice\n", "HOME=/\0", 7);
    let text = tree.samples(&[]);
    let line = |owner: &str, value: u64| {
        has(
            &text,
            &format!("iodock_process_io_bytes{{host=\"node7\",{owner},operation=\"read_call\"}} {value}"),
        );
    };
    line("job=\"7\",user=\"sato\",known_by=\"cgroup\"", 1100);
    line("job=\"30005\",user=\"sato\",known_by=\"environment\"", 5);
    line("session=\"sid-77\",user=\"sato\",command=\"tar\",known_by=\"session\"", 77);
}

/// Sets a process's parent and start time, which are fields 4 and 22 of proc_pid_stat(5).
fn begins(tree: &Tree, pid: u32, command: &str, parent: u32, start: u64) {
    tree.write(
        &format!("proc/{pid}/stat"),
        format!("{pid} ({command}) S {parent} {pid} 77 0 -1 {}{start} 0", "0 ".repeat(13)),
    );
}

/// Creates a slurmstepd without I/O of its own.
fn step_daemon(tree: &Tree, pid: u32, title: &str, read: u64, start: u64) {
    process(tree, pid, "0::/\n", "", read);
    begins(tree, pid, "slurmstepd", 1, start);
    tree.write(&format!("proc/{pid}/status"), "Name:\tslurmstepd\nUid:\t0\t0\t0\t0\n");
    tree.write(&format!("proc/{pid}/cmdline"), title);
}

fn as_root(tree: &Tree, pid: u32) {
    tree.write(&format!("proc/{pid}/status"), "Name:\ta\nUid:\t0\t0\t0\t0\n");
}

const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nsato:x:1000:1000::/home/sato:/bin/sh\n";
const READ: &str = "iodock_process_io_bytes{host=\"node7\",";

/// In all parts of a heterogeneous job, Slurm sets SLURM_JOB_ID to the id of the first part. Users can set
/// any value.
#[test]
fn slurmstepd_decides_the_job_of_a_process() {
    let tree = Tree::new("daemons");
    tree.write("etc/passwd", PASSWD);
    step_daemon(&tree, 20, "slurmstepd: [5.0+1]", 7, 100);
    // Process 21 is a shell without I/O between slurmstepd and a task.
    process(&tree, 21, "0::/\n", "SLURM_JOB_ID=4\0SLURM_STEP_ID=0\0", 0);
    tree.write("proc/21/io", "rchar: 0\n");
    begins(&tree, 21, "sh", 20, 200);
    process(&tree, 22, "0::/\n", "SLURM_JOB_ID=4\0SLURM_STEP_ID=0\0", 1000);
    begins(&tree, 22, "tar", 21, 300);
    process(&tree, 23, "0::/slurm/uid_1000/job_5\n", "SLURM_JOB_ID=999\0", 20_000);
    begins(&tree, 23, "tar", 22, 400);
    process(&tree, 24, "0::/\n", "HOME=/\0", 300_000);
    begins(&tree, 24, "tar", 22, 400);
    // The first of these is an orphan. The parent's id of the second was later given to a slurmstepd.
    process(&tree, 25, "0::/\n", "SLURM_JOB_ID=4\0SLURM_STEP_ID=0\0", 4_000_000);
    begins(&tree, 25, "tar", 1, 400);
    process(&tree, 26, "0::/\n", "HOME=/\0", 50_000_000);
    begins(&tree, 26, "tar", 20, 50);
    let text = tree.samples(&[]);
    let line =
        |owner: &str, value: u64| has(&text, &format!("{READ}{owner},operation=\"read_call\"}} {value}"));
    line("job=\"5\",user=\"sato\",known_by=\"scheduler\"", 301_007);
    line("job=\"5\",user=\"sato\",known_by=\"cgroup\"", 20_000);
    line("job=\"4\",user=\"sato\",known_by=\"environment\"", 4_000_000);
    line("session=\"sid-77\",user=\"sato\",command=\"tar\",known_by=\"session\"", 50_000_000);
}

/// The extern step runs `sleep` as root, and each step has a slurmstepd of root. Root is not the user of the
/// job.
#[test]
fn slurm_processes_of_a_job_belong_to_its_user() {
    let tree = Tree::new("extern");
    tree.write("etc/passwd", PASSWD);
    for (pid, step) in [(20, "extern"), (22, "batch"), (24, "0")] {
        step_daemon(&tree, pid, &format!("slurmstepd: [7.{step}]"), 10, 100);
    }
    process(&tree, 21, "0::/system.slice/slurmstepd.scope/job_7/step_extern/user/task_special\n", "", 5);
    begins(&tree, 21, "sleep", 20, 200);
    as_root(&tree, 21);
    process(&tree, 23, "0::/\n", "", 3);
    begins(&tree, 23, "bash", 22, 200);
    // So far the agent has seen no other process of this job.
    step_daemon(&tree, 30, "slurmstepd: [8.extern]", 1_000_000, 100);
    process(&tree, 31, "0::/\n", "", 1_000_000);
    begins(&tree, 31, "sleep", 30, 200);
    as_root(&tree, 31);
    let text = tree.samples(&[]);
    let of_job = text.lines().filter(|line| line.starts_with(READ) && line.contains("job=\"7\""));
    assert!(
        of_job.clone().count() > 0 && of_job.clone().all(|line| line.contains("user=\"sato\"")),
        "{text}"
    );
    assert_eq!(sum(&text, &format!("{READ}job=\"8\"")), 0, "{text}");
    // A job that root started belongs to root.
    as_root(&tree, 23);
    let text = tree.samples(&[]);
    let of_job = text.lines().filter(|line| line.starts_with(READ) && line.contains("job=\"7\""));
    assert!(
        of_job.clone().count() > 0 && of_job.clone().all(|line| line.contains("user=\"root\"")),
        "{text}"
    );
}

#[test]
fn an_unreadable_environment_does_not_affect_other_values() {
    let tree = Tree::new("environment");
    process(&tree, 10, "0::/user.slice\n", "HOME=/\0", 70);
    process(&tree, 11, "0::/system.slice/slurmstepd.scope/job_7/step_1\n", "", 1000);
    fs::remove_file(tree.0.join("proc/10/environ")).expect("removed");
    fifo(&tree, "proc/10/environ");
    let output = tree.agent(&[]);
    let (text, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(sum(&text, "iodock_process_io_bytes{host=\"node7\",job=\"7\""), 1000 + 1 + 4 + 5);
    assert!(text.contains("session=\"sid-77\"") && notes.contains("10/environ: no answer"), "{notes}");
}

#[test]
fn unreadable_environments_affect_only_their_processes() {
    let tree = Tree::new("stuck");
    process(&tree, 10, "0::/user.slice\n", "", 70);
    process(&tree, 12, "0::/\n", "PJM_JOBID=30005\0", 5);
    process(&tree, 13, "0::/system.slice/slurmstepd.scope/job_7/step_1\n", "", 1000);
    fs::remove_file(tree.0.join("proc/10/environ")).expect("removed");
    fifo(&tree, "proc/10/environ");
    fifo(&tree, "etc/passwd");
    for deadline in ["5", "0.6"] {
        let output = tree.agent(&["--deadline", deadline]);
        let (text, notes) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        has(&text, "iodock_agent_source_done{host=\"node7\",source=\"process-io\"} 1");
        assert!(text.contains("job=\"30005\",user=\"1000\"") && text.contains("job=\"7\""), "{text}");
        assert!(
            notes.contains("10/environ: no answer") && notes.contains("etc/passwd: no answer"),
            "{notes}"
        );
    }
}

/// A process that ends leaves the sum. A smaller sum must not look like a counter that started again.
#[test]
fn sums_over_live_processes_are_gauges() {
    let tree = Tree::new("falls");
    process(&tree, 10, "0::/\n", "", 70);
    let text = tree.samples(&[]);
    has(&text, "# TYPE iodock_process_io_bytes gauge");
    assert!(!text.contains("process_io_bytes_total") && !text.contains("process_io_operations_total"));
}

#[test]
fn a_process_that_ends_while_it_is_read_is_left_out() {
    let tree = Tree::new("gone");
    process(&tree, 10, "0::/slurm/job_7/step\n", "", 5);
    process(&tree, 11, "0::/slurm/job_7/step\n", "", 9);
    process(&tree, 12, "0::/\n", "", 100);
    fs::remove_file(tree.0.join("proc/11/status")).expect("removed");
    process(&tree, 13, "0::/\n", "", 7000);
    fs::remove_file(tree.0.join("proc/13/environ")).expect("removed");
    // A new process gets the id of the old one while the agent reads its environment.
    let environ = tree.0.join("proc/12/environ");
    fs::remove_file(&environ).expect("removed");
    fifo(&tree, "proc/12/environ");
    let stat = tree.0.join("proc/12/stat");
    let fields = "0 ".repeat(13);
    fs::write(&stat, format!("12 (tar) S 1 12 77 0 -1 {fields} 5000 0\n")).expect("written");
    let reuse = std::thread::spawn(move || {
        // This open waits until the agent opens the pipe.
        let mut answer = fs::File::options().write(true).open(environ).expect("opened");
        fs::write(stat, format!("12 (sh) S 1 12 77 0 -1 {fields} 6000 0\n")).expect("written");
        answer.write_all(b"SLURM_JOB_ID=8\0").expect("answered");
    });
    let output = tree.agent(&[]);
    reuse.join().expect("it was asked");
    let (text, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let of_jobs = "iodock_process_io_bytes{host=\"node7\",job=";
    assert_eq!(sum(&text, of_jobs), 5 + 1 + 4 + 5, "{text}");
    assert_eq!(sum(&text, "iodock_process_io_bytes{"), 15);
    assert!(!text.contains("job=\"8\"") && notes.contains("are left out: 3"), "{notes}");
}

#[test]
fn an_unreadable_process_file_is_named() {
    let tree = Tree::new("named");
    process(&tree, 10, "0::/\n", "", 5);
    tree.write("proc/9/io", "rchar: 5\njunk\nwchar: 7");
    tree.write("proc/9/stat", "9 (a) S 1 9 77 0 -1");
    tree.write("proc/9/status", "Uid:\t0\t0\t0\t0\n");
    let output = tree.agent(&[]);
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(
        notes.contains("process_io: unreadable lines: 2, the first is line 2 of")
            && notes.contains("proc/9/io"),
        "{notes}"
    );
}

#[test]
fn containers_and_names_that_are_not_utf8_are_read() {
    let tree = Tree::new("containers");
    tree.write("sys/fs/cgroup/cgroup.controllers", "io\n");
    let stat = |path: &[u8], bytes: u64| {
        let folder = tree.0.join("sys/fs/cgroup").join(std::ffi::OsStr::from_bytes(path));
        fs::create_dir_all(&folder).expect("folders");
        fs::write(folder.join("io.stat"), format!("8:0 rbytes={bytes} wbytes=0 rios=1 wios=0\n"))
            .expect("a file");
    };
    stat(b"system.slice/docker-0123.scope", 10);
    stat(b"machine.slice/libpod-1.scope", 200);
    stat(b"slurm\xff/job_5", 3000);
    let text = tree.samples(&[]);
    for owner in [
        "command=\"docker-0123.scope\",known_by=\"session\"",
        "command=\"libpod-1.scope\",known_by=\"session\"",
        "job=\"5\",known_by=\"cgroup\"",
    ] {
        assert!(text.contains(owner), "{owner} in {text}");
    }
    assert_eq!(sum(&text, "iodock_cgroup_io_bytes_total{"), 3210);
}

#[test]
fn each_cgroup_is_counted_once() {
    let tree = Tree::new("cgroups");
    tree.write("sys/fs/cgroup/cgroup.controllers", "io\n");
    let stat = |path: &str, bytes: u64| {
        tree.write(
            &format!("sys/fs/cgroup/{path}/io.stat"),
            format!("8:0 rbytes={bytes} wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n"),
        );
    };
    stat("system.slice", 1111);
    stat("system.slice/slurmstepd.scope", 111);
    stat("system.slice/slurmstepd.scope/job_7", 11);
    stat("system.slice/slurmstepd.scope/job_7/step_0", 10);
    stat("system.slice/cron.service", 1000);
    stat("user.slice", 5);
    stat("user.slice/user-1000.slice", 5);
    stat("user.slice/user-1000.slice/session-1.scope", 5);
    let devices = tree.0.join("sys/dev/block");
    fs::create_dir_all(&devices).expect("a folder");
    symlink("../../devices/pci0/block/sda", devices.join("8:0")).expect("a link");
    let text = tree.samples(&[]);
    let line = |owner: &str, value: u64| {
        has(&text, &format!("iodock_cgroup_io_bytes_total{{host=\"node7\",target=\"sda\",{owner},operation=\"read\"}} {value}"));
    };
    line("job=\"7\",known_by=\"cgroup\"", 11);
    line("user=\"1000\",known_by=\"session\"", 5);
    line("command=\"cron.service\",known_by=\"session\"", 1000);
    assert_eq!(sum(&text, "iodock_cgroup_io_bytes_total{"), 1016);
}

#[test]
fn processes_of_this_machine_are_read() {
    let output = Command::new(env!("CARGO_BIN_EXE_iodock-agent")).arg("once").output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    check_form(&text);
    has(&text, &format!("iodock_agent_source_done{{host=\"{}\",source=\"process-io\"}} 1", host()));
    assert!(sum_of_bytes(&text) > 0);
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().into()
}

fn sum_of_bytes(text: &str) -> u64 {
    sum(text, "iodock_process_io_bytes{")
}

/// Runs a real job with a known number of bytes. A child moves them and ends, and its shell has waited for
/// it.
#[test]
fn a_real_jobs_bytes_are_counted_once() {
    const BYTES: u64 = 200_000_000;
    let job = format!("77{}", std::process::id());
    let script = format!("head -c {BYTES} /dev/zero > /dev/null; echo done; read line");
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .env("SLURM_JOB_ID", &job)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = [0; 5];
    shell.stdout.take().expect("a pipe").read_exact(&mut line).expect("it is done");
    let output = Command::new(env!("CARGO_BIN_EXE_iodock-agent"))
        .args(["once", "--jobs", "100000"])
        .output()
        .expect("runs");
    drop(shell.stdin.take());
    shell.wait().expect("the shell ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let moved = |operation: &str| {
        let mine = text.lines().filter(|line| line.starts_with("iodock_process_io_bytes{"));
        let mut mine =
            mine.filter(|line| line.contains(&format!("job=\"{job}\"")) && line.contains(operation));
        mine.next().and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).expect("the job is there")
    };
    for operation in ["read_call", "write_call"] {
        let bytes = moved(&format!("operation=\"{operation}\""));
        // The job also reads a few library headers when it starts programs.
        assert!((BYTES..BYTES + BYTES / 1000).contains(&bytes), "{operation}: {bytes}");
    }
}
