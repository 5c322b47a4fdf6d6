//! Going through all row groups on several threads.

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

/// As many as the SQL engine takes.
const THREADS: usize = 2;
/// Of a thread: with more groups than this it gives them away before it takes another row group.
const MOST_GROUPS: usize = 1 << 18;

/// What is counted of events.
pub trait Fold: Send + Sync + Sized {
    /// The columns of events that it takes.
    const COLUMNS: &'static [Wanted];

    /// Another one like this, of no events.
    fn fresh(&self) -> Self;

    /// Adds rows: `batch` holds what [`Fold::COLUMNS`] names, in that order.
    fn add(&mut self, batch: Batch<'_>);

    /// Adds what `other` counted.
    fn absorb(&mut self, other: &Self);

    /// How many groups it holds.
    fn groups(&self) -> usize;

    /// The groups, a row each.
    fn table(&self) -> Table;
}

/// All events of a store on their way into a fold.
pub struct Folding<F> {
    fold: F,
    paths: Vec<PathBuf>,
    /// Which file, and which row group in it.
    row_groups: Vec<(usize, usize)>,
    rows: u64,
    next: AtomicUsize,
}

impl<F: Fold> Folding<F> {
    /// PATHS: the store's files of events, in order.
    ///
    /// # Errors
    /// For a file that is no Parquet file.
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

    /// Events in all.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The next groups; `None` behind the last. The same key may come again, but not in the same table.
    ///
    /// # Errors
    /// For what can't be read, and when `cancelled` says so meanwhile.
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
        // Of two threads, and a row group more each, all rows can be counted in 32 bits.
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

/// What `read` gives, a panic as an error. Only for what the Parquet crate does: other panics are to be seen.
fn unpacked<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    quietly(read).unwrap_or_else(|| Err(ParquetError::General("can't be unpacked".into())))
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, FoldError> {
    let file = File::open(path).map_err(|error| FoldError::unreadable(path, error))?;
    unpacked(|| SerializedFileReader::new(file)).map_err(|error| FoldError::unreadable(path, error))
}

/// All threads' parts, or what went wrong: not that a thread was stopped for another's sake.
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
