//! Estimates how much the clocks of hosts differ, from calls that ranks make together.
//!
//! No rank returns from `MPI_File_open` before all ranks have entered it. For hosts A and B and each such
//! call, the end at A therefore comes after the beginning at B, and the end at B after the beginning at A.
//! This bounds the clock difference from both sides. The bounds of all calls together are narrower than those
//! of one call. If the bounds contradict each other, some opens were made by one rank alone
//! (`MPI_COMM_SELF`).

use super::part::{hosts, Part};
use crate::ImportError;
use std::collections::{BTreeMap, HashMap};

/// Largest number of opens of one file by one rank that are compared.
const MOST_OPENS: usize = 256;

/// The clock of a host compared with that of the first host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    pub host: String,
    /// Correction of the host's time stamps, ns; `None` if not known.
    pub offset_ns: Option<i64>,
    /// Largest error of the correction, in both directions, ns.
    pub within_ns: Option<i64>,
    /// Number of calls that the comparison used.
    pub calls: u64,
}

/// Latest beginning and earliest end of one open, among the ranks of one host.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: i64,
    end: i64,
}

/// For each file and each index of an open in its process: the spans by host, and the number of ranks that
/// made the open.
type Opens = BTreeMap<(u32, u32), (HashMap<String, Span>, usize)>;

/// Compares the clocks of the hosts, and sets the clock offset of each part.
///
/// # Errors
/// A part cannot be read.
pub fn compare(parts: &mut [Part]) -> Result<Vec<Clocks>, ImportError> {
    let hosts = hosts(parts);
    let mut clocks: Vec<Clocks> =
        hosts.iter().map(|host| Clocks { host: host.clone(), ..Clocks::default() }).collect();
    let Some((first, others)) = clocks.split_first_mut() else { return Ok(clocks) };
    (first.offset_ns, first.within_ns) = (Some(0), Some(0));
    if others.is_empty() {
        return Ok(clocks);
    }
    let opens = opens(parts)?;
    for clock in others {
        let pairs =
            opens.values().filter_map(|(spans, _)| spans.get(&first.host).zip(spans.get(&clock.host)));
        if let Some((offset, within, calls)) = difference(pairs) {
            (clock.offset_ns, clock.within_ns, clock.calls) = (Some(offset), Some(within), calls);
        }
    }
    for part in parts {
        let known = clocks.iter().find(|clock| Some(clock.host.as_str()) == part.host());
        part.clock_offset = known.and_then(|clock| clock.offset_ns).unwrap_or(0);
    }
    Ok(clocks)
}

/// Returns the correction of the second host's time stamps, its largest error, and the number of calls.
/// Returns `None` if there are no calls or they contradict each other.
fn difference<'a>(pairs: impl Iterator<Item = (&'a Span, &'a Span)>) -> Option<(i64, i64, u64)> {
    let (mut least, mut most, mut calls) = (i64::MIN, i64::MAX, 0);
    for (one, other) in pairs {
        // On a common clock, each host's end comes after the other host's beginning.
        least = least.max(one.begin - other.end);
        most = most.min(one.end - other.begin);
        calls += 1;
    }
    (calls > 0 && least <= most).then(|| (least + (most - least) / 2, (most - least + 1) / 2, calls))
}

/// Returns the opens that all ranks made. If only some ranks made an open, they may have opened the file with
/// several communicators, which do not wait for each other. Such opens are left out.
fn opens(parts: &[Part]) -> Result<Opens, ImportError> {
    let mut opens = Opens::new();
    let mut ranks = 0;
    for part in parts {
        ranks += part.ranks().len();
        let mut made: HashMap<(u32, u32), u32> = HashMap::new();
        let mut calls: Vec<(i64, i64, u32, u32)> = Vec::new();
        let mut records = part.records("interface_calls.parquet");
        while let Some(row) = records.next_row()? {
            let is_open = row.text("call") == Some("MPI_File_open") && row.number("result") == Some(0);
            let times = row.number("ts").zip(row.number("end_ts"));
            if let (true, Some((begin, end)), Some(file), Some(utid)) =
                (is_open, times, row.id("file_id"), row.id("utid"))
            {
                let file = part.files.get(file as usize).copied().unwrap_or(file);
                calls.push((begin, end, file, utid));
            }
        }
        calls.sort_unstable();
        for (begin, end, file, utid) in calls {
            let Some((Some(_), host)) = part.tasks.get(utid as usize) else { continue };
            let Some(host) = host.as_deref().or(part.host()) else { continue };
            let number = made.entry((file, utid)).or_default();
            *number += 1;
            if *number as usize > MOST_OPENS {
                continue;
            }
            let (spans, makers) = opens.entry((file, *number)).or_default();
            *makers += 1;
            let span = spans.entry(host.to_owned()).or_insert(Span { begin, end });
            (span.begin, span.end) = (span.begin.max(begin), span.end.min(end));
        }
    }
    opens.retain(|_, (_, makers)| *makers == ranks);
    Ok(opens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: i64, end: i64) -> Span {
        Span { begin, end }
    }

    #[test]
    fn calls_made_together_bound_the_clock_difference() {
        // The second clock is 1000 behind, so its calls seem to be 1000 earlier.
        let pairs = [(span(5_000, 5_100), span(4_040, 4_110)), (span(9_030, 9_090), span(8_000, 8_085))];
        let found = difference(pairs.iter().map(|(one, other)| (one, other)));
        // The first call bounds the difference to 890 to 1060, the second to 945 to 1090.
        assert_eq!(found, Some((1_002, 58, 2)));
    }

    #[test]
    fn contradicting_calls_give_no_clock_difference() {
        let pairs = [(span(0, 10), span(0, 10)), (span(100, 110), span(900, 910))];
        assert_eq!(difference(pairs.iter().map(|(one, other)| (one, other))), None);
        assert_eq!(difference(std::iter::empty()), None);
    }
}
