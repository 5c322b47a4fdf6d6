//! Functions that several tests share.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod forms;
pub mod random;

use iodock_darshan::{Access, Counted, Direction, Limits, Log};
use std::fmt::Write as _;
use std::io::Cursor;
use std::path::{Path, PathBuf};

include!("values.rs");

/// Returns every value of a log as text.
pub fn text(log: &Log) -> String {
    values(log)
}

/// Returns the paths of the samples, sorted by name.
pub fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/darshan");
    let files =
        std::fs::read_dir(folder).expect("samples are there").map(|entry| entry.expect("readable").path());
    let mut logs: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "darshan")).collect();
    logs.sort();
    assert_eq!(logs.len(), 47);
    logs
}

pub fn sample(name: &str) -> Vec<u8> {
    let path = samples().into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == name));
    std::fs::read(path.expect("a sample of this name")).expect("readable")
}

pub fn read(bytes: &[u8]) -> Result<Log, iodock_darshan::Fault> {
    Log::read(Cursor::new(bytes), Limits::default())
}

/// Returns the region, the name and the count of each loss.
pub fn losses(log: &Log) -> Vec<(String, &'static str, u64)> {
    log.losses.iter().map(|loss| (loss.region.to_string(), loss.kind.name(), loss.count)).collect()
}
