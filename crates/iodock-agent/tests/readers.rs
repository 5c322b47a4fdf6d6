//! Runs every reader on fixtures in the formats of different releases. The fixtures are synthetic, but their
//! formats and some lines follow published samples. The expected numbers were read from the fixtures by hand.

mod parsing;

use iodock_agent::sample::{Names, Quantity};
use iodock_agent::sources::{job_stats, lustre_stats, mmpmon, moosefs, mountstats, rpc_stats};
use parsing::read;

macro_rules! fixture {
    ($name:literal, $parse:expr) => {
        read(include_bytes!(concat!("fixtures/", $name)), $parse)
    };
}

use Quantity::*;

#[test]
fn job_stats_of_lustre_2_5_object_servers_are_read() {
    let read = fixture!("lustre-2.5-obdfilter.job_stats", job_stats::parse);
    assert_eq!(read.jobs(), ["24", "kworker/86:1.0", "lfs.0."]);
    assert_eq!(
        read.values(0),
        [("write_bytes", Count, 0, 64575), ("write_bytes", Bytes, 0, 215147593728), ("punch", Count, 0, 1)]
    );
    // The line has `min:16777216` without a blank.
    assert_eq!(read.values(1), [("read_bytes", Count, 0, 2), ("read_bytes", Bytes, 0, 33554432)]);
    assert_eq!(read.entries[0].updated, Some(1_510_782_606_000_000_000));
    assert_eq!(read.entries[0].start_time, None);
    assert_eq!((read.faults.unreadable, read.faults.first_line, read.faults.orphaned), (1, Some(1), 0));
}

#[test]
fn job_stats_of_lustre_2_5_metadata_servers_are_read() {
    let read = fixture!("lustre-2.5-mdt.job_stats", job_stats::parse);
    // Job id 0123 must not be read as the octal number 83.
    assert_eq!(read.jobs(), ["43", "0123"]);
    assert_eq!(read.values(1), [("open", Count, 0, 17), ("close", Count, 0, 16)]);
    assert_eq!((read.entries[0].updated, read.faults.unreadable), (None, 1));
}

#[test]
fn job_stats_of_lustre_2_12_are_read() {
    let read = fixture!("lustre-2.12-obdfilter.job_stats", job_stats::parse);
    // Job id 190:20:30 must not be read as the number 685230 in base 60.
    assert_eq!(read.jobs(), ["815871", "190:20:30"]);
    assert_eq!(
        read.values(0),
        [
            ("read_bytes", Count, 0, 937568),
            ("read_bytes", Bytes, 0, 8039751680),
            ("read", Count, 0, 937568),
            ("read", Time, 0, 389295481),
        ]
    );
    assert_eq!(read.faults.unreadable, 1);
}

#[test]
fn job_stats_of_lustre_2_15_are_read() {
    let mdt = fixture!("lustre-2.15-mdt.job_stats", job_stats::parse);
    assert_eq!(mdt.jobs(), [":988:ds88"]);
    assert_eq!(mdt.values(0), [("statfs", Count, 0, 9372), ("statfs", Time, 0, 148887)]);
    assert_eq!(mdt.entries[0].start_time, Some(1_720_767_442_368_619_499));
    assert_eq!(mdt.entries[0].updated, Some(1_721_048_534_873_002_069));

    let ost = fixture!("lustre-2.15-obdfilter.job_stats", job_stats::parse);
    assert_eq!(ost.jobs(), ["11317854:17627127:r01c01.bullx", r#"my job \"x\"\n\xff"#]);
    assert_eq!(
        ost.values(0),
        [
            ("read_bytes", BySize, 1, 1),
            ("read_bytes", BySize, 512, 5),
            ("read_bytes", BySize, 4096, 3),
            ("read_bytes", BySize, 1 << 20, 2),
            ("read_bytes", Count, 0, 11),
            ("read_bytes", Bytes, 0, 2105345),
            ("read", ByLatency, 32, 10),
            ("read", ByLatency, 1024, 1),
            ("read", Count, 0, 11),
            ("read", Time, 0, 4000),
        ]
    );
    assert_eq!((mdt.faults.unreadable, ost.faults.unreadable), (1, 1));
}

#[test]
fn job_ids_of_real_sites_are_read() {
    let ids = [
        "11317854:17627127:r01c01",
        ":17627127:r01c01",
        "11317854",
        "11317854:",
        "113178544",
        "11317854:17627127:",
        "11317854:17627127:r01c01.bullx",
        ":1317854:17627127:r01c01",
        "kworker/86:1.0",
        "lfs.0.",
        "with some blanks",
        "$(reboot)",
        "<script>",
    ];
    let quotings: [fn(&str) -> String; 2] = [str::to_string, |id| format!("\"{id}\"")];
    for quoted in quotings {
        let entry =
            |id: &&str| format!("- job_id:          {}\n  open:  {{ samples: 1, unit: reqs }}\n", quoted(id));
        let text: String = ids.iter().map(entry).collect();
        let read = read(text.as_bytes(), job_stats::parse);
        assert_eq!((read.jobs(), read.faults.unreadable), (ids.map(String::from).to_vec(), 0));
    }
}

#[test]
fn queues_of_metadata_servers_are_read() {
    let read = fixture!("lustre-2.12-mds.stats", lustre_stats::parse);
    assert_eq!(
        read.values(0)[..8],
        [
            ("req_waittime", Count, 0, 171898),
            ("req_waittime", Time, 0, 9524258),
            ("req_qdepth", Count, 0, 171898),
            ("req_qdepth", Amount, 0, 1602),
            ("req_active", Count, 0, 171898),
            ("req_active", Amount, 0, 230814),
            ("req_timeout", Count, 0, 171898),
            ("req_timeout", Time, 0, 2578145000000),
        ]
    );
    assert_eq!(read.entries[0].start_time, Some(1_715_712_429_574_034_579));
    assert_eq!((read.values(0).len(), read.faults.unreadable), (12, 1));
    let old = fixture!("lustre-2.10-mds.stats", lustre_stats::parse);
    assert_eq!(old.entries[0].updated, Some(1_516_295_737_288_815_000));
    assert_eq!(old.values(0)[3], ("req_timeout", Time, 0, 21_000_000));
    let empty = fixture!("lustre-2.12-mds-empty.stats", lustre_stats::parse);
    assert_eq!((empty.values(0).len(), empty.faults.unreadable), (0, 0));
    assert_eq!(empty.entries[0].updated, Some(1_709_915_907_132_570_592));
}

#[test]
fn metadata_operations_and_clients_are_read() {
    let read = fixture!("lustre-2.12-mdt.md_stats", lustre_stats::parse);
    assert_eq!(read.values(0)[2..], [("statfs", Count, 0, 113929), ("statfs", Time, 0, 798435)]);
    let old = fixture!("lustre-2.10-llite.stats", lustre_stats::parse);
    assert_eq!(
        old.values(0)[2..],
        [
            ("write_bytes", Count, 0, 89467810),
            ("write_bytes", Bytes, 0, 93813797294080),
            ("open", Count, 0, 136)
        ]
    );
    let new = fixture!("lustre-2.14-llite.stats", lustre_stats::parse);
    assert_eq!(new.values(0), [("open", Count, 0, 35955554), ("open", Time, 0, 3393651645)]);
    assert_eq!((read.faults.unreadable, old.faults.unreadable, new.faults.unreadable), (1, 1, 1));
}

#[test]
fn requests_of_lustre_clients_are_read() {
    let asked = fixture!("lustre-2.15-mdc.stats", lustre_stats::parse_requests);
    assert_eq!(
        asked.values(0),
        [
            ("req_waittime", Count, 0, 4263),
            ("req_waittime", Time, 0, 1406271),
            ("req_active", Count, 0, 4263),
            ("req_active", Amount, 0, 4520),
        ]
    );
    assert_eq!(asked.faults.unreadable, 1);
    let moved = fixture!("lustre-2.15-osc.stats", lustre_stats::parse_requests);
    assert_eq!(
        moved.values(0),
        [
            ("req_waittime", Count, 0, 9120),
            ("req_waittime", Time, 0, 40128000),
            ("req_active", Count, 0, 9120),
            ("req_active", Amount, 0, 27360),
        ]
    );
    assert_eq!(moved.faults.unreadable, 1);
    let read = fixture!("lustre-2.12-osc.rpc_stats", rpc_stats::parse);
    assert_eq!(
        read.values(0),
        [
            ("read_rpcs_in_flight", Level, 0, 0),
            ("write_rpcs_in_flight", Level, 0, 2),
            ("pending_write_pages", Level, 0, 512),
            ("pending_read_pages", Level, 0, 0),
            ("read", ByPages, 1, 3),
            ("read", ByPages, 256, 7),
            ("write", ByPages, 256, 9),
            ("read", ByInFlight, 1, 10),
            ("write", ByInFlight, 1, 9),
            ("read", ByOffset, 0, 4),
            ("write", ByOffset, 0, 9),
            ("read", ByOffset, 1024, 6),
        ]
    );
    let mdc = fixture!("lustre-2.15-mdc.rpc_stats", rpc_stats::parse);
    assert_eq!(
        mdc.values(0)[1..],
        [
            ("modify", ByInFlight, 1, 198),
            ("modify", ByInFlight, 2, 50),
            ("read_rpcs_in_flight", Level, 0, 0),
            ("read", ByLatency, 512, 3),
        ]
    );
    assert_eq!((read.faults.unreadable, mdc.faults.unreadable), (1, 1));
}

#[test]
fn each_nfs_mount_is_read_once() {
    let read = fixture!("mountstats-5.2-and-5.3", mountstats::parse);
    assert_eq!(read.entries.len(), 2, "a bind mount is its device's");
    assert_eq!(
        read.values(0)[..6],
        [
            ("read", Bytes, 0, 62141776751),
            ("write", Bytes, 0, 75366231),
            ("direct_read", Bytes, 0, 0),
            ("direct_write", Bytes, 0, 0),
            ("server_read", Bytes, 0, 6920924),
            ("server_write", Bytes, 0, 75366231),
        ]
    );
    let getattr = [
        ("getattr", Count, 0, 265795003),
        ("getattr", Time, 0, 33640200000),
        ("getattr/queue", Time, 0, 658810000),
        ("getattr/response", Time, 0, 30616798000),
    ];
    assert_eq!(read.values(0)[10..], getattr);
    let again = [("read/again", Count, 0, 2), ("read/timeout", Count, 0, 1), ("read/error", Count, 0, 2)];
    assert_eq!(read.values(1)[10..], again);
    assert_eq!((read.faults.unreadable, read.faults.first_line), (1, Some(10)));
}

#[test]
fn lines_of_gpfs_mmpmon_are_read() {
    let (mut names, mut found, mut unreadable) = (Names::default(), Vec::new(), 0);
    for line in include_str!("fixtures/mmpmon-p.txt").lines() {
        match mmpmon::line(line.as_bytes(), &mut names) {
            mmpmon::Line::Counters(counters) => found.push(counters),
            mmpmon::Line::Other => {}
            mmpmon::Line::Unreadable => unreadable += 1,
        }
    }
    // The two unreadable lines are a line of text and a line that is cut.
    assert_eq!((found.len(), unreadable), (2, 2));
    assert_eq!((found[0].source, found[1].source), ("mmpmon_fs_io", "mmpmon_io"));
    assert_eq!((found[0].file_system.as_str(), found[0].cluster.as_str()), ("gpfs0", "gpfs.foobar.com"));
    assert_eq!(found[0].entry.updated, Some(1_421_869_154_766_776_000));
    let values: Vec<u64> = found[0].entry.values.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, [3592793024, 2552776479, 6758, 6542, 2923, 176495, 1367, 1418]);
}

#[test]
fn the_stats_of_a_moosefs_mount_are_read() {
    // This fixture was recorded from mfsmount 3.0.117.
    let read = fixture!("moosefs-3.0.117.stats", moosefs::parse);
    let values = read.values(0);
    let of = |name: &str| {
        values.iter().find(|(known, ..)| *known == name).map(|(_, quantity, _, value)| (*quantity, *value))
    };
    assert_eq!(of("mknod"), Some((Count, 10000)));
    assert_eq!(of("requests").map(|(quantity, _)| quantity), Some(Count));
    assert_eq!(
        (of("ping_us").map(|(quantity, _)| quantity), of("reconnects")),
        (Some(Level), Some((Count, 0)))
    );
    assert!(of("lookup").is_some() && of("cached/lookup").is_some() && of("cached/getattr").is_some());
    assert!(values.iter().all(|(name, ..)| !name.contains("master") && !name.contains("symlink_cache")));
    assert_eq!((read.faults.unreadable, read.faults.lines), (0, 57));
}

#[test]
fn damaged_stats_of_a_moosefs_mount_are_counted() {
    let text = b"fuse_ops.lookup: 7\nfuse_ops.lookup: 8\nfuse_ops.open: 18446744073709551616\nfuse_ops.\x1b[2J: 5\n\
        master.usec_timediff: [-69]\nmaster.usec_ping: 5]\nfuse_ops.create 4\nfuse_ops.mkdir: 3\nfuse_ops.rmdir: 1";
    let read = read(text, moosefs::parse);
    assert_eq!(read.values(0), [("lookup", Count, 0, 7), ("mkdir", Count, 0, 3)]);
    // The six unreadable lines have a repeated name, a number that is too large, no name, an incomplete
    // level, no number, and a cut end.
    assert_eq!((read.faults.unreadable, read.faults.first_line), (6, Some(2)));
}

#[test]
fn moosefs_mounts_are_found_in_mountinfo() {
    let line =
        b"45 27 0:39 / /mnt/job_5/a\\040b rw,relatime - fuse mfs\\04310.77.0.1:9421/projects rw,user_id=0";
    let mount = moosefs::mount(line).expect("a mount");
    assert_eq!((mount.device, mount.master.as_str()), ((0, 39), "10.77.0.1:9421"));
    assert_eq!(mount.mount_point, std::path::Path::new("/mnt/job_5/a b"));
    for other in [
        &b"45 27 0:39 / /mnt rw - fuse sshfs#host:/ rw"[..],
        b"45 27 0:39 / /mnt rw - fuse mfs\\043 rw",
        b"45 27 0:39 / /mnt rw",
        b"",
    ] {
        assert_eq!(moosefs::mount(other), None, "{}", other.escape_ascii());
    }
}
