//! Tables of the places of calls: sites, stacks of sites, and symbols from debug information.

use crate::contents::Contents;
use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::schema;
use crate::table::{Cell, TableWriter, Written};
use iodock_event::{shown, Stacks};
use std::fs::{self, File};
use std::path::Path;

type Result<T> = std::result::Result<T, StoreError>;

/// File name of the table of symbols.
pub(crate) const FILE: &str = "symbols.parquet";

/// A function at a site. Level 0 is the innermost function; higher levels are the functions that it was
/// inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolRow {
    pub site: u32,
    pub level: u32,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// Writes the three tables, if there is a stack. `build_ids` contains the build id of each site's module, by
/// site id.
pub(crate) fn write_stacks(
    folder: &Path,
    stacks: &Stacks,
    build_ids: &[Option<String>],
    symbols: &[SymbolRow],
    contents: &mut Contents,
) -> Result<()> {
    if stacks.stacks.is_empty() {
        return Ok(());
    }
    contents.add_table("sites", folder, write_sites(folder, stacks, build_ids)?);
    let mut table = TableWriter::create(&folder.join("stacks.parquet"), schema::STACKS)?;
    for (stack, sites) in stacks.stacks.iter().enumerate() {
        for (depth, &site) in sites.iter().enumerate() {
            table.row([Cell::id(stack as u32), Cell::Narrow(depth as i32), Cell::id(site)])?;
        }
    }
    contents.add_table("stacks", folder, table.finish()?);
    contents.add_table("symbols", folder, write_symbols(&folder.join(FILE), symbols)?);
    Ok(())
}

fn write_sites(folder: &Path, stacks: &Stacks, build_ids: &[Option<String>]) -> Result<Written> {
    let mut table = TableWriter::create(&folder.join("sites.parquet"), schema::SITES)?;
    for (id, site) in stacks.sites.iter().enumerate() {
        let module = Some(shown(&site.module)).filter(|module| !module.is_empty());
        table.row([
            Cell::id(id as u32),
            Cell::optional(module.as_deref()),
            Cell::optional(build_ids.get(id).and_then(Option::as_deref)),
            Cell::wide(site.offset.and_then(|offset| i64::try_from(offset).ok())),
            Cell::Bool(site.is_installed()),
        ])?;
    }
    table.finish()
}

/// Replaces the symbols of a finished store. Readers see either the old or the new symbols, also after a
/// crash.
///
/// # Errors
/// The store cannot be read or written.
pub fn replace_symbols(store: &Path, rows: &[SymbolRow]) -> Result<()> {
    let mut manifest = Manifest::read(store)?;
    let temporary = store.join(format!("{FILE}.partial-{}", std::process::id()));
    let mut replace = || -> Result<()> {
        let written = write_symbols(&temporary, rows)?;
        let fail = |error| StoreError::io(&temporary, error, 0);
        File::open(&temporary).and_then(|file| file.sync_all()).map_err(fail)?;
        // The checksum and the number of rows are removed first, because they cannot fit both the old and the
        // new file.
        manifest.checksums.remove(FILE);
        manifest.tables.remove("symbols");
        manifest.write(store)?;
        fs::rename(&temporary, store.join(FILE)).map_err(fail)?;
        manifest.checksums.insert(FILE.into(), written.checksum);
        manifest.tables.insert("symbols".into(), written.rows);
        manifest.write(store)
    };
    let replaced = replace();
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Writes the table of symbols.
fn write_symbols(path: &Path, rows: &[SymbolRow]) -> Result<Written> {
    let mut table = TableWriter::create(path, schema::SYMBOLS)?;
    for row in rows {
        table.row([
            Cell::id(row.site),
            Cell::Narrow(row.level as i32),
            Cell::optional(row.function.as_deref()),
            Cell::optional(row.file.as_deref()),
            row.line.map_or(Cell::Null, Cell::id),
        ])?;
    }
    table.finish()
}
