//! The parts of a recording: a journal, and what lies beside it, of each recorder.

use crate::beside::{calls_beside, calls_growing, calls_path, traced_beside, JournalAndCalls, RawCalls};
use crate::faults::PartFaults;
use crate::merge::Stream;
use crate::ImportError;
use iodock_event::{SourceError, TaskUsage};
use iodock_journal::JournalReader;
use iodock_preload::calls::{Counts, Usages};
use iodock_tracker::{SpaceOptions, Tracker, TrackerOptions};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// Is it over, or read while it is still being written?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Over,
    /// Nothing of it is changed then, and where it ends nothing is lost.
    InProgress,
}

/// One recorder's journal.
pub struct Part {
    reader: Arc<Mutex<JournalReader>>,
    /// What a back end kept unread beside the journal.
    pub calls: Option<RawCalls>,
    /// What was traced meanwhile.
    pub traced: Option<Arc<Mutex<JournalReader>>>,
    /// What the tasks of those calls have used.
    pub beside: Usages,
    pub host: String,
    pub rank: Option<i32>,
    /// To be added to its stamps; where it is known.
    pub clock_offset: Option<i64>,
    pub usages: Vec<TaskUsage>,
    pub faults: Option<PartFaults>,
    /// The file of raw calls, where it tells of the page cache.
    pub pages: Option<JournalReader>,
    /// Of a part in progress: up to when what was done is there, ns since the epoch.
    pub until: Option<i64>,
    pub page_cache: Option<String>,
    /// Counters in place of calls.
    pub light: Option<Counts>,
}

pub struct Parts {
    pub open: Vec<Part>,
    pub unreadable: Vec<SourceError>,
}

impl Parts {
    /// # Errors
    /// No part can be read; or one that shall be over is not.
    pub fn open(journal: &Path, standing: Standing) -> Result<Parts, ImportError> {
        let mut parts = Parts { open: Vec::new(), unreadable: Vec::new() };
        for path in journals(journal)? {
            let opened = match standing {
                Standing::Over => {
                    refuse_running(&path)?;
                    let calls = || calls_beside(&path);
                    JournalReader::open(&path).and_then(|reader| Ok((reader, calls()?)))
                }
                Standing::InProgress => {
                    JournalReader::open(&path).map(|reader| (reader.growing(), calls_growing(&path)))
                }
            };
            match opened {
                Ok((reader, calls)) => parts.open.push(Part::new(reader, &path, calls, standing)),
                Err(error) => parts.unreadable.push(error),
            }
        }
        if parts.open.is_empty() {
            return Err(parts.unreadable.pop().map_or_else(|| nothing(journal), ImportError::Source));
        }
        Ok(parts)
    }

    /// Up to when all of them are there, of those that are not over; ns since the epoch.
    pub fn until(&self) -> Option<i64> {
        self.open.iter().filter_map(|part| part.until).min()
    }

    /// What lies beside the calls is given up as far as it was read: for who wants the calls only.
    pub fn drop_beside(&mut self) {
        for part in &self.open {
            part.beside.take();
            let traced = part.traced.iter().map(|traced| traced.lock());
            let traced = traced.map(|locked| locked.unwrap_or_else(PoisonError::into_inner));
            for mut reader in traced.chain([part.reader()]) {
                drop((reader.take_samples(), reader.take_mounts(), reader.take_usages()));
            }
        }
    }

    /// When the first of them began.
    pub fn start(&self) -> Option<i64> {
        self.open.iter().filter_map(|part| part.reader().meta().start).min()
    }
}

impl Part {
    fn new(reader: JournalReader, path: &Path, mut calls: Option<RawCalls>, standing: Standing) -> Part {
        let meta = reader.meta();
        let is_light = meta.extra.contains_key("light");
        let light = calls.as_mut().and_then(RawCalls::take_counts).filter(|_| is_light);
        let offset = meta.extra.get("clock_offset_ns").and_then(|text| text.parse().ok());
        let page_cache = calls.as_ref().and_then(RawCalls::page_cache).map(str::to_owned);
        let told = page_cache.as_deref() == Some("recorded");
        let is_growing = standing == Standing::InProgress;
        Part {
            pages: calls.as_ref().filter(|_| told).and_then(|calls| pages_of(path, calls, is_growing)),
            page_cache,
            host: meta.host.clone(),
            rank: meta.rank,
            clock_offset: offset,
            until: is_growing.then(|| until_of(path, calls.as_ref())).flatten(),
            reader: Arc::new(Mutex::new(reader)),
            beside: calls.as_ref().and_then(RawCalls::usages).unwrap_or_default(),
            calls,
            traced: traced_beside(path, is_growing),
            usages: Vec::new(),
            faults: PartFaults::beside(path, is_growing),
            light,
        }
    }

    pub fn reader(&self) -> MutexGuard<'_, JournalReader> {
        self.reader.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

pub fn journals(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let failed = |error: std::io::Error| ImportError::Store {
        message: format!("{}: {error}", folder.display()),
        hint: "check the store's folder and its file system".into(),
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "journal") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn nothing(journal: &Path) -> ImportError {
    ImportError::Store {
        message: format!("{}: holds no journal: nothing was recorded", journal.display()),
        hint: "record again".into(),
    }
}

/// A recorder holds a lock on its journal as long as it lives.
pub fn is_running(path: &Path) -> bool {
    // NFS gives such locks only on files open for writing.
    let opened = File::options().append(true).open(path).or_else(|_| File::open(path));
    opened.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn refuse_running(path: &Path) -> Result<(), ImportError> {
    if !is_running(path) {
        return refuse_counting(path);
    }
    Err(ImportError::Store {
        message: format!("{}: is still being recorded", path.display()),
        hint: "wait for the recording to end, or end it: Ctrl-C or SIGTERM to iodock record".into(),
    })
}

/// Of a light recording without a recorder: its programs run, and would count for nobody.
fn refuse_counting(path: &Path) -> Result<(), ImportError> {
    if !iodock_preload::calls::is_counted_in(&calls_path(path)) {
        return Ok(());
    }
    Err(ImportError::Store {
        message: format!("{}: programs are still counted there", path.display()),
        hint: "wait until they have ended".into(),
    })
}

/// The runs of pages among a part's calls: as far as these are read.
fn pages_of(journal: &Path, calls: &RawCalls, is_growing: bool) -> Option<JournalReader> {
    let reader = JournalReader::open(calls_path(journal)).ok()?;
    Some(if is_growing { reader.growing().up_to(calls.length()) } else { reader })
}

/// Up to when what was done is in the files of a part: as the calls say, else when something was written last, which the
/// recorder does once a second.
pub fn until_of(journal: &Path, calls: Option<&RawCalls>) -> Option<i64> {
    if let Some(until) = calls.and_then(RawCalls::until) {
        return Some(until);
    }
    let changed = |path: PathBuf| {
        let changed = path.metadata().and_then(|about| about.modified()).ok()?;
        i64::try_from(changed.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
    };
    changed(journal.into()).max(changed(calls_path(journal)))
}

pub fn tracker_of(parts: &[Part]) -> Tracker {
    let spaces = parts.iter().map(|part| {
        let directory = part.reader().meta().working_directory.clone();
        SpaceOptions {
            working_directory: Some(directory).filter(|name| !name.is_empty()),
            rank: part.rank,
            host: Some(part.host.clone()).filter(|name| !name.is_empty()),
            unordered: false,
        }
    });
    Tracker::new(TrackerOptions { spaces: spaces.collect() })
}

pub fn streams_of(parts: &mut [Part]) -> Result<Vec<Stream>, ImportError> {
    let mut streams = Vec::new();
    for (space, part) in parts.iter_mut().enumerate() {
        let first = JournalAndCalls::new(Arc::clone(&part.reader), part.calls.take());
        let traced = part.traced.as_ref().map(|traced| JournalAndCalls::new(Arc::clone(traced), None));
        for source in [Some(first), traced].into_iter().flatten() {
            let stream = Stream::new(Box::new(source), space as u16)?;
            streams.push(stream.with_clock_offset(part.clock_offset.unwrap_or(0)));
        }
    }
    Ok(streams)
}
