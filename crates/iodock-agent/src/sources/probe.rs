//! Reads results of `iodock probe` from the logs of its store (src/iodock/file_system/probe/store.py), from
//! the last position on. The response times of the last round are levels, and whether the round was healthy
//! is a state.

pub mod records;

use super::small_file::SmallFile;
use super::Reading;
use crate::events::{LogRead, Seen, Sight};
use crate::sample::{printable, Entry, Names, Quantity};
use iodock_counters::mountinfo;
use records::{records, Record, Round};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOURCE: &str = "probe";
const MARKER: &str = "iodock-probe-store";
const VERSION: &[u8] = b"iodock probe store 1\n";
/// Largest number of bytes of a log that one round of the agent reads. Earlier data are skipped. A month with
/// a round per minute has 16 MB.
const MOST_BYTES: u64 = 64 << 20;
const PIECE_BYTES: u64 = 1 << 20;
const LONGEST_RECORD: usize = 4 << 20;
/// Largest number of remembered runs, and of files that are read in a store.
const MOST_RUNS: usize = 1000;
const MOST_FILES: usize = 1000;

/// Position in each file of a store, and the folder that each run watches.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Position {
    files: BTreeMap<String, u64>,
    runs: BTreeMap<String, String>,
}

pub fn read(reading: &Reading) {
    let Some((logs, positions)) = reading.logs() else { return };
    for folder in &logs.probes {
        let folder = reading.root().join(folder.strip_prefix("/").unwrap_or(folder));
        let log = format!("probe {}", printable(folder.as_os_str().as_bytes()));
        let before = positions.get(&log).map(|text| serde_json::from_str(text).unwrap_or_default());
        if let Err(error) = store(reading, &folder, log, before, logs.probe_limit) {
            reading.refuse(&folder, &error);
        }
    }
}

/// Reads a store. `before` is `None` if it was never read; its present rounds are then old. Fails if it is
/// not a store or cannot be read.
fn store(
    reading: &Reading,
    folder: &Path,
    log: String,
    before: Option<Position>,
    limit: Option<Duration>,
) -> io::Result<()> {
    reading.announce(folder);
    let mut version = Vec::new();
    File::open(folder.join(MARKER))?.take(100).read_to_end(&mut version)?;
    if version != VERSION {
        return Err(io::Error::other("not a probe store of a version that this agent reads"));
    }
    let (is_first, mut position) = (before.is_none(), before.unwrap_or_default());
    let mut last: BTreeMap<String, Round> = BTreeMap::new();
    for path in logs_of(reading, folder) {
        let mut take = |target: &str, round: Round| {
            if last.get(target).is_none_or(|known| known.ts <= round.ts) {
                last.insert(target.to_owned(), round);
            }
        };
        let damaged = new_rounds(&path, &mut position, &mut take)?;
        if damaged > 0 {
            let text = format!("{}: damaged records: {damaged}", printable(path.as_os_str().as_bytes()));
            reading.say(super::News::Remark(text));
        }
    }
    if !is_first {
        let mounts = Mounts::read(reading);
        last.iter()
            .for_each(|(target, round)| report(reading, &mounts.file_system(target), target, round, limit));
    }
    let position = serde_json::to_string(&position)?;
    reading.log(LogRead { events: Vec::new(), log, position });
    Ok(())
}

fn logs_of(reading: &Reading, folder: &Path) -> Vec<PathBuf> {
    let mut files = reading.files(folder);
    files.retain(|path| path.extension().is_some_and(|end| end == "log"));
    // The names end with the month, so the newest files are last.
    files.sort_by_key(|path| {
        path.file_stem().map(|stem| stem.as_bytes()[stem.len().saturating_sub(7)..].to_vec())
    });
    files.split_off(files.len().saturating_sub(MOST_FILES))
}

/// Calls `take` with the complete rounds after the position and the folders that they watched. Returns the
/// number of damaged records.
fn new_rounds(path: &Path, position: &mut Position, take: &mut dyn FnMut(&str, Round)) -> io::Result<u64> {
    let name = path.file_name().map(|name| printable(name.as_bytes())).unwrap_or_default();
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let known = position.files.get(&name).copied().filter(|begin| *begin <= length);
    let mut begin = known.unwrap_or(0).max(length.saturating_sub(MOST_BYTES));
    file.seek(SeekFrom::Start(begin))?;
    let (mut content, mut damaged) = (Vec::new(), 0);
    // The file is read in pieces, so that a month of rounds is never completely in memory.
    while begin < length {
        let read = file.by_ref().take(PIECE_BYTES).read_to_end(&mut content)?;
        // A record that `iodock probe` is still writing is read when it is complete.
        let end = memchr::memrchr(b'\n', &content).map_or(0, |end| end + 1);
        damaged += piece(&content[..end], position, take);
        content.drain(..end);
        begin += end as u64;
        if read == 0 || content.len() > LONGEST_RECORD {
            break;
        }
    }
    // A piece without a line end that is longer than this can't be a record, so it is skipped.
    begin += if content.len() > LONGEST_RECORD { content.len() as u64 } else { 0 };
    position.files.insert(name, begin);
    Ok(damaged)
}

fn piece(content: &[u8], position: &mut Position, take: &mut dyn FnMut(&str, Round)) -> u64 {
    let (found, damaged) = records(content);
    for record in found {
        match record {
            Record::Run { run, target } => {
                if position.runs.len() < MOST_RUNS || position.runs.contains_key(&run) {
                    position.runs.insert(run, target);
                }
            }
            Record::Round(round) => {
                if let Some(target) = position.runs.get(&round.run) {
                    take(target, round);
                }
            }
            Record::End { run } => drop(position.runs.remove(&run)),
        }
    }
    damaged
}

fn report(reading: &Reading, file_system: &str, target: &str, round: &Round, limit: Option<Duration>) {
    let (mut names, mut entry) = (Names::default(), Entry::default());
    let mut level = |name: &str, value: u64| {
        names.intern(name.as_bytes()).and_then(|name| entry.push(name, Quantity::Level, value))
    };
    for (operation, outcome) in &round.operations {
        if let Some(ns) = outcome.ns.filter(|_| outcome.is_answer()) {
            let _ = level(&format!("{operation}_us"), ns / 1000);
        }
    }
    let _ = level("response_us", round.response_ns() / 1000);
    let _ = level("failed", round.count("failed"));
    let _ = level("no_answer", round.count("no-answer") + round.count("waiting"));
    if let Some(limit) = limit {
        let _ = level("limit_us", u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
    }
    // The number of the round distinguishes it from a later round with equal results.
    let _ = level("round", round.n);
    let target = printable(target.as_bytes());
    reading.entries(SOURCE, (file_system, &target), &names, [&entry]);
    let file_system = file_system.to_owned();
    reading.see(Seen { source: SOURCE, file_system, target, aspect: "round", sight: state(round, limit) });
}

fn state(round: &Round, limit: Option<Duration>) -> Sight {
    let of = |kind: &str| round.operations.iter().find(|(_, outcome)| outcome.kind == kind);
    let said = |operation: &str, what: &str| format!("{}: {what}", printable(operation.as_bytes()));
    let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
    let is_slow = limit.is_some_and(|limit| u128::from(round.response_ns()) > limit.as_nanos());
    let (kind, text) = if let Some((name, outcome)) = of("no-answer").or(of("waiting")) {
        ("probe-no-answer", said(name, &format!("no answer for {}", seconds(outcome.ns.unwrap_or(0)))))
    } else if let Some((name, outcome)) = of("failed") {
        ("probe-failed", said(name, outcome.detail.as_deref().unwrap_or("failed")))
    } else if is_slow {
        let limit = limit.map_or(0, |limit| limit.as_nanos() as u64);
        (
            "probe-slow",
            format!("the round took {}, the limit is {}", seconds(round.response_ns()), seconds(limit)),
        )
    } else {
        ("probe-well", format!("the round took {}", seconds(round.response_ns())))
    };
    Sight::State { level: kind.into(), kind, text, is_told_at_first: kind != "probe-well" }
}

/// Mount points and names of file systems, for finding the file system of a folder under the name that other
/// sources use.
struct Mounts(Vec<(Vec<u8>, String)>);

impl Mounts {
    fn read(reading: &Reading) -> Mounts {
        let path = reading.root().join("proc/self/mountinfo");
        let mut buffer = SmallFile::default();
        let lines = buffer.content(&path).split(|byte| *byte == b'\n');
        Mounts(lines.filter_map(mount).collect())
    }

    /// Returns the file system of a folder. If two mounts have the same mount point, the later one is used,
    /// because it hides the other.
    fn file_system(&self, folder: &str) -> String {
        let is_below = |point: &[u8]| {
            let rest = folder.as_bytes().strip_prefix(point);
            rest.is_some_and(|rest| point == b"/" || rest.is_empty() || rest.starts_with(b"/"))
        };
        let found = self.0.iter().filter(|(point, _)| is_below(point));
        found.max_by_key(|(point, _)| point.len()).map_or_else(String::new, |(_, name)| name.clone())
    }
}

/// Parses a line of mountinfo: mount point and name of the file system.
fn mount(line: &[u8]) -> Option<(Vec<u8>, String)> {
    let found = mountinfo::line(line)?;
    // The source of a Lustre mount looks like `10.0.0.1@o2ib:/lfs`.
    let name = match found.fs_type {
        b"lustre" => found.source.rsplit(|byte| *byte == b'/').next().unwrap_or(found.source),
        _ => found.source,
    };
    Some((mountinfo::unescaped(found.point), printable(&mountinfo::unescaped(name))))
}

#[cfg(test)]
mod tests;
