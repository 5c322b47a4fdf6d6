//! Processes all row groups on several threads.

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

/// Number of threads: the same as the SQL engine uses.
const THREADS: usize = 2;
/// Per thread: with more groups than this it outputs them before it reads another row group.
const MOST_GROUPS: usize = 1 << 18;

/// An aggregation over events.
pub trait Fold: Send + Sync + Sized {
    /// The columns of events that it needs.
    const COLUMNS: &'static [Wanted];

    /// An empty one of the same kind.
    fn fresh(&self) -> Self;

    /// Adds rows: `batch` contains the columns of [`Fold::COLUMNS`], in that order.
    fn add(&mut self, batch: Batch<'_>);

    /// Adds the result of `other`.
    fn absorb(&mut self, other: &Self);

    /// Number of groups.
    fn groups(&self) -> usize;

    /// The groups, one row each.
    fn table(&self) -> Table;
}

/// One pass over all events of a store for a fold.
pub struct Folding<F> {
    fold: F,
    paths: Vec<PathBuf>,
    /// File, and row group in it.
    row_groups: Vec<(usize, usize)>,
    rows: u64,
    next: AtomicUsize,
}

impl<F: Fold> Folding<F> {
    /// PATHS: the store's files of events, in order.
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

    /// Total number of events.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The next groups; `None` after the last. The same key may appear again, but not in the same table.
    ///
    /// # Errors
    /// A file can't be read, or `cancelled` returned true.
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

    /// One thread's part.
    fn work(&self, halted: &dyn Fn() -> bool) -> Result<F, FoldError> {
        let mut fold = self.fold.fresh();
        let mut opened: Option<(usize, SerializedFileReader<File>)> = None;
        let mut rows = 0;
        // With two threads, and one more row group each, all rows can be counted in 32 bits.
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

/// The result of `read`, with a panic as an error. Only for the Parquet crate: other panics must remain
/// visible.
fn unpacked<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    quietly(read).unwrap_or_else(|| Err(ParquetError::General("can't be unpacked".into())))
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, FoldError> {
    let file = File::open(path).map_err(|error| FoldError::unreadable(path, error))?;
    unpacked(|| SerializedFileReader::new(file)).map_err(|error| FoldError::unreadable(path, error))
}

/// All threads' parts, or the first error, ignoring threads that were stopped because of another.
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
