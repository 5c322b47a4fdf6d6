//! Checks that the parts belong to one run, and that none is given twice.

use super::error::{self, Different};
use super::part::Part;
use crate::ImportError;
use iodock_store::Manifest;
use std::collections::HashMap;

/// Largest plausible difference between the clocks of nodes, ns. Parts whose times are further apart belong
/// to different runs.
const APART: i64 = 60_000_000_000;

/// Checks what the manifests show, before any table is read.
///
/// # Errors
/// Two parts are the same store, or belong to different runs.
pub fn check(parts: &[Part]) -> Result<(), ImportError> {
    if parts.len() < 2 {
        return Err(error::too_few());
    }
    let mut seen: HashMap<_, &Part> = HashMap::new();
    for part in parts {
        let place = part.info.path.canonicalize().unwrap_or_else(|_| part.info.path.clone());
        if let Some(first) = seen.insert(place, part) {
            return Err(error::twice(part, first));
        }
    }
    let (first, others) = parts.split_first().unwrap_or((&parts[0], &[]));
    for part in others {
        if let Some(why) = difference(part.manifest(), first.manifest()) {
            return Err(error::of_another_run(part, first, why));
        }
    }
    in_time(parts)
}

/// Checks the tasks, after their tables were read.
///
/// # Errors
/// A rank or a process has two parts.
pub fn check_tasks(parts: &[Part]) -> Result<(), ImportError> {
    let mut ranks: HashMap<i32, &Part> = HashMap::new();
    let mut roots: HashMap<(Option<&str>, i32, i64), &Part> = HashMap::new();
    for part in parts {
        for &(pid, start) in &part.roots {
            if let Some(first) = roots.insert((part.host(), pid, start), part) {
                return Err(error::twice(part, first));
            }
        }
    }
    let mut told = parts.iter().filter_map(|part| expected(part).map(|ranks| (part, ranks)));
    if let Some((first, ranks)) = told.next() {
        if let Some((part, other)) = told.find(|&(_, other)| other != ranks) {
            return Err(error::of_another_run(part, first, Different::Ranks(other, ranks)));
        }
    }
    for part in parts {
        for rank in part.ranks() {
            if let Some(first) = ranks.insert(rank, part) {
                return Err(error::rank_twice(part, first, rank));
            }
        }
    }
    Ok(())
}

fn difference(one: &Manifest, first: &Manifest) -> Option<Different> {
    let job = |of: &Manifest| of.job.as_ref().map(|job| format!("{} {}", job.scheduler, job.id));
    let launch = |of: &Manifest| of.captured.others.get("launch")?.as_str().map(str::to_owned);
    let differ = |told: &dyn Fn(&Manifest) -> Option<String>| {
        told(one).zip(told(first)).filter(|(one, first)| one != first)
    };
    differ(&job)
        .map(|(one, first)| Different::Job(one, first))
        .or_else(|| differ(&launch).map(|(one, first)| Different::Launch(one, first)))
        .or_else(|| differ(&|of| Some(of.clock.clone())).map(|(one, first)| Different::Clock(one, first)))
}

/// Returns the number of ranks of the run according to the launcher. Returns `None` for logs, where the
/// number is only one more than the highest rank. Also returns `None` if the number is not larger than that
/// of the part's ranks, because it may have been counted from these.
pub fn expected(part: &Part) -> Option<u32> {
    let is_recorded = part.manifest().captured.logs.is_empty();
    part.manifest().ranks.filter(|&ranks| is_recorded && ranks as usize > part.ranks().len())
}

/// Checks that the parts ran at the same time, within the accuracy of the clocks.
fn in_time(parts: &[Part]) -> Result<(), ImportError> {
    let span = |part: &Part| part.manifest().first_ts.zip(part.manifest().last_ts);
    let mut spans: Vec<(i64, i64, &Part)> =
        parts.iter().filter_map(|part| span(part).map(|(from, to)| (from, to, part))).collect();
    spans.sort_by_key(|&(from, to, _)| (from, to));
    let mut until: Option<(i64, &Part)> = None;
    for (from, to, part) in spans {
        if let Some((end, before)) = until {
            if from.saturating_sub(end) > APART {
                let gap = from.saturating_sub(end) / 1_000_000_000;
                return Err(error::of_another_run(part, before, Different::Time(gap)));
            }
        }
        if until.is_none_or(|(end, _)| to > end) {
            until = Some((to, part));
        }
    }
    Ok(())
}
