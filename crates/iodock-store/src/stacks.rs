//! Places of calls: sites, stacks of sites, and their symbols and debug information.

use crate::contents::Contents;
use crate::error::StoreError;
use crate::schema;
use crate::table::{Cell, TableWriter, Written};
use iodock_event::{shown, Stacks};
use std::path::Path;

type Result<T> = std::result::Result<T, StoreError>;

/// A function at a site. Level 0 is the innermost, others are those that it was inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolRow {
    pub site: u32,
    pub level: u32,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// Writes the three tables, if there is any stack. `build_ids`: of the modules of sites, by site id.
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
    contents.add_table("symbols", folder, write_symbols(folder, symbols)?);
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

/// Writes the table of symbols.
fn write_symbols(folder: &Path, rows: &[SymbolRow]) -> Result<Written> {
    let mut table = TableWriter::create(&folder.join("symbols.parquet"), schema::SYMBOLS)?;
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
