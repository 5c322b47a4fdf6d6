//! Output of darshan-parser: comments about the job and the log, then a line for each counter of each record.
//!
//! Such a text contains counters that older records lack, too, with the invented value -1: the version of the
//! module, in the head, shows which. (`darshan-util/darshan-parser.c`, and the `DARSHAN_*_COUNTER_PRINT` of
//! darshan-logutils.h.)

mod head;
mod line;
mod records;

use crate::loss::add;
use crate::{Fault, Limits, Log, LossKind, Region, Written};
use head::Head;
use line::Line;
use records::Records;
use std::io::{BufRead, Read};

/// Bytes at a file's beginning that show whether it is a text.
pub const HEAD_BYTES: u64 = 4096;

const FIRST: &[u8] = b"# darshan log version:";
/// A path of 4,096 bytes and the other fields.
const LONGEST_LINE: u64 = 64 << 10;

pub fn is_text(head: &[u8]) -> bool {
    // Warnings of darshan-parser may come before it.
    head.split(|&byte| byte == b'\n').any(|line| line.starts_with(FIRST))
}

/// Lines that could not be read, and the first of them.
#[derive(Default)]
struct Unreadable {
    lines: u64,
    first: u64,
}

/// Reads a text of darshan-parser.
pub fn read(mut source: impl BufRead, limits: Limits) -> Result<Log, Fault> {
    let mut log = Log::new(String::new(), Written::Text);
    let (mut head, mut records) = (Head::default(), Records::new(limits.inflated_bytes));
    let mut unreadable = Unreadable::default();
    let (mut line, mut number) = (Vec::new(), 0);
    while next(&mut source, &mut line).map_err(Fault::Unreadable)? {
        number += 1;
        let is_ended = line.last() == Some(&b'\n');
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        let is_read = match text.strip_prefix('#') {
            Some(comment) => head.read(comment),
            // Sums, which --total prints among the comments.
            None if text.is_empty() || text.starts_with("total_") => true,
            None => Line::of(text).is_some_and(|line| records.add(&line, &mut log)),
        };
        if !is_read {
            let kind = if is_ended { LossKind::UnreadableLines } else { LossKind::CutRegion };
            unreadable.count(kind, number, &mut log);
        }
    }
    finish(log, head, records, unreadable)
}

impl Unreadable {
    fn count(&mut self, kind: LossKind, number: u64, log: &mut Log) {
        if kind == LossKind::CutRegion {
            add(&mut log.losses, kind, Region::Line(number), 1);
        } else {
            self.lines += 1;
            self.first = if self.lines == 1 { number } else { self.first };
        }
    }
}

fn finish(mut log: Log, head: Head, records: Records, unreadable: Unreadable) -> Result<Log, Fault> {
    let is_empty = records.is_empty();
    if is_empty && head.modules.values().any(|module| module.bytes > 0) {
        return Err(Fault::NoRecords);
    }
    add(&mut log.losses, LossKind::UnreadableLines, Region::Line(unreadable.first), unreadable.lines);
    add(&mut log.losses, LossKind::RoundedTimes, Region::Header, u64::from(!is_empty));
    records.finish(&head, &mut log);
    head.finish(&mut log);
    log.count_what_is_known();
    Ok(log)
}

/// The next line with its end. A line that is too long is skipped.
fn next(source: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    source.by_ref().take(LONGEST_LINE).read_until(b'\n', line)?;
    let is_cut = line.len() as u64 == LONGEST_LINE && line.last() != Some(&b'\n');
    if is_cut {
        source.skip_until(b'\n')?;
        // No valid line contains this: it is counted as unreadable.
        *line = b"\0\n".to_vec();
    }
    Ok(!line.is_empty())
}
