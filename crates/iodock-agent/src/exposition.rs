//! Writes OpenMetrics text (OpenMetrics 1.0), with one metric family per source and quantity. The number of
//! series is limited by the number of listed jobs. Sums over the other jobs are gauges: they fall when a job
//! becomes listed, so no rate can be computed from them. The same holds for sums that fall when a counted
//! object ends.

use crate::collection::{Outcome, SourceRound};
use crate::sample::{Evidence, Quantity, Sample, Trend};
use crate::sources::Report;
use crate::spool::State;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Returns the suffix of a family's name, its unit (with which the name must end), and its description.
fn family(quantity: Quantity) -> (&'static str, &'static str, &'static str) {
    match quantity {
        Quantity::Count => ("operations", "", "How often"),
        Quantity::Bytes => ("bytes", "bytes", "Bytes"),
        Quantity::Time => ("time_seconds", "seconds", "Time spent, summed over all operations or tasks"),
        Quantity::Amount => {
            ("amount", "", "Sum over all samples of what the counter measures: requests, buffers")
        }
        Quantity::BySize => {
            ("by_size", "", "How often, by size: at most the bucket's bytes, above half of it")
        }
        Quantity::ByPages => ("by_pages", "", "How often, by pages: at most the bucket's, above half of it"),
        Quantity::ByInFlight => ("by_in_flight", "", "How often, by requests in flight"),
        Quantity::ByOffset => ("by_offset", "", "How often, by offset in pages"),
        Quantity::ByLatency => ("by_latency", "", "How often, by latency in microseconds"),
        Quantity::Level => ("level", "", "Level at the moment of reading"),
    }
}

/// Writes a whole round, the spool's state if there is one, and the end mark. Fails if the output cannot be
/// written.
pub fn write(
    rounds: &[SourceRound],
    host: &str,
    spool: Option<State>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut by_source: BTreeMap<&str, Vec<&Report>> = BTreeMap::new();
    for report in rounds.iter().flat_map(|round| &round.reports) {
        by_source.entry(report.source).or_default().push(report);
    }
    for (source, reports) in &by_source {
        for quantity in Quantity::ALL {
            listed(source, quantity, reports, host, out)?;
            others(source, quantity, reports, host, out)?;
        }
        how_many(source, reports, host, out)?;
    }
    agent(rounds, host, out)?;
    if let Some(state) = spool {
        sending(&state, host, out)?;
    }
    out.write_all(b"# EOF\n")
}

fn listed(
    source: &str,
    quantity: Quantity,
    reports: &[&Report],
    host: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (suffix, unit, help) = family(quantity);
    let name = format!("iodock_{source}_{suffix}");
    let is_gauge = quantity == Quantity::Level || reports.iter().any(|report| report.trend == Trend::Falls);
    let (kind, ending) = if is_gauge { ("gauge", "") } else { ("counter", "_total") };
    let mut is_begun = false;
    let mut line = String::new();
    for report in reports {
        for sample in report.samples(host).filter(|sample| sample.quantity == quantity) {
            if !std::mem::replace(&mut is_begun, true) {
                begin(&name, kind, unit, help, out)?;
            }
            let labels = labels(&sample);
            line.clear();
            let _ = writeln!(line, "{name}{ending}{{{labels}}} {}", value(quantity, sample.value.into()));
            if let Some(start) = sample.start_time.filter(|_| !is_gauge) {
                let _ =
                    writeln!(line, "{name}_created{{{labels}}} {}", seconds(start.unsigned_abs().into(), 9));
            }
            out.write_all(line.as_bytes())?;
        }
    }
    Ok(())
}

fn begin(name: &str, kind: &str, unit: &str, help: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# TYPE {name} {kind}")?;
    if !unit.is_empty() {
        writeln!(out, "# UNIT {name} {unit}")?;
    }
    writeln!(out, "# HELP {name} {help}")
}

fn others(
    source: &str,
    quantity: Quantity,
    reports: &[&Report],
    host: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = format!("iodock_{source}_other_{}", family(quantity).0);
    let mut is_begun = false;
    for report in reports {
        for (metric, sum) in report.table.other.iter().filter(|(metric, _)| metric.quantity == quantity) {
            if !std::mem::replace(&mut is_begun, true) {
                begin(&name, "gauge", family(quantity).1, "Sum over the owners that are not listed", out)?;
            }
            let mut labels = place(host, &report.file_system, &report.target);
            label(&mut labels, "operation", report.names.text(metric.operation).as_bytes());
            bucket(&mut labels, quantity, metric.bucket);
            writeln!(out, "{name}{{{labels}}} {}", value(quantity, *sum))?;
        }
    }
    Ok(())
}

/// Writes for each target the number of owners that are not listed, and the numbers of lines and of
/// unreadable lines.
fn how_many(source: &str, reports: &[&Report], host: &str, out: &mut dyn Write) -> io::Result<()> {
    type Count = fn(&Report) -> Option<u64>;
    let counts: [(&str, &str, Count); 4] = [
        ("other_owners", "Owners that are not listed", |report| Some(report.table.others)),
        ("lines", "Lines of the file", |report| Some(report.faults.as_ref()?.lines)),
        ("unreadable_lines", "Lines that are damaged or of an unknown form", |report| {
            Some(report.faults.as_ref()?.unreadable)
        }),
        ("orphaned_lines", "Good lines whose owner's line is damaged", |report| {
            Some(report.faults.as_ref()?.orphaned)
        }),
    ];
    for (suffix, help, count) in counts {
        let name = format!("iodock_{source}_{suffix}");
        begin(&name, "gauge", "", help, out)?;
        for report in reports {
            let Some(count) = count(report) else { continue };
            writeln!(out, "{name}{{{}}} {count}", place(host, &report.file_system, &report.target))?;
        }
    }
    Ok(())
}

/// Writes the agent's own state: whether each source was read to its end, its duration, and the number of
/// unreadable files.
fn agent(rounds: &[SourceRound], host: &str, out: &mut dyn Write) -> io::Result<()> {
    type Value = fn(&SourceRound) -> String;
    let families: [(&str, &str, &str, Value); 3] = [
        (
            "iodock_agent_source_done",
            "",
            "1 if the source was read to its end before the deadline",
            |round| u8::from(round.outcome == Outcome::Done).to_string(),
        ),
        (
            "iodock_agent_source_duration_seconds",
            "seconds",
            "From the round's beginning to the source's end",
            |round| seconds(round.duration.as_micros(), 6),
        ),
        ("iodock_agent_source_refused_files", "", "Files that are there and could not be read", |round| {
            round.refused.len().to_string()
        }),
    ];
    for (name, unit, help, value) in families {
        begin(name, "gauge", unit, help, out)?;
        for round in rounds {
            let mut labels = String::new();
            label(&mut labels, "host", host.as_bytes());
            label(&mut labels, "source", round.name.as_bytes());
            writeln!(out, "{name}{{{labels}}} {}", value(round))?;
        }
    }
    Ok(())
}

/// Writes the number of batches that wait for the collector, and what happened to the others.
fn sending(state: &State, host: &str, out: &mut dyn Write) -> io::Result<()> {
    let counters = [
        ("batches_kept", state.kept, "Batches that the collector keeps, since the agent began"),
        (
            "batches_dropped",
            state.lost,
            "Batches that were lost since the spool was made: no room, refused, damaged",
        ),
        ("batches_damaged", state.damaged, "Of those: found cut or damaged when the agent began"),
        ("batches_refused", state.refused, "Of those: refused by the collector, since the agent began"),
        ("push_failures", state.push_failures, "Pushes without a receipt, since the agent began"),
    ];
    let place = place(host, "", "");
    for (name, value, help) in counters {
        let name = format!("iodock_agent_{name}");
        begin(&name, "counter", "", help, out)?;
        writeln!(out, "{name}_total{{{place}}} {value}")?;
    }
    begin("iodock_agent_spool_bytes", "gauge", "bytes", "Of the spool's files", out)?;
    writeln!(out, "iodock_agent_spool_bytes{{{place}}} {}", state.bytes)?;
    begin("iodock_agent_batches_waiting", "gauge", "", "Batches that the collector does not keep yet", out)?;
    writeln!(out, "iodock_agent_batches_waiting{{{place}}} {}", state.waiting)
}

fn value(quantity: Quantity, value: u128) -> String {
    match quantity {
        Quantity::Time => seconds(value, 6),
        _ => value.to_string(),
    }
}

/// Formats a number of units of 10^-`digits` seconds as seconds, without rounding.
fn seconds(value: u128, digits: u32) -> String {
    let unit = 10u128.pow(digits);
    format!("{}.{:0width$}", value / unit, value % unit, width = digits as usize)
}

fn labels(sample: &Sample) -> String {
    let mut labels = place(sample.host, sample.file_system, sample.target);
    let owner = sample.owner;
    match owner.evidence {
        Evidence::Nobody => {}
        // An owner without an id must differ from an entry without an owner, so the label is written although
        // it is empty.
        Evidence::Server | Evidence::Cgroup | Evidence::Environment | Evidence::Scheduler => {
            put(&mut labels, "job", &owner.job)
        }
        Evidence::Session => label(&mut labels, "session", &owner.session),
    }
    label(&mut labels, "user", &owner.user);
    label(&mut labels, "command", &owner.command);
    label(&mut labels, "known_by", owner.evidence.name().as_bytes());
    label(&mut labels, "operation", sample.operation.as_bytes());
    bucket(&mut labels, sample.quantity, sample.bucket);
    labels
}

fn place(host: &str, file_system: &str, target: &str) -> String {
    let mut labels = String::new();
    label(&mut labels, "host", host.as_bytes());
    label(&mut labels, "file_system", file_system.as_bytes());
    label(&mut labels, "target", target.as_bytes());
    labels
}

fn bucket(labels: &mut String, quantity: Quantity, bucket: u64) {
    if quantity.has_buckets() {
        label(labels, "bucket", bucket.to_string().as_bytes());
    }
}

/// Writes a label. An empty label means the same as no label, so it is left out.
fn label(labels: &mut String, name: &str, value: &[u8]) {
    if !value.is_empty() {
        put(labels, name, value);
    }
}

fn put(labels: &mut String, name: &str, value: &[u8]) {
    if !labels.is_empty() {
        labels.push(',');
    }
    let _ = write!(labels, "{name}=\"");
    escape(value, labels);
    labels.push('"');
}

/// Writes bytes from users as a label value on one line. Different bytes result in different text. Invalid
/// UTF-8 and control characters become `\xNN`, and a backslash becomes two. Then the escapes of OpenMetrics
/// are applied.
fn escape(value: &[u8], out: &mut String) {
    for chunk in value.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\\\\\"),
                letter if letter.is_control() => {
                    let mut bytes = [0; 4];
                    letter.encode_utf8(&mut bytes).bytes().for_each(|byte| escape_byte(byte, out));
                }
                letter => out.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|&byte| escape_byte(byte, out));
    }
}

fn escape_byte(byte: u8, out: &mut String) {
    let _ = write!(out, "\\\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(value: &[u8]) -> String {
        let mut out = String::new();
        escape(value, &mut out);
        out
    }

    #[test]
    fn label_values_cannot_end_their_quotes() {
        assert_eq!(escaped(b"11317854:17627127:r01c01"), "11317854:17627127:r01c01");
        assert_eq!(escaped(b"a\"} 1\n# EOF"), "a\\\"} 1\\\\x0a# EOF");
        assert_eq!(escaped(b"<b>\xff"), "<b>\\\\xff");
        // The four characters `\xff` differ from the byte 0xff.
        assert_ne!(escaped(b"\\xff"), escaped(b"\xff"));
        assert_eq!(escaped("\u{85}".as_bytes()), "\\\\xc2\\\\x85");
    }

    #[test]
    fn seconds_are_written_without_rounding() {
        assert_eq!(seconds(389_295_481, 6), "389.295481");
        assert_eq!(seconds(5, 9), "0.000000005");
    }
}
