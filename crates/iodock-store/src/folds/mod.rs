//! Small tables that are made while events are written. They answer queries that would otherwise read all
//! events for a few rows.
//!
//! `src/iodock/program/relations/profile.py` defines the same tables in SQL, for stores without them; a test
//! compares both. The store of a short run has none of them, and a table that would be large is not written.
//! Sums by file and task, which most queries need, are not stored: they would cost an import 70 ns per event,
//! which is as much as they would save a reader.

mod durations;
mod opens;
mod slow_calls;

use crate::contents::Contents;
use crate::error::StoreError;
use crate::table::{Cell, TableWriter};
use durations::Durations;
use iodock_event::EventColumns;
use opens::Opens;
use slow_calls::SlowCalls;
use std::path::Path;

/// Folder of these tables in a store.
pub const FOLDER: &str = "folds";
const DURATIONS: &str = "stored_durations";
const OPENINGS: &str = "stored_openings";
const SLOW_CALLS: &str = "stored_slow_calls";
/// Names of all these tables.
pub const NAMES: [&str; 3] = [DURATIONS, OPENINGS, SLOW_CALLS];
/// Smallest number of events for which the tables are written. A reader reads fewer events faster than it
/// opens a table.
const LEAST_EVENTS: u64 = 1 << 18;
/// Largest number of rows of a table. A larger table would save readers little.
const MOST_ROWS: usize = 1 << 16;

/// All small tables of a store.
#[derive(Default)]
pub struct Folds {
    events: u64,
    durations: Durations,
    opens: Opens,
    slow_calls: SlowCalls,
}

impl Folds {
    pub fn add(&mut self, events: &EventColumns) {
        self.events += events.len() as u64;
        self.durations.add(events);
        self.opens.add(events);
        self.slow_calls.add(events);
    }

    /// Writes the tables into the store's folder.
    pub fn write(&self, store: &Path, contents: &mut Contents) -> Result<(), StoreError> {
        if self.events < LEAST_EVENTS {
            return Ok(());
        }
        let folder = store.join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|error| StoreError::io(&folder, error, 0))?;
        let mut write = |name: &str, message, rows| write_table(store, name, message, rows, contents);
        write(DURATIONS, durations::SCHEMA, Some(self.durations.rows()))?;
        write(OPENINGS, opens::SCHEMA, self.opens.rows())?;
        write(SLOW_CALLS, slow_calls::SCHEMA, self.slow_calls.rows())
    }
}

/// Rows of a table, with a cell for each column of its schema.
type Rows = Vec<Vec<Cell<'static>>>;

/// Writes a table and adds it to `contents`, unless it has become too large.
fn write_table(
    store: &Path,
    name: &str,
    message: &str,
    rows: Option<Rows>,
    contents: &mut Contents,
) -> Result<(), StoreError> {
    let Some(rows) = rows else { return Ok(()) };
    let mut table = TableWriter::create(&store.join(FOLDER).join(format!("{name}.parquet")), message)?;
    for row in rows {
        table.row(row)?;
    }
    contents.add_table(name, store, table.finish()?);
    Ok(())
}

/// Returns the n with 2^(n-1) < `value` <= 2^n; 0 if `value` is at most 1.
fn power_of_two(value: i64) -> u8 {
    if value <= 1 {
        0
    } else {
        (64 - (value - 1).leading_zeros()) as u8
    }
}

/// Returns whether the row counts as the call. A call with two rows counts once: at the end that it reads
/// from, or at the old name.
fn is_first_side(side: u8) -> bool {
    use iodock_event::Side;
    side != Side::Out as u8 && side != Side::New as u8
}

#[cfg(test)]
mod tests {
    use super::power_of_two;

    #[test]
    fn a_power_of_two_belongs_to_the_bin_that_it_ends() {
        let bins = [0, 1, 2, 3, 4, 5, 4096, 4097, i64::MAX].map(power_of_two);
        assert_eq!(bins, [0, 0, 1, 2, 2, 3, 12, 13, 63]);
    }
}
