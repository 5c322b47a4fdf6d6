//! Tests events of a running agent: each is reported once, even if the agent restarts or the log is rotated.

mod running;
mod tree;

use iodock_samples::event::Event;
use running::{batches, wait_for, Agent};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tree::{fifo, Tree};

struct Site {
    tree: Tree,
    spool: PathBuf,
}

impl Site {
    fn new(name: &str) -> Site {
        let tree = Tree::new(name);
        let spool = tree.0.join("spool");
        Site { tree, spool }
    }

    fn start(&self, more: &[&str]) -> Agent {
        let spool = self.spool.to_str().expect("text");
        let agent = Agent::start(&self.tree, &[&["--spool", spool, "--interval", "0.1"], more].concat());
        let before = self.rounds();
        wait_for("a round", || (self.rounds() > before).then_some(()));
        agent
    }

    fn rounds(&self) -> u64 {
        batches(&self.spool).last().map_or(0, |batch| batch.sequence)
    }

    /// Waits for two rounds that began after this call.
    fn settle(&self) {
        let now = self.rounds();
        wait_for("two rounds", || (self.rounds() >= now + 2).then_some(()));
    }

    fn events(&self) -> Vec<Event> {
        batches(&self.spool).into_iter().flat_map(|batch| batch.events).collect()
    }

    fn told(&self) -> Vec<(String, String, u64)> {
        self.events().into_iter().map(|event| (event.kind, event.target, event.count)).collect()
    }

    fn add(&self, path: &str, text: &str) {
        let path = self.tree.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("opened");
        file.write_all(text.as_bytes()).expect("written");
    }

    fn kernel(&self, boot: &str) {
        self.tree.write("proc/sys/kernel/random/boot_id", format!("{boot}\n"));
        self.tree.write("proc/uptime", "1000.00 3000.00\n");
    }
}

fn one(kind: &str, target: &str, count: u64) -> (String, String, u64) {
    (kind.into(), target.into(), count)
}

#[test]
fn a_log_line_is_sent_once_even_after_a_restart() {
    let site = Site::new("log-once");
    site.add("var/log/messages", "Nov 22 08:00:01 oss1 kernel: I/O error, dev sdold, sector 5\n");
    let agent = site.start(&[]);
    site.add("var/log/messages", "Nov 22 08:00:01 oss1 kernel: [ 12.5] I/O error, dev sda, sector 5\njunk\n");
    wait_for("an event", || (site.told() == [one("io-error", "sda", 1)]).then_some(()));
    agent.kill();
    // The log is rotated and written to while no agent runs.
    site.add("var/log/messages", "Nov 22 08:00:02 oss1 mmfs: [E] Error=MMFS_LONGDISKIO\n");
    fs::rename(site.tree.0.join("var/log/messages"), site.tree.0.join("var/log/messages.1"))
        .expect("rotated");
    site.add("var/log/messages", "2026-11-22T08:00:03Z oss1 kernel: nfs: server filer OK\n");
    let _agent = site.start(&[]);
    let expected = [one("io-error", "sda", 1), one("gpfs-slow", "", 1), one("nfs-responding", "filer", 1)];
    wait_for("the events meanwhile", || (site.told() == expected).then_some(()));
    site.settle();
    assert_eq!(site.told(), expected);
    let first = &site.events()[0];
    assert_eq!((first.text.as_str(), first.source.as_str()), ("I/O error, dev sda, sector 5", "system-log"));
}

#[test]
fn kernel_messages_that_syslog_copies_count_once() {
    let site = Site::new("kmsg");
    site.kernel("b1");
    site.add("dev/kmsg", "3,7,999000000,-;I/O error, dev sdold, sector 1\n");
    site.add("var/log/messages", "");
    let agent = site.start(&[]);
    // The first message was written 1001 s after boot, which is after the agent's start.
    site.add("dev/kmsg", "3,8,1001000000,-;I/O error, dev sda, sector 1\n SUBSYSTEM=block\nx,y;z\n3,9\n");
    site.add("var/log/messages", "Nov 22 08:00:01 oss1 kernel: I/O error, dev sda, sector 1\n");
    wait_for("an event", || (!site.told().is_empty()).then_some(()));
    agent.kill();
    site.add("dev/kmsg", "3,9,1002000000,-,caller=T1;LustreError: 1:0:(a.c:1:f()) LBUG\n");
    let agent = site.start(&[]);
    wait_for("the next", || (site.told().len() == 2).then_some(()));
    agent.kill();
    // After another boot, the numbers of messages start again.
    site.kernel("b2");
    site.tree.write("dev/kmsg", "3,1,5000000,-;nvme nvme0: I/O 384 QID 4 timeout, aborting\n");
    let _agent = site.start(&[]);
    wait_for("an event of the next boot", || (site.told().len() == 3).then_some(()));
    site.settle();
    let expected = [one("io-error", "sda", 1), one("lustre-bug", "", 1), one("disk-reset", "nvme0", 1)];
    assert_eq!(site.told(), expected);
}

#[test]
fn a_flood_of_messages_becomes_few_events_with_complete_counts() {
    let site = Site::new("log-flood");
    site.add("var/log/messages", "");
    let _agent = site.start(&[]);
    let mut lines = String::new();
    for number in 0..100_000 {
        lines.push_str(&format!("Nov 22 08:00:01 oss1 kernel: I/O error, dev sda, sector {number}\n"));
    }
    site.add("var/log/messages", &lines);
    // The agent reports later events with their count after a delay. Until then they are in its file.
    let kept = || {
        let text = fs::read_to_string(site.spool.join("seen.json")).unwrap_or_default();
        let known: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let waiting = known["quiet"]["kept"]
            .as_array()
            .map_or(0, |kept| kept.iter().filter_map(|kept| kept["waiting"]["count"].as_u64()).sum::<u64>());
        waiting + site.told().iter().map(|(.., count)| count).sum::<u64>()
    };
    wait_for("all of them", || (kept() == 100_000).then_some(()));
    assert_eq!(site.events().len(), 1);
}

#[test]
fn rules_of_the_site_are_used_and_errors_in_them_reported() {
    let site = Site::new("log-rules");
    let rules = site
        .tree
        .write("rules.toml", "[[rule]]\nkind = \"bb-full\"\nseverity = \"error\"\ntexts = [\"bbd:\"]\n");
    site.add("site/bb.log", "");
    let agent = site.start(&[
        "--rules",
        rules.to_str().expect("text"),
        "--log",
        "/site/bb.log",
        "--log",
        "/site/not-there",
    ]);
    site.add("site/bb.log", "bbd: no room\n");
    site.add("var/log/messages", "Nov 22 08:00:01 h kernel: LBUG\n");
    wait_for("an event", || (site.told() == [one("bb-full", "", 1)]).then_some(()));
    site.settle();
    assert_eq!(site.told().len(), 1);
    agent.kill();
    fs::write(&rules, "[[rule]]\nkind = 5\n").expect("written");
    let mut agent = Agent::start(&site.tree, &["--rules", rules.to_str().expect("text")]);
    assert_eq!(wait_for("its end", || agent.process.try_wait().expect("it ran")).code(), Some(2));
    agent.says("line 2");
}

#[test]
fn the_journal_is_read_from_its_cursor_even_if_journalctl_fails() {
    let site = Site::new("journal");
    let script = "#!/bin/sh\ncase \"$*\" in\n\
        *--after-cursor=s=2*) exit 1;;\n\
        *--after-cursor=s=1*) echo '{\"__CURSOR\":\"s=2\",\"MESSAGE\":\"nfs: server f not responding, still trying\",\"_TRANSPORT\":\"kernel\"}'; echo junk; kill -9 $$;;\n\
        *--lines=1*) echo '{\"__CURSOR\":\"s=1\",\"MESSAGE\":\"LBUG\"}';;\nesac\n";
    let path = site.tree.write("usr/bin/journalctl", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    for _ in 0..3 {
        // Each agent runs journalctl once, in its first round.
        let agent = site.start(&[]);
        site.settle();
        agent.kill();
    }
    assert_eq!(site.told(), [one("nfs-not-responding", "f", 1)]);
    fs::write(&path, "#!/bin/sh\nsleep 1000\n").expect("written");
    let agent = site.start(&["--deadline", "1"]);
    agent.says("journal: no answer from");
    site.settle();
}

#[test]
fn state_changes_are_sent_once_and_a_piped_log_does_not_block() {
    let site = Site::new("log-states");
    fifo(&site.tree, "var/log/other");
    site.tree.write("proc/mdstat", "md0 : active raid1 sdb[1] sda[0]\n      5 blocks [2/2] [UU]\n\n");
    let agent = site.start(&["--log", "/var/log/other", "--deadline", "1"]);
    let new = site.tree.write("new", "md0 : active raid1 sdb[1](F) sda[0]\n      5 blocks [2/1] [U_]\n\n");
    fs::rename(new, site.tree.0.join("proc/mdstat")).expect("renamed");
    wait_for("an event", || (site.told() == [one("array-degraded", "md0", 1)]).then_some(()));
    agent.kill();
    let _agent = site.start(&[]);
    site.settle();
    assert_eq!(site.told().len(), 1);
}
