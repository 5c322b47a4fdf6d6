//! Darshan's histograms: bins of access sizes, and the most common sizes and strides.

use super::columns::Columns;
use iodock_darshan::{Counted, Record};
use iodock_store::BinRow;

const KI: i64 = 1 << 10;
const MI: i64 = 1 << 20;
const GI: i64 = 1 << 30;
/// Darshan's names of bins, and the largest number in each (`DARSHAN_BUCKET_INC` in darshan-common.h).
pub const BINS: [(&str, Option<i64>); 10] = [
    ("0_100", Some(100)),
    ("100_1K", Some(KI)),
    ("1K_10K", Some(10 * KI)),
    ("10K_100K", Some(100 * KI)),
    ("100K_1M", Some(MI)),
    ("1M_4M", Some(4 * MI)),
    ("4M_10M", Some(10 * MI)),
    ("10M_100M", Some(100 * MI)),
    ("100M_1G", Some(GI)),
    ("1G_PLUS", None),
];
/// Counters of sizes. Modules of MPI-IO and higher interfaces name them `SIZE_READ_AGG_` instead of
/// `SIZE_READ_`.
pub const SIZES: [(&str, &[&str]); 2] =
    [("read-size", &["SIZE_READ_", "SIZE_READ_AGG_"]), ("write-size", &["SIZE_WRITE_", "SIZE_WRITE_AGG_"])];
const COMMON: [(&str, &str, &str); 2] =
    [("common-read-or-write-size", "ACCESS", "ACCESS"), ("common-stride", "STRIDE", "STRIDE")];

/// Returns whether a counter is a bin. Bins are not stored among the other counters.
pub fn is_bin(columns: &Columns, counter: &str) -> bool {
    let Some(short) = counter.strip_prefix(columns.prefix) else { return false };
    let is_size = SIZES.iter().any(|(_, starts)| {
        starts.iter().any(|start| {
            short.strip_prefix(start).is_some_and(|rest| BINS.iter().any(|(name, _)| *name == rest))
        })
    });
    is_size
        || COMMON.iter().any(|(_, start, value)| {
            let rest = short.strip_prefix(start).and_then(|rest| rest.split_once('_'));
            rest.is_some_and(|(number, what)| number.len() == 1 && (what == *value || what == "COUNT"))
        })
}

/// Returns the bins of a record that are not empty, or whose content is unknown.
pub fn bins_of(columns: &Columns, counted: &Counted, record: Record) -> Vec<BinRow> {
    let value = |name: &str| {
        let at = counted.layout.counter(&format!("{}{name}", columns.prefix))?;
        Some(record.counter(at))
    };
    let mut found = Vec::new();
    for (quantity, starts) in SIZES {
        let mut low = 0;
        for (name, high) in BINS {
            let count = starts.iter().find_map(|start| value(&format!("{start}{name}")));
            if let Some(count) = count.filter(|&count| count != 0) {
                found.push(BinRow { quantity, low, high, count: known(count), bytes: None });
            }
            low = high.map_or(low, |high| high + 1);
        }
    }
    for (quantity, start, what) in COMMON {
        for number in 1..=4 {
            let count = value(&format!("{start}{number}_COUNT")).filter(|&count| count != 0);
            if let (Some(count), Some(size)) = (count, value(&format!("{start}{number}_{what}"))) {
                let high = Some(size);
                found.push(BinRow { quantity, low: size, high, count: known(count), bytes: None });
            }
        }
    }
    found
}

/// Returns `None` for negative counts, because Darshan marks unknown values with -1.
fn known(count: i64) -> Option<i64> {
    Some(count).filter(|&count| count >= 0)
}
