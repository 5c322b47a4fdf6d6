//! Finds events in log lines. [`rules`] and [`site`] say which lines are events, [`times`] finds when they
//! were written, and [`Sieve`] merges similar ones.

pub mod rules;
pub mod site;
pub mod times;

use crate::clock::now;
use crate::events::memory::shortened;
use crate::sample::printable;
use iodock_samples::event::{Event, Severity};
use rules::Rules;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Logs to read, their rules, and files that stay open between rounds.
#[derive(Debug, Default)]
pub struct Logs {
    /// Syslog files. `None` means the first usual file that exists, else the journal.
    pub files: Option<Vec<PathBuf>>,
    pub rules: Rules,
    /// Stores that `iodock probe` writes.
    pub probes: Vec<PathBuf>,
    pub probe_limit: Option<Duration>,
    kernel: Mutex<Option<File>>,
    journal: Mutex<Option<Instant>>,
}

impl Logs {
    /// Returns the kernel's log that was opened in an earlier round.
    pub fn kernel(&self) -> Option<File> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the kernel's log open for the next round.
    pub fn keep_kernel(&self, file: File) {
        *self.kernel.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    /// Returns whether the journal should be read now. This costs more than a whole round, so it is done less
    /// often.
    pub fn is_journal_due(&self, every: Duration) -> bool {
        let mut asked = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = asked.is_none_or(|asked| asked.elapsed() >= every);
        if is_due {
            *asked = Some(Instant::now());
        }
        is_due
    }
}

/// Largest number of kinds and targets that are distinguished in one round of a log. Events beyond it are
/// reported without their target.
const MOST: usize = 100;
/// Number of bytes of a line that are examined. The rest is ignored.
pub const LONGEST_LINE: usize = 4096;

/// Returns an event that says how often a part of a log was skipped.
pub fn skipped(source: &'static str, count: u64, text: String) -> Event {
    let time = now();
    let (kind, severity) = ("log-skipped".into(), Severity::Note);
    Event { first: time, last: time, kind, severity, source: source.into(), count, text, ..Event::default() }
}

/// Examines lines and collects events, with one event and a count for each kind and target.
pub struct Sieve<'a> {
    rules: &'a Rules,
    source: &'static str,
    /// Events by kind, file system and target.
    found: BTreeMap<(String, String, String), Event>,
}

impl<'a> Sieve<'a> {
    pub fn new(rules: &'a Rules, source: &'static str) -> Self {
        Sieve { rules, source, found: BTreeMap::new() }
    }

    /// Examines a line. `time` returns when the line was written, in ns since the epoch. It is called only
    /// for lines that are events.
    pub fn line(&mut self, line: &[u8], time: impl FnOnce() -> i64) {
        let line = &line[..line.len().min(LONGEST_LINE)];
        let Some(found) = self.rules.of(line) else { return };
        let time = time();
        let mut key = (found.kind.to_owned(), found.file_system, found.target);
        if self.found.len() >= MOST && !self.found.contains_key(&key) {
            (key.1, key.2) = Default::default();
        }
        match self.found.get_mut(&key) {
            Some(event) => {
                event.count += 1;
                event.first = event.first.min(time);
                event.last = event.last.max(time);
            }
            None => {
                let (kind, file_system, target) = key.clone();
                let (severity, source) = (found.severity, self.source.to_owned());
                let text = shortened(&printable(line.trim_ascii()));
                let (first, last, count) = (time, time, 1);
                let event = Event { first, last, kind, severity, source, file_system, target, count, text };
                self.found.insert(key, event);
            }
        }
    }

    /// Returns the events in the order of their first occurrence.
    pub fn events(self) -> Vec<Event> {
        let mut events: Vec<Event> = self.found.into_values().collect();
        events.sort_by_key(|event| event.first);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_messages_is_one_event_with_a_count() {
        let rules = Rules::new(Vec::new()).expect("rules");
        let mut sieve = Sieve::new(&rules, "kernel-log");
        for time in 0..10_000 {
            sieve.line(b"blk_update_request: I/O error, dev sda, sector 5", || time);
            sieve.line(b"nothing of interest", || panic!("its time is not asked for"));
        }
        for number in 0..10_000 {
            sieve.line(format!("I/O error, dev x{number}\x1b, sector 5").as_bytes(), || 20_000);
        }
        let events = sieve.events();
        assert!(events.len() <= MOST + 1);
        let sda = &events[0];
        assert_eq!((sda.target.as_str(), sda.count, sda.first, sda.last), ("sda", 10_000, 0, 9_999));
        assert_eq!(events.iter().map(|event| event.count).sum::<u64>(), 20_000);
        assert!(events.iter().all(|event| !event.text.contains(char::is_control)));
    }
}
