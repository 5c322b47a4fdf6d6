//! Merges several stores of one run into one store, for runs in which each node or rank was recorded
//! separately.
//!
//! Rows keep their values, but ids are numbered again. Files with the same name become one file, as in a
//! recording that all ranks share. The coverage (bytes read and written before) is computed again, because
//! tasks of several parts may use the same file.

mod clocks;
mod error;
mod events;
mod manifest;
mod numbers;
mod part;
mod same_run;
mod tables;

use crate::import::ImportSummary;
use crate::pipeline::Progress;
use crate::ImportError;
use iodock_event::{LossKind, Losses};
use iodock_store::{State, StoreOptions, StoreWriter};
use numbers::Numbers;
use part::Part;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use clocks::Clocks;

/// The result of merging stores.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    pub summary: ImportSummary,
    /// Clock difference of each host.
    pub clocks: Vec<Clocks>,
    /// Number of ranks that have a part, and number of ranks of the run if known.
    pub ranks: (u32, Option<u32>),
}

/// Merges the finished stores `parts` into a new store at `into`.
///
/// # Errors
/// A part is damaged, occurs twice or belongs to another run, or the store cannot be written.
pub fn merge_stores(
    parts: &[PathBuf],
    into: &Path,
    force: bool,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<Merged, ImportError> {
    let mut opened = Vec::new();
    for path in parts {
        opened.push(Part::open(path)?);
    }
    same_run::check(&opened)?;
    let several_hosts = part::hosts(&opened).len() > 1;
    let mut numbers = Numbers::default();
    for (number, part) in opened.iter_mut().enumerate() {
        numbers.add(number, part, several_hosts)?;
    }
    same_run::check_tasks(&opened)?;
    let clocks = clocks::compare(&mut opened)?;
    numbers.finish(&opened);
    let mut writer = StoreWriter::create(into, StoreOptions { force, complete: false })?;
    let unknown = events::copy(&opened, &numbers, &mut writer, (progress, cancel))?;
    tables::copy(&opened, several_hosts, &mut writer)?;
    writer.set_symbols(std::mem::take(&mut numbers.build_ids), std::mem::take(&mut numbers.symbols));
    let manifest = manifest::of(&opened, &clocks, unknown);
    let mut losses = Losses::default();
    for entry in &manifest.losses {
        if let Some(kind) = LossKind::ALL.iter().find(|kind| kind.name() == entry.name) {
            losses.add(*kind, entry.count);
        }
    }
    let ranks = manifest::ranks_of(&opened).len() as u32;
    let mut summary = ImportSummary {
        lines: manifest.source.lines,
        calls: manifest.source.calls,
        files: numbers.tables.files.len() as u64,
        processes: numbers.tables.tasks.len() as u64,
        profiles: opened
            .iter()
            .any(|part| part.manifest().tables.contains_key("profiles"))
            .then(|| opened.iter().map(|part| part.rows("profiles")).sum()),
        cut: manifest.state == State::Cut,
        formats: vec![manifest.captured.how.clone()],
        losses,
        ..ImportSummary::default()
    };
    let expected = manifest.ranks;
    summary.store = writer.finish(&numbers.tables, manifest)?;
    Ok(Merged { summary, clocks, ranks: (ranks, expected) })
}
