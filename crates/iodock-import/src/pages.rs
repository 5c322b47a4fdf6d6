//! Pages that the tasks of a recording loaded into the page cache: converts the file of raw calls to rows of
//! the pages table.

use crate::tasks::Tasks;
use crate::ImportError;
use iodock_bpf::calls::PagesSource;
use iodock_event::{LossKind, Losses};
use iodock_journal::JournalReader;
use iodock_store::{PagesRow, StoreWriter};
use iodock_tracker::{Identities, Tracked};

const PAGE_BYTES: u64 = 4096;
/// Number of rows written at a time.
const ROWS: usize = 1 << 14;

/// Writes the runs of pages in `calls`. The thread ids in `calls` belong to `space`.
pub fn write(
    calls: JournalReader,
    space: u16,
    (tracked, identities): (&Tracked, &Identities),
    writer: &mut StoreWriter,
    losses: &mut Losses,
) -> Result<(), ImportError> {
    // While the recording is in progress, its calls may be incomplete, so pages without a known task or file are
    // not lost.
    let lost = u64::from(!calls.is_growing());
    let mut source = PagesSource::of(calls);
    let tasks = Tasks::of_space(space, tracked);
    let (mut rows, mut unnamed) = (Vec::new(), 0);
    while let Some(runs) = source.next_runs().map_err(ImportError::Source)? {
        for run in runs {
            let (Some(utid), Some(file)) =
                (tasks.at(run.tid, run.ts), identities.at(space, run.file, run.ts))
            else {
                losses.add(LossKind::DroppedRecords, lost);
                continue;
            };
            unnamed += if identities.is_unnamed(file) { run.bytes as u64 / PAGE_BYTES } else { 0 };
            let (ts, end, offset, bytes, cause) = (run.ts, run.end, run.offset, run.bytes, run.cause);
            rows.push(PagesRow { ts, end, utid, file, offset, bytes, cause });
        }
        if rows.len() >= ROWS {
            writer.write_pages(&rows)?;
            rows.clear();
        }
    }
    losses.add(LossKind::UnnamedPages, unnamed);
    // The table exists if the page cache was recorded, even without rows.
    writer.write_pages(&rows)?;
    Ok(())
}
