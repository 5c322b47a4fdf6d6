//! Remembers earlier observations. They are stored in a file next to the spool, so that the next agent does
//! not report anything twice.

use super::kinds::severity;
use super::quiet::Quiet;
use super::{LogRead, Seen, Sight};
use crate::sample::printable;
use iodock_samples::event::Event;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FILE: &str = "seen.json";
/// Largest number of remembered states. Healthy machines have fewer, but a damaged one may produce any
/// number.
const MOST_SEEN: usize = 10_000;
/// Number of rounds after which a missing target is reported as gone.
const GONE: u32 = 3;
/// Longest file in bytes. iodock does not write a longer one.
const LONGEST_FILE: u64 = 32 << 20;
/// Separator of the parts of keys and values. Names are printable, so they do not contain it.
const APART: char = '\t';

/// Memory of earlier observations on one machine.
#[derive(Debug, Default)]
pub struct Memory {
    path: Option<PathBuf>,
    kept: Kept,
    /// Content of the file as last read or written.
    written: Vec<u8>,
    /// Known targets that are missing, each with the number of rounds.
    missing: BTreeMap<String, u32>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// For each source, file system, target and aspect: the last state, working parts, speed or count.
    seen: BTreeMap<String, String>,
    /// For each log, the position up to which it was read.
    positions: BTreeMap<String, String>,
    quiet: Quiet,
}

impl Memory {
    /// Reads the file that the previous agent left in a folder. A damaged file is ignored, and everything is
    /// reported as new.
    ///
    /// # Errors
    /// Fails if the file exists but cannot be read.
    pub fn open(folder: &Path) -> io::Result<Memory> {
        let path = folder.join(FILE);
        let written = match fs::metadata(&path) {
            Ok(known) if known.len() <= LONGEST_FILE => fs::read(&path)?,
            Ok(_) => Vec::new(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let kept = serde_json::from_slice(&written).unwrap_or_default();
        Ok(Memory { path: Some(path), kept, written, ..Memory::default() })
    }

    /// Returns for each log the position up to which it was read.
    pub fn positions(&self) -> &BTreeMap<String, String> {
        &self.kept.positions
    }

    /// Returns the event for an observation at `now` (ns since the epoch), if one should be reported.
    pub fn see(&mut self, seen: Seen, now: i64) -> Option<Event> {
        let Seen { source, file_system, target, aspect, sight } = seen;
        let key = [source, &file_system, &target, aspect].join(&APART.to_string());
        let before = self.kept.seen.get(&key).cloned();
        if before.is_none() && self.kept.seen.len() >= MOST_SEEN {
            return None;
        }
        let (value, change, is_often) = compared(before.as_deref(), sight);
        if before.as_deref() != Some(&value) {
            self.kept.seen.insert(key, value);
        }
        let Change { kind, text, count } = change?;
        let event = Event {
            first: now,
            last: now,
            severity: severity(kind),
            kind: kind.into(),
            source: source.into(),
            file_system,
            target,
            count,
            text: shortened(&printable(text.as_bytes())),
        };
        if is_often {
            self.kept.quiet.take(event, now)
        } else {
            Some(event)
        }
    }

    /// Returns events for targets that are gone, after a round in which a source saw all existing targets. A
    /// target must be missing for several rounds, because Linux creates devices again when their tables
    /// change.
    pub fn end_round(&mut self, source: &str, seen: &BTreeSet<String>, now: i64) -> Vec<Event> {
        let begin = format!("{source}{APART}");
        let known =
            self.kept.seen.keys().filter(|key| key.starts_with(&begin)).filter_map(|key| target_of(key));
        let missing: BTreeSet<String> =
            known.filter(|target| !seen.contains(*target)).map(str::to_owned).collect();
        self.missing.retain(|target, _| !target.starts_with(&begin) || missing.contains(target));
        let mut events = Vec::new();
        for target in missing {
            let rounds = self.missing.entry(target.clone()).or_default();
            *rounds += 1;
            if *rounds >= GONE {
                self.missing.remove(&target);
                self.kept.seen.retain(|key, _| target_of(key) != Some(&target));
                events.extend(gone(&target, now));
            }
        }
        events
    }

    /// Returns the events of a part of a log that should be reported.
    pub fn read(&mut self, read: LogRead, now: i64) -> Vec<Event> {
        self.kept.positions.insert(read.log, read.position);
        read.events.into_iter().filter_map(|event| self.kept.quiet.take(event, now)).collect()
    }

    /// Returns the merged events that were held back and are due now.
    pub fn due(&mut self, now: i64) -> Vec<Event> {
        self.kept.quiet.due(now)
    }

    /// Writes the file in one step if it changed. Call this before the events count as reported, so that an
    /// agent that is killed in between does not report them twice.
    ///
    /// # Errors
    /// Fails if the file cannot be written. The next agent may then report events again.
    pub fn save(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let now = serde_json::to_vec(&self.kept)?;
        if now == self.written {
            return Ok(());
        }
        let draft = path.with_extension("draft");
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
        file.write_all(&now)?;
        file.sync_data()?;
        fs::rename(&draft, path)?;
        self.written = now;
        Ok(())
    }
}

/// Returns the part of a key that identifies the target.
fn target_of(key: &str) -> Option<&str> {
    key.rsplit_once(APART).map(|(target, _)| target)
}

/// Returns the key of an observation's target, for [`Memory::end_round`].
pub fn target_key(seen: &Seen) -> String {
    [seen.source, &seen.file_system, &seen.target].join(&APART.to_string())
}

fn gone(target: &str, now: i64) -> Option<Event> {
    let mut parts = target.split(APART).map(str::to_owned);
    let (source, file_system, target) = (parts.next()?, parts.next()?, parts.next()?);
    let (kind, text) = ("target-gone".to_owned(), "it is not there any more".to_owned());
    let severity = severity(&kind);
    Some(Event { first: now, last: now, kind, severity, source, file_system, target, count: 1, text })
}

/// Cuts a text to [`Event::LONGEST`] characters.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(Event::LONGEST - 1) {
        Some((end, letter)) if text.len() > end + letter.len_utf8() => format!("{}…", &text[..end]),
        _ => text.into(),
    }
}

struct Change {
    kind: &'static str,
    text: String,
    count: u64,
}

fn change(kind: &'static str, text: String) -> Option<Change> {
    Some(Change { kind, text, count: 1 })
}

/// Compares an observation with the remembered state. Returns the state to remember, the event to report, and
/// whether such events may be frequent and need merging.
fn compared(before: Option<&str>, sight: Sight) -> (String, Option<Change>, bool) {
    match sight {
        Sight::State { level, kind, text, is_told_at_first } => {
            let is_new = before.map_or(is_told_at_first, |before| before != level);
            (level, is_new.then_some(Change { kind, text, count: 1 }), false)
        }
        Sight::Parts { working, others, lost, back } => {
            let change = parts(before, &working, &others, lost, back);
            (working.into_iter().collect::<Vec<_>>().join(&APART.to_string()), change, false)
        }
        Sight::Speed { value, unit, slower, faster } => {
            let was = before.and_then(|before| before.parse::<u64>().ok());
            let change = was.filter(|was| *was != value).and_then(|was| {
                let kind = if value < was { slower } else { faster };
                change(kind, format!("{value} {unit}, before {was} {unit}"))
            });
            (value.to_string(), change, false)
        }
        Sight::Errors { kind, name, value, least } => {
            // A smaller value means that the counter started again.
            let was = before.and_then(|before| before.parse::<u64>().ok()).filter(|was| *was <= value);
            let grown = was.map_or(0, |was| value - was);
            let text = format!("{name}: {grown} more, {value} in all");
            let change = (grown >= least.max(1)).then_some(Change { kind, text, count: grown });
            (value.to_string(), change, true)
        }
    }
}

/// Returns the change in a target's working parts. If some parts stopped and others work again, it reports
/// the stopped ones; the next round may report the others.
fn parts(
    before: Option<&str>,
    working: &BTreeSet<String>,
    others: &BTreeMap<String, String>,
    lost: &'static str,
    back: &'static str,
) -> Option<Change> {
    let all = working.len() + others.len();
    let known: Option<BTreeSet<&str>> =
        before.map(|before| before.split(APART).filter(|name| !name.is_empty()).collect());
    let gone: Vec<String> = match &known {
        Some(known) => {
            known.iter().filter(|name| !working.contains(**name)).map(|name| said(name, others)).collect()
        }
        None => others.keys().map(|name| said(name, others)).collect(),
    };
    let new =
        working.iter().filter(|name| known.as_ref().is_some_and(|known| !known.contains(name.as_str())));
    let new: Vec<String> = new.cloned().collect();
    let rest = format!("{} of {all} work", working.len());
    match (gone.is_empty(), new.is_empty()) {
        (false, _) if working.is_empty() => change("all-paths-lost", gone.join(", ")),
        (false, _) => change(lost, format!("{}; {rest}", gone.join(", "))),
        // Some other parts still do not work, so this is not a recovery.
        (true, false) if !others.is_empty() => change(lost, format!("{} again; {rest}", new.join(", "))),
        (true, false) => change(back, format!("{}; {rest}", new.join(", "))),
        (true, true) => None,
    }
}

fn said(name: &str, others: &BTreeMap<String, String>) -> String {
    format!("{name} ({})", others.get(name).map_or("gone", String::as_str))
}

#[cfg(test)]
mod tests;
