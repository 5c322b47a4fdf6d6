//! The parts of a recording: the journal of each recorder and the files that belong to it.

use crate::beside::{calls_beside, calls_growing, calls_path, traced_beside, JournalAndCalls, RawCalls};
use crate::faults::PartFaults;
use crate::merge::Stream;
use crate::ImportError;
use iodock_event::ranks::RankSet;
use iodock_event::{SourceError, TaskUsage};
use iodock_journal::{JournalMeta, JournalReader};
use iodock_preload::calls::{Counts, Usages};
use iodock_preload::light::Whole;
use iodock_tracker::{SpaceOptions, Tracker, TrackerOptions};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// Whether the recording has ended, or is read while the recorder writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Over,
    /// The recorder is still writing. The reader changes nothing, and the end of the file is not a loss.
    InProgress,
}

/// One recorder's journal.
pub struct Part {
    reader: Arc<Mutex<JournalReader>>,
    /// Calls that a back end recorded without decoding them.
    pub calls: Option<RawCalls>,
    /// Calls that another back end traced at the same time.
    pub traced: Option<Arc<Mutex<JournalReader>>>,
    /// Resource usage of the tasks of these calls.
    pub beside: Usages,
    pub host: String,
    pub rank: Option<i32>,
    /// Correction that is added to the part's time stamps, ns, if it is known.
    pub clock_offset: Option<i64>,
    pub usages: Vec<TaskUsage>,
    pub faults: Option<PartFaults>,
    /// The file of raw calls, if it contains page cache events.
    pub pages: Option<JournalReader>,
    /// For a part in progress: the time up to which it is complete, ns since the epoch.
    pub until: Option<i64>,
    pub page_cache: Option<String>,
    /// Counters, for a part that has counters instead of calls.
    pub light: Option<Counts>,
    pub counted: Counted,
}

/// The processes whose calls were counted instead of recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    Nobody,
    All,
    /// All processes except the chosen ranks.
    But(Whole),
}

impl Counted {
    fn told(meta: &JournalMeta) -> Counted {
        if !meta.extra.contains_key("light") {
            return Counted::Nobody;
        }
        let Some(ranks) = meta.extra.get("whole_ranks") else { return Counted::All };
        let ranks = RankSet::parse(ranks).unwrap_or_default();
        let counts_unranked = meta.extra.get("counts_unranked").is_some_and(|told| told == "true");
        Counted::But(Whole { ranks, counts_unranked })
    }

    /// Returns whether the calls of a process with that rank were counted.
    pub fn holds(&self, rank: Option<i32>) -> bool {
        match self {
            Counted::Nobody => false,
            Counted::All => true,
            Counted::But(whole) => whole.counts(rank),
        }
    }
}

#[derive(Default)]
pub struct Parts {
    pub open: Vec<Part>,
    pub unreadable: Vec<SourceError>,
}

impl Parts {
    /// Opens the parts of a recording.
    ///
    /// # Errors
    /// No part can be read, or a part that should be complete is not.
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

    /// Opens the parts without their calls, which the caller has read already or reads elsewhere.
    ///
    /// # Errors
    /// No part can be read, or a part that should be complete is not.
    pub fn open_without_calls(journal: &Path, standing: Standing) -> Result<Parts, ImportError> {
        let mut parts = Parts::default();
        for path in journals(journal)? {
            if standing == Standing::Over {
                refuse_running(&path)?;
            }
            match JournalReader::open(&path) {
                Ok(reader) if standing == Standing::InProgress => {
                    parts.open.push(Part::new(reader.growing(), &path, None, standing));
                }
                Ok(reader) => parts.open.push(Part::new(reader, &path, None, standing)),
                Err(error) => parts.unreadable.push(error),
            }
        }
        Ok(parts)
    }

    /// Returns the time up to which all parts in progress are complete, in ns since the epoch.
    pub fn until(&self) -> Option<i64> {
        self.open.iter().filter_map(|part| part.until).min()
    }

    /// Discards resource usages and other data collected so far, for callers that need only the calls.
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

    /// Returns the start of the part that started first.
    pub fn start(&self) -> Option<i64> {
        self.open.iter().filter_map(|part| part.reader().meta().start).min()
    }
}

impl Part {
    fn new(reader: JournalReader, path: &Path, mut calls: Option<RawCalls>, standing: Standing) -> Part {
        let meta = reader.meta();
        let counted = Counted::told(meta);
        let light = calls.as_mut().and_then(RawCalls::take_counts);
        let light = light.filter(|counts| counted == Counted::All || !counts.tables.is_empty());
        let light = light.filter(|_| counted != Counted::Nobody);
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
            counted,
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

/// Returns whether a recorder is running. A recorder holds a lock on its journal as long as it lives.
pub fn is_running(path: &Path) -> bool {
    // NFS supports such locks only on files open for writing.
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

/// Returns an error for a light recording whose programs are still running, because their later counts would
/// be lost. Such a recording has no recorder process.
fn refuse_counting(path: &Path) -> Result<(), ImportError> {
    if !iodock_preload::calls::is_counted_in(&calls_path(path)) {
        return Ok(());
    }
    Err(ImportError::Store {
        message: format!("{}: programs are still counted there", path.display()),
        hint: "wait until they have ended".into(),
    })
}

/// Opens the file of a part's raw calls to read the runs of pages in it. Returns `None` if it cannot be read.
fn pages_of(journal: &Path, calls: &RawCalls, is_growing: bool) -> Option<JournalReader> {
    let reader = JournalReader::open(calls_path(journal)).ok()?;
    Some(if is_growing { reader.growing().up_to(calls.length()) } else { reader })
}

/// Returns the time up to which a part's files are complete. It is taken from the calls or, if they do not
/// contain it, from the file's modification time, because the recorder writes once a second.
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
