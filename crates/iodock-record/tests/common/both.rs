//! Records with bpf and ptrace in separate folders, and reads the recorded calls.
// Each test file uses only a part of this module.
#![allow(dead_code)]

#[path = "fields.rs"]
mod fields;

use fields::fields;
use iodock_bpf::calls::CallsSource;
use iodock_event::{CallClass, Losses, Outcome, Phase, RawCall, Record, RecordSource};
use iodock_journal::JournalReader;
use iodock_record::backends::choice::named;
use iodock_record::{record, RecordError, RecordOptions, RecordOutcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::{env, fs};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub struct Place(pub PathBuf, #[allow(dead_code)] MutexGuard<'static, ()>);

/// Returns a folder for recordings. Returns `None` and prints a message if bpf can't record here.
pub fn place(name: &str) -> Option<Place> {
    if let Err(error) = named("bpf") {
        eprintln!("skipped: {error}");
        return None;
    }
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path = env::temp_dir().join(format!("iodock-bpf-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("temporary folder");
    Some(Place(path, guard))
}

pub struct Recorded {
    pub outcome: RecordOutcome,
    /// Losses that the recorder reported, and those that were found when the calls were read.
    pub losses: Losses,
    pub records: Vec<Record>,
    /// First path and arguments of each record.
    pub names: Vec<(String, String)>,
    /// Flags of each fork, which say what the child shares with its parent.
    pub forks: Vec<u64>,
}

impl Place {
    pub fn text(&self) -> &str {
        self.0.to_str().expect("text")
    }

    pub fn compile(&self, folder: &str, name: &str, options: &[&str]) -> Option<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.c"));
        let program = self.0.join(name);
        let mut build = Command::new("gcc");
        build.args(["-O2", "-w", "-o"]).arg(&program).arg(source).arg("-pthread").args(options);
        build.status().expect("gcc runs").success().then(|| program.to_str().expect("text").into())
    }

    pub fn try_record(&self, backend: &str, command: &[&str]) -> Result<Recorded, RecordError> {
        let store = self.0.join("run.iodock");
        let mut options = RecordOptions::new(command.iter().map(Into::into).collect(), store.clone());
        (options.force, options.backend) = (true, backend.into());
        let mut outcome = record(&options, Arc::default())?;
        // Dropping the folder releases its lock, so that the next recording can replace the store.
        outcome.folder = None;
        let (losses, records, names, forks) = Default::default();
        let mut recorded = Recorded { outcome, losses, records, names, forks };
        let journal = JournalReader::open(store.join("journal/main.journal")).expect("a journal");
        recorded.read(journal);
        // These are the losses that the recorder has reported already.
        recorded.losses = recorded.outcome.losses.clone();
        let calls = store.join("journal/main.calls");
        if calls.exists() {
            recorded.read(CallsSource::open(&calls).expect("a file of calls"));
        }
        Ok(recorded)
    }

    pub fn record(&self, backend: &str, command: &[&str]) -> Recorded {
        self.try_record(backend, command).expect("recorded")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Recorded {
    fn read(&mut self, mut source: impl RecordSource) {
        while let Some(batch) = source.next_batch().expect("readable") {
            let text = |text| String::from_utf8_lossy(batch.text(text)).into_owned();
            self.names.extend(batch.records.iter().map(|record| match record {
                Record::Call(raw) => (text(raw.path), text(raw.argv)),
                _ => Default::default(),
            }));
            self.records.extend_from_slice(&batch.records);
            self.forks.extend(batch.forks.iter().map(|fork| fork.flags));
            self.losses.merge(&batch.losses);
        }
    }

    pub fn calls(&self) -> impl Iterator<Item = (&RawCall, &(String, String))> {
        self.records.iter().zip(&self.names).filter_map(|(record, names)| match record {
            Record::Call(raw) if raw.phase != Phase::Enter => Some((raw, names)),
            _ => None,
        })
    }

    /// Counts calls, errors and bytes by name. Other results (descriptors, addresses, process ids) depend on
    /// the order of threads.
    pub fn counts(&self) -> BTreeMap<String, (u64, u64, i64)> {
        let mut counts = BTreeMap::new();
        for (raw, _) in self.calls() {
            let moves = raw.call.spec().class == CallClass::Data && raw.outcome == Outcome::Succeeded;
            let count: &mut (u64, u64, i64) = counts.entry(raw.call.name()).or_default();
            count.0 += 1;
            count.1 += u64::from(raw.outcome == Outcome::Failed);
            count.2 += if moves { raw.result } else { 0 };
        }
        counts
    }

    pub fn count(&self, name: &str) -> u64 {
        self.counts().get(name).map_or(0, |count| count.0)
    }

    pub fn births(&self) -> usize {
        self.records.iter().filter(|record| matches!(record, Record::Start(_))).count()
    }

    pub fn ends(&self) -> Vec<(Option<i32>, bool)> {
        let ends = self.records.iter().filter_map(|record| match record {
            Record::End(end) => Some((end.exit_code, end.superseded_by.is_some())),
            _ => None,
        });
        ends.collect()
    }

    /// Returns all fields of the first thread's calls except their times.
    pub fn fields(&self) -> Vec<String> {
        let first = self.calls().next().map(|(raw, _)| raw.tid);
        self.calls()
            .filter(|(raw, _)| Some(raw.tid) == first)
            .map(|(raw, (path, argv))| {
                // The arguments of a failed exec are not compared, because not every back end records them.
                let argv = if raw.outcome == Outcome::Succeeded { argv } else { "" };
                format!("{} {argv}", fields(raw, path))
            })
            .collect()
    }
}
