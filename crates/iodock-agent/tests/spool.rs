//! Tests the spool: its content survives the agent's end at any moment, a full disk and damage, and its size
//! stays within the limit.

mod running;
mod tree;

use iodock_samples::batch::Batch;
use running::collector::{Collector, Conduct};
use running::{batches, opens, segments, spool_bytes, wait_for, write_opens, Agent};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tree::{check_form, Tree};

fn spool_of(tree: &Tree) -> (PathBuf, String) {
    let path = tree.0.join("spool");
    let text = path.to_str().expect("text").to_owned();
    (path, text)
}

fn last(spool: &Path) -> Option<Batch> {
    batches(spool).pop()
}

#[test]
fn the_spool_has_one_full_round_followed_by_changes() {
    let tree = Tree::new("spool-rounds");
    let (spool, path) = spool_of(&tree);
    write_opens(&tree, 1);
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "0.2"]);
    wait_for("a third round", || last(&spool).filter(|batch| batch.sequence > 2));
    write_opens(&tree, 5);
    let changed = wait_for("a change", || batches(&spool).into_iter().find(|batch| opens(batch) == [5]));
    let all = batches(&spool);
    assert_eq!((opens(&all[0]), all[0].parts[0].full, all[0].host.as_str()), (vec![1], true, "node7"));
    let before = &all[1..changed.sequence as usize - 1];
    assert!(before
        .iter()
        .all(|batch| opens(batch).is_empty() && !batch.parts[0].full && batch.parts[0].last));
    assert!(!changed.parts[0].full);
    assert!(all
        .windows(2)
        .all(|pair| pair[0].sequence + 1 == pair[1].sequence && pair[0].spool == pair[1].spool));
    let text = agent.metrics();
    check_form(&text);
    assert!(text.contains("iodock_mdt_job_stats_operations_total{host=\"node7\""), "{text}");
    assert!(agent.metric("iodock_agent_spool_bytes").is_some_and(|bytes| bytes > 0));
    assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(0));
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
    assert_eq!((mode(&spool), mode(&segments(&spool)[0])), (0o700, 0o600));
}

#[test]
fn a_pull_returns_the_round_of_the_current_interval() {
    let tree = Tree::new("spool-metrics");
    let (spool, path) = spool_of(&tree);
    write_opens(&tree, 1);
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "3600"]);
    wait_for("the first round", || last(&spool));
    write_opens(&tree, 2);
    let text = agent.metrics();
    assert!(text.contains("operation=\"open\"} 1\n"), "{text}");
    assert_eq!(batches(&spool).len(), 1);
}

#[test]
#[ignore = "part of `make test-all`: kills an agent again and again"]
fn an_agent_killed_at_any_moment_loses_no_written_batch() {
    let tree = Tree::new("spool-killed");
    let (spool, path) = spool_of(&tree);
    let mut seed = 12345u64;
    let mut known: Vec<Batch> = Vec::new();
    for life in 1..=20 {
        write_opens(&tree, life);
        let agent = Agent::start(&tree, &["--spool", &path, "--interval", "0.1", "--spool-limit", "128K"]);
        wait_for("a batch of this life", || {
            last(&spool).filter(|batch| opens(batch) == [life] || batch.sequence > known.len() as u64 + 1)
        });
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        sleep(Duration::from_millis(seed >> 33 & 127));
        agent.kill();
        let now = batches(&spool);
        assert_eq!(now[..known.len()], known, "life {life}");
        let first = &now[known.len()];
        assert!(opens(first) == [life] && first.parts.iter().all(|part| part.full), "life {life}");
        known = now;
    }
    assert!(known
        .windows(2)
        .all(|pair| pair[0].sequence < pair[1].sequence && pair[0].spool == pair[1].spool));
    assert_eq!(known[0].sequence, 1);
    assert!(known.iter().all(|batch| batch.dropped == 0));
}

/// Writes several batches into one file, and returns their number.
fn filled(tree: &Tree) -> u64 {
    let (spool, path) = spool_of(tree);
    write_opens(tree, 1);
    let agent = Agent::start(tree, &["--spool", &path, "--interval", "0.1"]);
    let last = wait_for("five batches", || last(&spool).filter(|batch| batch.sequence >= 5));
    agent.kill();
    batches(&spool).last().map_or(last.sequence, |batch| batch.sequence)
}

#[test]
fn a_truncated_last_batch_is_dropped_and_counted() {
    let tree = Tree::new("spool-torn");
    let count = filled(&tree);
    let (spool, path) = spool_of(&tree);
    let file = segments(&spool).pop().expect("a file");
    let length = fs::metadata(&file).expect("there").len();
    File::options().write(true).open(&file).expect("opened").set_len(length - 3).expect("cut");
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "3600"]);
    agent.says("batches that were cut or damaged, and are left out: 1");
    let newest = wait_for("a batch", || last(&spool).filter(|batch| batch.dropped == 1));
    assert_eq!((newest.sequence, batches(&spool).len() as u64), (count, count));
    assert_eq!(agent.metric("iodock_agent_batches_damaged_total"), Some(1));
}

#[test]
fn damage_in_the_middle_loses_one_batch() {
    let tree = Tree::new("spool-damaged");
    let count = filled(&tree);
    let (spool, path) = spool_of(&tree);
    let file = segments(&spool).pop().expect("a file");
    let bytes = fs::read(&file).expect("read");
    let second = bytes.windows(6).enumerate().filter(|(_, at)| at == b"IODOCS").nth(1).expect("a second").0;
    File::options()
        .write(true)
        .open(&file)
        .expect("opened")
        .write_all_at(&[0xff; 4], second as u64 + 40)
        .expect("damaged");
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "3600"]);
    agent.says("left out: 1");
    assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(1));
    let newest = wait_for("a new file", || segments(&spool).get(1).cloned());
    assert!(newest.ends_with(format!("{:020}.frames", count + 1)));
    // The agent creates the file before it counts the first batch in it.
    wait_for("the new batch to be counted", || {
        agent.metric("iodock_agent_batches_waiting").filter(|waiting| *waiting == count)
    });
}

/// A damaged place stays in its file until the collector has stored the whole file.
#[test]
fn a_damaged_batch_is_counted_once_over_all_starts_of_the_agent() {
    let tree = Tree::new("spool-damaged-once");
    let first = filled(&tree);
    let (spool, path) = spool_of(&tree);
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "0.1"]);
    wait_for("a second file of five batches", || last(&spool).filter(|batch| batch.sequence >= first + 5));
    agent.kill();
    let second = segments(&spool).pop().expect("a file");
    let bytes = fs::read(&second).expect("read");
    let frames = bytes.windows(6).enumerate().filter(|(_, at)| at == b"IODOCS");
    let begin = frames.map(|(at, _)| at as u64).nth(1).expect("a frame");
    let file = File::options().write(true).open(&second).expect("opened");
    file.write_all_at(&[0xff; 4], begin + 40).expect("damaged");
    // The agent removes batches that the collector has stored, and remembers the numbers of the others.
    let collector = Collector::start(Conduct::Says(first));
    let push = ["--spool", &path, "--interval", "0.1", "--push", &collector.url()];
    let agent = Agent::start(&tree, &push);
    wait_for("the first file to go", || segments(&spool).first().filter(|file| **file == second).cloned());
    assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(1));
    agent.kill();
    for life in 0..2 {
        let agent = Agent::start(&tree, &["--spool", &path, "--interval", "3600"]);
        wait_for("a round", || agent.metric("iodock_agent_batches_dropped_total"));
        assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(1), "life {life}");
        agent.kill();
    }
}

#[test]
fn a_file_without_any_frame_does_no_harm() {
    let tree = Tree::new("spool-junk");
    let (spool, path) = spool_of(&tree);
    fs::create_dir_all(&spool).expect("a folder");
    for (name, bytes) in [
        ("00000000000000000003.frames", vec![0u8; 5000]),
        ("00000000000000000009.frames", b"IODOCS\x01\0".to_vec()),
        ("id", b"xyz".to_vec()),
        ("state", b"-1 junk".to_vec()),
        ("other", b"x".to_vec()),
    ] {
        fs::write(spool.join(name), bytes).expect("written");
    }
    fs::set_permissions(&spool, fs::Permissions::from_mode(0o700)).expect("set");
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "0.2"]);
    let newest = wait_for("a batch", || {
        segments(&spool)
            .pop()
            .map(|path| running::frames(&fs::read(path).unwrap_or_default()))
            .and_then(|mut all| all.pop())
    });
    assert!(newest.sequence >= 9 && newest.spool != [0; 16]);
    assert_eq!(fs::read(spool.join("id")).expect("there").len(), 33);
    assert_eq!(agent.metric("iodock_agent_batches_damaged_total"), Some(2));
}

#[test]
fn the_oldest_batches_are_removed_at_the_size_limit() {
    let tree = Tree::new("spool-limit");
    let (spool, path) = spool_of(&tree);
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "0.1", "--spool-limit", "64K"]);
    let mut round = 0;
    wait_for("dropping", || {
        write_others(&tree, &mut round);
        assert!(spool_bytes(&spool) <= 64 << 10);
        agent.metric("iodock_agent_batches_dropped_total").filter(|count| *count > 3)
    });
    let all = batches(&spool);
    assert!(all[0].sequence > 1 && all.windows(2).all(|pair| pair[0].sequence + 1 == pair[1].sequence));
    agent.kill();
    // The new agent continues the count, which begins when the spool is created.
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "3600"]);
    assert!(agent.metric("iodock_agent_batches_dropped_total").is_some_and(|count| count > 3));
}

#[test]
fn a_second_agent_cannot_use_the_same_spool() {
    let tree = Tree::new("spool-lock");
    let (spool, path) = spool_of(&tree);
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "3600"]);
    wait_for("a batch", || last(&spool));
    let mut second = Agent::start(&tree, &["--spool", &path]);
    second.says("another agent uses it");
    assert_eq!(second.process.wait().expect("it ends").code(), Some(2));
    agent.kill();
    let third = Agent::start(&tree, &["--spool", &path, "--interval", "3600"]);
    wait_for("a second batch", || last(&spool).filter(|batch| batch.sequence == 2));
    drop(third);
}

#[test]
fn a_removed_spool_is_created_again() {
    let tree = Tree::new("spool-removed");
    let (spool, path) = spool_of(&tree);
    let agent = Agent::start(&tree, &["--spool", &path, "--interval", "0.1"]);
    let before = wait_for("some batches", || last(&spool).filter(|batch| batch.sequence > 2));
    fs::rename(&spool, tree.0.join("removed")).expect("renamed");
    fs::remove_dir_all(tree.0.join("removed")).expect("removed");
    let after = wait_for("a batch", || last(&spool));
    assert!(after.sequence > before.sequence && after.spool == before.spool);
    assert!(agent.metric("iodock_agent_batches_dropped_total") >= Some(before.sequence));
}

#[test]
fn a_spool_that_other_users_may_write_to_is_refused() {
    let tree = Tree::new("spool-others");
    let (spool, path) = spool_of(&tree);
    fs::create_dir_all(&spool).expect("a folder");
    fs::set_permissions(&spool, fs::Permissions::from_mode(0o777)).expect("set");
    let agent = Agent::start(&tree, &["--spool", &path]);
    agent.says("others may write to it");
    agent.says("hint: ");
}

/// A shell limits the size of files before it starts the agent, so that writing fails.
#[test]
fn a_file_size_limit_loses_batches_but_does_not_end_the_agent() {
    let tree = Tree::new("spool-grow");
    let (spool, path) = spool_of(&tree);
    write_opens(&tree, 1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_iodock-agent"));
    // SAFETY: between fork and exec this makes one system call, which is allowed there.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 1000, rlim_max: 1000 };
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            Ok(())
        });
    }
    let agent = Agent::run(command, &tree, &["--spool", &path, "--interval", "0.1"]);
    wait_for("a second file", || (segments(&spool).len() > 1).then_some(()));
    assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(0));
    assert!(segments(&spool).iter().all(|path| fs::metadata(path).is_ok_and(|file| file.len() <= 1000)));
    let all = batches(&spool);
    assert!(all.windows(2).all(|pair| pair[0].sequence + 1 == pair[1].sequence));
}

/// Starts an agent with a spool on a file system of 192 KiB, if this machine allows creating one. Returns the
/// agent and the path of its files.
fn on_a_small_disk(tree: &Tree, arguments: &[&str]) -> Option<(Agent, PathBuf)> {
    let (spool, path) = spool_of(tree);
    fs::create_dir_all(&spool).expect("a folder");
    let mount = format!("mount -t tmpfs -o size=192k,mode=700 none '{path}'");
    let may = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).status();
    if !may.is_ok_and(|status| status.success()) {
        writeln!(std::io::stderr(), "not checked: no file system may be mounted here").expect("written");
        return None;
    }
    let script = format!("{mount} && exec '{}' \"$@\"", env!("CARGO_BIN_EXE_iodock-agent"));
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script, "sh"]);
    let more = ["--spool", path.as_str(), "--interval", "0.1"];
    let agent = Agent::run(command, tree, &[&more, arguments].concat());
    let inside = PathBuf::from(format!("/proc/{}/root{path}", agent.process.id()));
    Some((agent, inside))
}

/// Writes counters of different jobs at each call.
fn write_others(tree: &Tree, round: &mut u64) {
    *round += 1;
    let job = |at: u64| {
        let number = (*round << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("- job_id: \"{number:x}\"\n  open: {{ samples: {}, unit: reqs }}\n", number >> 8)
    };
    let new = tree.write("new", "job_stats:\n".to_owned() + &(1..300).map(job).collect::<String>());
    fs::rename(new, tree.write("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", "")).expect("renamed");
}

#[test]
fn on_a_full_disk_the_oldest_batches_are_removed() {
    let tree = Tree::new("spool-full");
    let Some((agent, inside)) = on_a_small_disk(&tree, &["--spool-limit", "512K"]) else { return };
    let mut round = 0;
    wait_for("dropping", || {
        write_others(&tree, &mut round);
        agent.metric("iodock_agent_batches_dropped_total").filter(|count| *count > 9)
    });
    let all = batches(&inside);
    assert!(all[0].sequence > 1 && all.windows(2).all(|pair| pair[0].sequence + 1 == pair[1].sequence));
}

#[test]
fn batches_wait_in_memory_if_no_other_can_be_removed() {
    let tree = Tree::new("spool-waiting");
    let Some((agent, inside)) = on_a_small_disk(&tree, &[]) else { return };
    wait_for("a batch", || last(&inside));
    let filler = inside.join("filler");
    let full = fs::write(&filler, vec![1; 300_000]).expect_err("the disk is smaller");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let mut round = 0;
    wait_for("waiting", || {
        write_others(&tree, &mut round);
        agent.said().contains("batches wait in memory").then_some(())
    });
    let waiting = agent.metric("iodock_agent_batches_waiting");
    wait_for("more rounds", || (agent.metric("iodock_agent_batches_waiting") > waiting).then_some(()));
    // When the disk has room again, the agent writes the waiting batches.
    fs::remove_file(&filler).expect("removed");
    agent.says("over: note: spool");
    assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(0));
    let all = batches(&inside);
    assert!(all.windows(2).all(|pair| pair[0].sequence + 1 == pair[1].sequence));
}
