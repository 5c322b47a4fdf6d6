//! The tables that a merge of stores copies row by row. These are all tables except events and those that are
//! known only at the end.

use crate::contents::Contents;
use crate::error::StoreError;
use crate::reading::Record;
use crate::schema::{self, Schema};
use crate::table::{Cell, TableWriter};
use std::path::Path;

type Result<T> = std::result::Result<T, StoreError>;

/// A table: its name, its file in a store, its columns, and the column by which its rows are sorted.
#[derive(Clone, Copy, Debug)]
pub struct CopiedTable {
    pub name: &'static str,
    pub file: &'static str,
    schema: &'static str,
    pub ordered_by: Option<&'static str>,
}

const fn table(
    name: &'static str,
    file: &'static str,
    schema: &'static str,
    ordered_by: Option<&'static str>,
) -> CopiedTable {
    CopiedTable { name, file, schema, ordered_by }
}

/// All copied tables. A table comes before the tables that refer to it.
pub const COPIED: [CopiedTable; 15] = [
    table("samples", "samples/part-00000.parquet", schema::SAMPLES, Some("ts")),
    table("mounts", "mounts.parquet", schema::MOUNTS, None),
    table("faults", "faults/part-00000.parquet", schema::FAULTS, Some("ts")),
    table("pages", "pages/part-00000.parquet", schema::PAGES, Some("ts")),
    table("executables", "executables.parquet", schema::EXECUTABLES, None),
    table("interface_calls", "interface_calls.parquet", schema::INTERFACE_CALLS, Some("end_ts")),
    table("hints", "hints.parquet", schema::HINTS, None),
    table("datasets", "datasets.parquet", schema::DATASETS, None),
    table("profiles", "profiles.parquet", schema::PROFILES, None),
    table("profile_counters", "profile_counters.parquet", schema::PROFILE_COUNTERS, None),
    table("profile_fields", "profile_fields.parquet", schema::PROFILE_FIELDS, None),
    table("histograms", "histograms.parquet", schema::HISTOGRAMS, None),
    table("layouts", "layouts.parquet", schema::LAYOUTS, None),
    table("profile_accesses", "profile_accesses.parquet", schema::PROFILE_ACCESSES, None),
    table("heatmaps", "heatmaps.parquet", schema::HEATMAPS, None),
];

/// A table that is being copied.
pub struct TableCopy {
    table: CopiedTable,
    columns: Vec<String>,
    writer: TableWriter,
}

impl TableCopy {
    pub(crate) fn create(store: &Path, table: CopiedTable) -> Result<TableCopy> {
        let path = store.join(table.file);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| StoreError::io(folder, error, 0))?;
        }
        let schema = Schema::of_table(table.schema).map_err(|error| StoreError::parquet(&path, error, 0))?;
        let fields = schema.descriptor.root_schema().get_fields();
        let columns = fields.iter().map(|field| field.name().to_owned()).collect();
        Ok(TableCopy { table, columns, writer: TableWriter::create(&path, table.schema)? })
    }

    /// Appends a row. `changed` returns the new cell of a column.
    pub fn row<'a>(
        &mut self,
        record: &'a Record,
        changed: &dyn Fn(&str, Cell<'a>) -> Cell<'a>,
    ) -> Result<()> {
        let lists: Vec<_> = self.columns.iter().map(|column| record.texts(column)).collect();
        let cells = self.columns.iter().zip(&lists).map(|(column, list)| match list {
            Some(list) => Cell::List(list),
            None => changed(column, record.cell(column)),
        });
        self.writer.row(cells.collect::<Vec<_>>())
    }

    pub(crate) fn finish(self, store: &Path, contents: &mut Contents) -> Result<()> {
        contents.add_table(self.table.name, store, self.writer.finish()?);
        Ok(())
    }
}
