//! Reads `rpc_stats` of Lustre clients (`osc.*`, `mdc.*`): requests in flight, and histograms of their pages,
//! their concurrency, their offsets and (in newer releases) their latency.

use super::{lustre, Parsed, Reading};
use crate::lines::each_line;
use crate::sample::{Entry, Metric, Name, Names, Quantity};
use iodock_counters::numbers::{instant, leading, words};
use std::io::{self, Read};

pub fn read(reading: &Reading) {
    for (kind, source) in [("osc", "osc_rpc_stats"), ("mdc", "mdc_rpc_stats")] {
        for target in lustre::targets(reading, kind, "rpc_stats") {
            reading.file(source, &target, parse);
        }
    }
}

/// Parses the whole file as one entry. Fails if the file cannot be read.
pub fn parse(input: &mut dyn Read, parsed: &mut Parsed) -> io::Result<()> {
    let mut reader = Reader::default();
    let Parsed { names, faults, entry: give } = parsed;
    each_line(input, faults, |line, faults| {
        let line = lustre::without_parameter(line.trim_ascii());
        if !line.is_empty() && reader.line(line, names).is_none() {
            faults.unreadable();
        }
    })?;
    give(&reader.entry, names);
    Ok(())
}

#[derive(Default)]
struct Reader {
    entry: Entry,
    /// Headings of the columns: `read`, `write`, `modify`.
    columns: Vec<Name>,
    quantity: Option<Quantity>,
}

impl Reader {
    /// Parses a line. Returns `None` if it has an unknown form.
    fn line(&mut self, line: &[u8], names: &mut Names) -> Option<()> {
        let Some(colon) = memchr::memchr(b':', line) else { return self.heading(line, names) };
        let (key, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match key {
            b"snapshot_time" => self.entry.updated = Some(instant(words(value).next()?)?),
            b"start_time" => self.entry.start_time = Some(instant(words(value).next()?)?),
            b"elapsed_time" => {}
            _ if key.first()?.is_ascii_digit() => return self.bucket(key, value),
            _ => self.level(key, value, names)?,
        }
        Some(())
    }

    /// Parses a line of headings, such as `read    write`, or the line below it that describes the rows.
    /// Another line without a colon is damaged, and the table continues after it.
    fn heading(&mut self, line: &[u8], names: &mut Names) -> Option<()> {
        const COLUMNS: [&[u8]; 3] = [b"read", b"write", b"modify"];
        if words(line).all(|word| COLUMNS.contains(&word)) {
            self.columns.clear();
            self.quantity = None;
            return words(line).try_for_each(|word| names.intern(word).map(|name| self.columns.push(name)));
        }
        let known: [(&[u8], Quantity); 4] = [
            (b"pages per rpc", Quantity::ByPages),
            (b"rpcs in flight", Quantity::ByInFlight),
            (b"offset", Quantity::ByOffset),
            (b"RPC latency", Quantity::ByLatency),
        ];
        let (_, quantity) = known.iter().find(|(text, _)| line.starts_with(text))?;
        self.quantity = Some(*quantity);
        Some(())
    }

    /// Parses a row such as `16:   511  99 100   |   784   0 100`: number, share and cumulative share for
    /// each column.
    fn bucket(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        let (bucket, rest) = lustre::scaled(key)?;
        let quantity = self.quantity.filter(|_| rest.is_empty())?;
        let before = self.entry.values.len();
        let mut columns = self.columns.iter();
        for column in value.split(|&byte| byte == b'|') {
            let read = columns.next().zip(leading(column.trim_ascii_start()));
            let pushed = read.and_then(|(&operation, (count, _))| {
                let metric = Metric { operation, quantity, bucket };
                // Most buckets are empty and are left out.
                match count == 0 && !self.entry.has(metric) {
                    true => Some(()),
                    false => self.entry.push_metric(metric, count),
                }
            });
            if pushed.is_none() {
                self.entry.values.truncate(before);
                return None;
            }
        }
        Some(())
    }

    /// Parses a line such as `read RPCs in flight:  0`.
    fn level(&mut self, key: &[u8], value: &[u8], names: &mut Names) -> Option<()> {
        let (value, rest) = leading(value)?;
        let key: Vec<u8> =
            key.iter().map(|byte| if *byte == b' ' { b'_' } else { byte.to_ascii_lowercase() }).collect();
        let name = names.intern(&key).filter(|_| rest.is_empty())?;
        self.entry.push(name, Quantity::Level, value)
    }
}
