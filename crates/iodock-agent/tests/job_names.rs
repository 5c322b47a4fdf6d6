//! Tests that the agent reads job names from environments, sends each once, and sends it again if the
//! collector lacks data.

mod running;
mod tree;

use iodock_samples::batch::{Batch, LONGEST_JOB_NAME};
use running::collector::{Collector, Conduct};
use running::{wait_for, Agent};
use std::fs;
use tree::{fifo, Tree};

const STEP: &str = "0::/system.slice/slurmstepd.scope/job_7/step_0\n";

/// Creates a process of user 1000 in a fake /proc.
fn process(tree: &Tree, pid: u32, cgroup: &str, environment: &[u8]) {
    let folder = format!("proc/{pid}");
    tree.write(&format!("{folder}/cgroup"), cgroup);
    tree.write(&format!("{folder}/environ"), environment);
    tree.write(&format!("{folder}/status"), "Name:\ta\nUid:\t1000\t1000\t1000\t1000\n");
    let fields = "0 ".repeat(13);
    tree.write(&format!("{folder}/stat"), format!("{pid} (tar) S 1 {pid} 77 0 -1 {fields} {pid}000 0\n"));
    // This file is written last, because the agent ignores a process without it.
    tree.write(
        &format!("{folder}/io"),
        "rchar: 5\nwchar: 1\nsyscr: 2\nsyscw: 3\nread_bytes: 4\nwrite_bytes: 5\ncancelled_write_bytes: 0\n",
    );
}

fn tree(name: &str) -> Tree {
    let tree = Tree::new(name);
    tree.write("etc/passwd", "sato:x:1000:1000::/home/sato:/bin/sh\n");
    tree
}

fn start(tree: &Tree, collector: &Collector) -> Agent {
    let spool = tree.0.join("spool");
    let spool = spool.to_str().expect("text");
    Agent::start(tree, &["--interval", "0.1", "--spool", spool, "--push", &collector.url()])
}

/// Returns job, user and name of each job name that the agent sent.
fn told(collector: &Collector) -> Vec<(String, String, Vec<u8>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let of = |batch: &Batch| batch.job_names.clone();
    let names = collector.seen().kept.iter().flat_map(of).collect::<Vec<_>>();
    names.iter().map(|one| (text(&one.job), text(&one.user), one.name.clone())).collect()
}

fn is_told(collector: &Collector, job: &str) -> Vec<u8> {
    wait_for(job, || told(collector).into_iter().find(|one| one.0 == job).map(|one| one.2))
}

/// Waits until the collector has stored this number of further batches.
fn rounds(collector: &Collector, more: usize) {
    let wanted = collector.seen().kept.len() + more;
    wait_for("rounds", || (collector.seen().kept.len() >= wanted).then_some(()));
}

#[test]
fn job_names_of_all_schedulers_are_sent_once() {
    let tree = tree("names");
    process(&tree, 10, STEP, b"SLURM_JOB_ID=7\0SLURM_JOB_NAME=ocean run\0");
    process(&tree, 11, STEP, b"SLURM_JOB_ID=7\0SLURM_JOB_NAME=another\0");
    process(&tree, 12, "0::/pbs_jobs.service/jobid/12.server\n", b"PBS_JOBID=12.server\0PBS_JOBNAME=qmc\0");
    process(&tree, 13, "0::/\n", b"PJM_JOBID=30005\0PJM_JOBNAME=lqcd.sh\0");
    // This process has the cgroup of one job and the variables of another, so it is unclear which job has the
    // name.
    process(&tree, 14, "0::/slurm/uid_1000/job_9/step_0\n", b"SLURM_JOB_ID=7\0SLURM_JOB_NAME=ocean run\0");
    process(&tree, 15, "0::/user.slice\n", b"SLURM_JOB_NAME=no job\0");
    let collector = Collector::start(Conduct::Keep);
    let _agent = start(&tree, &collector);
    assert_eq!(is_told(&collector, "7"), b"ocean run");
    assert_eq!(is_told(&collector, "12.server"), b"qmc");
    assert_eq!(is_told(&collector, "30005"), b"lqcd.sh");
    rounds(&collector, 10);
    let found = told(&collector);
    assert!(found.len() == 3 && found.iter().all(|one| one.1 == "sato"), "{found:?}");
    // This process appears only now.
    process(&tree, 16, "0::/slurm/uid_1000/job_20/step_0\n", b"SLURM_JOB_ID=20\0SLURM_JOB_NAME=late\0");
    assert_eq!(is_told(&collector, "20"), b"late");
}

#[test]
fn job_names_are_sent_again_after_a_gap() {
    let tree = tree("names-again");
    process(&tree, 10, STEP, b"SLURM_JOB_ID=7\0SLURM_JOB_NAME=ocean\0");
    let collector = Collector::start(Conduct::Keep);
    let _agent = start(&tree, &collector);
    is_told(&collector, "7");
    collector.conduct(Conduct::AskFull);
    wait_for("the name again", || (told(&collector).len() > 1).then_some(()));
}

#[test]
fn hostile_job_names_are_shortened_and_harmless() {
    let tree = tree("names-hostile");
    let evil = b"\"><script>alert(1)</script>\n{job=\"8\"} 1\xff\x1b[2J' OR 1=1 --".to_vec();
    process(&tree, 10, STEP, &[b"SLURM_JOB_ID=7\0SLURM_JOB_NAME=", &evil[..], b"\0"].concat());
    let long = [b"PJM_JOBID=3\0PJM_JOBNAME=".to_vec(), vec![b'x'; 4096]].concat();
    process(&tree, 11, "0::/\n", &long);
    let collector = Collector::start(Conduct::Keep);
    let agent = start(&tree, &collector);
    assert_eq!(is_told(&collector, "7"), evil);
    let name = is_told(&collector, "3");
    assert!(name.len() == LONGEST_JOB_NAME && name.ends_with("…".as_bytes()));
    tree::check_form(&agent.metrics());
}

#[test]
fn an_unreadable_environment_loses_only_the_job_name() {
    let tree = tree("names-stuck");
    process(&tree, 10, STEP, b"");
    fs::remove_file(tree.0.join("proc/10/environ")).expect("removed");
    fifo(&tree, "proc/10/environ");
    let collector = Collector::start(Conduct::Keep);
    let agent = start(&tree, &collector);
    rounds(&collector, 12);
    assert!(told(&collector).is_empty());
    let text = wait_for("its bytes", || Some(agent.metrics()).filter(|text| text.contains("job=\"7\"")));
    tree::has(&text, "iodock_agent_source_done{host=\"node7\",source=\"process-io\"} 1");
}
