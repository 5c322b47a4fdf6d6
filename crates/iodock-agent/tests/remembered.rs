//! Tests that the agent remembers the owner of a process between rounds while it runs the same program, and
//! then forgets it.

mod running;
mod tree;

use iodock_samples::batch::Batch;
use iodock_samples::sample::Evidence;
use running::{batches, wait_for, Agent};
use std::fs;
use std::path::PathBuf;
use tree::Tree;

struct Process {
    tree: Tree,
    spool: PathBuf,
    agent: Agent,
}

/// Replaces a file in one step, so that the agent never reads a part of it, as in /proc.
fn replace(tree: &Tree, path: &str, text: &str) {
    let new = tree.write("new", text);
    let path = tree.write(path, "");
    fs::rename(new, path).expect("renamed");
}

fn set(tree: &Tree, name: &str, text: &str) {
    fs::create_dir_all(tree.0.join("proc/10")).expect("a folder");
    let new = tree.write("new", text);
    fs::rename(new, tree.0.join("proc/10").join(name)).expect("renamed");
}

fn stat(code: u64, state: char) -> String {
    format!("10 (tar) {state} 1 10 77 {}5000 9 9 9 {code} 9", "0 ".repeat(15))
}

impl Process {
    /// Creates a process whose environment contains a job, and waits for four rounds.
    fn new(name: &str) -> Self {
        let tree = Tree::new(name);
        replace(&tree, "etc/passwd", "sato:x:1000:1000::/home/sato:/bin/sh\n");
        set(&tree, "stat", &stat(4096, 'S'));
        set(&tree, "status", "Name:\ta\nUid:\t1000\t1000\t1000\t1000\n");
        set(&tree, "cgroup", "0::/user.slice\n");
        set(&tree, "environ", "PJM_JOBID=30005\0");
        set(&tree, "io", "rchar: 5\n");
        let spool = tree.0.join("spool");
        let agent = Agent::start(&tree, &["--interval", "0.1", "--spool", spool.to_str().expect("text")]);
        let process = Process { tree, spool, agent };
        process.more_rounds(4);
        process
    }

    fn last(&self) -> u64 {
        batches(&self.spool).last().map_or(0, |batch| batch.sequence)
    }

    fn more_rounds(&self, rounds: u64) {
        let until = self.last() + rounds;
        wait_for("rounds", || (self.last() >= until).then_some(()));
    }

    /// Returns the owner of the entry with this number of bytes read.
    fn owner_of(&self, bytes: u64) -> (Evidence, String) {
        wait_for("the reading", || {
            let is_it = |batch: &Batch| {
                let entries = batch.parts.iter().flat_map(|part| &part.entries).cloned().collect::<Vec<_>>();
                entries
                    .into_iter()
                    .find(|entry| entry.values.first().is_some_and(|(_, value)| *value == bytes))
            };
            let entry = batches(&self.spool).iter().find_map(is_it)?;
            assert_eq!(entry.owner.user, b"sato");
            Some((entry.owner.evidence, String::from_utf8_lossy(&entry.owner.job).into_owned()))
        })
    }

    fn reads(&self, bytes: u64) -> (Evidence, String) {
        set(&self.tree, "io", &format!("rchar: {bytes}\n"));
        self.owner_of(bytes)
    }
}

#[test]
fn the_environment_of_a_process_is_read_once() {
    let process = Process::new("remembered-environment");
    set(&process.tree, "environ", "");
    for round in 1..10 {
        assert_eq!(process.reads(100 + round), (Evidence::Environment, "30005".into()));
    }
}

#[test]
fn a_process_that_executes_another_program_is_read_again() {
    let process = Process::new("remembered-program");
    set(&process.tree, "environ", "PJM_JOBID=8\0");
    set(&process.tree, "stat", &stat(8192, 'S'));
    process.more_rounds(2);
    assert_eq!(process.reads(100), (Evidence::Environment, "8".into()));
}

#[test]
fn unreaped_processes_belong_to_their_job() {
    let process = Process::new("remembered-zombie");
    set(&process.tree, "environ", "");
    set(&process.tree, "stat", &stat(0, 'Z'));
    process.more_rounds(2);
    assert_eq!(process.reads(100), (Evidence::Environment, "30005".into()));
}

#[test]
fn a_process_moved_to_the_cgroup_of_a_job_soon_counts_there() {
    let process = Process::new("remembered-cgroup");
    set(&process.tree, "cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
    process.more_rounds(8);
    assert_eq!(process.reads(100), (Evidence::Cgroup, "7".into()));
    assert!(process.agent.said().contains("/metrics"));
}
