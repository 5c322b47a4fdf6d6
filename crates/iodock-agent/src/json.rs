//! Writes a round as one JSON object for scripts. It has `samples`, one for each counter; `losses`, the data
//! that could not be read; and `events`, the problems. docs/explanation/agent.md describes every key.

use crate::collection::{Outcome, SourceRound};
use crate::ranking::Table;
use crate::sample::{printable, Evidence, Metric, Owner, Quantity, Trend};
use crate::sources::Report;
use iodock_samples::event::Event;
use serde::ser::{SerializeSeq, Serializer};
use serde::Serialize;
use std::cell::RefCell;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

#[derive(Serialize)]
struct Round<'a> {
    samples: Samples<'a>,
    losses: Vec<Loss>,
    events: Vec<Happened<'a>>,
}

/// An event in JSON (see [`Event`]).
#[derive(Serialize)]
struct Happened<'a> {
    ts: i64,
    last_ts: i64,
    host: &'a str,
    kind: &'a str,
    severity: &'static str,
    source: &'a str,
    file_system: Option<&'a str>,
    target: Option<&'a str>,
    count: u64,
    text: &'a str,
}

/// Samples of a round. They are written one by one, because there may be millions.
struct Samples<'a> {
    rounds: &'a [SourceRound],
    host: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    ts: i64,
    source: &'a str,
    host: &'a str,
    file_system: Option<&'a str>,
    target: Option<&'a str>,
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known_by: Option<&'static str>,
    /// Number of owners that are not listed, if this is their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<u64>,
    metric: String,
    unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<u64>,
    value: u128,
    kind: &'static str,
    start_ts: Option<i64>,
    updated_ts: Option<i64>,
}

/// Something that could not be read.
#[derive(Debug, PartialEq, Serialize)]
pub struct Loss {
    pub name: &'static str,
    pub count: u64,
    pub source: String,
    pub target: Option<String>,
    pub detail: String,
    cure: &'static str,
}

/// Writes a whole round and a newline. Fails if the output cannot be written.
pub fn write(rounds: &[SourceRound], host: &str, out: &mut dyn Write) -> io::Result<()> {
    let all = rounds.iter().flat_map(|round| &round.events);
    let events = all.map(|event| happened(event, host)).collect();
    let round = Round { samples: Samples { rounds, host }, losses: losses(rounds), events };
    serde_json::to_writer(&mut *out, &round)?;
    out.write_all(b"\n")
}

fn happened<'a>(event: &'a Event, host: &'a str) -> Happened<'a> {
    let named = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    Happened {
        ts: event.first,
        last_ts: event.last,
        host,
        kind: &event.kind,
        severity: event.severity.name(),
        source: &event.source,
        file_system: named(&event.file_system),
        target: named(&event.target),
        count: event.count,
        text: &event.text,
    }
}

impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = RefCell::new(serializer.serialize_seq(None)?);
        for report in self.rounds.iter().flat_map(|round| &round.reports) {
            rows(report, self.host, &mut |row| list.borrow_mut().serialize_element(&row))?;
        }
        list.into_inner().end()
    }
}

fn rows<'a, E>(
    report: &'a Report,
    host: &'a str,
    give: &mut dyn FnMut(Row<'a>) -> Result<(), E>,
) -> Result<(), E> {
    for sample in report.samples(host) {
        let metric = Names { operation: sample.operation, quantity: sample.quantity, bucket: sample.bucket };
        let row =
            Row { start_ts: sample.start_time, updated_ts: sample.updated, ..row(report, host, metric) };
        give(Row { value: sample.value.into(), ..owned(sample.owner, row) })?;
    }
    let Table { other, others, .. } = &report.table;
    for &(Metric { operation, quantity, bucket }, value) in other {
        let metric = Names { operation: report.names.text(operation), quantity, bucket };
        // The sum of the jobs that are not listed falls when one becomes listed, so it is a gauge.
        give(Row { value, others: Some(*others), kind: "gauge", ..row(report, host, metric) })?;
    }
    Ok(())
}

struct Names<'a> {
    operation: &'a str,
    quantity: Quantity,
    bucket: u64,
}

fn row<'a>(report: &'a Report, host: &'a str, metric: Names) -> Row<'a> {
    let named = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    let falls = metric.quantity == Quantity::Level || report.trend == Trend::Falls;
    Row {
        ts: report.time,
        source: report.source,
        host,
        file_system: named(&report.file_system),
        target: named(&report.target),
        job: None,
        job_hex: None,
        user: None,
        session: None,
        command: None,
        known_by: None,
        others: None,
        unit: metric.quantity.unit(),
        bucket: metric.quantity.has_buckets().then_some(metric.bucket),
        metric: metric.quantity.metric_name(metric.operation),
        value: 0,
        kind: if falls { "gauge" } else { "counter" },
        start_ts: None,
        updated_ts: None,
    }
}

fn owned<'a>(owner: &Owner, row: Row<'a>) -> Row<'a> {
    let named = |text: &[u8]| Some(printable(text)).filter(|text| !text.is_empty());
    let has_job = !matches!(owner.evidence, Evidence::Nobody | Evidence::Session);
    let is_text = std::str::from_utf8(&owner.job).is_ok_and(|text| !text.contains(char::is_control));
    Row {
        job: has_job.then(|| printable(&owner.job)),
        job_hex: (has_job && !is_text).then(|| owner.job.iter().map(|byte| format!("{byte:02x}")).collect()),
        user: named(&owner.user),
        session: named(&owner.session),
        command: named(&owner.command),
        known_by: Some(owner.evidence.name()).filter(|name| !name.is_empty()),
        ..row
    }
}

/// Returns the losses of a round.
pub fn losses(rounds: &[SourceRound]) -> Vec<Loss> {
    rounds.iter().flat_map(|round| of_files(round).chain(of_source(round))).collect()
}

fn of_files(round: &SourceRound) -> impl Iterator<Item = Loss> + '_ {
    round.reports.iter().flat_map(|report| {
        let Some(faults) = &report.faults else { return Vec::new() };
        let first = faults.first_line.map_or(String::new(), |line| format!("the first is line {line}"));
        let counts = [
            ("unreadable-lines", faults.unreadable, first, "show the file to those who keep iodock"),
            ("orphaned-lines", faults.orphaned, String::new(), "their job's line is damaged: nothing to do"),
        ];
        let lost = counts.into_iter().filter(|(_, count, ..)| *count > 0);
        lost.map(|(name, count, detail, cure)| Loss {
            name,
            count,
            source: report.source.into(),
            target: Some(printable(report.target.as_bytes())).filter(|target| !target.is_empty()),
            detail,
            cure,
        })
        .collect()
    })
}

fn of_source(round: &SourceRound) -> impl Iterator<Item = Loss> + '_ {
    let loss = |name, detail: String, cure| Loss {
        name,
        count: 1,
        source: round.name.into(),
        target: None,
        detail,
        cure,
    };
    let path = |path: &std::path::Path| printable(path.as_os_str().as_bytes());
    let ended = match &round.outcome {
        Outcome::Done => None,
        Outcome::Hung(at) => Some(loss("no-answer", path(at), "a longer --deadline, or look at what hangs")),
        Outcome::NotStarted(why) => Some(loss("not-started", why.clone(), "a higher limit of processes")),
        Outcome::Failed => Some(loss("failed", String::new(), "a mistake in iodock: report it")),
    };
    let refused = round.refused.iter().map(move |(file, why)| {
        loss("refused-files", format!("{}: {}", path(file), printable(why.as_bytes())), "run it as root")
    });
    let remarks =
        round.remarks.iter().map(move |text| loss("remarks", printable(text.as_bytes()), "see the text"));
    ended.into_iter().chain(refused).chain(remarks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_not_utf8_is_preserved_byte_by_byte() {
        let owner = |job: &[u8]| Owner { evidence: Evidence::Server, job: job.into(), ..Owner::default() };
        let report = Report::new("s", 0);
        let row = |job| {
            let metric = Names { operation: "open", quantity: Quantity::Count, bucket: 0 };
            owned(&owner(job), row(&report, "h", metric))
        };
        assert_eq!((row(b"190:20:30").job.as_deref(), row(b"0123").job_hex), (Some("190:20:30"), None));
        assert_eq!(row(b"a\xff").job.as_deref(), Some("a\\xff"));
        assert_eq!(row(b"a\xff").job_hex.as_deref(), Some("61ff"));
    }
}
