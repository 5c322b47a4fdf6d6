//! Writes a store under a temporary name, and renames it to its final name when it is complete.

use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::own;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

type Result<T> = std::result::Result<T, StoreError>;

/// Names of the tables of a finished store; its folder also contains a manifest and perhaps a journal.
pub(crate) const TABLES: [&str; 26] = [
    "events",
    "faults",
    "pages",
    crate::folds::FOLDER,
    "samples",
    "files.parquet",
    "processes.parquet",
    "commands.parquet",
    "calls.parquet",
    "errnos.parquet",
    "mounts.parquet",
    "executables.parquet",
    "interface_calls.parquet",
    "hints.parquet",
    "datasets.parquet",
    "call_totals.parquet",
    "sites.parquet",
    "stacks.parquet",
    "symbols.parquet",
    "profiles.parquet",
    "profile_counters.parquet",
    "profile_fields.parquet",
    "histograms.parquet",
    "layouts.parquet",
    "profile_accesses.parquet",
    "heatmaps.parquet",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The target does not exist, or is an empty folder.
    New,
    /// The target is a store, which is removed when the new one is complete.
    Replace,
    /// The target is a recording, whose journal is converted to tables.
    Complete,
}

/// A folder for a store that is being written. If it is dropped before it is finished, the folder is removed.
#[derive(Debug)]
pub struct NewStore {
    target: PathBuf,
    temporary: PathBuf,
    way: Way,
    done: bool,
}

impl NewStore {
    /// Makes a folder for a new store at `target`. With `force` the new store replaces an existing store, but
    /// never anything else.
    pub fn new(target: &Path, force: bool) -> Result<NewStore> {
        let way = way(target, force)?;
        // If the target is a link to an empty folder, the store is written to that folder.
        let target = target.canonicalize().unwrap_or_else(|_| target.to_path_buf());
        let temporary = beside(&target, "partial")?;
        make_folder(&temporary)?;
        Ok(NewStore { target, temporary, way, done: false })
    }

    /// Makes a folder for the tables of a recording, inside the recording's folder.
    pub fn complete(target: &Path) -> Result<NewStore> {
        Manifest::read(target)?;
        // A process that stopped waiting for its first attempt may make the tables a second time while the first
        // attempt still runs. Each attempt therefore gets a different folder name.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = match MADE.fetch_add(1, Ordering::Relaxed) {
            0 => String::new(),
            number => format!("{number:04}"),
        };
        let temporary = target.join(format!(".partial-{}{number}", std::process::id()));
        make_folder(&temporary)?;
        Ok(NewStore { target: target.into(), temporary, way: Way::Complete, done: false })
    }

    /// Returns the folder for the tables.
    pub fn folder(&self) -> &Path {
        &self.temporary
    }

    /// Removes the folders of other processes that were making the tables of this recording and ended early.
    /// No such process is still running, because the caller holds the lock of the journal.
    pub fn remove_left(&self) {
        if self.way != Way::Complete {
            return;
        }
        for entry in fs::read_dir(&self.target).into_iter().flatten().flatten() {
            let is_left = entry.file_name().to_str().is_some_and(own::is_partial);
            if is_left && entry.path() != self.temporary {
                // A failure has no effect other than that the folder takes up space.
                let _ = remove(&entry.path());
            }
        }
    }

    /// Writes the manifest and renames the store to its final name. Returns that name.
    pub fn finish(&mut self, manifest: &Manifest) -> Result<PathBuf> {
        match self.way {
            Way::Complete => self.finish_inside(manifest)?,
            Way::New | Way::Replace => {
                manifest.write(&self.temporary)?;
                self.rename()?;
            }
        }
        self.done = true;
        Ok(self.target.clone())
    }

    /// Moves the tables into the recording's folder, then writes the manifest. Until the manifest is in
    /// place, the journal contains all data and marks the store as unfinished.
    fn finish_inside(&self, manifest: &Manifest) -> Result<()> {
        for name in TABLES {
            let (from, to) = (self.temporary.join(name), self.target.join(name));
            remove(&to)?;
            if from.exists() {
                sync(&from)?;
                fs::rename(&from, &to).map_err(|error| StoreError::io(&to, error, 0))?;
            }
        }
        manifest.write(&self.target)?;
        remove(&self.temporary)?;
        remove_journal(&self.target.join("journal"))
    }

    fn rename(&self) -> Result<()> {
        let fail = |error| StoreError::io(&self.target, error, 0);
        if self.way == Way::New {
            return fs::rename(&self.temporary, &self.target).map_err(|error| match error.kind() {
                // Another process created the target after this process checked it.
                std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::AlreadyExists => {
                    StoreError::Exists { path: self.target.clone() }
                }
                _ => fail(error),
            });
        }
        let old = beside(&self.target, "replaced")?;
        fs::rename(&self.target, &old).map_err(fail)?;
        if let Err(error) = fs::rename(&self.temporary, &self.target) {
            let _ = fs::rename(&old, &self.target);
            return Err(fail(error));
        }
        own::remove_own(&old).map_err(|error| StoreError::io(&old, error, 0))
    }
}

/// Removes the journal, but keeps the library that `record --light --begin` makes programs load. Programs
/// that start later must still find that library.
fn remove_journal(journal: &Path) -> Result<()> {
    let entries = fs::read_dir(journal).into_iter().flatten().flatten().map(|entry| entry.path());
    let (sessions, others): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| own::is_session(path));
    others.iter().try_for_each(|path| remove(path))?;
    if sessions.is_empty() {
        return remove(journal);
    }
    Ok(())
}

impl Drop for NewStore {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

fn way(target: &Path, force: bool) -> Result<Way> {
    let Ok(metadata) = fs::metadata(target) else { return Ok(Way::New) };
    let refusal = |why: String| Err(StoreError::NotAStore { path: target.into(), why });
    if !metadata.is_dir() {
        return refusal("is a file, not a store, so it is not replaced".into());
    }
    let failed = |error| StoreError::io(target, error, 0);
    if fs::read_dir(target).map_err(failed)?.next().is_none() {
        return Ok(Way::New);
    }
    if fs::symlink_metadata(target).map_err(failed)?.is_symlink() {
        return refusal("is a link to a folder, so it is not replaced".into());
    }
    let foreign = own::foreign(target).map_err(failed)?;
    if !own::has_manifest(target) {
        let named = own::named(&foreign, target);
        return refusal(format!("is a folder but not a store, so it is not replaced: {named}"));
    }
    if !foreign.is_empty() {
        let named = own::named(&foreign, target);
        return refusal(format!("holds what is not of a store, so it is not replaced: {named}"));
    }
    if force {
        Ok(Way::Replace)
    } else {
        Err(StoreError::Exists { path: target.into() })
    }
}

/// Returns a path `.NAME.WHAT-PID` in the target's folder, so that a rename can move it to the target.
fn beside(target: &Path, what: &str) -> Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(StoreError::NotAStore { path: target.into(), why: "is no name for a store".into() });
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{what}-{}", std::process::id()));
    Ok(target.with_file_name(hidden))
}

fn make_folder(folder: &Path) -> Result<()> {
    // An earlier process with the same id may have left this folder.
    remove(folder)?;
    fs::create_dir_all(folder).map_err(|error| StoreError::io(folder, error, 0))
}

fn remove(path: &Path) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    let removed = if metadata.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(|error| StoreError::io(path, error, 0))
}

/// Writes the tables to the disk. This must happen before the journal is removed.
fn sync(path: &Path) -> Result<()> {
    let sync_one = |path: &Path| fs::File::open(path).and_then(|file| file.sync_all());
    let sync_all = || {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                sync_one(&entry?.path())?;
            }
        }
        sync_one(path)
    };
    sync_all().map_err(|error| StoreError::io(path, error, 0))
}
