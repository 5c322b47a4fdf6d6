use super::*;

fn of(line: &str) -> (String, String, String) {
    let rules = Rules::new(Vec::new()).expect("rules");
    let found = rules.of(line.as_bytes());
    found.map_or_else(Default::default, |found| (found.kind.into(), found.file_system, found.target))
}

/// Log messages as the programs write them, each with its kind, file system and target.
const LINES: &[(&str, &str, &str, &str)] = &[
    ("LustreError: 167-0: lfs-OST0001-osc-ffff8800: This client was evicted by lfs-OST0001; in progress operations using this service will fail.", "lustre-evicted", "lfs", "lfs-OST0001"),
    ("Lustre: 2291:0:(client.c:2289:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply: [sent 1713431141/real 1713431141]  req@ffff x1796/t0(0) o400->lfs-MDT0000-mdc-ffff8800@10.0.0.1@o2ib:12/10", "lustre-timeout", "lfs", "lfs-MDT0000"),
    ("Lustre: lfs-MDT0000-mdc-ffff8800: Connection to lfs-MDT0000 (at 10.0.0.1@o2ib) was lost; in progress operations using this service will wait for recovery to complete", "lustre-connection-lost", "lfs", "lfs-MDT0000"),
    ("LustreError: 11-0: lfs-OST0001-osc-ffff8800: operation ost_connect to node 10.0.0.3@o2ib failed: rc = -107", "lustre-connection-lost", "lfs", "lfs-OST0001"),
    ("LustreError: 11-0: an error occurred while communicating with 10.0.0.3@o2ib. The ldlm_enqueue operation failed with -110", "lustre-timeout", "", ""),
    ("Lustre: lfs-OST0001-osc-ffff8800: Connection restored to 10.0.0.3@o2ib (at 10.0.0.3@o2ib)", "lustre-connection-back", "lfs", "lfs-OST0001"),
    ("LustreError: 0:0:(ldlm_lockd.c:256:expired_lock_main()) ### lock callback timer expired after 150s: evicting client at 10.0.0.5@o2ib  ns: mdt-lfs-MDT0000_UUID", "lustre-evicts", "lfs", "lfs-MDT0000"),
    ("Lustre: lfs-OST0001: haven't heard from client 1c9b (at 10.0.0.5@o2ib) in 227 seconds. I think it's dead, and I am evicting it. exp ffff", "lustre-evicts", "lfs", "lfs-OST0001"),
    ("Lustre: lfs-OST0001: Recovery over after 1:12, of 62 clients 61 recovered and 1 was evicted.", "lustre-recovery-ended", "lfs", "lfs-OST0001"),
    ("Lustre: lfs-OST0001: Will be in recovery for at least 5:00, or until 62 clients reconnect", "lustre-recovery", "lfs", "lfs-OST0001"),
    ("Lustre: ll_ost_io01_003: service thread pid 8 was inactive; Service thread pid 8 was inactive for 200.23s. The thread might be hung", "lustre-slow", "", ""),
    ("Lustre: lfs-OST0001: slow journal start 37s due to heavy IO load", "lustre-slow", "lfs", "lfs-OST0001"),
    ("LustreError: 4563:0:(osd_handler.c:1) LBUG", "lustre-bug", "", ""),
    ("mmfs: [E] Error=MMFS_LONGDISKIO, ID=0x478FAD3E, Tag=1", "gpfs-slow", "", ""),
    ("mmfs: Error=MMFS_SYSTEM_UNMOUNT, ID=0xC954F85D, Tag=2", "gpfs-unmounted", "", ""),
    ("nfs: server 10.0.0.9 not responding, still trying", "nfs-not-responding", "", "10.0.0.9"),
    ("nfs: server filer-1.example not responding, timed out", "nfs-not-responding", "", "filer-1.example"),
    ("nfs: server 10.0.0.9 OK", "nfs-responding", "", "10.0.0.9"),
    ("0-work-client-1: server 10.0.0.7:49152 has not responded in the last 42 seconds, disconnecting.", "gluster-disconnected", "", "10.0.0.7:49152"),
    ("blk_update_request: I/O error, dev sda, sector 1953525 op 0x0:(READ)", "io-error", "", "sda"),
    ("critical medium error, dev sdq, sector 97 op 0x0:(READ) flags 0x0", "medium-error", "", "sdq"),
    ("sd 0:0:3:0: [sdc] tag#11 Sense Key : Medium Error [current]", "medium-error", "", "sdc"),
    ("nvme nvme0: I/O 384 QID 4 timeout, aborting", "disk-reset", "", "nvme0"),
    ("nvme nvme1: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10", "disk-reset", "", "nvme1"),
    ("ata1: hard resetting link", "disk-reset", "", ""),
    ("sd 4:0:0:0: Device offlined - not ready after error recovery", "disk-offline", "", "4:0:0:0"),
    ("md/raid1:md0: Disk failure on sdb1, disabling device.", "disk-failed", "", "sdb1"),
    ("device-mapper: multipath: 253:0: Failing path 8:16.", "path-lost", "", "8:16"),
    ("igb 0000:04:00.0 eno1: igb: eno1 NIC Link is Down", "link-down", "", ""),
    ("INFO: task kworker/u8:3:211 blocked for more than 120 seconds.", "hung-task", "", "kworker/u8:3:211"),
    ("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2", "file-system-damaged", "", "sda1"),
    ("EXT4-fs (sda1): Remounting filesystem read-only", "file-system-read-only", "", "sda1"),
    ("XFS (dm-3): Corruption of in-memory data detected.  Shutting down filesystem", "file-system-damaged", "", "dm-3"),
    ("XFS (dm-3): Filesystem has been shut down due to log error (0x2).", "file-system-read-only", "", "dm-3"),
    ("write failed: No space left on device", "no-space", "", ""),
    ("usb 1-1: new high-speed USB device number 2 using xhci_hcd", "", "", ""),
];

#[test]
fn log_lines_have_the_expected_kind_and_target() {
    for (line, kind, file_system, target) in LINES {
        assert_eq!(of(line), (kind.to_string(), file_system.to_string(), target.to_string()), "{line}");
    }
}

#[test]
fn every_rule_has_a_documented_kind_and_few_texts() {
    let documented = include_str!("../../../../../docs/reference/events.md");
    for (kind, texts, _) in RULES {
        assert!(is_known(kind), "{kind}");
        assert!((1..=MOST_TEXTS).contains(&texts.len()) && texts.iter().all(|text| !text.is_empty()));
    }
    for kind in KINDS {
        let line = format!("| `{}` | {} | {} |", kind.name, kind.severity.name(), kind.meaning);
        assert!(documented.contains(&line), "docs/reference/events.md lacks: {line}");
    }
}

#[test]
fn hostile_log_lines_are_read_without_a_panic() {
    let rules = Rules::new(Vec::new()).expect("rules");
    let mut line = b"I/O error, dev ".to_vec();
    line.extend([0xff; 3000]);
    assert!(rules.of(&line).expect("an error").target.len() <= 4 * LONGEST);
    for odd in [
        &b"-OST"[..],
        b"was lost; in progress operations -MDT00",
        b"This client was evicted by -OST0001",
        b"I/O error, dev ",
        b"",
    ] {
        let found = rules.of(odd);
        assert!(found.is_none_or(|found| found.target.is_empty()));
    }
    assert_eq!(of("I/O error, dev sd\u{1b}[2J, sector").2, "sd\\x1b");
}
