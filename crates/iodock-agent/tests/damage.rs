//! Tests damaged, cut and manipulated files: valid parts are read, and the rest is counted and belongs to no
//! owner.

mod parsing;

use iodock_agent::logs::rules::Rules;
use iodock_agent::logs::{site, times};
use iodock_agent::sample::Quantity::*;
use iodock_agent::sources::probe::records::records;
use iodock_agent::sources::{job_stats, lustre_stats, md, mountstats, rpc_stats};
use parsing::{read, Read};

const JOBS: usize = 1000;

/// Returns a file of `job_stats` with 7 lines for each job.
fn job_lines() -> Vec<String> {
    let mut lines = vec!["job_stats:".to_string()];
    for job in 0..JOBS {
        lines.push(format!("- job_id:          {job}"));
        lines.push(format!("  snapshot_time:   {}", 1_700_000_000 + job));
        for (at, operation) in ["open", "close", "mknod", "unlink", "getattr"].iter().enumerate() {
            let (samples, sum) = (1 + job % 97 + at, 10 * job);
            lines.push(format!(
                "  {operation}: {{ samples: {samples}, unit: usecs, min: 1, max: 9, sum: {sum}, sumsq: 9 }}"
            ));
        }
    }
    lines
}

fn text(lines: &[String]) -> Vec<u8> {
    (lines.join("\n") + "\n").into_bytes()
}

#[test]
fn one_damaged_line_in_100_loses_no_other_entry() {
    let junk = [
        "  open:   { samples: 5, unit: usecs, min: 1, max",
        "%$&",
        "  : { }",
        "  mkdir { samples: 7 }",
        "\0\0\0\0",
    ];
    let good = read(&text(&job_lines()), job_stats::parse);
    assert_eq!((good.entries.len(), good.faults.unreadable), (JOBS, 0));
    let mut lines = job_lines();
    let places: Vec<usize> = (50..lines.len()).step_by(100).collect();
    for &place in places.iter().rev() {
        lines.insert(place, junk[place / 100 % junk.len()].into());
    }
    let read = read(&text(&lines), job_stats::parse);
    assert_eq!(read.entries, good.entries);
    assert_eq!(read.faults.unreadable, places.len() as u64);
}

#[test]
fn a_damaged_counter_loses_only_itself() {
    let mut lines = job_lines();
    let places: Vec<usize> = (3..lines.len()).step_by(700).collect();
    for &place in &places {
        lines[place] = lines[place].replace("samples: ", "samples: x");
    }
    let (good, read) = (read(&text(&job_lines()), job_stats::parse), read(&text(&lines), job_stats::parse));
    assert_eq!((read.jobs(), read.faults.unreadable), (good.jobs(), places.len() as u64));
    let count = |read: &Read| read.entries.iter().map(|entry| entry.values.len()).sum::<usize>();
    // Each damaged operation lacks its count and its duration.
    assert_eq!(count(&good) - count(&read), 2 * places.len());
}

#[test]
fn counters_of_a_lost_job_line_belong_to_no_job() {
    for damaged in ["jjjjjjjj", "- job_xd: 7", "- job_id:", "- job_id:  \"unended"] {
        let mut lines = job_lines();
        // The damaged line is the first one of the tenth job.
        lines[1 + 7 * 9] = damaged.into();
        let (mut good, read) =
            (read(&text(&job_lines()), job_stats::parse), read(&text(&lines), job_stats::parse));
        good.entries.remove(9);
        assert_eq!(read.entries, good.entries, "{damaged}");
        assert_eq!(read.faults.unreadable, 1, "{damaged}");
        assert!(read.faults.orphaned >= 5, "{damaged}: {}", read.faults.orphaned);
    }
}

#[test]
fn the_complete_entries_of_a_truncated_file_are_kept() {
    let whole = text(&job_lines());
    for cut in [whole.len() / 2, whole.len() / 3, whole.len() - 3] {
        let read = read(&whole[..cut], job_stats::parse);
        let jobs = read.jobs();
        assert!(jobs.iter().enumerate().all(|(at, job)| *job == at.to_string()));
        assert!(jobs.len() >= JOBS * cut / whole.len() - 20);
    }
}

#[test]
fn operations_with_zero_counts_still_separate_jobs() {
    let text =
        b"job_stats:\n- job_id: A\n  open: { samples: 5, unit: reqs }\n  close: { samples: 0, unit: reqs }\n\
        @@damaged@@\n  open: { samples: 0, unit: reqs }\n  close: { samples: 7, unit: reqs }\n";
    let read = read(text, job_stats::parse);
    assert_eq!((read.jobs(), read.values(0)), (vec!["A".to_string()], vec![("open", Count, 0, 5)]));
    assert_eq!((read.faults.unreadable, read.faults.orphaned), (1, 2));
}

#[test]
fn histograms_are_bounded_and_contain_each_bucket_once() {
    let bucket = |at: u64| format!("{at}: 1");
    let buckets = |count: u64| (0..count).map(bucket).collect::<Vec<_>>().join(", ");
    let line = |name: &str, buckets: &str| {
        format!("  {name}: {{ samples: 1, unit: bytes, sum: 1, hist: {{ {buckets} }} }}\n")
    };
    let lines = [line("read", &buckets(64)), line("write", &buckets(65)), line("punch", "4K: 1, 4096: 2")];
    let read = read(format!("- job_id: 1\n{}", lines.concat()).as_bytes(), job_stats::parse);
    assert_eq!((read.values(0).len(), read.faults.unreadable), (66, 2));
    assert!(read.values(0).iter().all(|(operation, ..)| *operation == "read"));
}

#[test]
fn the_number_of_operations_per_job_is_bounded() {
    let lines: String = (0..100).map(|at| format!("  op{at}: {{ samples: 1, unit: reqs }}\n")).collect();
    let read = read(format!("- job_id: 1\n{lines}").as_bytes(), job_stats::parse);
    assert_eq!((read.values(0).len(), read.faults.unreadable), (64, 36));
}

#[test]
fn a_number_that_may_be_truncated_is_not_used() {
    let read = read(b"open 12 samples [usecs] 1 9 40 1\nclose 5 samples [usecs] 1 9 1", lustre_stats::parse);
    assert_eq!(read.values(0), [("open", Count, 0, 12), ("open", Time, 0, 40)]);
    assert_eq!(read.faults.unreadable, 1);
}

#[test]
fn a_junk_line_loses_no_table() {
    let text = b"\t\tread\t\twrite\npages per rpc  rpcs   % cum % |  rpcs   % cum %\njunk\n100 % junk\n\
        1:   3  30  30   |   0   0   0\n256:   7  70 100   |   9 100 100\n256:   7  70 100   |   9 100 100\n";
    let read = read(text, rpc_stats::parse);
    let pages = [("read", ByPages, 1, 3), ("read", ByPages, 256, 7), ("write", ByPages, 256, 9)];
    assert_eq!((read.values(0), read.faults.unreadable), (pages.to_vec(), 3));
}

#[test]
fn counters_of_a_damaged_mount_belong_to_no_job() {
    let mount =
        |device: &str| format!("device {device} with fstype nfs4 statvers=1.1\n\tbytes: 1 2 3 4 5 6 7 8\n");
    let text = mount("srv:/a mounted on /a") + &mount("srv:/b m?unted on /b");
    let read = read(text.as_bytes(), mountstats::parse);
    assert_eq!((read.entries.len(), read.values(0).len()), (1, 6));
    assert_eq!((read.faults.unreadable, read.faults.orphaned), (1, 1));
}

/// Calls `take` with the text cut at every position, and with every bit changed.
fn damaged(text: &[u8], mut take: impl FnMut(&[u8])) {
    for end in 0..text.len() {
        take(&text[..end]);
        for bit in 0..8 {
            let mut changed = text.to_vec();
            changed[end] ^= 1 << bit;
            take(&changed);
        }
    }
}

#[test]
fn damaged_arrays_logs_rules_and_probes_are_read_or_refused() {
    let array = b"md2 : active raid5 sdl1[9] sdb1[2](F)\n 5 blocks level 5 [10/9] [UU_]\n [=>..]  recovery = 12.6% (5/9) finish=1.5min speed=3K/sec\n";
    let (whole, faults) = md::arrays(array);
    assert_eq!((whole.len(), whole[0].members, faults.unreadable), (1, Some((10, 9)), 0));
    damaged(array, |text| assert!(md::arrays(text).0.len() <= 2));
    let rules = Rules::default();
    let line = b"2026-11-22T08:00:01.5+09:00 oss1 kernel: [ 12.5] LustreError: lfs-OST0001-osc: This client was evicted by lfs-OST0001";
    assert!(rules.of(times::line(line).text).is_some());
    damaged(line, |text| {
        let read = times::line(text);
        assert!(read.time(i64::MAX).is_none_or(|time| time >= 0));
        let found = rules.of(read.text);
        assert!(found.is_none_or(|found| found.kind.starts_with("lustre-") && found.target.len() < 20));
    });
    let json = "{\"k\":\"end\",\"run\":\"r\"}";
    let record = format!("\u{1e}{:08x} {json}\n", crc32fast::hash(json.as_bytes()));
    assert_eq!(records(record.as_bytes()).1, 0);
    damaged(record.as_bytes(), |text| assert!(records(text).0.is_empty() || text.len() >= record.len() - 1));
    let rule = "[[rule]]\nkind = \"a\"\nseverity = \"note\"\ntexts = [\"x\", \"y\"]\nafter = \"z\"\n";
    assert_eq!(site::rules(rule).expect("a rule").len(), 1);
    damaged(rule.as_bytes(), |text| {
        let _ = std::str::from_utf8(text).map(site::rules);
    });
}
