//! Reads a recording in progress as it grows, and keeps sums by file and by call, but no events.

use crate::merge::Merge;
use crate::parts::{journals, streams_of, tracker_of, until_of, Parts, Standing};
use crate::ImportError;
use iodock_event::{shown, CallClass, CallId, Direction, EventColumns, Side, UNKNOWN};
use iodock_preload::calls::{ENDING, TRACED_ENDING};
use iodock_tracker::Tracker;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of rows processed at a time.
const ROWS: usize = 1 << 14;

/// Operations on files with a path since the recording began, as far as the recorder has written them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Beginning of the recording, ns since the epoch; `None` if the recorder did not write it.
    pub since_ns: Option<i64>,
    pub until_ns: Option<i64>,
    pub calls: u64,
    pub metadata_calls: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// The files with the most time, in descending order.
    pub files: Vec<FileSeen>,
    /// The calls with the most time, in descending order.
    pub by_call: Vec<CallSeen>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSeen {
    pub name: String,
    pub sums: Sums,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSeen {
    pub name: String,
    pub sums: Sums,
}

/// Sums for one file or one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub calls: u64,
    pub time_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Sums {
    fn add(&mut self, rows: &EventColumns, at: usize) {
        self.calls += u64::from(!is_second(rows.side[at]));
        self.time_ns += known(rows.dur[at]);
        let bytes = known(rows.bytes[at]);
        match rows.direction[at] {
            direction if direction == Direction::Read as u8 => self.read_bytes += bytes,
            direction if direction == Direction::Write as u8 => self.written_bytes += bytes,
            _ => {}
        }
    }

    /// Returns a sort key: time, then bytes for entries whose times are equal or unknown.
    fn weight(&self) -> (u64, u64) {
        (self.time_ns, self.read_bytes + self.written_bytes)
    }
}

fn is_second(side: u8) -> bool {
    side == Side::Out as u8 || side == Side::New as u8
}

fn known(value: i64) -> u64 {
    if value == UNKNOWN {
        0
    } else {
        u64::try_from(value).unwrap_or(0)
    }
}

/// Follows the recording in a store's folder. It changes nothing in that folder.
pub struct Following {
    journal: PathBuf,
    /// Names of the files when they were opened. If a rank or a tracer is added later, everything is read
    /// again.
    names: Vec<PathBuf>,
    parts: Parts,
    merge: Merge,
    tracker: Tracker,
    by_file: Vec<Sums>,
    by_call: Vec<Sums>,
    out: EventColumns,
}

impl Following {
    /// Opens the recording in the folder `store`.
    ///
    /// # Errors
    /// Nothing can be read yet.
    pub fn open(store: &Path) -> Result<Following, ImportError> {
        let journal = store.join("journal");
        let names = names_in(&journal);
        let mut parts = Parts::open(&journal, Standing::InProgress)?;
        let mut tracker = tracker_of(&parts.open);
        let merge = Merge::new(streams_of(&mut parts.open)?, &mut tracker)?;
        let (by_file, by_call) = (Vec::new(), Vec::new());
        Ok(Following {
            journal,
            names,
            parts,
            merge,
            tracker,
            by_file,
            by_call,
            out: EventColumns::default(),
        })
    }

    /// Reads what the recorder has flushed since the last call. The result contains at most `most` files and
    /// calls.
    ///
    /// # Errors
    /// A part cannot be read further, or `cancel` was set.
    pub fn look(&mut self, most: usize, cancel: &AtomicBool) -> Result<Seen, ImportError> {
        if names_in(&self.journal) != self.names {
            *self = Following::open(self.journal.parent().unwrap_or(Path::new(".")))?;
        } else {
            self.merge.go_on(&mut self.tracker)?;
        }
        let mut more = true;
        while more {
            if cancel.load(Ordering::Relaxed) {
                return Err(ImportError::Cancelled);
            }
            more = self.merge.track(ROWS, &mut self.tracker, &mut self.out)?;
            self.count();
            self.out.clear();
        }
        self.parts.drop_beside();
        Ok(self.seen(most))
    }

    fn count(&mut self) {
        for at in 0..self.out.len() {
            let (file, call) = (self.out.file[at] as usize, usize::from(self.out.call[at]));
            if self.tracker.files().get(file).is_some_and(|entry| entry.kind.has_path()) {
                sums_of(&mut self.by_call, call).add(&self.out, at);
                sums_of(&mut self.by_file, file).add(&self.out, at);
            }
        }
    }

    fn seen(&self, most: usize) -> Seen {
        let calls = || self.by_call.iter().enumerate().map(|(id, sums)| (CallId(id as u16), sums));
        let metadata = calls().filter(|(call, _)| call.spec().class == CallClass::Metadata);
        Seen {
            since_ns: self.parts.start(),
            until_ns: self
                .merge
                .until()
                .or_else(|| self.names.iter().filter_map(|name| until_of(name, None)).max()),
            calls: self.by_call.iter().map(|sums| sums.calls).sum(),
            metadata_calls: metadata.map(|(_, sums)| sums.calls).sum(),
            read_bytes: self.by_call.iter().map(|sums| sums.read_bytes).sum(),
            written_bytes: self.by_call.iter().map(|sums| sums.written_bytes).sum(),
            files: greatest(&self.by_file, most)
                .map(|(file, sums)| FileSeen { name: self.name_of(file), sums })
                .collect(),
            by_call: greatest(&self.by_call, most)
                .map(|(call, sums)| CallSeen { name: CallId(call as u16).name(), sums })
                .collect(),
        }
    }

    fn name_of(&self, file: usize) -> String {
        shown(self.tracker.name_of(file as u32)).into_owned()
    }
}

fn sums_of(all: &mut Vec<Sums>, index: usize) -> &mut Sums {
    if index >= all.len() {
        all.resize(index + 1, Sums::default());
    }
    &mut all[index]
}

/// Returns the `most` largest entries, in descending order.
fn greatest(all: &[Sums], most: usize) -> impl Iterator<Item = (usize, Sums)> {
    let mut found: Vec<(usize, Sums)> = Vec::new();
    for (index, sums) in all.iter().enumerate().filter(|(_, sums)| sums.calls > 0) {
        let is_small =
            found.len() == most && found.last().is_some_and(|(_, last)| last.weight() >= sums.weight());
        if is_small {
            continue;
        }
        let at = found.partition_point(|(_, other)| other.weight() >= sums.weight());
        found.insert(at, (index, *sums));
        found.truncate(most);
    }
    found.into_iter()
}

/// Returns the names of journals, and of the files of calls that belong to them.
fn names_in(journal: &Path) -> Vec<PathBuf> {
    let mut names = journals(journal).unwrap_or_default();
    let beside =
        names.iter().flat_map(|name| [ENDING, TRACED_ENDING].map(|ending| name.with_extension(ending)));
    let is_begun = |name: &PathBuf| name.metadata().is_ok_and(|about| about.len() > 0);
    let begun: Vec<PathBuf> = beside.filter(is_begun).collect();
    names.extend(begun);
    names
}
