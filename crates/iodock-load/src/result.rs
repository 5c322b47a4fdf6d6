//! What a step gave: each operation's work, time and latencies, of all processes together.

use crate::cache::{self, Cache};
use crate::error::LoadError;
use crate::histogram::Latencies;
use crate::plan::{Pattern, Phase, Step, MIXED_OPERATIONS};
use crate::shared::{Pages, Record, Shared};
use serde::{Deserialize, Serialize};

/// What the engine tells while it works.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    Started {
        tree: String,
        machine: String,
    },
    Step(StepResult),
    /// This rank waits for all others: `go` and a newline on standard input say that they are here. Only where the
    /// job says that it is met outside.
    Barrier {
        number: u64,
    },
    Failed(LoadError),
    /// The last one: what could not be removed.
    Ended {
        left: Vec<String>,
    },
}

/// First start and last end on one machine, on its own clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub machine: String,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// One operation of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    pub operation: String,
    /// Between the barrier and the last process's end: the longest of all machines.
    pub seconds: f64,
    pub operations: u64,
    pub bytes: u64,
    /// Of the process that took longest, from its own start: without what others started later.
    #[serde(default)]
    pub longest_process_seconds: f64,
    /// User and system time of all processes in this phase.
    pub cpu_seconds: f64,
    pub processes: u32,
    /// Processes that the time limit ended.
    pub limited: u32,
    pub cache: Option<Cache>,
    pub cache_reason: Option<String>,
    pub latencies: Latencies,
    pub spans: Vec<Span>,
    pub pages: Pages,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepResult {
    pub id: u64,
    pub processes: u32,
    pub machines: u32,
    pub done: Vec<Done>,
}

/// Folds the slots of this rank's workers.
pub fn of_rank(step: &Step, shared: &Shared, machine: &str, magic: i64, several_ranks: bool) -> StepResult {
    let records =
        |at: usize| (0..step.processes as usize).map(move |worker| &shared.slot(worker).records[at]);
    let fold = |phase: &Phase, at: usize, span_at: usize| {
        let folded = folded(phase, records(at).zip(records(span_at)), machine, step.processes);
        labelled(folded, phase, magic, several_ranks, matches!(step.pattern, Pattern::Mixed(_)))
    };
    let phases = step.pattern.phases();
    let mut done: Vec<Done> = phases
        .iter()
        .enumerate()
        .filter(|(_, phase)| phase.operation.is_some())
        .map(|(at, phase)| fold(phase, at, at))
        .collect();
    if matches!(step.pattern, Pattern::Mixed(_)) {
        let kinds = MIXED_OPERATIONS.iter().enumerate();
        done.extend(
            kinds.map(|(at, phase)| fold(phase, phases.len() + at, 0)).filter(|one| one.operations > 0),
        );
    }
    StepResult { id: step.id, processes: step.processes, machines: 1, done }
}

/// Records of work, each with the one that has its times.
fn folded<'a>(
    phase: &Phase,
    records: impl Iterator<Item = (&'a Record, &'a Record)>,
    machine: &str,
    processes: u32,
) -> Done {
    let mut span = Span { machine: machine.to_owned(), start_ns: u64::MAX, end_ns: 0 };
    let mut done = Done {
        operation: phase.operation.unwrap_or_default().to_owned(),
        seconds: 0.0,
        longest_process_seconds: 0.0,
        operations: 0,
        bytes: 0,
        cpu_seconds: 0.0,
        processes,
        limited: 0,
        cache: None,
        cache_reason: None,
        latencies: Latencies::default(),
        spans: Vec::new(),
        pages: Pages::default(),
    };
    for (record, times) in records {
        span.start_ns = span.start_ns.min(times.start_ns);
        span.end_ns = span.end_ns.max(times.end_ns);
        let own = times.end_ns.saturating_sub(times.start_ns) as f64 / 1e9;
        done.longest_process_seconds = done.longest_process_seconds.max(own);
        done.operations += record.operations;
        done.bytes += record.bytes;
        done.cpu_seconds += record.cpu_ns as f64 / 1e9;
        done.limited += u32::from(times.limited > 0);
        done.pages.add(record.pages);
        done.latencies.merge(&record.histogram.latencies());
    }
    done.seconds = span.end_ns.saturating_sub(span.start_ns) as f64 / 1e9;
    done.spans.push(span);
    done
}

fn labelled(mut done: Done, phase: &Phase, magic: i64, several_ranks: bool, mixed: bool) -> Done {
    if phase.reads {
        let (label, why) = if mixed {
            (Cache::Unknown, "read between writes of the same files".to_owned())
        } else {
            cache::label(magic, done.pages, several_ranks && phase.operation == Some("read"))
        };
        (done.cache, done.cache_reason) = (Some(label), Some(why));
    }
    done
}

impl Pages {
    fn add(&mut self, other: Pages) {
        self.looked_at += other.looked_at;
        self.in_memory += other.in_memory;
        self.direct += other.direct;
    }
}

impl StepResult {
    /// Adds what another rank did in the same step.
    pub fn merge(&mut self, other: &StepResult) {
        self.processes += other.processes;
        for theirs in &other.done {
            match self.done.iter_mut().find(|mine| mine.operation == theirs.operation) {
                Some(mine) => mine.merge(theirs),
                None => self.done.push(theirs.clone()),
            }
        }
        self.machines = self.done.iter().map(|done| done.spans.len() as u32).max().unwrap_or(1);
    }
}

impl Done {
    fn merge(&mut self, other: &Done) {
        self.longest_process_seconds = self.longest_process_seconds.max(other.longest_process_seconds);
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.cpu_seconds += other.cpu_seconds;
        self.processes += other.processes;
        self.limited += other.limited;
        self.pages.add(other.pages);
        self.latencies.merge(&other.latencies);
        if self.cache != other.cache {
            self.cache = Some(Cache::Unknown);
            self.cache_reason = Some("ranks found the cache differently".into());
        }
        for theirs in &other.spans {
            match self.spans.iter_mut().find(|mine| mine.machine == theirs.machine) {
                Some(mine) => {
                    mine.start_ns = mine.start_ns.min(theirs.start_ns);
                    mine.end_ns = mine.end_ns.max(theirs.end_ns);
                }
                None => self.spans.push(theirs.clone()),
            }
        }
        let longest = self.spans.iter().map(|span| span.end_ns.saturating_sub(span.start_ns)).max();
        self.seconds = longest.unwrap_or(0) as f64 / 1e9;
    }
}
