//! Content of a store for Rust programs: its manifest, and its files after verification.

use crate::checksum;
use crate::error::StoreError;
use crate::manifest::{Manifest, State};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, StoreError>;

const MISSING: &str = "is missing from the store";
/// Tables that every complete store contains.
const REQUIRED: [&str; 5] =
    ["files.parquet", "processes.parquet", "commands.parquet", "calls.parquet", "errnos.parquet"];

/// An open store: a complete one, or a recording that is not complete yet.
#[derive(Clone, Debug)]
pub struct StoreInfo {
    pub path: PathBuf,
    pub manifest: Manifest,
    /// Paths of `events/part-*.parquet` in order.
    pub events: Vec<PathBuf>,
    /// Paths of `samples/part-*.parquet` in order.
    pub samples: Vec<PathBuf>,
    /// Paths of `faults/part-*.parquet` in order.
    pub faults: Vec<PathBuf>,
    /// Paths of `pages/part-*.parquet` in order.
    pub pages: Vec<PathBuf>,
    /// Paths of the other tables.
    pub tables: Vec<PathBuf>,
    /// Paths of `journal/*.journal`. They exist during a recording and after a crash.
    pub journals: Vec<PathBuf>,
}

impl StoreInfo {
    /// Reads the manifest and verifies the store: every table must exist and have the number of rows that the
    /// manifest states. If the store has checksums, every file must have its checksum. For a recording, the
    /// function only lists the journals.
    pub fn open(path: impl AsRef<Path>) -> Result<StoreInfo> {
        let path = path.as_ref();
        let manifest = Manifest::read(path)?;
        let mut info = StoreInfo {
            path: path.into(),
            events: list(&path.join("events"), "parquet")?,
            samples: list(&path.join("samples"), "parquet")?,
            faults: list(&path.join("faults"), "parquet")?,
            pages: list(&path.join("pages"), "parquet")?,
            tables: list(path, "parquet")?,
            journals: list(&path.join("journal"), "journal")?,
            manifest,
        };
        if info.manifest.state == State::Recording {
            (info.events, info.samples, info.faults) = Default::default();
            (info.pages, info.tables) = Default::default();
            return Ok(info);
        }
        info.check()?;
        Ok(info)
    }

    /// Returns whether it is a recording that must be completed before its tables can be read.
    pub fn is_unfinished(&self) -> bool {
        self.manifest.state == State::Recording
    }

    fn check(&self) -> Result<()> {
        for name in REQUIRED {
            let path = self.path.join(name);
            if !self.tables.contains(&path) {
                return Err(StoreError::Damaged { path, what: MISSING.into() });
            }
        }
        self.check_bytes()?;
        self.check_rows("events", &self.events)?;
        self.check_rows("samples", &self.samples)?;
        self.check_rows("faults", &self.faults)?;
        self.check_rows("pages", &self.pages)?;
        for path in &self.tables {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            self.check_rows(name, std::slice::from_ref(path))?;
        }
        Ok(())
    }

    /// Checks the checksums of the files in the manifest. Additional files change the number of rows, which
    /// `check_rows` detects.
    fn check_bytes(&self) -> Result<()> {
        for (name, written) in &self.manifest.checksums {
            let path = self.path.join(name);
            let found = match checksum::of_file(&path, &|| false) {
                Ok(found) => found,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Damaged { path, what: MISSING.into() });
                }
                Err(error) => return Err(StoreError::io(&path, error, 0)),
            };
            if found.as_ref() != Some(written) {
                return Err(StoreError::Damaged { path, what: checksum::DIFFERS.into() });
            }
        }
        Ok(())
    }

    fn check_rows(&self, table: &str, files: &[PathBuf]) -> Result<()> {
        let mut rows = 0;
        for file in files {
            rows += count_rows(file)?;
        }
        match self.manifest.tables.get(table) {
            Some(&expected) if expected != rows => {
                let what = format!("table {table} has {rows} rows, but {expected} according to the manifest: a file is missing or replaced");
                Err(StoreError::Damaged { path: self.path.clone(), what })
            }
            _ => Ok(()),
        }
    }
}

fn count_rows(path: &Path) -> Result<u64> {
    let file = File::open(path).map_err(|error| StoreError::io(path, error, 0))?;
    let cut = |error| {
        let what = format!("is cut or damaged, it has no valid Parquet footer: {error}");
        StoreError::Damaged { path: path.into(), what }
    };
    let reader = SerializedFileReader::new(file).map_err(cut)?;
    Ok(reader.metadata().file_metadata().num_rows().max(0) as u64)
}

/// Returns the files with this ending in order. The result is empty if the folder does not exist.
fn list(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io(folder, error, 0)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| StoreError::io(folder, error, 0))?.path();
        if path.extension().is_some_and(|found| found == ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
