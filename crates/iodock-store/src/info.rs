//! Content of a store for Rust programs: manifest and files, verified.

use crate::checksum;
use crate::error::StoreError;
use crate::manifest::{Manifest, State};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, StoreError>;

const MISSING: &str = "is missing from the store";
/// Tables that every complete store has.
const REQUIRED: [&str; 5] =
    ["files.parquet", "processes.parquet", "commands.parquet", "calls.parquet", "errnos.parquet"];

/// An open store that is complete, or a recording that is still to become one.
#[derive(Clone, Debug)]
pub struct StoreInfo {
    pub path: PathBuf,
    pub manifest: Manifest,
    /// `events/part-*.parquet` in order.
    pub events: Vec<PathBuf>,
    /// `samples/part-*.parquet` in order.
    pub samples: Vec<PathBuf>,
    /// `faults/part-*.parquet` in order.
    pub faults: Vec<PathBuf>,
    /// `pages/part-*.parquet` in order.
    pub pages: Vec<PathBuf>,
    /// The other tables.
    pub tables: Vec<PathBuf>,
    /// `journal/*.journal`: not empty while recording and after a crash.
    pub journals: Vec<PathBuf>,
}

impl StoreInfo {
    /// Reads the manifest and checks that every table exists, has as many rows as the manifest says, and has
    /// the bytes that were written, if the store has checksums. For a recording only its journals are listed.
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

    /// Whether it is a recording that must be completed before there are tables to read.
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

    /// Files that are not in the manifest would change the number of rows.
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

/// Files with this ending in order; empty if the folder does not exist.
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
