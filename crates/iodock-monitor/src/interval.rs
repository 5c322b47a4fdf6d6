//! Converts the changes between two readings to rows.

use crate::columns::{self, COLUMNS};
use crate::rows::{JobRow, Rows, ValueRow};
use crate::sender::SenderTarget;
use iodock_samples::sample::{Entry, Evidence, Metric, Names, Quantity};

/// Time between two readings of a target.
pub struct Interval<'a> {
    pub place: &'a SenderTarget,
    pub begin: i64,
    pub end: i64,
    pub is_exact: bool,
}

impl Interval<'_> {
    /// Adds a row with the growth of an owner's counters. Adds none if it is exactly known that there was no
    /// growth.
    pub fn put(&self, names: &Names, entry: &Entry, grown: &[(Metric, u64)], rows: &mut Rows) {
        if grown.is_empty() && self.is_exact {
            return;
        }
        if entry.owner.evidence == Evidence::Nobody {
            grown.iter().for_each(|&(metric, value)| rows.values.push(self.value(names, metric, value)));
            return;
        }
        let mut counters = [0; COLUMNS];
        columns::add(names, grown, &mut counters);
        let (place, owner) = (self.place.clone(), entry.owner.clone());
        let (begin, end, is_exact) = (self.begin, self.end, self.is_exact);
        rows.jobs.push(JobRow { begin, end, place, owner, is_exact, counters });
    }

    /// Adds rows for levels of an entry without an owner.
    pub fn put_levels(&self, names: &Names, entry: &Entry, values: &[(Metric, u64)], rows: &mut Rows) {
        if entry.owner.evidence != Evidence::Nobody {
            return;
        }
        let levels = values.iter().filter(|(metric, _)| metric.quantity == Quantity::Level);
        for &(metric, value) in levels {
            let level = self.value(names, metric, value);
            rows.values.push(ValueRow { begin: self.end, is_exact: true, ..level });
        }
    }

    fn value(&self, names: &Names, metric: Metric, value: u64) -> ValueRow {
        ValueRow {
            begin: self.begin,
            end: self.end,
            place: self.place.clone(),
            operation: names.text(metric.operation).into(),
            quantity: metric.quantity,
            bucket: metric.bucket,
            value,
            is_exact: self.is_exact,
        }
    }
}
