//! Tests events of the program on fake trees: arrays, paths, links and ports, with arbitrary file contents.

mod tree;

use serde_json::Value;
use tree::{has, Tree};

const MDSTAT: &str = "Personalities : [raid1] [raid6] [raid5] [raid4]
md1 : active raid1 sdb2[1] sda2[0]
      136448 blocks [2/2] [UU]

md2 : active raid5 sdl1[9] sdk1[8] sdj1[7] sdc1[3](F) sdb1[2](S)
      1318680576 blocks level 5, 1024k chunk, algorithm 2 [10/9] [UUU_UUUUUU]
      [==>..................]  recovery =  12.6% (37043392/292945152) finish=127.5min speed=33440K/sec
      bitmap: 3/7 pages [12KB], 65536KB chunk

md3 : active (auto-read-only) raid1 nvme0n1p3[0] nvme1n1p3[1]
      1952 blocks super 1.2 [2/2] [UU]
      \tresync=PENDING

md4 : inactive sdd1[0](S)
      976630488 blocks super 1.2

md5 : active raid0 sde1[0] sdf1[1]
      1953260544 blocks super 1.2 512k chunks
no line of any array
unused devices: <none>
";

/// Returns the events in a tree that the agent has not seen before.
fn found(tree: &Tree) -> Value {
    let output = tree.agent(&["--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn events(tree: &Tree) -> Vec<(String, String, String, String)> {
    let found = found(tree);
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let events = found["events"].as_array().expect("a list");
    events
        .iter()
        .map(|event| {
            assert_eq!((event["host"].as_str(), event["count"].as_u64()), (Some("node7"), Some(1)));
            (text(event, "target"), text(event, "kind"), text(event, "severity"), text(event, "text"))
        })
        .collect()
}

fn told(target: &str, kind: &str, severity: &str, text: &str) -> (String, String, String, String) {
    (target.into(), kind.into(), severity.into(), text.into())
}

#[test]
fn degraded_arrays_and_rebuilds_are_reported() {
    let tree = Tree::new("md");
    tree.write("proc/mdstat", MDSTAT);
    assert_eq!(
        events(&tree),
        [
            told("md2", "array-degraded", "error", "9 of 10 members in use [UUU_UUUUUU]; failed: sdc1"),
            told("md2", "rebuild-begun", "warning", "recovery: 12.6 %, 127.5min left"),
            told("md3", "rebuild-begun", "warning", "resync: pending"),
            told("md4", "array-inactive", "error", "it is not running"),
        ]
    );
    let text = tree.samples(&[]);
    let level = |target: &str, name: &str, value: u64| {
        let place = format!("host=\"node7\",target=\"{target}\",operation=\"{name}\"");
        has(&text, &format!("iodock_md_level{{{place}}} {value}"));
    };
    level("md1", "members_in_use", 2);
    level("md2", "members", 10);
    level("md2", "members_failed", 1);
    level("md2", "members_spare", 1);
    level("md2", "sync_done_kib", 37_043_392);
    level("md2", "sync_kib_per_second", 33_440);
    level("md5", "active", 1);
    has(&text, "iodock_md_unreadable_lines{host=\"node7\"} 1");
}

fn path(tree: &Tree, name: &str, state: &str) {
    tree.write(&format!("sys/block/dm-0/slaves/{name}/size"), "1\n");
    tree.write(&format!("sys/block/{name}/device/state"), format!("{state}\n"));
}

#[test]
fn only_running_paths_of_a_device_are_counted() {
    let tree = Tree::new("multipath");
    tree.write("sys/block/dm-0/dm/uuid", "mpath-3600a0b80000f1f\n");
    tree.write("sys/block/dm-0/dm/name", "ost0\n");
    tree.write("sys/block/dm-1/dm/uuid", "LVM-abc\n");
    path(&tree, "sda", "running");
    path(&tree, "sdb", "transport-offline");
    path(&tree, "sdc", "live");
    assert_eq!(events(&tree), [told("ost0", "path-lost", "warning", "sdb (transport-offline); 2 of 3 work")]);
    has(
        &tree.samples(&[]),
        "iodock_multipath_level{host=\"node7\",target=\"ost0\",operation=\"paths_running\"} 2",
    );
    path(&tree, "sda", "offline");
    path(&tree, "sdc", "");
    assert_eq!(events(&tree)[0].1, "all-paths-lost");
}

#[test]
fn only_hardware_links_have_counters() {
    let tree = Tree::new("network");
    for (name, device) in
        [("eth0", "device/vendor"), ("bond0", "bonding/mode"), ("veth1", "other/x"), ("lo", "x/x")]
    {
        tree.write(&format!("sys/class/net/{name}/{device}"), "x\n");
        tree.write(&format!("sys/class/net/{name}/statistics/rx_errors"), "7\n");
        tree.write(&format!("sys/class/net/{name}/statistics/tx_bytes"), "18446744073709551615\n");
        tree.write(&format!("sys/class/net/{name}/operstate"), "up\n");
        tree.write(&format!("sys/class/net/{name}/speed"), "25000\n");
    }
    tree.write("sys/class/net/eth0/statistics/rx_dropped", "-1\n");
    tree.write("sys/class/net/bonding_masters", "bond0\n");
    let text = tree.samples(&[]);
    has(&text, "iodock_network_operations_total{host=\"node7\",target=\"eth0\",operation=\"rx_errors\"} 7");
    has(&text, "iodock_network_bytes_total{host=\"node7\",target=\"bond0\",operation=\"tx_bytes\"} 18446744073709551615");
    has(
        &text,
        "iodock_network_level{host=\"node7\",target=\"eth0\",operation=\"speed_mbit_per_second\"} 25000",
    );
    assert!(!text.contains("veth1") && !text.contains("target=\"lo\"") && !text.contains("rx_dropped"));
    // A link that is down is no event if its earlier state is unknown.
    assert_eq!(events(&tree), []);
}

#[test]
fn port_counters_are_reported_in_bytes() {
    let tree = Tree::new("infiniband");
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    tree.write(&format!("{port}/state"), "4: ACTIVE\n");
    tree.write(&format!("{port}/phys_state"), "5: LinkUp\n");
    tree.write(&format!("{port}/rate"), "100 Gb/sec (4X EDR)\n");
    tree.write(&format!("{port}/counters/symbol_error"), "3\n");
    tree.write(&format!("{port}/counters/port_xmit_data"), "1000\n");
    tree.write(&format!("{port}/counters/port_rcv_data"), "N/A (no PMA)\n");
    tree.write(&format!("{port}/hw_counters/out_of_sequence"), "5\n");
    tree.write(&format!("{port}/hw_counters/lifespan"), "10\n");
    let text = tree.samples(&[]);
    let place = "host=\"node7\",target=\"mlx5_0/1\",operation=";
    has(&text, &format!("iodock_infiniband_bytes_total{{{place}\"port_xmit_data\"}} 4000"));
    has(&text, &format!("iodock_infiniband_operations_total{{{place}\"symbol_error\"}} 3"));
    has(&text, &format!("iodock_infiniband_operations_total{{{place}\"out_of_sequence\"}} 5"));
    has(&text, &format!("iodock_infiniband_level{{{place}\"speed_mbit_per_second\"}} 100000"));
    assert!(!text.contains("lifespan") && !text.contains("port_rcv_data"));
}

#[test]
fn hostile_files_are_ignored_without_a_failure() {
    let tree = Tree::new("odd");
    let long = "[".repeat(300_000);
    let lines = [
        "md0 : active raid1 sda[0](F)\n blocks\n x blocks [99999999999999999999/1] [UU_]\n recovery = (5/",
        "md1 :\nmd1\n: active\nmd\x1b[2J\u{7f} : active raid1 a\\[0](F)\n 5 blocks [2/1] [U_]\n resync=\n resync\n",
        "md9 : active raid1 a[0]\n 1 blocks [18446744073709551615/0] [_]\n check = 1e999% (1/0) finish=\u{0} speed=-1K/sec\n",
        &long,
    ];
    tree.write("proc/mdstat", lines.concat());
    tree.write("sys/block/dm-7/dm/uuid", "mpath-\n");
    tree.write("sys/block/dm-7/dm/name", vec![0xff; 9000]);
    tree.write("sys/class/infiniband/x/ports/1/state", "");
    tree.write("sys/class/infiniband/x/ports/1/rate", "∞ Gb/sec\n");
    tree.write("sys/class/net/eth0/device/x", "");
    tree.write("sys/class/net/eth0/operstate", vec![b'\n'; 10_000]);
    for number in 0..400 {
        tree.write(&format!("sys/class/infiniband/x/ports/1/counters/c{number}"), format!("{number}\n"));
    }
    let found = found(&tree);
    assert!(found["losses"]
        .as_array()
        .expect("a list")
        .iter()
        .any(|loss| loss["name"] == "unreadable-lines"));
    for event in found["events"].as_array().expect("a list") {
        let text = event.to_string();
        assert!(text.chars().all(|letter| !letter.is_control()) && !text.contains("\\u00"), "{text}");
        assert!(event["text"].as_str().expect("text").chars().count() <= 500);
    }
    tree.samples(&[]);
}
