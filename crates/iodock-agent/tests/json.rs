//! Tests `--format json`: every counter is exact, for any job names, and losses are listed.

mod tree;

use serde_json::Value;
use tree::Tree;

fn round(tree: &Tree, arguments: &[&str]) -> Value {
    let output = tree.agent(&[&["--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn samples<'a>(round: &'a Value, job: &str, metric: &str) -> Vec<&'a Value> {
    let all = round["samples"].as_array().expect("samples");
    all.iter().filter(|one| one["job"] == job && one["metric"] == metric).collect()
}

#[test]
fn counters_in_json_have_names_and_times() {
    let tree = Tree::new("json-names");
    tree.fixture("proc/fs/lustre/obdfilter/lfs-OST0000/job_stats", "lustre-2.15-obdfilter.job_stats");
    tree.fixture("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", "lustre-2.15-mdt.job_stats");
    let round = round(&tree, &[]);
    let [read] = samples(&round, "11317854:17627127:r01c01.bullx", "read_bytes")[..] else {
        panic!("{round}")
    };
    assert_eq!(
        (read["value"].as_u64(), read["start_ts"].as_i64()),
        (Some(2_105_345), Some(1720767442368619499))
    );
    assert_eq!(
        ["target", "kind", "unit"].map(|key| read[key].as_str()),
        ["lfs-OST0000", "counter", "bytes"].map(Some)
    );
    let of_job = |metric| samples(&round, ":988:ds88", metric)[0]["value"].as_u64();
    assert_eq!((of_job("statfs"), of_job("statfs_time")), (Some(9372), Some(148_887)));
    let by_size = samples(&round, "11317854:17627127:r01c01.bullx", "read_bytes_by_size");
    assert!(by_size.iter().any(|one| one["bucket"] == 4096 && one["value"] == 3));
    assert!(round["losses"]
        .as_array()
        .expect("losses")
        .iter()
        .any(|loss| loss["name"] == "unreadable-lines"));
}

#[test]
fn json_contains_all_jobs_and_hostile_ids_unchanged() {
    let tree = Tree::new("json-ids");
    let ids = ["190:20:30", "0123", "a\\\"b", "<script>", "$(reboot)", "lfs.0.", "kworker/86:1.0"];
    let mut jobs = String::from("job_stats:\n");
    for id in ids.iter().map(|id| format!("\"{id}\"")).chain((0..2000).map(|number| number.to_string())) {
        jobs.push_str(&format!("- job_id: {id}\n  open: {{ samples: 3, unit: reqs }}\n"));
    }
    tree.write("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", jobs);
    let all = round(&tree, &[]);
    assert!(ids.iter().all(|id| samples(&all, id, "open").len() == 1), "{:.2000}", all.to_string());
    assert_eq!(all["samples"].as_array().map(Vec::len), Some(2007));
    let few = round(&tree, &["--jobs", "7"]);
    let others = few["samples"].as_array().expect("samples").iter().find(|one| one["others"] == 2000);
    assert_eq!(
        others.map(|one| (one["value"].as_u64(), one["kind"].as_str())),
        Some((Some(6000), Some("gauge")))
    );
}

#[test]
fn one_damaged_line_in_100_loses_no_other_record() {
    let tree = Tree::new("json-bad");
    let mut jobs = String::from("job_stats:\n");
    for job in 0..500 {
        jobs.push_str(&format!("- job_id: {job}\n  open: {{ samples: {job}, unit: reqs }}\n"));
        if job % 50 == 49 {
            jobs.push_str("  close: { samples: 12, uni\n");
        }
    }
    tree.write("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", jobs);
    let round = round(&tree, &[]);
    let sum: u64 =
        round["samples"].as_array().expect("samples").iter().filter_map(|one| one["value"].as_u64()).sum();
    assert_eq!(sum, (0..500).sum::<u64>());
    let loss = &round["losses"][0];
    assert_eq!((loss["name"].as_str(), loss["count"].as_u64()), (Some("unreadable-lines"), Some(10)));
    assert_eq!(loss["target"], "lfs-MDT0000");
}

#[test]
fn every_json_key_is_documented() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/agent.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let tree = Tree::new("json-keys");
    tree.fixture("proc/fs/lustre/obdfilter/lfs-OST0000/job_stats", "lustre-2.15-obdfilter.job_stats");
    let round = round(&tree, &["--jobs", "1"]);
    let lists = ["samples", "losses"].map(|list| round[list].as_array().expect("a list"));
    let objects = lists.iter().flat_map(|list| list.iter()).filter_map(Value::as_object);
    let missing: Vec<&String> =
        objects.flat_map(|object| object.keys()).filter(|key| !guide.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
