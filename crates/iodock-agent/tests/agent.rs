//! Runs the program on fake trees, and checks that it reads everything, never hangs, and prints exact output
//! of limited size.

mod tree;

use std::process::Command;
use tree::{check_form, fifo, has, sum, Tree};

#[test]
fn all_sources_below_a_root_are_read() {
    let tree = Tree::new("all");
    tree.fixture("proc/fs/lustre/obdfilter/lfs-OST0000/job_stats", "lustre-2.15-obdfilter.job_stats");
    tree.fixture("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", "lustre-2.15-mdt.job_stats");
    tree.fixture("proc/fs/lustre/mdt/lfs-MDT0000/md_stats", "lustre-2.12-mdt.md_stats");
    tree.fixture("sys/kernel/debug/lustre/mds/MDS/mdt/stats", "lustre-2.12-mds.stats");
    tree.fixture("sys/kernel/debug/lustre/llite/lfs-ffff8800/stats", "lustre-2.14-llite.stats");
    tree.fixture("sys/kernel/debug/lustre/osc/lfs-OST0000-osc-ffff8800/stats", "lustre-2.15-osc.stats");
    tree.fixture(
        "sys/kernel/debug/lustre/osc/lfs-OST0000-osc-ffff8800/rpc_stats",
        "lustre-2.12-osc.rpc_stats",
    );
    tree.fixture("proc/self/mountstats", "mountstats-5.2-and-5.3");
    tree.write(
        "proc/diskstats",
        "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n   7 0 loop0 1 2 3 4 5 6 7 8 9 10 11\n",
    );
    tree.write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=81253\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
    tree.write("proc/loadavg", "0.29 0.18 0.12 3/80 11206\n");
    let text = tree.samples(&[]);
    let lustre = "host=\"node7\",file_system=\"lfs\"";
    let job =
        format!("{lustre},target=\"lfs-OST0000\",job=\"11317854:17627127:r01c01.bullx\",known_by=\"server\"");
    has(&text, &format!("iodock_obdfilter_job_stats_bytes_total{{{job},operation=\"read_bytes\"}} 2105345"));
    has(
        &text,
        &format!(
            "iodock_obdfilter_job_stats_bytes_created{{{job},operation=\"read_bytes\"}} 1720767442.368619499"
        ),
    );
    has(
        &text,
        &format!(
            "iodock_obdfilter_job_stats_by_size_total{{{job},operation=\"read_bytes\",bucket=\"4096\"}} 3"
        ),
    );
    has(&text, &format!("iodock_mdt_job_stats_time_seconds_total{{{lustre},target=\"lfs-MDT0000\",job=\":988:ds88\",known_by=\"server\",operation=\"statfs\"}} 0.148887"));
    has(
        &text,
        &format!(
            "iodock_mdt_md_stats_operations_total{{{lustre},target=\"lfs-MDT0000\",operation=\"open\"}} 7"
        ),
    );
    has(&text, "iodock_mds_stats_amount_total{host=\"node7\",target=\"mdt\",operation=\"req_qdepth\"} 1602");
    has(&text, &format!("iodock_llite_stats_operations_total{{{lustre},target=\"lfs-ffff8800\",operation=\"open\"}} 35955554"));
    has(&text, &format!("iodock_osc_stats_operations_total{{{lustre},target=\"lfs-OST0000-osc-ffff8800\",operation=\"req_waittime\"}} 9120"));
    has(&text, &format!("iodock_osc_rpc_stats_level{{{lustre},target=\"lfs-OST0000-osc-ffff8800\",operation=\"pending_write_pages\"}} 512"));
    has(&text, "iodock_mountstats_bytes_total{host=\"node7\",file_system=\"10.0.0.2:/home\",target=\"/home\",operation=\"server_read\"} 5");
    has(&text, "iodock_diskstats_bytes_total{host=\"node7\",target=\"sda\",operation=\"write\"} 3584");
    has(
        &text,
        "iodock_pressure_time_seconds_total{host=\"node7\",target=\"io\",operation=\"some\"} 0.081253",
    );
    has(&text, "iodock_load_level{host=\"node7\",target=\"load\",operation=\"load1_percent\"} 29");
    has(&text, "iodock_agent_source_done{host=\"node7\",source=\"lustre-job-stats\"} 1");
    assert!(!text.contains("loop0"));
}

#[test]
fn an_empty_root_gives_no_error() {
    let text = Tree::new("empty").samples(&[]);
    assert_eq!(text.lines().filter(|line| line.starts_with("iodock_agent_source_done")).count(), 22);
    assert_eq!(sum(&text, "iodock_agent_source_done{"), 22);
}

#[test]
fn the_number_of_jobs_is_bounded_and_the_sums_are_exact() {
    let tree = Tree::new("many");
    let (mut jobs, mut opened) = (String::from("job_stats:\n"), 0);
    for job in 0..3000u64 {
        let (samples, sum) = (1 + job * 7919 % 1009, job * 1_000_000_007);
        jobs.push_str(&format!("- job_id: {job}\n  write_bytes: {{ samples: {samples}, unit: bytes, min: 1, max: 9, sum: {sum} }}\n"));
        opened += samples;
    }
    tree.write("proc/fs/lustre/obdfilter/lfs-OST0000/job_stats", jobs);
    let text = tree.samples(&["--jobs", "20"]);
    let family = "iodock_obdfilter_job_stats";
    let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(count(&format!("{family}_bytes_total{{")), 20);
    let both = |kind: &str| {
        sum(&text, &format!("{family}_{kind}_total{{")) + sum(&text, &format!("{family}_other_{kind}{{"))
    };
    assert_eq!(both("bytes"), (0..3000u64).map(|job| job * 1_000_000_007).sum());
    assert_eq!(both("operations"), opened);
    assert_eq!(sum(&text, &format!("{family}_other_owners{{")), 2980);
    has(&text, &format!("{family}_bytes_total{{host=\"node7\",file_system=\"lfs\",target=\"lfs-OST0000\",job=\"2999\",known_by=\"server\",operation=\"write_bytes\"}} 2999000020993"));
}

#[test]
fn hostile_ids_cannot_leave_their_labels() {
    let tree = Tree::new("hostile");
    let ids = [
        r#""a\x22} 1\x0A# EOF\x0A""#,
        r#""\xff""#,
        r#""\x5cxff""#,
        "<img src=x onerror=alert(1)>",
        "$(reboot)",
        "\u{7f}\u{1}",
        "twice",
        "twice",
    ];
    let entries = ids.map(|id| format!("- job_id: {id}\n  open: {{ samples: 1, unit: reqs }}\n"));
    tree.write("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", entries.concat());
    let text = tree.samples(&[]);
    assert_eq!(sum(&text, "iodock_mdt_job_stats_operations_total{"), ids.len() as u64);
    let lines = text.lines().filter(|line| line.starts_with("iodock_mdt_job_stats_operations_total{"));
    assert_eq!(lines.count(), ids.len() - 1, "twice is one");
    assert!(text.contains(r#"job="a\"} 1\\x0a# EOF\\x0a""#), "{text}");
    assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..0x7f).contains(&byte)));
}

#[test]
fn a_file_that_never_answers_does_not_hang_the_agent() {
    let tree = Tree::new("hung");
    tree.fixture("proc/fs/lustre/obdfilter/lfs-OST0000/job_stats", "lustre-2.12-obdfilter.job_stats");
    fifo(&tree, "proc/fs/lustre/obdfilter/lfs-OST0001/job_stats");
    tree.write("proc/diskstats", "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
    let output = tree.agent(&["--deadline", "0.5"]);
    let (text, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    check_form(&text);
    assert!(output.status.success());
    has(&text, "iodock_agent_source_done{host=\"node7\",source=\"lustre-job-stats\"} 0");
    has(&text, "iodock_agent_source_done{host=\"node7\",source=\"diskstats\"} 1");
    // The samples include the part of the file that was read before the error.
    assert!(text.contains("target=\"lfs-OST0000\",job=\"815871\"") && text.contains("target=\"sda\""));
    assert!(notes.contains("no answer from") && notes.contains("lfs-OST0001/job_stats"), "{notes}");
}

fn nfs(device: &str, mount_point: &str, read: u64) -> String {
    format!(
        "device {device} mounted on {mount_point} with fstype nfs4 statvers=1.1\n\
         \tbytes:  {read} 2000 0 0 3000 4000 1 1\n\tper-op statistics\n\t        READ: 7 7 0 44 24 1 2 3 0\n"
    )
}

#[test]
fn nfs_counters_of_a_server_are_counted_once() {
    let tree = Tree::new("nfs");
    let other = "device tmpfs mounted on /data with fstype tmpfs\n".to_string();
    let stats = [
        nfs("srv:/x", "/x", 1000),
        // This is a bind mount of the first one, whose counters were read a moment later.
        nfs("srv:/x", "/bind", 1001),
        // These two exports share their counters.
        nfs("srv:/home/a", "/home/a", 20),
        nfs("srv:/home/b", "/home/b", 20),
        other,
        // The second mount covers the first one.
        nfs("srv:/data", "/data", 300),
        nfs("srv:/data", "/data", 5),
    ];
    tree.write("proc/self/mountstats", stats.concat());
    let mounts = [
        ("/x", 41),
        ("/bind", 41),
        ("/home/a", 42),
        ("/home/b", 42),
        ("/data", 9),
        ("/data", 43),
        ("/data", 44),
    ];
    let mounts = mounts.map(|(point, minor)| format!("30 1 0:{minor} / {point} rw - nfs4 x rw\n"));
    tree.write("proc/self/mountinfo", mounts.concat());
    let text = tree.samples(&[]);
    let reads: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("iodock_mountstats_bytes_total") && line.contains("\"read\""))
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!(reads, ["1000", "20", "5"], "{text}");
}

#[test]
fn invalid_arguments_give_an_error() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_iodock-agent")).args(arguments).output().expect("runs")
    };
    for arguments in
        [&[][..], &["once", "--jobs", "many"], &["once", "--deadline", "-1"], &["--root"], &["x"]]
    {
        let output = run(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("hint: "));
    }
    assert!(run(&["--help"]).status.success());
}

#[test]
fn a_moosefs_mount_is_reported_with_waiting_requests() {
    let tree = Tree::new("moosefs");
    let mount = "45 27 0:39 / /mnt/job_5 rw,relatime - fuse mfs\\04310.77.0.1:9421 rw,user_id=0\n";
    let bind = "46 27 0:39 / /srv/again rw,relatime - fuse mfs\\04310.77.0.1:9421 rw,user_id=0\n";
    tree.write("proc/self/mountinfo", [mount, bind].concat());
    tree.fixture("mnt/job_5/.stats", "moosefs-3.0.117.stats");
    tree.write("sys/fs/fuse/connections/39/waiting", "17\n");
    let text = tree.samples(&[]);
    let place = "host=\"node7\",file_system=\"10.77.0.1:9421\",target=\"/mnt/job_5\"";
    has(&text, &format!("iodock_mfs_mount_operations_total{{{place},operation=\"mknod\"}} 10000"));
    has(&text, &format!("iodock_mfs_mount_level{{{place},operation=\"waiting\"}} 17"));
    assert!(!text.contains("/srv/again"));
}

#[test]
fn an_unresponsive_moosefs_master_is_reported_with_its_process() {
    let tree = Tree::new("moosefs-master");
    // Nothing answers from this reserved address (RFC 5737). The agent waits no longer than its limit.
    let sockets =
        "  sl  local_address rem_address   st\n   2: 077100CB:24CD 00000000:0000 0A 0:0 00:0 0 0 0 1\n";
    tree.write("proc/self/net/tcp", sockets);
    tree.write("proc/net/tcp", sockets);
    tree.write("proc/uptime", "5000.25 9000.00\n");
    tree.write("proc/77/comm", "mfsmaster\n");
    tree.write("proc/77/stat", "77 (mfsmaster) S 1 77 77 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 470000 1 1\n");
    // This child, which the master started to write files, is not the master.
    tree.write("proc/78/comm", "mfsmaster\n");
    tree.write("proc/78/stat", "78 (mfsmaster) S 77 77 77 0 -1 0 0 0 0 0 999 999 0 0 20 0 1 0 470001 1 1\n");
    let text = tree.samples(&["--deadline", "0.5"]);
    let place = "host=\"node7\",file_system=\"203.0.113.7:9421\",target=\"203.0.113.7:9421\"";
    has(&text, &format!("iodock_mfs_master_level{{{place},operation=\"no_answer\"}} 1"));
    has(&text, &format!("iodock_mfs_master_level{{{place},operation=\"uptime_s\"}} 300"));
    has(&text, &format!("iodock_mfs_master_time_seconds_total{{{place},operation=\"cpu\"}} 0.420000"));
    assert!(!text.contains("iodock_mfs_sessions_operations"));
}
