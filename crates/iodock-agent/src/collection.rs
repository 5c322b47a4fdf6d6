//! Makes one round: reads every source once, each in its own thread. A file or tool that does not answer
//! delays only its own source.

use crate::batches::Round;
use crate::clock::now;
use crate::events::memory::{target_key, Memory};
use crate::events::{LogRead, Seen};
use crate::logs::Logs;
use crate::sources::process_io::Remembered;
use crate::sources::slurm_step::Sent;
use crate::sources::tool::Tool;
use crate::sources::{News, Opening, Reading, Report, Source, Terms};
use iodock_samples::event::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Options {
    /// Folder that contains /proc, /sys and the tools. Tests use another one.
    pub root: PathBuf,
    /// Number of jobs that are listed per target. The others are summed.
    pub jobs: usize,
    /// Time limit of a round, from its beginning.
    pub deadline: Duration,
    pub logs: Arc<Logs>,
}

/// Result of a source in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The reading did not finish by the deadline. The path is the one that was being read. The agent no
    /// longer waits for the reading thread.
    Hung(PathBuf),
    /// The system could not start a thread. The text is its error.
    NotStarted(String),
    /// A bug in iodock: the thread panicked.
    Failed,
}

#[derive(Debug)]
pub struct SourceRound {
    pub name: &'static str,
    pub outcome: Outcome,
    pub duration: Duration,
    pub reports: Vec<Report>,
    /// Files and folders that could not be read, each once, with the reason.
    pub refused: Vec<(PathBuf, String)>,
    pub remarks: Vec<String>,
    /// Events that this round reports.
    pub events: Vec<Event>,
}

/// Reads all `sources` once, and waits at most until the deadline. States that are not healthy become events.
/// Logs are not read, because it is not known up to where they were read before.
pub fn collect(options: &Options, sources: &[Source]) -> Vec<SourceRound> {
    let mut collector = Collector { memory: Some(Memory::default()), ..Collector::default() };
    collector.read(options, sources, None, None)
}

/// Reads sources repeatedly. A source that hung is not started again until its thread has ended, so that
/// threads do not accumulate.
#[derive(Default)]
pub struct Collector {
    left_behind: BTreeMap<&'static str, (JoinHandle<()>, PathBuf)>,
    processes: Remembered,
    /// Memory of reported events. `None` if no events are reported.
    memory: Option<Memory>,
    records: Sent,
}

impl Collector {
    /// Creates a collector that reports events that are not in `memory` yet.
    pub fn with(memory: Memory) -> Collector {
        Collector { memory: Some(memory), ..Collector::default() }
    }

    /// Makes a round like [`collect`]. Changes go into `round`. Without it, events wait for the next round
    /// that has one.
    pub fn round(&mut self, options: &Options, sources: &[Source], round: Option<Round>) -> Vec<SourceRound> {
        let memory = if round.is_none() { self.memory.take() } else { None };
        let positions = self.memory.as_ref().map(|memory| Arc::new(memory.positions().clone()));
        let rounds = self.read(options, sources, round, positions);
        self.memory = self.memory.take().or(memory);
        rounds
    }

    /// Saves which events were reported, so that no later agent reports them again.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn save(&mut self) -> io::Result<()> {
        self.memory.as_mut().map_or(Ok(()), Memory::save)
    }

    fn read(
        &mut self,
        options: &Options,
        sources: &[Source],
        round: Option<Round>,
        positions: Option<Arc<BTreeMap<String, String>>>,
    ) -> Vec<SourceRound> {
        let begin = Instant::now();
        let deadline = begin + options.deadline;
        let (root, limit, processes) = (options.root.clone(), options.jobs, self.processes.clone());
        let records = self.records.clone();
        let logs = Arc::clone(&options.logs);
        let terms = Terms { root, limit, deadline, round, processes, positions, logs, records };
        self.left_behind.retain(|_, (thread, _)| !thread.is_finished());
        let started: Vec<_> = sources
            .iter()
            .map(|&source| match self.left_behind.get(source.0) {
                Some((_, path)) => Started::new(source.0, Outcome::Hung(path.clone())),
                None => start(&terms, source),
            })
            .collect();
        let mut rounds: Vec<_> =
            started.into_iter().map(|source| self.follow(source, begin, deadline)).collect();
        if let (Some(memory), Some(first)) = (&mut self.memory, rounds.first_mut()) {
            first.events.extend(memory.due(now()));
        }
        rounds
    }

    fn follow(&mut self, source: Started, begin: Instant, deadline: Instant) -> SourceRound {
        let (mut round, news, thread) = source.follow(begin, deadline);
        if let Some(memory) = &mut self.memory {
            let time = now();
            let targets = news.seen.iter().map(target_key).collect();
            round.events.extend(news.seen.into_iter().filter_map(|seen| memory.see(seen, time)));
            // If a folder could not be read, missing targets may still exist. Probes appear only in rounds
            // after they ran.
            if round.outcome == Outcome::Done && round.refused.is_empty() && round.name != "probe" {
                round.events.extend(memory.end_round(round.name, &targets, time));
            }
            round.events.extend(news.logs.into_iter().flat_map(|read| memory.read(read, time)));
        }
        if let (Outcome::Hung(path), Some(thread)) = (&round.outcome, thread) {
            self.left_behind.insert(round.name, (thread, path.clone()));
        }
        round
    }
}

impl SourceRound {
    fn new(name: &'static str, outcome: Outcome) -> Self {
        let (reports, refused, remarks) = (Vec::new(), Vec::new(), Vec::new());
        let events = Vec::new();
        SourceRound { name, outcome, duration: Duration::ZERO, reports, refused, remarks, events }
    }
}

/// Observations of a source that are compared with earlier rounds.
#[derive(Default)]
struct Noticed {
    seen: Vec<Seen>,
    logs: Vec<LogRead>,
}

struct Started {
    news: Receiver<News>,
    opening: Opening,
    tool: Tool,
    thread: Option<JoinHandle<()>>,
    round: SourceRound,
    /// Targets that were reported and files that were refused, each once.
    reported: BTreeSet<(&'static str, String, String)>,
    refused: BTreeSet<PathBuf>,
    noticed: Noticed,
}

fn start(terms: &Terms, (name, read): Source) -> Started {
    let (sender, news) = channel();
    let mut started = Started { news, ..Started::new(name, Outcome::Done) };
    let reading = Reading::new(terms.clone(), sender, started.opening.clone(), started.tool.clone());
    match thread::Builder::new().name(name.into()).spawn(move || read(&reading)) {
        Ok(thread) => started.thread = Some(thread),
        Err(error) => started.round.outcome = Outcome::NotStarted(error.to_string()),
    }
    started
}

impl Started {
    /// Returns the round of a source that has no thread.
    fn new(name: &'static str, outcome: Outcome) -> Self {
        Started {
            news: channel().1,
            opening: Opening::default(),
            tool: Tool::default(),
            thread: None,
            round: SourceRound::new(name, outcome),
            reported: BTreeSet::new(),
            refused: BTreeSet::new(),
            noticed: Noticed::default(),
        }
    }

    /// Waits for the source until `deadline`. Returns its thread, too, if that has not ended.
    fn follow(mut self, begin: Instant, deadline: Instant) -> (SourceRound, Noticed, Option<JoinHandle<()>>) {
        loop {
            match self.news.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(news) => self.take(news),
                Err(RecvTimeoutError::Timeout) => {
                    let path = self.opening.lock().map(|path| path.clone()).unwrap_or_default();
                    self.round.outcome = Outcome::Hung(path);
                    break;
                }
                // The channel closes last in the source's thread, so the thread has ended or is about to.
                Err(RecvTimeoutError::Disconnected) => {
                    if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
                        self.round.outcome = Outcome::Failed;
                    }
                    break;
                }
            }
        }
        self.tool.close();
        self.round.duration = begin.elapsed();
        (self.round, self.noticed, self.thread)
    }

    fn take(&mut self, news: News) {
        match news {
            News::Report(report) => self.take_report(*report),
            News::Refused(path, why) => {
                if self.refused.insert(path.clone()) {
                    self.round.refused.push((path, why));
                }
            }
            News::Remark(text) => self.round.remarks.push(text),
            News::Seen(seen) => self.noticed.seen.push(seen),
            News::Log(read) => self.noticed.logs.push(read),
        }
    }

    /// Adds a report, unless its target has one already: with two, one series would have two values. A
    /// damaged file may list a device twice.
    fn take_report(&mut self, report: Report) {
        let key = (report.source, report.file_system.clone(), report.target.clone());
        match self.reported.contains(&key) {
            true => {
                let (source, file_system, target) = key;
                let text = format!("listed twice, the first counts: {source} {file_system} {target}");
                self.round.remarks.push(text);
            }
            false => {
                self.reported.insert(key);
                self.round.reports.push(report);
            }
        }
    }
}
