//! Tests that a recording in progress can be read as a whole and step by step, and that this leaves it
//! unchanged.

use iodock_event::{Batch, LossKind};
use iodock_formats::{open_log, ReadOptions};
use iodock_import::{finish_recording, is_in_progress, read_in_progress, Following, ImportSummary, Seen};
use iodock_journal::{Closing, JournalMeta, JournalWriter};
use iodock_store::{Manifest, State};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iodock-in-progress-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("run.iodock/journal")).unwrap();
        let manifest = Manifest { state: State::Recording, ..Manifest::default() };
        manifest.write(&path.join("run.iodock")).unwrap();
        Folder(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("run.iodock")
    }

    fn journal(&self, part: &str) -> JournalWriter {
        let meta = JournalMeta { how: "ptrace".into(), start: Some(1), ..JournalMeta::default() };
        JournalWriter::create(self.store().join(format!("journal/{part}.journal")), &meta).unwrap()
    }

    fn read(&self, into: &str) -> Option<(ImportSummary, Manifest)> {
        let into = self.0.join(into);
        let read = read_in_progress(&self.store(), &into, &mut |_| {}, &AtomicBool::new(false)).unwrap();
        read.map(|summary| (summary, Manifest::read(&into).unwrap()))
    }

    fn finish(&self) -> ImportSummary {
        finish_recording(&self.store(), &mut |_| {}, &AtomicBool::new(false)).unwrap()
    }
}

/// Returns the batches of a log of 1,174 calls.
fn batches() -> Vec<Batch> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases/strace");
    let log = cases.join("10a_fdzoo/log.xz");
    let mut source = open_log(&log.to_string_lossy(), None, &ReadOptions::default()).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = source.next_batch().unwrap() {
        batches.push(batch);
    }
    batches
}

/// Returns the first or second half of each batch's records.
fn half(batch: &Batch, second: bool) -> Batch {
    let middle = batch.records.len() / 2;
    let mut half = batch.clone();
    half.records = if second { batch.records[middle..].to_vec() } else { batch.records[..middle].to_vec() };
    half
}

fn seen(following: &mut Following) -> Seen {
    following.look(5, &AtomicBool::new(false)).unwrap()
}

#[test]
fn flushed_records_are_read_and_the_recording_is_not_changed() {
    let folder = Folder::new("read");
    let batches = batches();
    let mut journal = folder.journal("main");
    assert!(is_in_progress(&folder.store().join("journal")));
    batches.iter().for_each(|batch| journal.push(&half(batch, false)).unwrap());
    journal.flush().unwrap();
    let path = folder.store().join("journal/main.journal");
    let before = std::fs::read(&path).unwrap();
    let (first, manifest) = folder.read("first").unwrap();
    assert!(first.calls > 100 && first.calls < 1174, "{} calls", first.calls);
    assert_eq!((manifest.state, first.cut), (State::Recording, false));
    assert_eq!(first.losses.count(LossKind::JournalCut), 0);
    let now = manifest.in_progress.unwrap();
    assert!(now.since_ns == Some(1) && now.until_ns.unwrap() <= now.read_ns);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.store()).unwrap().count(), 2);
    batches.iter().for_each(|batch| journal.push(&half(batch, true)).unwrap());
    journal.close(&Closing::default()).unwrap();
    assert!(folder.read("later").is_none());
    let whole = folder.finish();
    assert_eq!((whole.calls > first.calls, whole.cut), (true, false));
    assert!(Manifest::read(&folder.store()).unwrap().in_progress.is_none());
}

#[test]
fn an_incomplete_frame_is_not_read_yet() {
    let folder = Folder::new("half");
    let mut journal = folder.journal("main");
    batches().iter().for_each(|batch| journal.push(batch).unwrap());
    journal.flush().unwrap();
    let path = folder.store().join("journal/main.journal");
    let whole = std::fs::read(&path).unwrap();
    let held = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    held.set_len(whole.len() as u64 - 7).unwrap();
    let mut following = Following::open(&folder.store()).unwrap();
    let first = seen(&mut following);
    assert_eq!(folder.read("half").unwrap().0.losses.count(LossKind::JournalCut), 0);
    std::fs::write(&path, &whole).unwrap();
    assert!(seen(&mut following).calls > first.calls);
}

#[test]
fn a_follower_sees_the_same_calls_as_a_late_reader() {
    let folder = Folder::new("steps");
    let batches = batches();
    let mut journal = folder.journal("0");
    let mut following = Following::open(&folder.store()).unwrap();
    assert_eq!(seen(&mut following).calls, 0);
    let mut counts = Vec::new();
    for second in [false, true] {
        batches.iter().for_each(|batch| journal.push(&half(batch, second)).unwrap());
        journal.flush().unwrap();
        counts.push(seen(&mut following).calls);
    }
    assert!(0 < counts[0] && counts[0] < counts[1], "{counts:?}");
    let late = Following::open(&folder.store()).map(|mut late| seen(&mut late)).unwrap();
    assert_eq!(Seen { until_ns: None, ..late.clone() }, Seen { until_ns: None, ..seen(&mut following) });
    assert!(
        late.files.len() <= 5 && late.files.windows(2).all(|two| two[0].sums.time_ns >= two[1].sums.time_ns)
    );
    // A rank that is added later must be found.
    let mut other = folder.journal("1");
    batches.iter().for_each(|batch| other.push(batch).unwrap());
    other.flush().unwrap();
    assert_eq!(seen(&mut following).calls, 2 * late.calls);
}
