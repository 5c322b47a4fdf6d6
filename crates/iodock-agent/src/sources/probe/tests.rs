use super::*;

fn framed(json: &str) -> Vec<u8> {
    format!("\u{1e}{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes()
}

fn round(outcomes: &str) -> Round {
    let json = format!(r#"{{"k":"round","ts":5,"run":"r","n":7,"o":{outcomes},"f":{{"free":1}}}}"#);
    match records(&framed(&json)).0.pop() {
        Some(Record::Round(round)) => round,
        other => panic!("{other:?}"),
    }
}

fn kind(round: &Round, limit: Option<u64>) -> (&'static str, String) {
    match state(round, limit.map(Duration::from_millis)) {
        Sight::State { kind, text, .. } => (kind, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_result_of_a_probe_round_is_read() {
    let well = round(r#"{"mkdir":1000000,"create":2000000,"df":9000000}"#);
    assert_eq!((well.response_ns(), well.n), (3_000_000, 7));
    assert_eq!(kind(&well, None), ("probe-well", "the round took 0.003 s".into()));
    assert_eq!(kind(&well, Some(3)).0, "probe-well");
    assert_eq!(kind(&well, Some(2)), ("probe-slow", "the round took 0.003 s, the limit is 0.002 s".into()));
    let failed =
        round(r#"{"mkdir":1000,"create":["failed",500,"ENOSPC"],"write":["not-tried",null,"create"]}"#);
    assert_eq!(kind(&failed, None), ("probe-failed", "create: ENOSPC".into()));
    let hung = round(r#"{"mkdir":["no-answer",30000000000,null],"create":["failed",1,"EIO"]}"#);
    assert_eq!(kind(&hung, None), ("probe-no-answer", "mkdir: no answer for 30.000 s".into()));
    assert_eq!((hung.count("no-answer"), hung.count("failed")), (1, 1));
}

#[test]
fn a_damaged_probe_record_loses_only_itself() {
    let run = framed(r#"{"k":"run","ts":1,"run":"r","host":"h","pid":1,"target":"/scratch"}"#);
    let round = framed(r#"{"k":"round","ts":2,"run":"r","n":1,"o":{"mkdir":5},"f":{}}"#);
    let mut bent = round.clone();
    bent[15] ^= 1;
    let odd = framed(r#"{"k":"round","ts":"x"}"#);
    let new = framed(r#"{"k":"weather"}"#);
    let all = [b"junk".to_vec(), run, bent, odd, new, b"\x1e\xff\n".to_vec(), round].concat();
    let (found, damaged) = records(&all);
    assert_eq!((found.len(), damaged), (2, 4));
    for end in 0..all.len() {
        let _ = records(&all[..end]);
    }
}

#[test]
fn each_probe_round_is_read_once_and_completely() {
    let folder = std::env::temp_dir().join(format!("iodock-probe-agent-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("h-2026-11.log");
    let run = framed(r#"{"k":"run","run":"r","target":"/scratch"}"#);
    let one = framed(r#"{"k":"round","ts":2,"run":"r","n":1,"o":{},"f":{}}"#);
    let mut position = Position::default();
    let mut read = |content: &[&[u8]]| {
        std::fs::write(&path, content.concat()).expect("written");
        let mut rounds = Vec::new();
        let mut take = |target: &str, round: Round| rounds.push((target.to_owned(), round.n));
        assert_eq!(new_rounds(&path, &mut position, &mut take).expect("read"), 0);
        // The position is converted to the form in which the next agent reads it.
        position = serde_json::from_str(&serde_json::to_string(&position).expect("JSON")).expect("read back");
        rounds
    };
    assert_eq!(read(&[&run, &one, &one[..10]]), [("/scratch".to_string(), 1)]);
    assert_eq!(read(&[&run, &one, &one[..10]]), []);
    assert_eq!(read(&[&run, &one, &one]), [("/scratch".to_string(), 1)]);
    // A round of an unknown run is not reported.
    let other = framed(r#"{"k":"round","ts":2,"run":"other","n":1,"o":{},"f":{}}"#);
    assert_eq!(read(&[&run, &one, &one, &other]), []);
    // The following file is longer than one piece. The one after it has a record without an end.
    let many = one.repeat(40_000);
    assert_eq!(read(&[&run, &one, &one, &other, &many]).len(), 40_000);
    let endless = vec![b'x'; 2 * LONGEST_RECORD];
    let last = [&run[..], &one, &one, &other, &many, &endless];
    assert_eq!(read(&last), []);
    assert_eq!(read(&last), []);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_probed_folder_belongs_to_the_mount_point_above() {
    let lines = [
        &b"1 0 8:1 / / rw - ext4 /dev/sda1 rw"[..],
        b"2 1 0:50 / /scratch rw,noatime shared:1 - lustre 10.0.0.1@o2ib:10.0.0.2@o2ib:/lfs rw",
        b"3 1 0:51 / /my\\040home rw - nfs4 10.0.0.9:/home rw",
        b"4 1 0:52",
        b"",
    ];
    let mounts = Mounts(lines.into_iter().filter_map(mount).collect());
    assert_eq!(mounts.file_system("/scratch/me"), "lfs");
    assert_eq!(mounts.file_system("/scratch2"), "/dev/sda1");
    assert_eq!(mounts.file_system("/my home"), "10.0.0.9:/home");
    assert_eq!(Mounts(Vec::new()).file_system("/x"), "");
}
