//! The interface of sources. It has functions that read files below the root, and a channel for results.

use super::process_io::Remembered;
use super::slurm_step::Sent;
use super::tool::Tool;
use super::{is_gone, Parse, Parsed, Report, Target};
use crate::batches::{Comparison, Ended, Round};
use crate::clock::now;
use crate::events::{LogRead, Seen};
use crate::lines::{each_line, Faults};
use crate::logs::Logs;
use crate::ranking::Ranking;
use crate::sample::{Entry, Names, Trend};
use iodock_counters::numbers::whole;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Largest size in bytes of a file that contains one word.
const LONGEST_WORD: u64 = 4096;
/// Errors of drivers for values that do not exist at present: EINVAL, ENODEV, ENODATA, EOPNOTSUPP.
const NOTHING_TO_SAY: [i32; 4] = [22, 19, 61, 95];

/// A message from a source.
pub enum News {
    Report(Box<Report>),
    /// A file exists but could not be read, or not to its end.
    Refused(PathBuf, String),
    /// A state, which is compared with the previous round.
    Seen(Seen),
    /// Events of a log, and the position up to which it was read.
    Log(LogRead),
    /// A remark, for example on processes whose counters only root may read.
    Remark(String),
}

/// Path that a source is about to read, which is reported if the reading hangs. It is a shared variable and
/// not a message, because a round opens thousands of paths.
pub type Opening = Arc<Mutex<PathBuf>>;

/// Parameters of a round.
#[derive(Clone)]
pub struct Terms {
    pub root: PathBuf,
    /// Number of entries that are listed per target. The others are summed.
    pub limit: usize,
    pub deadline: Instant,
    /// Collects changes for the collector, if there is one.
    pub round: Option<Round>,
    /// State of processes that is kept between rounds.
    pub processes: Remembered,
    /// Positions in logs. `None` if no positions are remembered; then logs are not read.
    pub positions: Option<Arc<BTreeMap<String, String>>>,
    /// Logs and probe stores to read.
    pub logs: Arc<Logs>,
    pub records: Sent,
}

/// One reading of one source in a round.
pub struct Reading {
    terms: Terms,
    news: Sender<News>,
    opening: Opening,
    tool: Tool,
}

impl Reading {
    pub fn new(terms: Terms, news: Sender<News>, opening: Opening, tool: Tool) -> Self {
        Reading { terms, news, opening, tool }
    }

    pub fn root(&self) -> &Path {
        &self.terms.root
    }

    /// Returns the time until the deadline.
    pub fn remaining(&self) -> Duration {
        self.terms.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns facts about processes from earlier rounds.
    pub fn processes(&self) -> &Remembered {
        &self.terms.processes
    }

    /// Returns the records that earlier rounds sent.
    pub fn records(&self) -> &Sent {
        &self.terms.records
    }

    /// Returns the round that collects changes for the collector.
    pub fn round(&self) -> Option<&Round> {
        self.terms.round.as_ref()
    }

    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// Returns the logs and probe stores to read, and their positions. `None` if this round does not read
    /// logs.
    pub fn logs(&self) -> Option<(&Logs, &BTreeMap<String, String>)> {
        let positions = self.terms.positions.as_deref()?;
        Some((&self.terms.logs, positions))
    }

    /// Handles the result of opening a file like [`Reading::open`].
    pub fn opened(&self, path: &Path, result: io::Result<File>) -> Option<File> {
        self.judge(path, result)
    }

    /// Reports events of a log and the position in it.
    pub fn log(&self, read: LogRead) {
        self.say(News::Log(read));
    }

    /// Reports a state. A change of it becomes an event.
    pub fn see(&self, seen: Seen) {
        self.say(News::Seen(seen));
    }

    /// Sends a message. After the deadline the receiver no longer exists, and the message is discarded.
    pub fn say(&self, news: News) {
        let _ = self.news.send(news);
    }

    /// Stores the path that is read next.
    pub fn announce(&self, path: &Path) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.clear();
        opening.push(path);
    }

    /// Reports that a path cannot be read, with the part of it that is responsible: if a folder cannot be
    /// searched, this is the folder.
    pub fn refuse(&self, path: &Path, error: &io::Error) {
        let is_seen = |path: &&Path| fs::symlink_metadata(path).is_ok();
        let blamed = path.ancestors().find(is_seen).unwrap_or(path);
        self.say(News::Refused(blamed.into(), error.to_string()));
    }

    /// Returns a successful result. Returns `None` if the file does not exist or the operation failed, and
    /// reports the failure.
    fn judge<T>(&self, path: &Path, result: io::Result<T>) -> Option<T> {
        result
            .inspect_err(|error| {
                if !is_gone(error) {
                    self.refuse(path, error)
                }
            })
            .ok()
    }

    /// Opens a file. Returns `None` if it does not exist or cannot be opened, and reports the latter.
    pub fn open(&self, path: &Path) -> Option<File> {
        self.announce(path);
        self.judge(path, File::open(path))
    }

    /// Returns whether a path exists. If this cannot be determined, returns `false` and reports the error.
    pub fn is_there(&self, path: &Path) -> bool {
        self.announce(path);
        self.judge(path, fs::metadata(path)).is_some()
    }

    /// Returns the sorted names and paths of the folders and links in a folder.
    pub fn folders(&self, path: &Path) -> Vec<(OsString, PathBuf)> {
        self.entries_in(path, false)
    }

    /// Returns the sorted paths of the files in a folder.
    pub fn files(&self, path: &Path) -> Vec<PathBuf> {
        self.entries_in(path, true).into_iter().map(|(_, path)| path).collect()
    }

    fn entries_in(&self, path: &Path, files: bool) -> Vec<(OsString, PathBuf)> {
        self.announce(path);
        let Some(entries) = self.judge(path, fs::read_dir(path)) else { return Vec::new() };
        let mut found: Vec<_> = entries
            .filter_map(|entry| self.judge(path, entry))
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()) == files)
            .map(|entry| (entry.file_name(), entry.path()))
            .collect();
        found.sort();
        found
    }

    /// Returns the single line of a small file in /sys, without surrounding blanks. Returns `None` if the
    /// file does not exist or has no value, such as the speed of a link that is down.
    pub fn word(&self, path: &Path) -> Option<Vec<u8>> {
        self.announce(path);
        let mut content = Vec::new();
        let read = File::open(path).and_then(|file| file.take(LONGEST_WORD).read_to_end(&mut content));
        match read {
            Err(error) if NOTHING_TO_SAY.contains(&error.raw_os_error().unwrap_or(0)) => None,
            read => self.judge(path, read).map(|_| content.trim_ascii().to_vec()),
        }
    }

    /// Parses the single line of a small file in /sys as a number (see [`Reading::word`]).
    pub fn number(&self, path: &Path) -> Option<u64> {
        whole(&self.word(path)?)
    }

    /// Calls `line` with each line of a file. Returns `None` if the file cannot be opened.
    pub fn lines(&self, path: &Path, line: impl FnMut(&[u8], &mut Faults)) -> Option<Faults> {
        let mut faults = Faults::default();
        let mut file = self.open(path)?;
        if let Err(error) = each_line(&mut file, &mut faults, line) {
            self.refuse(path, &error);
        }
        Some(faults)
    }

    /// Reads a target's file and reports its entries.
    pub fn file(&self, source: &'static str, target: &Target, parse: Parse) {
        let Some(mut file) = self.open(&target.path) else { return };
        let time = now();
        let (mut names, mut faults, mut ranking) =
            (Names::default(), Faults::default(), Ranking::new(self.terms.limit));
        let mut comparison = self.compare(source, (&target.file_system, &target.name), Trend::Grows, time);
        let mut take = |entry: &Entry, names: &Names| {
            ranking.add(entry);
            comparison.iter_mut().for_each(|comparison| comparison.entry(entry, names));
        };
        let mut parsed = Parsed { names: &mut names, faults: &mut faults, entry: &mut take };
        let read = parse(&mut file, &mut parsed).inspect_err(|error| self.refuse(&target.path, error));
        self.compared(comparison, &names, read.is_ok());
        let (file_system, target) = (target.file_system.clone(), target.name.clone());
        let (table, trend, faults) = (ranking.finish(), Trend::Grows, Some(faults));
        self.report(Report { source, file_system, target, names, table, trend, faults, time });
    }

    /// Reports entries of a file that describes several targets. [`Reading::faults`] reports its unreadable
    /// lines.
    pub fn entries<'a>(
        &self,
        source: &'static str,
        place: (&str, &str),
        names: &Names,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) {
        self.entries_of(now(), source, place, names, entries);
    }

    /// Reports entries like [`Reading::entries`], with a given time.
    pub fn entries_of<'a>(
        &self,
        time: i64,
        source: &'static str,
        (file_system, target): (&str, &str),
        names: &Names,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) {
        let report =
            Report { file_system: file_system.into(), target: target.into(), ..Report::new(source, time) };
        self.whole(report, names.clone(), entries);
    }

    /// Reports sums over existing objects, which fall when an object ends. Returns whether the round accepted
    /// all of them.
    pub fn sums(&self, source: &'static str, names: Names, entries: &[Entry], faults: Faults) -> bool {
        let report = Report { trend: Trend::Falls, faults: Some(faults), ..Report::new(source, now()) };
        self.whole(report, names, entries)
    }

    fn whole<'a>(
        &self,
        mut report: Report,
        names: Names,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> bool {
        let (mut ranking, mut all) = (Ranking::new(self.terms.limit), Ranking::new(usize::MAX));
        let place = (report.file_system.as_str(), report.target.as_str());
        let mut comparison = self.compare(report.source, place, report.trend, report.time);
        let mut shown = Ranking::new(usize::MAX);
        for entry in entries {
            shown.add(&without_step(entry));
            comparison.iter().for_each(|_| all.add(entry));
        }
        shown.finish().listed.iter().for_each(|entry| ranking.add(entry));
        // `all` has added up entries of the same owner, such as several cgroups of a service.
        for entry in &all.finish().listed {
            comparison.iter_mut().for_each(|comparison| comparison.entry(entry, &names));
        }
        let is_taken = self.compared(comparison, &names, true);
        (report.names, report.table) = (names, ranking.finish());
        self.report(report);
        is_taken
    }

    fn compare(&self, source: &str, place: (&str, &str), trend: Trend, time: i64) -> Option<Comparison> {
        self.terms.round.as_ref()?.compare(source, place, trend, time)
    }

    /// Ends a comparison. Returns whether the round accepted all of it.
    fn compared(&self, comparison: Option<Comparison>, names: &Names, is_complete: bool) -> bool {
        let Some(comparison) = comparison else { return false };
        let Ended { left_out, is_taken } = comparison.end(names, is_complete);
        if left_out > 0 {
            let what = "entries that are there twice, or too long, and are not sent";
            self.say(News::Remark(format!("{what}: {left_out}")));
        }
        is_taken
    }

    /// Reports the numbers of unreadable lines in a source's files, even if no entry could be read.
    pub fn faults(&self, source: &'static str, faults: Faults) {
        self.report(Report { faults: Some(faults), ..Report::new(source, now()) });
    }

    fn report(&self, report: Report) {
        self.say(News::Report(Box::new(report)));
    }
}

/// Removes the step from an entry's owner. Only the collector gets steps, because in metrics there would be a
/// series for each.
fn without_step(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if entry.owner.has_job() {
        entry.owner.session.clear();
    }
    entry
}
