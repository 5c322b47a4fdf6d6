//! Makes stores from logs and recordings, and checks which files exist afterwards and which do not.

use iodock_event::{LossKind, Sample, SampleKind, TaskUsage};
use iodock_formats::{open_log, ReadOptions};
use iodock_import::{finish_recording, import, ImportError, ImportOptions, ImportSummary, LogOptions};
use iodock_journal::{Closing, JournalMeta, JournalWriter};
use iodock_store::{Manifest, State, StoreInfo};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iodock-import-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("run.iodock")
    }

    fn log(&self, name: &str, lines: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, lines).unwrap();
        path.to_string_lossy().into_owned()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fixture() -> String {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases/strace");
    cases.join("10a_fdzoo/log.xz").to_string_lossy().into_owned()
}

fn options(logs: &[String], store: PathBuf) -> ImportOptions {
    ImportOptions::new(LogOptions { logs: logs.to_vec(), ..LogOptions::default() }, store)
}

fn run(options: &ImportOptions) -> Result<ImportSummary, ImportError> {
    import(options, &mut |_| {}, &AtomicBool::new(false))
}

fn finish(store: &Path) -> Result<ImportSummary, ImportError> {
    finish_recording(store, &mut |_| {}, &AtomicBool::new(false))
}

#[test]
fn a_log_becomes_a_store() {
    let folder = Folder::new("log");
    let summary = run(&options(&[fixture()], folder.store())).unwrap();
    assert_eq!((summary.lines, summary.calls), (1518, 1174));
    let info = StoreInfo::open(folder.store()).unwrap();
    let manifest = &info.manifest;
    assert_eq!(manifest.state, State::Complete);
    assert_eq!((manifest.captured.how.as_str(), manifest.clock.as_str()), ("strace", "day"));
    assert_eq!((manifest.source.calls, manifest.source.unfinished), (1174, 333));
    assert_eq!(manifest.first_ts, Some(10548453128000));
    assert_eq!(manifest.last_ts, Some(10548705700000.max(manifest.last_ts.unwrap())));
    assert!(manifest.losses.iter().any(|loss| loss.name == LossKind::UnknownWorkingDirectory.name()));
    assert_eq!(folder.names(), ["run.iodock"]);
}

#[test]
fn a_store_is_only_replaced_on_request() {
    let folder = Folder::new("force");
    let mut options = options(&[fixture()], folder.store());
    run(&options).unwrap();
    let error = run(&options).unwrap_err();
    assert!(error.to_string().contains("exists already") && error.hint().contains("--force"), "{error}");
    options.force = true;
    run(&options).unwrap();
    assert_eq!(folder.names(), ["run.iodock"]);
}

#[test]
fn a_failed_import_leaves_no_files() {
    let folder = Folder::new("failed");
    let cancelled = import(&options(&[fixture()], folder.store()), &mut |_| {}, &AtomicBool::new(true));
    assert!(matches!(cancelled, Err(ImportError::Cancelled)));
    assert!(matches!(run(&options(&["/no/such.log".into()], folder.store())), Err(ImportError::Source(_))));
    assert!(matches!(run(&options(&[], folder.store())), Err(ImportError::Usage { .. })));
    let letter = folder.log("letter", "Dear Sir,\nplease find enclosed\n");
    assert!(run(&options(&[letter], folder.store())).is_err());
    assert_eq!(folder.names(), ["letter"]);
}

const WRITER: &str = "\
1.000000 openat(AT_FDCWD, \"/d/f\", O_RDWR|O_CREAT, 0644) = 3 <0.000100>
1.100000 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 12 <0.000100>
1.200000 write(3, \"x\"..., 10) = 10 <0.200000>
1.900000 write(3, \"x\"..., 30) = 30 <0.000100>
";
const THREAD: &str = "1.250000 write(3, \"x\"..., 20) = 20 <0.000100>\n";

/// Returns the offsets of the writes, in the order in which they ended.
fn offsets(logs: &[String]) -> Vec<i64> {
    let logs = LogOptions { logs: logs.to_vec(), ..LogOptions::default() };
    let opened = iodock_import::open_logs(&logs).unwrap();
    struct Writes(Vec<i64>);
    impl iodock_import::EventSink for Writes {
        fn write(
            &mut self,
            events: iodock_event::EventColumns,
        ) -> Result<iodock_event::EventColumns, ImportError> {
            let rows = (0..events.len()).filter(|&row| events.direction[row] == 2);
            self.0.extend(rows.map(|row| events.offset[row]));
            Ok(events)
        }
    }
    let mut writes = Writes(Vec::new());
    let never = AtomicBool::new(false);
    iodock_import::run(opened.streams, opened.tracker, 1 << 20, &mut writes, &mut |_| {}, &never).unwrap();
    writes.0
}

#[test]
fn the_logs_of_one_run_are_merged_by_the_end_of_calls() {
    let folder = Folder::new("ff");
    let logs = [folder.log("t.11", WRITER), folder.log("t.12", THREAD)];
    // The thread's write ended first, so its offset is 0.
    assert_eq!(offsets(&logs), [0, 20, 30]);
    let reversed = [logs[1].clone(), logs[0].clone()];
    assert_eq!(offsets(&reversed), [0, 20, 30]);
}

#[test]
fn without_durations_shared_offsets_are_not_guessed() {
    let folder = Folder::new("no-T");
    let strip = |log: &str| -> String {
        log.lines().map(|line| format!("{}\n", line.split(" <").next().unwrap())).collect()
    };
    let logs = [folder.log("t.11", &strip(WRITER)), folder.log("t.12", &strip(THREAD))];
    assert!(offsets(&logs).iter().all(|&offset| offset == iodock_event::UNKNOWN));
    // A single log shows the order of its calls.
    assert_eq!(offsets(&logs[..1]), [0, 10]);
}

#[test]
fn each_rank_has_its_own_process_space() {
    let folder = Folder::new("ranks");
    let line = "7 1.0 openat(AT_FDCWD, \"f\", O_RDONLY) = 3 <0.1>\n";
    let logs = [folder.log("t.0.log", line), folder.log("t.1.log", line)];
    let mut options = options(&logs, folder.store());
    options.logs.rank_from = Some("name".into());
    options.logs.working_directories = vec![b"/a".to_vec(), b"/b".to_vec()];
    let summary = run(&options).unwrap();
    assert_eq!(summary.processes, 2);
    assert_eq!(summary.losses.count(LossKind::UnknownParent), 0);
    assert_eq!(summary.losses.count(LossKind::UnknownWorkingDirectory), 0);
    assert_eq!(Manifest::read(&folder.store()).unwrap().ranks, Some(2));
}

/// Makes a recording from the fixture, as a recorder would leave it.
fn record(folder: &Folder, part: &str, rank: Option<i32>, close: bool) -> PathBuf {
    let store = folder.store();
    std::fs::create_dir_all(store.join("journal")).unwrap();
    Manifest { state: State::Recording, ..Manifest::default() }.write(&store).unwrap();
    let meta = JournalMeta { how: "ptrace".into(), host: "n1".into(), rank, ..JournalMeta::default() };
    let path = store.join(format!("journal/{part}.journal"));
    let mut journal = JournalWriter::create(&path, &meta).unwrap();
    let mut log = open_log(&fixture(), None, &ReadOptions::default()).unwrap();
    while let Some(batch) = log.next_batch().unwrap() {
        journal.push(&batch).unwrap();
    }
    let kind = SampleKind::Gauge;
    let (source, metric) = ("loadavg".into(), "load".into());
    journal.samples(&[Sample { ts: 1, source, target: String::new(), metric, value: 1.0, kind }]).unwrap();
    journal.usages(&[TaskUsage { cpu_user_ns: 5, ..TaskUsage::new(13362, 1) }]).unwrap();
    journal.flush().unwrap();
    if close {
        let extra = [("on_measured_file_system".into(), "true".into())].into();
        journal
            .close(&Closing { exit_code: Some(3), written_bytes: 7, extra, ..Closing::default() })
            .unwrap();
    }
    path
}

#[test]
fn a_recording_is_completed_only_once() {
    let folder = Folder::new("recording");
    record(&folder, "0", None, true);
    let store = folder.store();
    let both = std::thread::scope(|scope| {
        let threads = [0, 1].map(|_| scope.spawn(|| finish(&store).unwrap()));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(both.iter().all(|summary| summary.calls == 1174 && !summary.cut));
    let info = StoreInfo::open(&store).unwrap();
    assert!(info.journals.is_empty() && !store.join("journal").exists());
    assert_eq!(info.manifest.captured.exit_status, Some(3));
    assert!(info
        .manifest
        .recorder
        .is_some_and(|told| told.on_measured_file_system && told.written_bytes > 0));
    assert_eq!(info.manifest.tables["samples"], 1);
    assert_eq!(finish(&store).unwrap().calls, 1174);
}

#[test]
fn a_truncated_recording_keeps_its_flushed_records() {
    let folder = Folder::new("cut");
    let journal = record(&folder, "0", None, false);
    let whole = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &whole[..whole.len() - 3]).unwrap();
    let summary = finish(&folder.store()).unwrap();
    assert!(summary.cut && summary.calls == 1174);
    assert_eq!(Manifest::read(&folder.store()).unwrap().state, State::Cut);
}

#[test]
fn the_parts_of_all_ranks_form_one_store() {
    let folder = Folder::new("parts");
    for rank in 0..2 {
        record(&folder, &rank.to_string(), Some(rank), true);
    }
    std::fs::write(folder.store().join("journal/2.journal"), b"").unwrap();
    let summary = finish(&folder.store()).unwrap();
    assert_eq!(summary.calls, 2 * 1174);
    assert_eq!(summary.losses.count(LossKind::MissingRanks), 1);
    assert_eq!(summary.losses.count(LossKind::UnknownParent), 0);
    assert_eq!(Manifest::read(&folder.store()).unwrap().ranks, Some(2));
}

#[test]
fn missing_and_truncated_ranks_are_named() {
    let folder = Folder::new("missing");
    for rank in [0, 1, 3] {
        record(&folder, &rank.to_string(), Some(rank), rank != 1);
    }
    finish(&folder.store()).unwrap();
    let losses = Manifest::read(&folder.store()).unwrap().losses;
    let cure = |name: &str| losses.iter().find(|loss| loss.name == name).map(|loss| loss.cure.clone());
    assert!(cure("journal-cut").unwrap().ends_with("(rank 1)"));
}

#[test]
fn a_running_recording_is_not_completed() {
    let folder = Folder::new("running");
    record(&folder, "0", None, true);
    let path = folder.store().join("journal/1.journal");
    let running = JournalWriter::create(&path, &JournalMeta::default()).unwrap();
    let error = finish(&folder.store()).unwrap_err();
    assert!(error.to_string().contains("still being recorded"), "{error}");
    drop(running);
    assert!(finish(&folder.store()).unwrap().cut);
}
