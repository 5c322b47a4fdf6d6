//! Parses Lustre's `job_stats` of object servers (`obdfilter`) and metadata servers (`mdt`), releases 2.5 to
//! 2.15 (lustre/obdclass/lprocfs_jobstats.c).
//!
//! The format looks like YAML but must not be parsed as YAML, in which an id such as `190:20:30` is a number
//! in base 60. Different releases added units, minima, histograms, quoted ids and times independently, so
//! each is accepted at any position. Minimum, maximum and sum of squares are not passed on, because no
//! differences can be computed from them.

use super::{lustre, Parsed, Reading};
use crate::lines::{each_line, Faults};
use crate::sample::{Entry, Evidence, Metric, Name, Names, Quantity};
use iodock_counters::numbers::{instant, leading};
use std::io::{self, Read};

/// Longest id in bytes. Lustre itself uses 32 bytes (LUSTRE_JOBID_SIZE). The limit allows for escapes and for
/// changes by vendors.
const LONGEST_ID: usize = 256;
/// Largest number of operations of one job. Servers have about 20.
const MOST_OPERATIONS: usize = 64;
/// Largest number of buckets in a histogram: the number of powers of two in a 64-bit number.
const MOST_BUCKETS: usize = 64;

pub fn read(reading: &Reading) {
    for (kind, source) in [("obdfilter", "obdfilter_job_stats"), ("mdt", "mdt_job_stats")] {
        for target in lustre::targets(reading, kind, "job_stats") {
            reading.file(source, &target, parse);
        }
    }
}

/// Parses every entry of a `job_stats` file. Fails if the file cannot be read.
pub fn parse(input: &mut dyn Read, parsed: &mut Parsed) -> io::Result<()> {
    let mut reader = Reader::default();
    let Parsed { names, faults, entry: give } = parsed;
    each_line(input, faults, |line, faults| reader.line(line, names, faults, give))?;
    reader.finish(names, give);
    Ok(())
}

/// Owner of the following lines.
#[derive(Default, PartialEq)]
enum State {
    /// No job's line has appeared yet.
    #[default]
    Before,
    Job,
    /// The owner is unknown, because the line that names it is damaged.
    Orphaned,
}

#[derive(Default)]
struct Reader {
    entry: Entry,
    state: State,
    /// Operations of the current entry, including those that are zero.
    seen: Vec<Name>,
}

type Give<'a> = dyn FnMut(&Entry, &Names) + 'a;

impl Reader {
    fn line(&mut self, line: &[u8], names: &mut Names, faults: &mut Faults, give: &mut Give) {
        let line = line.trim_ascii();
        if line.is_empty() || line.ends_with(b"job_stats:") && !line.starts_with(b"-") {
            return;
        }
        if let Some(rest) = line.strip_prefix(b"-") {
            self.finish(names, give);
            self.state = match job_id(rest, &mut self.entry.owner.job) {
                true => State::Job,
                false => State::Orphaned,
            };
            if self.state == State::Orphaned {
                faults.unreadable();
            }
            self.entry.owner.evidence = Evidence::Server;
            return;
        }
        if self.known_line(line, names, give).is_none() {
            faults.unreadable();
        } else if self.state != State::Job {
            faults.orphaned += 1;
        }
    }

    /// Parses a line within a job. Returns `None` if it has an unknown form.
    fn known_line(&mut self, line: &[u8], names: &mut Names, give: &mut Give) -> Option<()> {
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = (line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii_start());
        if value.first() != Some(&b'{') {
            return self.time(name, value, names, give);
        }
        let fields = value.strip_prefix(b"{")?.strip_suffix(b"}")?;
        let operation = names.intern(name)?;
        // If an operation appears twice, the second one belongs to another job, whose id line is missing.
        if self.seen.contains(&operation) {
            self.lose(names, give);
        }
        let before = self.entry.values.len();
        let has_room = self.seen.len() < MOST_OPERATIONS;
        let read = counters(operation, fields, &mut self.entry).filter(|()| has_room);
        if read.is_none() || self.state != State::Job {
            self.entry.values.truncate(before);
        }
        self.seen.extend(read.map(|()| operation));
        read
    }

    fn time(&mut self, name: &[u8], value: &[u8], names: &Names, give: &mut Give) -> Option<()> {
        let time = instant(value.split(|&byte| byte == b' ').next()?)?;
        match name {
            b"snapshot_time" => {
                if self.entry.updated.is_some() {
                    self.lose(names, give);
                }
                self.entry.updated = Some(time);
            }
            b"start_time" => self.entry.start_time = Some(time),
            b"elapsed_time" => {}
            _ => return None,
        }
        Some(())
    }

    fn lose(&mut self, names: &Names, give: &mut Give) {
        self.finish(names, give);
        self.state = State::Orphaned;
    }

    /// Passes the complete entry to `give`.
    fn finish(&mut self, names: &Names, give: &mut Give) {
        if std::mem::take(&mut self.state) == State::Job {
            give(&self.entry, names);
        }
        self.entry.clear();
        self.seen.clear();
    }
}

/// Parses a line such as ` job_id:  ":988:ds88"`. The colon after `job_id` may be missing. Ids are in quotes
/// if they contain a byte outside of `[alnum.@-_:/]`. In quotes, such bytes may be written as `\xHH`.
fn job_id(text: &[u8], id: &mut Vec<u8>) -> bool {
    id.clear();
    let Some(value) = text.trim_ascii_start().strip_prefix(b"job_id") else { return false };
    let value = value.strip_prefix(b":").unwrap_or(value);
    if !value.first().is_some_and(u8::is_ascii_whitespace) {
        return false;
    }
    let value = value.trim_ascii();
    if value.is_empty() || value.len() > LONGEST_ID {
        return false;
    }
    match value.strip_prefix(b"\"") {
        None => id.extend_from_slice(value),
        Some(quoted) => match quoted.strip_suffix(b"\"") {
            Some(inside) => unescape(inside, id),
            None => return false,
        },
    }
    true
}

fn unescape(mut text: &[u8], id: &mut Vec<u8>) {
    while let Some((&byte, rest)) = text.split_first() {
        let code = rest
            .strip_prefix(b"x")
            .and_then(|hex| std::str::from_utf8(hex.get(..2)?).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, code) {
            (b'\\', Some(code)) => {
                id.push(code);
                text = &rest[3..];
            }
            _ => {
                id.push(byte);
                text = rest;
            }
        }
    }
}

/// Values in the braces after an operation.
#[derive(Default)]
struct Fields {
    samples: Option<u64>,
    sum: Option<u64>,
    unit: Option<lustre::Unit>,
    has_histogram: bool,
}

impl Fields {
    fn unit(&self) -> lustre::Unit {
        self.unit.unwrap_or(lustre::Unit::REQUESTS)
    }

    /// Reads the value of `key`, and returns the text after it.
    fn read<'a>(
        &mut self,
        key: &[u8],
        value: &'a [u8],
        operation: Name,
        entry: &mut Entry,
    ) -> Option<&'a [u8]> {
        match key {
            b"unit" => {
                let length = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                self.unit = Some(lustre::Unit::named(&value[..length])?);
                return Some(&value[length..]);
            }
            b"hist" if !std::mem::replace(&mut self.has_histogram, true) => {
                return histogram(operation, self.unit(), value, entry);
            }
            _ => {}
        }
        let (number, rest) = leading(value)?;
        match key {
            b"samples" => self.samples = Some(number),
            b"sum" => self.sum = Some(number),
            b"min" | b"max" | b"sumsq" => {}
            _ => return None,
        }
        Some(rest)
    }
}

/// Parses the text in the braces: ` samples: 5, unit: bytes, min: 1, max: 2, sum: 7, sumsq: 11, hist: { 1: 2,
/// 4K: 3 } `. All but the first are optional.
fn counters(operation: Name, text: &[u8], entry: &mut Entry) -> Option<()> {
    let mut fields = Fields::default();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let colon = memchr::memchr(b':', rest)?;
        let (key, value) = (rest[..colon].trim_ascii_end(), rest[colon + 1..].trim_ascii_start());
        rest = next(fields.read(key, value, operation, entry)?)?;
    }
    let (samples, unit) = (fields.samples?, fields.unit());
    if samples > 0 {
        entry.values.push((Metric::new(operation, Quantity::Count), samples));
        if let Some(sum) = fields.sum {
            entry.values.push((Metric::new(operation, unit.quantity), sum.saturating_mul(unit.factor)));
        }
    }
    Some(())
}

/// Returns the text after a comma. `None` if there is neither a comma nor the end.
fn next(rest: &[u8]) -> Option<&[u8]> {
    match rest.trim_ascii_start() {
        [] => Some(&[]),
        [b',', rest @ ..] => Some(rest.trim_ascii_start()),
        _ => None,
    }
}

/// Parses a histogram such as `{ 1: 5, 512: 7, 4K: 1 }`, and returns the text after it. Bucket 2^n counts
/// values above 2^(n-1) and up to 2^n.
fn histogram<'a>(operation: Name, unit: lustre::Unit, text: &'a [u8], entry: &mut Entry) -> Option<&'a [u8]> {
    let quantity = match unit.quantity {
        Quantity::Time => Quantity::ByLatency,
        _ => Quantity::BySize,
    };
    let end = memchr::memchr(b'}', text)?;
    let mut rest = text[..end].strip_prefix(b"{")?.trim_ascii();
    let begin = entry.values.len();
    while !rest.is_empty() {
        let (bucket, after) = lustre::scaled(rest)?;
        let (count, after) = leading(after.strip_prefix(b":")?.trim_ascii_start())?;
        let metric = Metric { operation, quantity, bucket };
        let is_known = entry.values[begin..].iter().any(|(known, _)| *known == metric);
        if is_known || entry.values.len() - begin >= MOST_BUCKETS {
            return None;
        }
        if count > 0 {
            entry.values.push((metric, count));
        }
        rest = next(after)?;
    }
    Some(&text[end + 1..])
}
