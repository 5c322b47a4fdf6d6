//! Combines the manifests of the parts into the manifest of the merged store.

use super::clocks::Clocks;
use super::part::Part;
use super::same_run::expected;
use crate::profiles::light::COUNTED_RANKS;
use crate::ranks::name_ranks;
use iodock_event::ranks::RankSet;
use iodock_event::{LossKind, Losses};
use iodock_store::{HostClock, LossEntry, Manifest, Recorder, Source, State};
use std::collections::BTreeSet;

/// Losses of the parts that the merge determines again for the merged store.
const AGAIN: [LossKind; 2] = [LossKind::MissingRanks, LossKind::CoverageMemory];

/// Returns the ranks that have a part.
pub fn ranks_of(parts: &[Part]) -> BTreeSet<i32> {
    parts.iter().flat_map(Part::ranks).collect()
}

/// Returns the manifest of the merged store. `found` contains the losses of the merge itself.
pub fn of(parts: &[Part], clocks: &[Clocks], found: Losses) -> Manifest {
    let told = |part: &Part| part.manifest().clone();
    let mut whole = parts.first().map(told).unwrap_or_default();
    let manifests = || parts.iter().map(Part::manifest);
    whole.writer = Manifest::default().writer;
    whole.created_ns = Manifest::default().created_ns;
    whole.tables.clear();
    whole.checksums.clear();
    whole.in_progress = None;
    // This time is a union over all tasks, so it is not a sum of the parts. Readers compute it from the
    // events.
    whole.io = None;
    captured(&mut whole, parts);
    whole.hosts = clocks.iter().map(host_clock).collect();
    whole.job = manifests().find_map(|one| one.job.clone());
    whole.source = source(parts);
    whole.first_ts = manifests().filter_map(|one| one.first_ts).min();
    whole.last_ts = manifests().filter_map(|one| one.last_ts).max();
    let cut = |one: &Manifest| one.state == State::Cut;
    whole.state = if manifests().any(cut) { State::Cut } else { State::Complete };
    whole.recorder = recorder(parts);
    whole.losses = losses(parts, found);
    let named: Vec<String> = parts.iter().map(Part::whose).collect();
    whole.others.insert("parts".into(), named.into());
    tell_missing(&mut whole, parts);
    whole
}

fn captured(whole: &mut Manifest, parts: &[Part]) {
    let captured = &mut whole.captured;
    let mut ways: Vec<&str> = Vec::new();
    for part in parts {
        let of_part = &part.manifest().captured;
        if !ways.contains(&of_part.how.as_str()) {
            ways.push(&of_part.how);
        }
        // If there are several ranks, the first rank that failed determines how the run ended.
        if captured.exit_signal.is_none() && captured.exit_status.unwrap_or(0) == 0 {
            captured.exit_status = of_part.exit_status.or(captured.exit_status);
            captured.exit_signal = of_part.exit_signal.clone();
        }
        if of_part.page_faults.as_deref() == Some("recorded") {
            captured.page_faults = of_part.page_faults.clone();
        }
        captured.page_cache = captured.page_cache.take().or_else(|| of_part.page_cache.clone());
        captured.wall_ns = captured.wall_ns.max(of_part.wall_ns);
        // The merged store has `interfaces` only if all parts have it.
        if !of_part.others.contains_key("interfaces") {
            captured.others.remove("interfaces");
        }
    }
    captured.how = ways.join("+");
}

fn host_clock(clock: &Clocks) -> HostClock {
    let mut host =
        HostClock { name: clock.host.clone(), clock_offset_ns: clock.offset_ns, ..HostClock::default() };
    if clock.calls > 0 {
        host.others.insert("clock_within_ns".into(), clock.within_ns.into());
        host.others.insert("clock_found_by".into(), "MPI_File_open".into());
        host.others.insert("clock_calls".into(), clock.calls.into());
    }
    host
}

fn source(parts: &[Part]) -> Source {
    let mut sum = Source::default();
    let mut counted = RankSet::default();
    for part in parts {
        let told = part.manifest().source.others.get(COUNTED_RANKS).and_then(|ranks| ranks.as_str());
        counted.extend(&told.and_then(RankSet::parse).unwrap_or_default());
        let one = &part.manifest().source;
        sum.lines += one.lines;
        sum.calls += one.calls;
        sum.unfinished += one.unfinished;
        sum.orphans += one.orphans;
        sum.durations |= one.durations;
        for (signal, count) in &one.signals {
            *sum.signals.entry(signal.clone()).or_default() += count;
        }
        for (key, value) in &one.others {
            sum.others.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    if !counted.is_empty() {
        sum.others.insert(COUNTED_RANKS.into(), counted.to_string().into());
    }
    sum
}

fn recorder(parts: &[Part]) -> Option<Recorder> {
    let mut recorders = parts.iter().filter_map(|part| part.manifest().recorder.as_ref());
    let first = recorders.next()?.clone();
    Some(recorders.fold(first, |sum, one| Recorder {
        written_bytes: sum.written_bytes + one.written_bytes,
        on_measured_file_system: sum.on_measured_file_system || one.on_measured_file_system,
        others: sum.others,
    }))
}

fn losses(parts: &[Part], found: Losses) -> Vec<LossEntry> {
    let again = |entry: &LossEntry| AGAIN.iter().any(|kind| kind.name() == entry.name);
    let mut sums = LossEntry::from_losses(&found);
    for entry in parts.iter().flat_map(|part| &part.manifest().losses).filter(|entry| !again(entry)) {
        match sums.iter_mut().find(|sum| sum.name == entry.name) {
            Some(sum) => sum.count += entry.count,
            None => {
                let kind = LossKind::ALL.iter().find(|kind| kind.name() == entry.name);
                let cure = kind.map_or_else(|| entry.cure.clone(), |kind| kind.cure().into());
                sums.push(LossEntry { cure, ..entry.clone() });
            }
        }
    }
    sums
}

/// Adds losses for ranks without a part, for parts that were cut and, if no task has a rank, for nodes
/// without a part.
fn tell_missing(whole: &mut Manifest, parts: &[Part]) {
    let there = ranks_of(parts);
    let told = parts.iter().filter_map(expected).max();
    // Ranks are numbered from 0 without gaps, so the highest one gives a minimum for their number.
    let at_least = there.last().and_then(|&last| u32::try_from(last).ok()).map(|last| last + 1);
    whole.ranks = told.max(at_least);
    let mut missing = Losses::default();
    let ranks = whole.ranks.unwrap_or(0).saturating_sub(there.len() as u32);
    missing.add(LossKind::MissingRanks, ranks.into());
    if there.is_empty() {
        let nodes = whole.job.as_ref().and_then(|job| job.nodes).unwrap_or(0);
        missing.add(LossKind::MissingNodes, u64::from(nodes).saturating_sub(whole.hosts.len() as u64));
    }
    whole.losses.extend(LossEntry::from_losses(&missing));
    let cut: Vec<&Part> = parts.iter().filter(|part| part.manifest().state == State::Cut).collect();
    let cut_ranks: BTreeSet<i32> = cut.iter().flat_map(|part| part.ranks()).collect();
    let there: Vec<i32> = there.into_iter().collect();
    name_ranks(whole, &there, cut_ranks.into_iter().collect());
    let unranked: Vec<String> =
        cut.iter().filter(|part| part.ranks().is_empty()).map(|part| part.whose()).collect();
    let entry = whole.losses.iter_mut().find(|entry| entry.name == LossKind::JournalCut.name());
    if let Some(entry) = entry.filter(|_| !unranked.is_empty()) {
        entry.cure = format!("{} ({})", entry.cure, unranked.join(", "));
    }
}
