//! Tests pushing: all data arrive even if the collector fails or the agent is killed, and only the collector
//! gets them.

mod running;
mod tree;

use iodock_agent::push::{Answer, Client, Push};
use iodock_samples::batch::Batch;
use running::collector::{Collector, Conduct};
use running::site::{assert_all, fixture, has_kept, Site};
use running::{assert_is_now, batches, opens, wait_for, write_opens};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tree::check_form;

#[test]
fn delivered_rounds_are_removed_from_the_spool() {
    let collector = Collector::start(Conduct::Keep);
    let site = Site::new("push", &collector.url());
    let token = site.file("token", "abc-123\n", 0o600);
    let site = site.with("--token-file", &token).with("--spool-limit", "64K");
    let agent = site.start();
    has_kept(&collector, 5);
    write_opens(&site.tree, 7);
    wait_for("the change", || collector.seen().kept.iter().any(|batch| opens(batch) == [7]).then_some(()));
    assert_all(&collector.kept());
    let head = collector.seen().heads[0].to_lowercase();
    for line in [
        "post /api/v1/samples http/1.1",
        "content-type: application/x-iodock-samples",
        "authorization: bearer abc-123",
    ] {
        assert!(head.contains(line), "{head}");
    }
    assert_is_now(head.lines().find_map(|line| line.strip_prefix("iodock-time: ")).expect("its clock"));
    wait_for("the metric", || agent.metric("iodock_agent_batches_kept_total").filter(|count| *count >= 5));
    assert_eq!(agent.metric("iodock_agent_push_failures_total"), Some(0));
    check_form(&agent.metrics());
    // The agent removes a file when the collector has stored all its batches.
    wait_for("a new file", || {
        let first = running::segments(&site.spool).first()?.file_name()?.to_str()?.to_owned();
        (first != "00000000000000000001.frames").then_some(())
    });
}

#[test]
fn a_connection_closed_between_requests_is_not_a_failure() {
    let collector = Collector::start(Conduct::KeepOnce);
    let site = Site::new("push-once", &collector.url());
    let agent = site.start();
    has_kept(&collector, 10);
    assert_all(&collector.kept());
    assert_eq!(agent.metric("iodock_agent_push_failures_total"), Some(0));
}

#[test]
fn batches_of_an_outage_are_delivered_later() {
    // Nothing listens on this port yet.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let site = Site::new("outage", &format!("http://{address}"));
    let agent = site.start();
    agent.says("note: push: ");
    wait_for("a backlog", || (batches(&site.spool).len() > 10).then_some(()));
    let collector = Collector::listen(TcpListener::bind(address).expect("the port"), Conduct::Keep, None);
    has_kept(&collector, 12);
    collector.conduct(Conduct::Status(503, String::new()));
    agent.says("status 503");
    let before = collector.kept().len();
    collector.conduct(Conduct::Keep);
    has_kept(&collector, before + 5);
    assert_all(&collector.kept());
    agent.says("over: note: push: status 503");
    assert!(agent.metric("iodock_agent_push_failures_total").is_some_and(|count| count >= 2));
    assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(0));
}

#[test]
#[ignore = "part of `make test-all`: kills an agent again and again"]
fn an_agent_killed_at_any_moment_loses_no_batch() {
    let collector = Collector::start(Conduct::Keep);
    let site = Site::new("push-killed", &collector.url());
    let mut seed = 99u64;
    for life in 1..=20 {
        write_opens(&site.tree, life);
        let before = batches(&site.spool).last().map_or(0, |batch| batch.sequence);
        let agent = site.start();
        wait_for("a batch of this life", || {
            batches(&site.spool).last().filter(|batch| batch.sequence > before).map(drop)
        });
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        sleep(Duration::from_millis(seed >> 33 & 127));
        agent.kill();
        let conduct = if life % 3 == 0 { Conduct::Status(500, String::new()) } else { Conduct::Keep };
        collector.conduct(conduct);
    }
    collector.conduct(Conduct::Keep);
    let last = batches(&site.spool).last().map_or(0, |batch| batch.sequence);
    let agent = site.start();
    wait_for("the last batch", || collector.kept().contains(&(last + 1)).then_some(()));
    agent.kill();
    // Each batch arrives at least once, and repeated batches are identical.
    let mut known = BTreeMap::<u64, Batch>::new();
    for batch in &collector.seen().kept {
        let first = known.entry(batch.sequence).or_insert_with(|| batch.clone());
        assert_eq!(first, batch);
    }
    assert!(known.keys().copied().eq(1..=known.len() as u64) && known.len() as u64 > last);
    let full = |batch: &Batch| batch.parts.iter().any(|part| part.full);
    assert!(known.values().filter(|batch| full(batch)).count() >= 20);
    assert!(known.values().all(|batch| batch.spool == known[&1].spool && batch.dropped == 0));
}

#[test]
fn a_collector_that_misses_batches_gets_a_full_round_once() {
    let collector = Collector::start(Conduct::AskFull);
    let site = Site::new("push-full", &collector.url());
    let agent = site.start();
    let is_full = |batch: &&Batch| batch.parts.iter().any(|part| part.full);
    wait_for("a second full round", || {
        (collector.seen().kept.iter().filter(is_full).count() > 1).then_some(())
    });
    collector.conduct(Conduct::Keep);
    // A request from before the change may still be in progress.
    let count = collector.kept().len();
    has_kept(&collector, count + 8);
    let seen = collector.seen();
    assert!(seen.kept[count + 4..].iter().all(|batch| !is_full(&batch)));
    drop(agent);
}

#[test]
fn a_wrong_token_is_reported_once_and_its_file_read_again() {
    let collector = Collector::start(Conduct::Status(401, String::new()));
    let site = Site::new("push-token", &collector.url());
    let token = site.file("token", "secret-word", 0o600);
    let site = site.with("--token-file", &token);
    let agent = site.start();
    agent.says("status 401");
    wait_for("a backlog", || (batches(&site.spool).len() > 20).then_some(()));
    assert_eq!(agent.said().matches("status 401").count(), 1);
    assert_eq!(collector.seen().heads.len(), 1);
    assert!(!agent.said().contains("secret-word"));
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = Collector::start(Conduct::Keep);
    let to = format!("Location: {}/api/v1/samples\r\n", elsewhere.url());
    for status in [301, 302, 303, 307, 308] {
        let collector = Collector::start(Conduct::Status(status, to.clone()));
        let site = Site::new(&format!("push-redirect-{status}"), &collector.url());
        let agent = site.start();
        agent.says(&format!("status {status}"));
        assert!(agent.said().contains("not followed"), "{}", agent.said());
    }
    assert!(elsewhere.seen().heads.is_empty());
}

/// Returns the client's answer and its time. The time limit is short, because tests can't wait for a minute.
fn answer(collector: &Collector) -> (Answer, Duration) {
    let push = Push { url: Some(collector.url()), ..Push::default() };
    let client =
        Client::new(&push, Duration::from_millis(500)).map_err(|wrong| wrong.what).expect("a client");
    let begin = Instant::now();
    (client.post(b"x"), begin.elapsed())
}

#[test]
fn rounds_continue_despite_any_collector_failure() {
    for conduct in [Conduct::Hang, Conduct::Drip] {
        let collector = Collector::start(conduct.clone());
        let (failed, took) = answer(&collector);
        assert!(matches!(failed, Answer::Failed(_)) && took >= Duration::from_millis(400), "{failed:?}");
        let site = Site::new(&format!("push-{conduct:?}"), &collector.url());
        let agent = site.start();
        wait_for("rounds", || (batches(&site.spool).len() > 10).then_some(()));
        assert_eq!(agent.metric("iodock_agent_batches_dropped_total"), Some(0));
        drop(agent);
    }
}

#[test]
fn an_endless_answer_is_not_read() {
    let collector = Collector::start(Conduct::Flood);
    let site = Site::new("push-flood", &collector.url());
    let agent = site.start();
    agent.says("note: push: ");
    let status = fs::read_to_string(format!("/proc/{}/status", agent.process.id())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kilobytes < 100_000, "{peak}");
    collector.conduct(Conduct::Keep);
    has_kept(&collector, 3);
}

#[test]
fn an_invalid_receipt_counts_as_a_failure() {
    for says in [0, u64::MAX] {
        let collector = Collector::start(Conduct::Says(says));
        let site = Site::new(&format!("push-says-{says}"), &collector.url());
        let agent = site.start();
        agent.says("the collector answers that it keeps");
        collector.conduct(Conduct::Keep);
        let before = collector.kept().len();
        has_kept(&collector, before + 3);
        let seen = collector.seen();
        assert_eq!(seen.kept[before].sequence, 1, "nothing was taken for kept");
        drop(seen);
        drop(agent);
    }
}

#[test]
fn the_agent_continues_from_the_collectors_higher_number() {
    let collector = Collector::start(Conduct::Says(1000));
    let site = Site::new("push-ahead", &collector.url());
    let agent = site.start();
    wait_for("the jump", || batches(&site.spool).last().filter(|batch| batch.sequence > 1000).map(drop));
    collector.conduct(Conduct::Keep);
    wait_for("a full round", || {
        let seen = collector.seen();
        seen.kept
            .iter()
            .any(|batch| batch.sequence > 1000 && batch.parts.iter().any(|part| part.full))
            .then_some(())
    });
    drop(agent);
}

#[test]
fn oversized_requests_are_sent_in_pieces() {
    let collector = Collector::start(Conduct::Status(503, String::new()));
    let site = Site::new("push-long", &collector.url());
    let agent = site.start();
    wait_for("a backlog", || (running::spool_bytes(&site.spool) > 10_000).then_some(()));
    collector.conduct(Conduct::AtMost(3000));
    wait_for("the backlog", || (collector.kept().len() > 20).then_some(()));
    assert_all(&collector.kept());
    assert_eq!(agent.metric("iodock_agent_batches_refused_total"), Some(0));
}

#[test]
fn a_refused_batch_is_set_aside_and_the_others_are_delivered() {
    let collector = Collector::start(Conduct::Not(3));
    let site = Site::new("push-refused", &collector.url());
    let agent = site.start();
    wait_for("the fifth", || collector.kept().contains(&5).then_some(()));
    let kept = collector.kept();
    assert!(kept.starts_with(&[1, 2, 4, 5]), "{kept:?}");
    assert!(
        agent.said().contains("status 400 Bad Request: bad; refused batches are set aside"),
        "{}",
        agent.said()
    );
    assert_eq!(agent.metric("iodock_agent_batches_refused_total"), Some(1));
    let aside = fs::read(site.spool.join("refused-00000000000000000003.frame")).expect("set aside");
    assert_eq!(running::frames(&aside)[0].sequence, 3);
    // The refused batch contained the last values of its owners, so a full round must follow.
    wait_for("a full round", || {
        let seen = collector.seen();
        seen.kept
            .iter()
            .skip(2)
            .any(|batch| batch.dropped == 1 && batch.parts.iter().any(|part| part.full))
            .then_some(())
    });
}

#[test]
fn insecure_push_settings_are_refused_at_the_start() {
    let url = "http://127.0.0.1:9";
    let open = Site::new("push-open", url);
    let token = open.file("token", "abc", 0o644);
    assert!(open.with("--token-file", &token).ends().contains("others may read it\nhint: chmod 600"));
    let long = Site::new("push-lines", url);
    let token = long.file("token", "abc\ndef", 0o600);
    assert!(long.with("--token-file", &token).ends().contains("must be a file with one line"));
    assert!(Site::new("push-clear", "http://192.0.2.1").ends().contains("could be read on the way"));
    assert!(Site::new("push-none", url).with("--token-file", "/nonexistent").ends().contains("No such file"));
    let half = Site::new("push-half", "https://127.0.0.1:9");
    let half = half.with("--ca", &fixture("authority.pem")).with("--cert", &fixture("client.pem"));
    assert!(half.ends().contains("belong together"));
    let junk = Site::new("push-junk", "https://127.0.0.1:9");
    let file = junk.file("junk", "no certificate", 0o600);
    assert!(junk.with("--ca", &file).ends().contains("no certificate in it"));
}
