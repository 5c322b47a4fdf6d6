//! Tests that journals are read as they were written, that cut and damaged journals lose only what is
//! missing, and that invalid files are refused.

use iodock_event::{
    AsyncItem, Batch, CallId, DescriptorSnapshot, ErrnoId, FirstLoss, Fork, Items, LossKind, Mount, Outcome,
    Phase, RawCall, Record, RecordSource, Sample, SampleKind, Start, TaskEnd, TaskUsage, Text, UNKNOWN,
};
use iodock_journal::{Closing, JournalMeta, JournalReader, JournalWriter};
use std::path::PathBuf;

/// A temporary folder of one test, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iodock-journal-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn file(&self) -> PathBuf {
        self.0.join("part.journal")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn call_id(name: &str) -> CallId {
    CallId::intern(name.as_bytes()).unwrap()
}

/// Returns a batch with every kind of record, extreme values and invalid UTF-8.
fn everything() -> Batch {
    let mut batch = Batch::default();
    let mut read = RawCall::new(call_id("read"), 4711);
    (read.start, read.duration, read.result, read.requested) = (1_700_000_000_000_000_000, 900, 4096, 4096);
    (read.fd, read.outcome) = (3, Outcome::Succeeded);
    batch.records.push(Record::Call(read));
    let mut open = RawCall::new(call_id("openat"), 4711);
    (open.start, open.duration, open.result, open.fd) =
        (1_700_000_000_000_001_000, 7, -1, iodock_event::AT_FDCWD);
    (open.outcome, open.errno) = (Outcome::Failed, ErrnoId::from_linux(2));
    (open.flags, open.path_cut, open.phase) = (u64::MAX, true, Phase::Exit);
    open.path = batch.push_text(b"/no/such\xff\n name");
    batch.records.push(Record::Call(open));
    let mut odd = RawCall::new(call_id("a_call_of_tomorrow"), u32::MAX);
    (odd.start, odd.end, odd.duration, odd.sys_cpu) = (i64::MIN + 1, i64::MAX, i64::MAX, -5);
    (odd.result, odd.requested, odd.offset, odd.offset2) = (i64::MAX, i64::MIN + 1, -1, i64::MAX);
    (odd.argument, odd.stat_size, odd.stat_type, odd.fd2) = (0, 1, 8, -1);
    (odd.errno, odd.phase) = (ErrnoId::intern(b"EODD").unwrap(), Phase::Orphan);
    odd.path2 = batch.push_text(b"");
    odd.argv = batch.push_text(b"a\0b\0");
    odd.fd_text = batch.push_text(b"pipe:[7]");
    odd.fd2_text = batch.push_text(b"x");
    odd.result_text = batch.push_text(b"y");
    batch.items.push(AsyncItem::request(u64::MAX, -1, true, -5, UNKNOWN));
    batch.items.push(AsyncItem::request(0, 9, false, i64::MAX, 0));
    odd.items = Items { start: 0, count: 2 };
    batch.records.push(Record::Call(odd));
    let working_directory = batch.push_text(b"/home/\xe9");
    let start = Start {
        tid: 5,
        tgid: 4,
        parent_tid: Some(3),
        time: 12,
        working_directory,
        command: Text::NONE,
        attached: true,
        rank: Some(-3),
    };
    batch.records.push(Record::Start(start));
    let target = batch.push_text(b"/dev/pts/0");
    let flags = 0o2000002;
    let snapshot =
        DescriptorSnapshot { tid: 5, fd: 2, target, position: 0, flags, stat_type: 2, stat_size: UNKNOWN };
    batch.records.push(Record::Descriptor(snapshot));
    let signal = batch.push_text(b"SIGKILL");
    let end =
        TaskEnd { tid: 5, time: UNKNOWN, exit_code: None, signal, core_dumped: true, superseded_by: Some(6) };
    batch.records.push(Record::End(end));
    batch.forks.push(Fork { parent_tid: 1, child_tid: 2, flags: 0x11, call: call_id("clone3") });
    batch.losses.add_at(LossKind::UnreadableMemory, || FirstLoss {
        file: "f".into(),
        line: 3,
        sample: "s".into(),
    });
    batch.counts.timed = 3;
    batch.counts.signals.insert("SIGCHLD".into(), 2);
    batch
}

/// Converts records and their texts to a form that can be compared.
fn describe(batch: &Batch) -> Vec<String> {
    let show = |record: &Record| {
        let texts: Vec<Option<&[u8]>> = match record {
            Record::Call(c) => vec![c.path, c.path2, c.argv, c.fd_text, c.fd2_text, c.result_text],
            Record::End(e) => vec![e.signal],
            Record::Start(s) => vec![s.working_directory, s.command],
            Record::Descriptor(d) => vec![d.target],
            Record::Identity(i) => vec![i.name],
            Record::Interface(i) => vec![i.name],
        }
        .into_iter()
        .map(|text| text.is_some().then(|| batch.text(text)))
        .collect();
        let mut bare = *record;
        let mut items = Vec::new();
        match &mut bare {
            Record::Call(c) => {
                items.extend_from_slice(&batch.items[c.items.start as usize..][..c.items.count as usize]);
                (c.path, c.path2, c.argv) = (Text::NONE, Text::NONE, Text::NONE);
                (c.fd_text, c.fd2_text, c.result_text) = (Text::NONE, Text::NONE, Text::NONE);
                c.items = Items::default();
            }
            Record::End(e) => e.signal = Text::NONE,
            Record::Start(s) => (s.working_directory, s.command) = (Text::NONE, Text::NONE),
            Record::Descriptor(d) => d.target = Text::NONE,
            Record::Identity(i) => i.name = Text::NONE,
            Record::Interface(i) => i.name = Text::NONE,
        }
        format!("{bare:?} {texts:?} {items:?}")
    };
    batch.records.iter().map(show).collect()
}

fn meta() -> JournalMeta {
    JournalMeta {
        how: "ptrace".into(),
        host: "node7".into(),
        cpus: Some(2),
        command: vec![b"./a.out".to_vec(), b"-x\xff".to_vec(), Vec::new()],
        working_directory: b"/tmp".to_vec(),
        rank: Some(3),
        ranks: Some(4),
        start: Some(5),
        extra: [("SLURM_JOB_ID".to_string(), "77".to_string())].into(),
        ..JournalMeta::default()
    }
}

fn sample(ts: i64, metric: &str) -> Sample {
    let (source, target) = ("diskstats".to_string(), "sda".to_string());
    Sample { ts, source, target, metric: metric.into(), value: 1.5, kind: SampleKind::Counter }
}

fn mount() -> Mount {
    Mount { mount_point: "/".into(), fs_type: "ext4".into(), source: "/dev/sda".into(), options: "rw".into() }
}

fn drain(reader: &mut JournalReader) -> Vec<Batch> {
    std::iter::from_fn(|| reader.next_batch().unwrap()).collect()
}

#[test]
fn a_journal_is_read_back_as_written() {
    let folder = Folder::new("round");
    let mut writer = JournalWriter::create(folder.file(), &meta()).unwrap();
    let batch = everything();
    writer.mounts(&[mount()]).unwrap();
    writer.push(&batch).unwrap();
    writer.flush().unwrap();
    writer.samples(&[sample(10, "read_bytes"), sample(10, "write_bytes"), sample(5, "read_bytes")]).unwrap();
    writer.push(&batch).unwrap();
    let usage = TaskUsage { cpu_user_ns: 9, ..TaskUsage::new(5, 12) };
    writer.usages(&[usage]).unwrap();
    let closing = Closing { exit_code: Some(3), exit_signal: Some("SIGTERM".into()), ..Closing::default() };
    let before = writer.written_bytes();
    writer.close(&closing).unwrap();

    let mut reader = JournalReader::open(folder.file()).unwrap();
    assert_eq!(reader.meta(), &meta());
    let batches = drain(&mut reader);
    assert_eq!(batches.len(), 2);
    for got in &batches {
        assert_eq!(describe(got), describe(&batch));
        assert_eq!(format!("{:?}", got.forks), format!("{:?}", batch.forks));
        assert_eq!(got.losses, batch.losses);
        assert_eq!(format!("{:?}", got.counts), format!("{:?}", batch.counts));
    }
    assert_eq!(reader.take_mounts(), [mount()]);
    assert_eq!(
        reader.take_samples(),
        [sample(10, "read_bytes"), sample(10, "write_bytes"), sample(5, "read_bytes")]
    );
    assert_eq!(reader.take_usages(), [usage]);
    assert_eq!(reader.closing(), Some(&Closing { written_bytes: before, ..closing }));
    assert!(!reader.is_cut());
}

#[test]
fn an_existing_journal_is_not_overwritten() {
    let folder = Folder::new("exists");
    let writer = JournalWriter::create(folder.file(), &meta()).unwrap();
    let error = JournalWriter::create(folder.file(), &meta()).err().unwrap();
    assert!(error.to_string().contains("part.journal"), "{error}");
    assert!(error.hint().contains("another name"));
    drop(writer);
}

/// Writes a journal with `flushes` flushes of one record each. Returns the file's length after each flush.
fn several_flushes(folder: &Folder, flushes: usize) -> Vec<u64> {
    let mut writer = JournalWriter::create(folder.file(), &meta()).unwrap();
    let mut lengths = vec![std::fs::metadata(folder.file()).unwrap().len()];
    let batch = everything();
    for _ in 0..flushes {
        writer.push(&batch).unwrap();
        writer.flush().unwrap();
        lengths.push(std::fs::metadata(folder.file()).unwrap().len());
    }
    lengths
}

#[test]
fn a_journal_truncated_anywhere_keeps_its_flushed_records() {
    let folder = Folder::new("cut");
    let lengths = several_flushes(&folder, 3);
    let bytes = std::fs::read(folder.file()).unwrap();
    let expected = describe(&everything());
    for cut in 0..=bytes.len() {
        std::fs::write(folder.file(), &bytes[..cut]).unwrap();
        let Ok(mut reader) = JournalReader::open(folder.file()) else {
            assert!((cut as u64) < lengths[0], "{cut}");
            continue;
        };
        let batches = drain(&mut reader);
        let whole = lengths.iter().filter(|&&length| length <= cut as u64).count() - 1;
        let records: Vec<String> = batches.iter().flat_map(describe).collect();
        assert_eq!(records, vec![expected.as_slice(); whole].concat(), "{cut}");
        let last = batches.last().unwrap();
        assert!(reader.is_cut());
        assert!(last.losses.count(LossKind::JournalCut) >= 1);
        assert!(last.losses.first[&LossKind::JournalCut].file.ends_with("part.journal"));
    }
}

#[test]
fn every_flipped_byte_is_detected() {
    let folder = Folder::new("flip");
    several_flushes(&folder, 2);
    let bytes = std::fs::read(folder.file()).unwrap();
    let expected = describe(&everything());
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            std::fs::write(folder.file(), &damaged).unwrap();
            let Ok(mut reader) = JournalReader::open(folder.file()) else { continue };
            for (index, record) in drain(&mut reader).iter().flat_map(describe).enumerate() {
                assert_eq!(record, expected[index % expected.len()], "byte {at}");
            }
        }
    }
}

/// The frames have right checksums and invalid payloads, as an attacker could create them.
#[test]
fn hostile_payloads_do_not_panic() {
    let folder = Folder::new("hostile");
    several_flushes(&folder, 1);
    let bytes = std::fs::read(folder.file()).unwrap();
    let mut frames = Vec::new();
    let mut at = 16;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        frames.push(at..at + 16 + length);
        at += 16 + length;
    }
    for frame in frames.iter() {
        for at in frame.start + 16..frame.end {
            for value in [0x00, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                seal(&mut damaged, frame.clone());
                std::fs::write(folder.file(), &damaged).unwrap();
                if let Ok(mut reader) = JournalReader::open(folder.file()) {
                    drain(&mut reader).iter().flat_map(describe).for_each(drop);
                }
            }
        }
    }
}

fn seal(bytes: &mut [u8], frame: std::ops::Range<usize>) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[frame.start..frame.start + 12]);
    hasher.update(&bytes[frame.start + 16..frame.end]);
    let checksum = hasher.finalize().to_le_bytes();
    bytes[frame.start + 12..frame.start + 16].copy_from_slice(&checksum);
}

#[test]
fn zeros_after_the_end_count_as_a_truncation() {
    let folder = Folder::new("zeros");
    several_flushes(&folder, 1);
    let mut bytes = std::fs::read(folder.file()).unwrap();
    bytes.resize(bytes.len() + 4096, 0);
    std::fs::write(folder.file(), &bytes).unwrap();
    let mut reader = JournalReader::open(folder.file()).unwrap();
    let batches = drain(&mut reader);
    assert_eq!(batches.last().unwrap().losses.count(LossKind::JournalCut), 4096);
}

#[test]
fn other_files_and_newer_journals_are_refused() {
    let folder = Folder::new("refused");
    for bytes in [&b""[..], b"IODOCKJ", b"12:00:00 read(3", &[0; 64]] {
        std::fs::write(folder.file(), bytes).unwrap();
        let error = JournalReader::open(folder.file()).err().unwrap();
        assert!(error.message.contains("not an iodock journal"), "{error}");
    }
    std::fs::write(folder.file(), b"IODOCKJ\n\x09\0\0\0\0\0\0\0").unwrap();
    let error = JournalReader::open(folder.file()).err().unwrap();
    assert!(error.message.contains("format 9") && error.hint.contains("newer"), "{error}");
}

#[test]
fn a_large_number_of_records_is_flushed_automatically() {
    let folder = Folder::new("large");
    let mut writer = JournalWriter::create(folder.file(), &meta()).unwrap();
    let batch = everything();
    for _ in 0..50_000 {
        writer.push_record(&batch.records[0], &batch).unwrap();
    }
    assert!(writer.written_bytes() > 250_000);
    drop(writer);
    let mut reader = JournalReader::open(folder.file()).unwrap();
    let records: usize = drain(&mut reader).iter().map(|batch| batch.records.len()).sum();
    assert!(records > 20_000 && records < 50_000, "{records}");
}

/// Mounting a small file system needs root: `cargo test -p iodock-journal -- --ignored`.
#[test]
#[ignore = "mounts a small tmpfs, which needs root"]
fn a_full_disk_keeps_the_written_records() {
    let folder = Folder::new("full");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&folder.0)
        .status()
        .unwrap();
    if !mounted.success() {
        eprintln!("skipped: may not mount");
        return;
    }
    let batch = everything();
    let mut writer = JournalWriter::create(folder.file(), &meta()).unwrap();
    let mut errors = 0;
    let mut kept = 0u64;
    for index in 0..200_000u64 {
        if let Err(error) = writer.push_record(&batch.records[0], &batch) {
            errors += 1;
            kept = index;
            assert!(error.hint().contains("full"), "{}", error.hint());
        }
    }
    assert_eq!(errors, 1);
    assert!(writer.dropped_records() > 200_000 - kept);
    let dropped = writer.dropped_records();
    writer.close(&Closing::default()).unwrap();
    let mut reader = JournalReader::open(folder.file()).unwrap();
    let batches = drain(&mut reader);
    let records: usize = batches.iter().map(|batch| batch.records.len()).sum();
    let lost: u64 = batches.iter().map(|batch| batch.losses.count(LossKind::DroppedRecords)).sum();
    drop(reader);
    std::process::Command::new("umount").arg(&folder.0).status().unwrap();
    assert_eq!(records as u64 + lost, 200_000);
    assert_eq!(lost, dropped);
}
