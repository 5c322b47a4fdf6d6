//! Copies tables row by row, with the ids of the merged store.

use super::part::Part;
use crate::ImportError;
use iodock_store::{Cell, CopiedTable, Record, Records, StoreWriter, COPIED};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// Copies the tables of all parts.
///
/// # Errors
/// A part cannot be read, or the store cannot be written.
pub fn copy(parts: &[Part], several_hosts: bool, writer: &mut StoreWriter) -> Result<(), ImportError> {
    for table in COPIED {
        // Tables of profiles exist even without rows.
        if parts.iter().any(|part| part.manifest().tables.contains_key(table.name)) {
            copy_table(table, parts, several_hosts, writer)?;
        }
    }
    Ok(())
}

fn copy_table(
    table: CopiedTable,
    parts: &[Part],
    several_hosts: bool,
    writer: &mut StoreWriter,
) -> Result<(), ImportError> {
    let into = writer.copy_of(table)?;
    let mut once = Once::of(table.name);
    let mut rows = InOrder::new(table, parts)?;
    while let Some((number, record)) = rows.next_row()? {
        let part = &parts[number];
        if once.is_new(part, &record) {
            into.row(&record, &|column, cell| renumbered(table.name, column, cell, part, several_hosts))?;
        }
    }
    Ok(())
}

fn renumbered<'a>(
    table: &str,
    column: &str,
    cell: Cell<'a>,
    part: &'a Part,
    several_hosts: bool,
) -> Cell<'a> {
    let first = match (table, column) {
        (_, "utid") => part.first_utid,
        (_, "upid") => part.first_upid,
        (_, "handle_id") => part.first_handle,
        ("interface_calls", "id" | "parent_id") | (_, "interface_call_id") => part.first_interface_call,
        (_, "profile_id") => part.first_profile,
        (_, "file_id" | "parent_file_id") => {
            return match cell {
                Cell::Narrow(id) => part.files.get(id as u32 as usize).map_or(Cell::Null, |&id| Cell::id(id)),
                other => other,
            }
        }
        (_, "host") if several_hosts => {
            return match cell {
                Cell::Null => Cell::optional(part.host()),
                other => other,
            }
        }
        _ => return cell,
    };
    match cell {
        Cell::Narrow(id) => Cell::id((id as u32).saturating_add(first)),
        other => other,
    }
}

/// Selects which rows of a table are copied: all of them, or each distinct row once, because the parts repeat
/// rows of facts that they share.
enum Once {
    All,
    Of(&'static [&'static str], HashSet<Vec<String>>),
}

impl Once {
    fn of(table: &str) -> Once {
        let columns: &[&str] = match table {
            "mounts" => &["mount_point", "fs_type", "source", "options", "host"],
            "executables" => &["path"],
            "profile_fields" => &["interface", "counter"],
            _ => return Once::All,
        };
        Once::Of(columns, HashSet::new())
    }

    fn is_new(&mut self, part: &Part, record: &Record) -> bool {
        let Once::Of(columns, seen) = self else { return true };
        let mut key: Vec<String> =
            columns.iter().map(|column| record.text(column).unwrap_or_default().to_owned()).collect();
        if columns.contains(&"host") && record.text("host").is_none() {
            key.extend(part.host().map(str::to_owned));
        }
        seen.insert(key)
    }
}

/// The rows of one table from all parts, ordered by time if the table has times.
struct InOrder<'a> {
    table: CopiedTable,
    parts: &'a [Part],
    sources: Vec<(Records, Option<Record>)>,
    queue: BinaryHeap<Reverse<(i64, usize)>>,
}

impl InOrder<'_> {
    fn new(table: CopiedTable, parts: &[Part]) -> Result<InOrder<'_>, ImportError> {
        let sources = parts.iter().map(|part| (part.records(table.file), None)).collect();
        let mut rows = InOrder { table, parts, sources, queue: BinaryHeap::new() };
        (0..parts.len()).try_for_each(|number| rows.load(number, i64::MIN))?;
        Ok(rows)
    }

    /// Reads the next row of a part. A row without a time gets the time of the row before it.
    fn load(&mut self, number: usize, before: i64) -> Result<(), ImportError> {
        let (records, next) = &mut self.sources[number];
        *next = records.next_row()?;
        if let Some(record) = next {
            let time = self.table.ordered_by.and_then(|column| record.number(column));
            let offset = self.parts[number].clock_offset;
            self.queue
                .push(Reverse((time.map_or(before, |time| time.saturating_add(offset)).max(before), number)));
        }
        Ok(())
    }

    fn next_row(&mut self) -> Result<Option<(usize, Record)>, ImportError> {
        let Some(Reverse((time, number))) = self.queue.pop() else { return Ok(None) };
        let row = self.sources[number].1.take();
        self.load(number, time)?;
        Ok(row.map(|row| (number, row)))
    }
}
