//! Records in a temporary folder, and reads the result.
// Each test file uses only a part of this module.
#![allow(dead_code)]

pub mod fields;
pub mod filters;

use iodock_event::{Batch, Losses, Outcome, Phase, Record, RecordSource};
use iodock_journal::JournalReader;
use iodock_preload::calls::{recover, CallsSource, Ending};
use iodock_record::{record, RecordOptions, RecordOutcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::{env, fs};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub struct Place(pub PathBuf, #[allow(dead_code)] MutexGuard<'static, ()>);

impl Place {
    pub fn new(name: &str) -> Place {
        let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let path = env::temp_dir().join(format!("iodock-rewrite-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("temporary folder");
        Place(path, guard)
    }

    pub fn text(&self) -> &str {
        self.0.to_str().expect("text")
    }

    pub fn compile(&self, name: &str) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../iodock-preload/tests/programs");
        let program = self.0.join(name);
        let source = source.join(format!("{name}.c"));
        let status =
            Command::new("gcc").args(["-O2", "-w", "-o"]).arg(&program).arg(source).arg("-pthread").status();
        assert!(status.expect("gcc runs").success());
        program.to_str().expect("text").into()
    }

    /// Compiles a program of this crate. Returns `None` if the compiler is missing or fails.
    pub fn compile_with(&self, compiler: &[&str], name: &str, program: &str) -> Option<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
        let program = self.0.join(program);
        let built = Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-w", "-o"])
            .arg(&program)
            .arg(source)
            .output();
        if !built.is_ok_and(|built| built.status.success()) {
            eprintln!("{} can't compile here: not looked at", compiler.join(" "));
            return None;
        }
        Some(program.to_str().expect("text").into())
    }

    /// Compiles a static program. Returns `None` if there is no static libc.
    pub fn static_program(&self) -> Option<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/programs/between.c");
        let program = self.0.join("between");
        let built = Command::new("gcc").args(["-static", "-w", "-o"]).arg(&program).arg(source).status();
        if !built.expect("gcc runs").success() {
            eprintln!("no static libc here: not looked at");
            return None;
        }
        Some(program.to_str().expect("text").into())
    }

    pub fn record(&self, backend: &str, command: &[&str]) -> (RecordOutcome, Vec<Record>, Vec<String>) {
        self.record_more(backend, false, command)
    }

    pub fn record_more(
        &self,
        backend: &str,
        complete: bool,
        command: &[&str],
    ) -> (RecordOutcome, Vec<Record>, Vec<String>) {
        let store = self.0.join("run.iodock");
        let mut options = RecordOptions::new(command.iter().map(Into::into).collect(), store.clone());
        (options.force, options.backend, options.complete) = (true, backend.into(), complete);
        let mut outcome = record(&options, Arc::default()).expect("recorded");
        // Dropping the folder releases its lock, so that the next recording can replace the store.
        outcome.folder = None;
        let mut reader = JournalReader::open(store.join("journal/main.journal")).expect("a journal");
        let mut kept = Kept::default();
        while let Some(batch) = reader.next_batch().expect("readable") {
            kept.take(&batch);
        }
        if let Ok(mut traced) = JournalReader::open(store.join("journal/main.traced")) {
            while let Some(batch) = traced.next_batch().expect("readable") {
                kept.take(&batch);
            }
            assert!(!traced.is_cut());
        }
        let calls = store.join("journal/main.calls");
        if calls.exists() {
            let mut calls = calls_of(outcome.backend, &calls);
            while let Some(batch) = calls.next_batch().expect("readable") {
                kept.take(&batch);
            }
        }
        outcome.losses.merge(&kept.losses);
        (outcome, kept.records, kept.paths)
    }
}

fn calls_of(backend: &str, path: &Path) -> Box<dyn RecordSource> {
    if backend == "bpf" {
        return Box::new(iodock_bpf::calls::CallsSource::open(path).expect("a file of calls"));
    }
    let (file, session) = recover(path).expect("a file of calls");
    assert!(session.is_none());
    let mut calls = CallsSource::open(file, None).expect("readable");
    calls.set_ending(Ending::default());
    Box::new(calls)
}

#[derive(Default)]
struct Kept {
    records: Vec<Record>,
    paths: Vec<String>,
    losses: Losses,
}

impl Kept {
    fn take(&mut self, batch: &Batch) {
        for record in &batch.records {
            let path = match record {
                Record::Call(raw) => String::from_utf8_lossy(batch.text(raw.path)).into_owned(),
                _ => String::new(),
            };
            self.paths.push(path);
        }
        self.records.extend_from_slice(&batch.records);
        self.losses.merge(&batch.losses);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Counts calls and errors by name, from the first call of a program's own code on.
pub fn counts(records: &[Record]) -> BTreeMap<String, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for record in records {
        match record {
            Record::Call(raw) if raw.phase != Phase::Enter => {
                let count: &mut (u64, u64) = counts.entry(raw.call.name()).or_default();
                count.0 += 1;
                count.1 += u64::from(raw.outcome == Outcome::Failed);
            }
            _ => {}
        }
    }
    counts
}

pub fn read_and_written(records: &[Record], name: &str) -> i64 {
    let calls = records.iter().filter_map(|record| match record {
        Record::Call(raw) if raw.phase != Phase::Enter && raw.call.name() == name => Some(raw.result.max(0)),
        _ => None,
    });
    calls.sum()
}
