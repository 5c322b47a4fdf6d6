//! Results of a step: work, time and latencies of each operation, over all processes.

use crate::busy::Busy;
use crate::cache::{self, Cache, Origin};
use crate::error::LoadError;
use crate::histogram::Latencies;
use crate::plan::{Moves, Pattern, Phase, Step, MIXED_OPERATIONS};
use crate::shared::{Pages, Record, Shared};
use crate::under::Under;
use crate::worker::Position;
use serde::{Deserialize, Serialize};

/// Events that the engine reports during its work.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    Started {
        tree: String,
        machine: String,
    },
    Step(StepResult),
    /// This rank waits for all others, in a job that the calling process synchronises. The line `go` on
    /// standard input tells the engine that all ranks have arrived.
    Barrier {
        number: u64,
    },
    Failed(LoadError),
    /// The last event. It lists the files that could not be removed.
    Ended {
        left: Vec<String>,
    },
}

/// Time from the first start to the last end on one machine, by its own clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub machine: String,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// Result of one operation of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    pub operation: String,
    /// Time from the barrier to the end of the last process, the longest of all machines.
    pub seconds: f64,
    pub operations: u64,
    pub bytes: u64,
    /// Longest time of one process from its own start. Unlike `seconds`, it excludes waiting for a late
    /// start.
    #[serde(default)]
    pub longest_process_seconds: f64,
    /// User and system time of all processes in this phase, in seconds.
    pub cpu_seconds: f64,
    pub processes: u32,
    /// Number of processes that the time limit stopped.
    pub limited: u32,
    pub cache: Option<Cache>,
    pub cache_reason: Option<String>,
    pub latencies: Latencies,
    pub spans: Vec<Span>,
    pub pages: Pages,
}

/// Machine on which a rank runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RankHost {
    /// Identifier of a boot of a machine. Ranks with the same identifier share its clock and its memory.
    pub machine: String,
    pub host: String,
    /// Kind of the file system that holds the tree, as statfs(2) numbers it.
    pub magic: i64,
    /// Device under the file system that holds the tree.
    #[serde(default)]
    pub under: Under,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepResult {
    pub id: u64,
    pub processes: u32,
    pub machines: u32,
    /// Sorted names of the hosts that took part, each once.
    pub hosts: Vec<String>,
    pub done: Vec<Done>,
    /// Other activity on the machines during the step.
    #[serde(default)]
    pub busy: Busy,
}

/// Combines the slots of this rank's workers.
pub fn of_rank(step: &Step, shared: &Shared, place: &RankHost, several_ranks: bool) -> StepResult {
    let records =
        |at: usize| (0..step.processes as usize).map(move |worker| &shared.slot(worker).records[at]);
    let fold = |phase: &Phase, at: usize, span_at: usize| {
        let folded = folded(phase, records(at).zip(records(span_at)), &place.machine, step.processes);
        labelled(folded, phase, place, several_ranks, &step.pattern)
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
    StepResult {
        id: step.id,
        processes: step.processes,
        machines: 1,
        hosts: vec![place.host.clone()],
        done,
        busy: Busy::default(),
    }
}

/// Combines records. Each comes with the record that contains its times.
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

fn labelled(mut done: Done, phase: &Phase, place: &RankHost, several_ranks: bool, pattern: &Pattern) -> Done {
    let (label, why) = match phase.moves {
        Moves::Nothing => return done,
        Moves::Writes => {
            let (synced, direct) = pattern.writes();
            cache::label_of_write(place.magic, &place.under, synced, direct)
        }
        Moves::Reads if matches!(pattern, Pattern::Mixed(_)) => {
            (Some(Cache::Unknown), "read between writes of the same files".to_owned())
        }
        Moves::Reads => {
            let is_others = several_ranks && phase.operation == Some(FIRST_READ);
            let origin = if is_others { Origin::OtherRank } else { Origin::Own };
            let (label, why) = cache::label(place.magic, &place.under, done.pages, origin);
            (Some(label), why)
        }
    };
    (done.cache, done.cache_reason) = (label, Some(why));
    done
}

/// Name of the phase that reads the data of another rank, if there are several ranks.
const FIRST_READ: &str = "read";

impl Pages {
    fn add(&mut self, other: Pages) {
        self.looked_at += other.looked_at;
        self.in_memory += other.in_memory;
        self.direct += other.direct;
    }
}

/// Combines the results of all ranks. Their order determines which rank reads whose files. Returns None if
/// there are no results.
pub fn together(
    step: &Step,
    ranks_per_node: u32,
    mut ranks: Vec<(RankHost, StepResult)>,
) -> Option<StepResult> {
    let machines: Vec<String> = ranks.iter().map(|(place, _)| place.machine.clone()).collect();
    let (total, on_rank) = (ranks.len() as u32 * step.processes, step.processes);
    for (rank, (place, result)) in ranks.iter_mut().enumerate() {
        let is_far = (0..on_rank).all(|local| {
            let index = rank as u32 * on_rank + local;
            let position = Position { index, total, local, on_rank, ranks_per_node };
            machines[(position.read_from() / on_rank) as usize] != place.machine
        });
        if is_far {
            result.read_from_afar(place);
        }
    }
    ranks.into_iter().map(|(_, result)| result).reduce(|mut sum, one| {
        sum.merge(&one);
        sum
    })
}

impl StepResult {
    /// Labels the reads again. The caller has checked that another machine wrote all data.
    pub fn read_from_afar(&mut self, place: &RankHost) {
        for done in self.done.iter_mut().filter(|done| done.operation == FIRST_READ && done.cache.is_some()) {
            let (label, why) = cache::label(place.magic, &place.under, done.pages, Origin::OtherMachine);
            (done.cache, done.cache_reason) = (Some(label), Some(why));
        }
    }

    /// Adds the results of another rank in the same step.
    pub fn merge(&mut self, other: &StepResult) {
        self.processes += other.processes;
        self.busy.merge(&other.busy);
        self.hosts.extend(other.hosts.iter().cloned());
        self.hosts.sort_unstable();
        self.hosts.dedup();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Data;

    const GPFS: i64 = 0x4750_4653;

    /// Returns the place and the results of a rank: 2 s by the clock of its machine, with one operation of
    /// `latency_ns`.
    fn rank(machine: &str, clock_ns: u64, latency_ns: u64) -> (RankHost, StepResult) {
        let mut latencies = crate::histogram::Histogram::default();
        latencies.record(latency_ns);
        let (cache, why) = cache::label(GPFS, &Under::Devices, Pages::default(), Origin::OtherRank);
        let span = Span { machine: machine.into(), start_ns: clock_ns, end_ns: clock_ns + 2_000_000_000 };
        let done = Done {
            operation: "read".into(),
            seconds: 2.0,
            operations: 1,
            bytes: 1,
            longest_process_seconds: 2.0,
            cpu_seconds: 0.5,
            processes: 1,
            limited: 0,
            cache: Some(cache),
            cache_reason: Some(why),
            latencies: latencies.latencies(),
            spans: vec![span],
            pages: Pages::default(),
        };
        let place = RankHost {
            machine: machine.into(),
            host: format!("host-{machine}"),
            magic: GPFS,
            under: Under::Devices,
        };
        let hosts = vec![place.host.clone()];
        (
            place,
            StepResult { id: 1, processes: 1, machines: 1, hosts, done: vec![done], busy: Busy::default() },
        )
    }

    fn merged(ranks_per_node: u32, machines: &[&str]) -> StepResult {
        let data = Data {
            files: 1,
            file_bytes: 1,
            request_bytes: 1,
            direct: false,
            sync: true,
            shared: false,
            reread: false,
        };
        let step = Step { id: 1, processes: 1, limit_seconds: 1.0, pattern: Pattern::Data(data) };
        let found = machines.iter().zip(1..).map(|(machine, number)| {
            let clock_ns = machine.bytes().map(u64::from).sum::<u64>() * 1_000_000_000_000;
            rank(machine, clock_ns, number * 1_000_000)
        });
        together(&step, ranks_per_node, found.collect()).unwrap()
    }

    #[test]
    fn machines_are_counted_and_their_clocks_not_mixed() {
        let found = merged(2, &["b", "b", "a", "a"]);
        assert_eq!((found.machines, found.processes), (2, 4));
        assert_eq!(found.hosts, ["host-a", "host-b"]);
        let done = &found.done[0];
        assert_eq!((done.seconds, done.operations, done.bytes, done.cpu_seconds), (2.0, 4, 4, 2.0));
    }

    #[test]
    fn latencies_of_all_machines_form_one_distribution() {
        let found = merged(1, &["a", "b", "c", "d"]);
        let latencies = &found.done[0].latencies;
        let near = |share, expected: f64| {
            let found = latencies.quantile(share).unwrap();
            assert!((found / expected - 1.0).abs() <= 0.01, "{found} {expected}");
        };
        near(0.25, 1e6);
        near(0.5, 2e6);
        near(1.0, 4e6);
    }

    #[test]
    fn remote_files_are_determined_by_the_real_placement_of_ranks() {
        let label = |per_node, machines: &[&str]| {
            let found = merged(per_node, machines);
            (found.done[0].cache.unwrap(), found.done[0].cache_reason.clone().unwrap())
        };
        let (cache, why) = label(2, &["a", "a", "b", "b"]);
        assert_eq!(cache, Cache::Uncached);
        assert!(why.starts_with("written on another node"), "{why}");
        // The launcher distributed the ranks in turn, so each rank reads data that its own machine wrote.
        let (cache, why) = label(2, &["a", "b", "a", "b"]);
        assert_eq!(cache, Cache::Unknown);
        assert!(why.starts_with("written by another rank"), "{why}");
        assert_eq!(label(2, &["a", "a"]).0, Cache::Unknown);
        // One of three ranks reads data of its own machine, so no label applies to all.
        assert_eq!(label(1, &["a", "a", "b"]).0, Cache::Unknown);
    }
}
