//! Processes all row groups of a store on several threads.

use crate::batch::{Batch, GroupReader, Wanted, MOST_ROWS};
use crate::error::FoldError;
use crate::quiet::quietly;
use crate::table::Table;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Number of threads, which is the same as that of the SQL engine.
const THREADS: usize = 2;
/// Largest number of groups per thread. A thread with more groups outputs them before it reads another row
/// group.
const MOST_GROUPS: usize = 1 << 18;

/// An aggregation over events.
pub trait Fold: Send + Sync + Sized {
    /// The columns of events that the fold needs.
    const COLUMNS: &'static [Wanted];

    /// Returns an empty fold with the same settings.
    fn fresh(&self) -> Self;

    /// Adds rows. `batch` contains the columns of [`Fold::COLUMNS`], in that order.
    fn add(&mut self, batch: Batch<'_>);

    /// Adds the groups of `other`.
    fn absorb(&mut self, other: &Self);

    /// Returns the number of groups.
    fn groups(&self) -> usize;

    /// Returns the groups, one row each.
    fn table(&self) -> Table;
}

/// One pass over all events of a store for one fold.
pub struct Folding<F> {
    fold: F,
    paths: Vec<PathBuf>,
    /// Index of the file, and of the row group in it.
    row_groups: Vec<(usize, usize)>,
    rows: u64,
    next: AtomicUsize,
}

impl<F: Fold> Folding<F> {
    /// Prepares a pass. `paths` are the store's files of events, in order.
    ///
    /// # Errors
    /// A file is not a Parquet file.
    pub fn new(paths: Vec<PathBuf>, fold: F) -> Result<Folding<F>, FoldError> {
        let (mut row_groups, mut rows) = (Vec::new(), 0);
        for (file, path) in paths.iter().enumerate() {
            let reader = open(path)?;
            row_groups.extend((0..reader.num_row_groups()).map(|group| (file, group)));
            let groups = reader.metadata().row_groups();
            rows += groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).sum::<u64>();
        }
        Ok(Folding { fold, paths, row_groups, rows, next: AtomicUsize::new(0) })
    }

    /// Returns the total number of events.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the next groups; `None` after the last. The same key may occur in several tables, but only
    /// once in each.
    ///
    /// # Errors
    /// A file cannot be read, or `cancelled` returned true.
    pub fn next_table(&self, cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Option<Table>, FoldError> {
        let left = self.row_groups.len().saturating_sub(self.next.load(Ordering::Relaxed));
        if left == 0 {
            return Ok(None);
        }
        let stop = AtomicBool::new(false);
        let halted = || stop.load(Ordering::Relaxed) || cancelled();
        let work = || {
            let done = self.work(&halted);
            if done.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            done
        };
        let results: Vec<Result<F, FoldError>> = thread::scope(|scope| {
            let others: Vec<_> = (1..THREADS.min(left)).map(|_| scope.spawn(work)).collect();
            let own = work();
            let joined = others.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(own).chain(joined).collect()
        });
        let mut parts = first_error(results)?.into_iter();
        let mut all = parts.next().unwrap_or_else(|| self.fold.fresh());
        parts.for_each(|part| all.absorb(&part));
        let table = all.table();
        match table.columns.iter().find(|column| !column.is_exact) {
            Some(column) => Err(FoldError::Foreign { what: format!("{} is beyond 64 bits", column.name) }),
            None => Ok(Some(table)),
        }
    }

    /// Folds the row groups that one thread takes.
    fn work(&self, halted: &dyn Fn() -> bool) -> Result<F, FoldError> {
        let mut fold = self.fold.fresh();
        let mut opened: Option<(usize, SerializedFileReader<File>)> = None;
        let mut rows = 0;
        // Two threads that each exceed the limit by one row group still count all rows within 32 bits.
        while fold.groups() <= MOST_GROUPS && rows < MOST_ROWS {
            let Some(&(file, group)) = self.row_groups.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let path = &self.paths[file];
            let reader = match opened.take() {
                Some((number, reader)) if number == file => reader,
                _ => open(path)?,
            };
            rows += add_group(&mut fold, &reader, group, halted).map_err(|error| match error {
                Stopped::Halted => FoldError::Cancelled,
                Stopped::Parquet(error) => FoldError::unreadable(path, error),
            })?;
            opened = Some((file, reader));
        }
        Ok(fold)
    }
}

enum Stopped {
    Halted,
    Parquet(ParquetError),
}

impl From<ParquetError> for Stopped {
    fn from(error: ParquetError) -> Stopped {
        Stopped::Parquet(error)
    }
}

fn add_group<F: Fold>(
    fold: &mut F,
    reader: &SerializedFileReader<File>,
    group: usize,
    halted: &dyn Fn() -> bool,
) -> Result<usize, Stopped> {
    let mut rows = unpacked(|| GroupReader::new(&*reader.get_row_group(group)?, F::COLUMNS))?;
    let count = rows.left();
    loop {
        let unread = &mut rows;
        let Some(batch) = unpacked(move || unread.next())? else { break };
        if halted() {
            return Err(Stopped::Halted);
        }
        fold.add(batch);
    }
    Ok(count)
}

/// Returns the result of `read`, and converts a panic to an error. This is only for the Parquet crate; other
/// panics must stay visible.
fn unpacked<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    quietly(read).unwrap_or_else(|| Err(ParquetError::General("can't be unpacked".into())))
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, FoldError> {
    let file = File::open(path).map_err(|error| FoldError::unreadable(path, error))?;
    unpacked(|| SerializedFileReader::new(file)).map_err(|error| FoldError::unreadable(path, error))
}

/// Returns the results of all threads, or the first error. Ignores threads that were stopped because another
/// one failed.
fn first_error<F>(results: Vec<Result<F, FoldError>>) -> Result<Vec<F>, FoldError> {
    let mut parts = Vec::new();
    let mut cancelled = false;
    for result in results {
        match result {
            Ok(part) => parts.push(part),
            Err(FoldError::Cancelled) => cancelled = true,
            Err(error) => return Err(error),
        }
    }
    if cancelled {
        return Err(FoldError::Cancelled);
    }
    Ok(parts)
}
