//! Reads the output of darshan-parser: comments about the job and the log, then a line for each counter of
//! each record.
//!
//! The text of an older record also contains counters that the record lacks, with the invented value -1. The
//! version of the module, in the head, shows which counters these are. (See `darshan-util/darshan-parser.c`,
//! and the `DARSHAN_*_COUNTER_PRINT` of darshan-logutils.h.)

mod head;
mod line;
mod records;

use crate::loss::add;
use crate::{Fault, Limits, Log, LossKind, Region, Written};
use head::Head;
use line::Line;
use records::Records;
use std::io::{BufRead, Read};

/// Number of bytes at the beginning of a file that show whether it is such a text.
pub const HEAD_BYTES: u64 = 4096;

const FIRST: &[u8] = b"# darshan log version:";
/// Longest valid line, bytes: a path of 4,096 bytes and the other fields are far shorter.
const LONGEST_LINE: u64 = 64 << 10;

pub fn is_text(head: &[u8]) -> bool {
    // Warnings of darshan-parser may precede this line.
    head.split(|&byte| byte == b'\n').any(|line| line.starts_with(FIRST))
}

/// Number of lines that could not be read, and the first of them.
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
            // These are sums, which `darshan-parser --total` prints among the comments.
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

/// Reads the next line with its newline. Skips the content of a line that is too long.
fn next(source: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    source.by_ref().take(LONGEST_LINE).read_until(b'\n', line)?;
    let is_cut = line.len() as u64 == LONGEST_LINE && line.last() != Some(&b'\n');
    if is_cut {
        source.skip_until(b'\n')?;
        // No valid line contains this byte, so the caller counts the line as unreadable.
        *line = b"\0\n".to_vec();
    }
    Ok(!line.is_empty())
}
