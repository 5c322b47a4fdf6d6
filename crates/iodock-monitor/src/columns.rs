//! Defines the counters that have their own column in `job_io`. To add one, add its line here and in
//! docs/explanation/monitor-store.md.

use iodock_samples::sample::{Metric, Names, Quantity};

/// A column's name and its counters, of which the first that an entry contains is used.
pub type Counter = (&'static str, &'static [(&'static str, Quantity)]);

use Quantity::{Bytes, Count};

/// Columns in their order. Lustre 2.12 and later count each read twice: as `read_bytes`, and for its time as
/// `read`.
pub const COUNTERS: &[Counter] = &[
    ("read_bytes", &[("read_bytes", Bytes), ("read", Bytes), ("read_device", Bytes)]),
    ("write_bytes", &[("write_bytes", Bytes), ("write", Bytes), ("write_device", Bytes)]),
    ("reads", &[("read_bytes", Count), ("read", Count)]),
    ("writes", &[("write_bytes", Count), ("write", Count)]),
    ("call_read_bytes", &[("read_call", Bytes)]),
    ("call_write_bytes", &[("write_call", Bytes)]),
    ("read_calls", &[("read_call", Count)]),
    ("write_calls", &[("write_call", Count)]),
    ("cancelled_write_bytes", &[("cancelled_write", Bytes)]),
    ("open", &[("open", Count)]),
    ("close", &[("close", Count)]),
    ("mknod", &[("mknod", Count)]),
    ("create", &[("create", Count)]),
    ("link", &[("link", Count)]),
    ("unlink", &[("unlink", Count)]),
    ("destroy", &[("destroy", Count)]),
    ("mkdir", &[("mkdir", Count)]),
    ("rmdir", &[("rmdir", Count)]),
    ("rename", &[("rename", Count)]),
    ("getattr", &[("getattr", Count)]),
    ("setattr", &[("setattr", Count)]),
    ("getxattr", &[("getxattr", Count)]),
    ("setxattr", &[("setxattr", Count)]),
    ("statfs", &[("statfs", Count)]),
    ("sync", &[("sync", Count)]),
    ("punch", &[("punch", Count)]),
    ("readdir", &[("readdir", Count)]),
];
/// Indexes of the columns after those: the number of all other operations, and the time of all operations in
/// microseconds.
pub const OTHER: usize = COUNTERS.len();
pub const TIME: usize = OTHER + 1;
pub const COLUMNS: usize = TIME + 1;

/// Operations that Lustre also counts under another name, so that they do not count in the column `other`.
pub const WITHIN_OTHERS: &[&str] =
    &["read", "write", "samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir"];

/// Returns the names of all columns in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    COUNTERS.iter().map(|(name, _)| *name).chain(["other", "time_us"])
}

/// Adds the growth of one entry's counters to a row's columns.
pub fn add(names: &Names, grown: &[(Metric, u64)], row: &mut [u64; COLUMNS]) {
    for (column, (_, sources)) in COUNTERS.iter().enumerate() {
        let found = sources.iter().find_map(|&(operation, quantity)| {
            grown
                .iter()
                .find(|(metric, _)| metric.quantity == quantity && names.text(metric.operation) == operation)
        });
        row[column] = row[column].saturating_add(found.map_or(0, |(_, value)| *value));
    }
    for (metric, value) in grown {
        let operation = names.text(metric.operation);
        let column = match metric.quantity {
            Quantity::Time => TIME,
            Quantity::Count if !WITHIN_OTHERS.contains(&operation) && !is_listed(operation) => OTHER,
            _ => continue,
        };
        row[column] = row[column].saturating_add(*value);
    }
}

fn is_listed(operation: &str) -> bool {
    COUNTERS.iter().any(|(_, sources)| sources.contains(&(operation, Count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(counters: &[(&str, Quantity, u64)]) -> Vec<(&'static str, u64)> {
        let mut names = Names::default();
        let metric = |&(text, quantity, value): &(&str, Quantity, u64)| {
            (Metric::new(names.intern(text.as_bytes()).expect("a name"), quantity), value)
        };
        let grown: Vec<_> = counters.iter().map(metric).collect();
        let mut row = [0; COLUMNS];
        add(&names, &grown, &mut row);
        super::names().zip(row).filter(|(_, value)| *value > 0).collect()
    }

    #[test]
    fn reads_that_a_server_counts_twice_count_once() {
        let both = row(&[
            ("read_bytes", Bytes, 4096),
            ("read_bytes", Count, 2),
            ("read", Count, 2),
            ("read", Quantity::Time, 9),
        ]);
        assert_eq!(both, [("read_bytes", 4096), ("reads", 2), ("time_us", 9)]);
        assert_eq!(row(&[("read", Count, 3), ("read", Bytes, 12)]), [("read_bytes", 12), ("reads", 3)]);
    }

    #[test]
    fn operations_without_a_column_count_as_other() {
        assert_eq!(row(&[("quotactl", Count, 3), ("prealloc", Count, 4)]), [("other", 7)]);
    }

    #[test]
    fn kinds_of_renames_are_not_counted_twice() {
        let renames =
            row(&[("rename", Count, 3), ("samedir_rename", Count, 1), ("crossdir_rename", Count, 2)]);
        assert_eq!(renames, [("rename", 3)]);
    }

    #[test]
    fn requests_of_programs_and_of_devices_are_separate_columns() {
        let row = row(&[("read_call", Bytes, 5), ("read_call", Count, 1), ("read_device", Bytes, 4096)]);
        assert_eq!(row, [("read_bytes", 4096), ("call_read_bytes", 5), ("read_calls", 1)]);
    }
}
