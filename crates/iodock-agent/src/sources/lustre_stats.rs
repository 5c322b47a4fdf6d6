//! Reads Lustre's `stats` files: `mdt.*.md_stats`, `mds.MDS.*.stats` (the services' queues), `llite.*.stats`,
//! `mdc.*.stats` and `osc.*.stats` (clients; from the last two only the waiting time of requests). These
//! files do not count by job.
//!
//! The services count a request when they have handled it. During a complete stall their numbers stop
//! growing, so an unchanged file may also mean a problem.

use super::{lustre, Parsed, Reading};
use crate::lines::{each_line, Faults};
use crate::sample::{Entry, Names, Quantity};
use iodock_counters::lustre_stats;
use iodock_counters::numbers::{instant, words};
use std::io::{self, Read};

type Parse = fn(&mut dyn Read, &mut Parsed) -> io::Result<()>;

pub fn read(reading: &Reading) {
    const FILES: [(&str, &str, &str, Parse); 5] = [
        ("mdt", "md_stats", "mdt_md_stats", parse),
        ("mds/MDS", "stats", "mds_stats", parse),
        ("llite", "stats", "llite_stats", parse),
        ("mdc", "stats", "mdc_stats", parse_requests),
        ("osc", "stats", "osc_stats", parse_requests),
    ];
    for (kind, file, source, parse) in FILES {
        for mut target in lustre::targets(reading, kind, file) {
            if kind == "mds/MDS" {
                // The services `mdt`, `mdt_io` ... serve all file systems of the server.
                target.file_system.clear();
            }
            reading.file(source, &target, parse);
        }
    }
}

/// Parses all counters of the file as one entry. Fails if the file cannot be read.
pub fn parse(input: &mut dyn Read, parsed: &mut Parsed) -> io::Result<()> {
    parse_some(input, parsed, |_| true)
}

/// Parses the waiting time of all requests together, of any kind. Fails if the file cannot be read.
pub fn parse_requests(input: &mut dyn Read, parsed: &mut Parsed) -> io::Result<()> {
    parse_some(input, parsed, |name| matches!(name, b"req_waittime" | b"req_active"))
}

fn parse_some(input: &mut dyn Read, parsed: &mut Parsed, is_wanted: fn(&[u8]) -> bool) -> io::Result<()> {
    let mut entry = Entry::default();
    let Parsed { names, faults, entry: give } = parsed;
    each_line(input, faults, |line, faults| {
        let line = lustre::without_parameter(line.trim_ascii());
        if !line.is_empty() && read_line(line, is_wanted, &mut entry, names).is_none() {
            Faults::unreadable(faults);
        }
    })?;
    give(&entry, names);
    Ok(())
}

fn read_line(line: &[u8], is_wanted: fn(&[u8]) -> bool, entry: &mut Entry, names: &mut Names) -> Option<()> {
    let mut fields = words(line);
    match fields.next()? {
        b"snapshot_time" => entry.updated = Some(instant(fields.next()?)?),
        b"start_time" => entry.start_time = Some(instant(fields.next()?)?),
        b"elapsed_time" => {}
        _ => {
            let line = lustre_stats::line(line)?;
            if !is_wanted(line.name) {
                return Some(());
            }
            let (operation, unit) = (names.intern(line.name)?, lustre::Unit::named(line.unit)?);
            entry.push(operation, Quantity::Count, line.samples)?;
            if let Some(sum) = line.sum {
                entry.push(operation, unit.quantity, sum.saturating_mul(unit.factor))?;
            }
        }
    }
    Some(())
}
