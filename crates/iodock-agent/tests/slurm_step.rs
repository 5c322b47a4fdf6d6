//! Tests that the agent reads and sends records of job steps, and removes them when they are safe. It does
//! not touch other files in their folder.

mod running;
mod tree;

use iodock_samples::batch::{Batch, Part};
use iodock_samples::sample::Evidence;
use running::{batches, wait_for, Agent};
use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use tree::{fifo, has, Tree};

const FOLDER: &str = "run/iodock-steps";

fn record(job: &str, step: &str, began: u64, bytes: u64) -> String {
    format!(
        "iodock-step 1\njob {job}\nstep {step}\nuid 1000\nbegan {began}\nended {}\nrchar: {bytes}\nwchar: 2\n\
        syscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\nend\n",
        began + 1_000_000_000
    )
}

fn tree(name: &str) -> Tree {
    let tree = Tree::new(name);
    tree.write("etc/passwd", "sato:x:1000:1000::/home/sato:/bin/sh\n");
    fs::create_dir_all(tree.0.join(FOLDER)).expect("a folder");
    fs::set_permissions(tree.0.join(FOLDER), Permissions::from_mode(0o700)).expect("it is ours");
    tree
}

fn put(tree: &Tree, name: &str, text: &str) -> PathBuf {
    // The record appears in one step, as the plugin writes it.
    let new = tree.write("new", text);
    let path = tree.0.join(FOLDER).join(name);
    fs::rename(new, &path).expect("renamed");
    path
}

/// Returns job, step, first counter and start time of each record in the spool, once for each time it was
/// sent.
fn sent(spool: &Path) -> Vec<(String, String, u64, Option<i64>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let of_step = |part: &Part| part.source == "slurm_step";
    let all: Vec<Batch> = batches(spool);
    let parts = all.iter().flat_map(|batch| &batch.parts).filter(|part| of_step(part));
    parts
        .flat_map(|part| &part.entries)
        .map(|entry| {
            let owner = &entry.owner;
            assert_eq!((owner.evidence, text(&owner.user)), (Evidence::Scheduler, "sato".into()));
            (text(&owner.job), text(&owner.session), entry.values[0].1, entry.start_time)
        })
        .collect()
}

fn start(tree: &Tree) -> (Agent, PathBuf) {
    let spool = tree.0.join("spool");
    (Agent::start(tree, &["--interval", "0.1", "--spool", spool.to_str().expect("text")]), spool)
}

#[test]
fn without_a_spool_step_records_are_shown_and_not_removed() {
    let tree = tree("steps-shown");
    let (one, two) = (
        put(&tree, "7.0.1.step", &record("7", "0", 1, 100)),
        put(&tree, "7.batch.1.step", &record("7", "batch", 1, 20)),
    );
    let text = tree.samples(&[]);
    let owner = "host=\"node7\",job=\"7\",user=\"sato\",known_by=\"scheduler\"";
    has(&text, &format!("iodock_slurm_step_bytes{{{owner},operation=\"read_call\"}} 120"));
    assert!(one.exists() && two.exists());
}

#[test]
fn a_step_record_is_sent_once_and_then_removed() {
    let tree = tree("steps-sent");
    let one = put(&tree, "7.0.5.step", &record("7", "0", 5, 100));
    let (_agent, spool) = start(&tree);
    wait_for("the first record's end", || (!one.exists()).then_some(()));
    let two = put(&tree, "8.batch.6.step", &record("8", "batch", 6, 30));
    wait_for("the second record's end", || (!two.exists()).then_some(()));
    let entry = |job: &str, step: &str, bytes, began| (job.into(), step.into(), bytes, Some(began));
    assert_eq!(sent(&spool), [entry("7", "step_0", 100, 5), entry("8", "step_batch", 30, 6)]);
}

#[test]
fn both_runs_of_a_requeued_job_are_sent() {
    let tree = tree("steps-requeued");
    let files = [5, 6].map(|began| put(&tree, &format!("7.0.{began}.step"), &record("7", "0", began, began)));
    let (_agent, spool) = start(&tree);
    wait_for("their end", || files.iter().all(|file| !file.exists()).then_some(()));
    let began: Vec<_> = sent(&spool).into_iter().map(|(.., bytes, began)| (bytes, began)).collect();
    assert_eq!(began, [(5, Some(5)), (6, Some(6))]);
}

#[test]
fn a_step_record_stays_until_a_round_contains_it() {
    let tree = tree("steps-kept");
    let one = put(&tree, "7.0.5.step", &record("7", "0", 5, 100));
    let agent = Agent::start(&tree, &[]);
    for _ in 0..2 {
        assert!(agent.metrics().contains("iodock_slurm_step_bytes{"));
    }
    assert!(one.exists());
}

#[test]
fn a_damaged_step_record_is_set_aside() {
    let tree = tree("steps-damaged");
    let good = put(&tree, "9.0.5.step", &record("9", "0", 5, 100));
    let torn = put(&tree, "7.0.5.step", &record("7", "0", 5, 100)[..80]);
    let empty = put(&tree, "8.0.5.step", "");
    let (agent, spool) = start(&tree);
    wait_for("its end", || (!good.exists()).then_some(()));
    let aside = |path: &Path| path.with_extension("damaged").exists() && !path.exists();
    assert!(aside(&torn) && aside(&empty));
    agent.says("slurm_step: unreadable lines: 2, the first is line");
    assert_eq!(sent(&spool).len(), 1);
    let loss = |batch: &Batch| batch.losses.iter().any(|loss| loss.source == "slurm_step" && loss.count == 2);
    assert_eq!(batches(&spool).iter().filter(|batch| loss(batch)).count(), 1, "told once");
}

#[test]
fn invalid_records_are_named_and_do_not_hang_the_agent() {
    let tree = tree("steps-hostile");
    put(&tree, "9.0.5.step", &record("9", "0", 5, 100));
    put(&tree, "note.txt", "not a record's name");
    put(&tree, "1.0.5.step", &"x".repeat(1 << 20));
    fs::create_dir(tree.0.join(FOLDER).join("2.0.5.step")).expect("a folder");
    fifo(&tree, &format!("{FOLDER}/3.0.5.step"));
    symlink("/etc/passwd", tree.0.join(FOLDER).join("4.0.5.step")).expect("a link");
    let output = tree.agent(&[]);
    let (text, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("iodock_slurm_step_bytes{host=\"node7\",job=\"9\""), "{text}");
    has(&text, "iodock_agent_source_done{host=\"node7\",source=\"slurm-step\"} 1");
    for name in
        ["1.0.5.step: too long", "2.0.5.step: not a plain file", "3.0.5.step: not a plain file", "4.0.5.step"]
    {
        assert!(notes.contains(name), "{name} in {notes}");
    }
}

#[test]
fn a_folder_that_other_users_may_write_to_is_not_read() {
    let tree = tree("steps-open");
    put(&tree, "9.0.5.step", &record("9", "0", 5, 100));
    fs::set_permissions(tree.0.join(FOLDER), Permissions::from_mode(0o1777)).expect("it is ours");
    let output = tree.agent(&[]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("job=\"9\""));
    assert!(String::from_utf8_lossy(&output.stderr).contains("others than its owner may write to it"));
}

fn process(tree: &Tree, pid: u32, command: &str, user: u32, title: &str, environment: &str, read: u64) {
    let file = |name: &str, text: &str| tree.write(&format!("proc/{pid}/{name}"), text);
    file("io", &format!("rchar: {read}\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"));
    file("cgroup", "0::/system.slice/slurmd.service\n");
    file("environ", environment);
    file("cmdline", title);
    file("status", &format!("Name:\ta\nUid:\t{user}\t{user}\t{user}\t{user}\n"));
    file("stat", &format!("{pid} ({command}) S 1 {pid} 77 0 -1"));
}

/// I/O of slurmstepd's own threads does not belong to its step. The I/O of processes that it waited for does,
/// with the user of the step's processes.
#[test]
fn io_of_processes_that_slurmstepd_reaped_counts_for_the_step() {
    let tree = tree("steps-daemon");
    process(&tree, 10, "slurmstepd", 0, "slurmstepd: [7.0]", "", 5000);
    for (thread, read) in [(10, 300), (11, 4)] {
        tree.write(&format!("proc/10/task/{thread}/io"), format!("rchar: {read}\n"));
    }
    // This cgroup is that of the whole job, as proctrack/cgroup of cgroup v1 creates it.
    tree.write("proc/10/cgroup", "5:freezer:/slurm_node7/uid_1000/job_7\n");
    process(&tree, 12, "head", 1000, "head", "SLURM_JOB_ID=7\0SLURM_STEP_ID=0\0", 20);
    // Any user can give a process the name slurmstepd.
    process(&tree, 13, "slurmstepd", 1000, "slurmstepd: [8.0]", "", 600);
    let text = tree.samples(&[]);
    let line = |owner: &str, value: u64| {
        has(
            &text,
            &format!("iodock_process_io_bytes{{host=\"node7\",{owner},operation=\"read_call\"}} {value}"),
        );
    };
    line("job=\"7\",user=\"sato\",known_by=\"environment\"", 5000 - 304 + 20);
    line("session=\"sid-77\",user=\"sato\",command=\"slurmstepd\",known_by=\"session\"", 600);
}

#[test]
fn steps_are_listed_separately_only_for_the_collector() {
    let tree = tree("steps-apart");
    process(&tree, 12, "head", 1000, "head", "SLURM_JOB_ID=7\0SLURM_STEP_ID=0\0", 20);
    process(&tree, 13, "head", 1000, "head", "SLURM_JOB_ID=7\0", 300);
    let (agent, spool) = start(&tree);
    let steps: Vec<String> = wait_for("a reading", || {
        let batches = batches(&spool);
        let part = batches.iter().flat_map(|batch| &batch.parts).find(|part| part.source == "process_io")?;
        let steps =
            part.entries.iter().map(|entry| String::from_utf8_lossy(&entry.owner.session).into_owned());
        let mut steps: Vec<String> = steps.collect();
        steps.sort();
        Some(steps)
    });
    assert_eq!(steps, ["step_0", "step_batch"]);
    let owner = "host=\"node7\",job=\"7\",user=\"sato\",known_by=\"environment\"";
    has(&agent.metrics(), &format!("iodock_process_io_bytes{{{owner},operation=\"read_call\"}} 320"));
}
