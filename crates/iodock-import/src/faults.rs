//! Page faults of a recording: converts the file of faults that belongs to a journal to rows of the faults
//! table.

use crate::tasks::Tasks;
use crate::ImportError;
use iodock_event::{LossKind, Losses, NONE};
use iodock_journal::JournalReader;
use iodock_store::{FaultRow, StoreWriter};
use iodock_tracker::{Tracked, Tracker};
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};

/// One recorder's file of page faults.
pub struct PartFaults {
    path: PathBuf,
    /// For a recording in progress: the number of bytes of the file that are read.
    length: Option<u64>,
    /// The file of each memory map, indexed by map number.
    files: Vec<u32>,
}

impl PartFaults {
    /// Opens the file of faults of a journal, if it exists.
    pub fn beside(journal: &Path, is_growing: bool) -> Option<PartFaults> {
        let path = journal.with_extension("faults");
        let length = path.metadata().ok()?.len();
        Some(PartFaults { path, length: is_growing.then_some(length), files: Vec::new() })
    }

    fn open(&self) -> Option<JournalReader> {
        let reader = JournalReader::open(&self.path).ok()?;
        Some(match self.length {
            Some(length) => reader.growing().up_to(length),
            None => reader,
        })
    }

    /// Finds the file of each memory map. If the file of faults was cut before its first frame, it contains
    /// none.
    pub fn find_files(&mut self, space: u16, tracker: &mut Tracker) -> Result<(), ImportError> {
        let Some(mut reader) = self.open() else { return Ok(()) };
        while let Some(batch) = reader.next_faults().map_err(ImportError::Source)? {
            self.files.extend(tracker.files_of_maps(space, &batch.maps));
        }
        Ok(())
    }

    /// Writes the faults as rows.
    pub fn write(
        self,
        space: u16,
        tracked: &Tracked,
        writer: &mut StoreWriter,
        losses: &mut Losses,
    ) -> Result<(), ImportError> {
        let Some(mut reader) = self.open() else { return Ok(()) };
        let tasks = Tasks::of_space(space, tracked);
        let (mut rows, mut seen) = (Vec::new(), FxHashSet::default());
        while let Some(batch) = reader.next_faults().map_err(ImportError::Source)? {
            rows.clear();
            let read = batch.faults.iter().filter_map(|fault| {
                let file = *self.files.get(fault.map as usize).filter(|&&file| file != NONE)?;
                let utid = tasks.at(fault.tid, fault.ts)?;
                let (ts, offset, kind) = (fault.ts, fault.offset, fault.kind);
                Some(FaultRow { ts, utid, file, offset, kind })
            });
            rows.extend(read);
            // While the recording is in progress, its calls may be incomplete, so a fault without a known file or
            // task is not lost.
            let lost = if self.length.is_some() { 0 } else { batch.faults.len() - rows.len() };
            losses.add(LossKind::LostPageFaults, lost as u64);
            seen.extend(rows.iter().map(|row: &FaultRow| row.file));
            writer.write_faults(&rows)?;
        }
        if reader.is_cut() {
            losses.add(LossKind::JournalCut, 1);
        }
        // Accesses to the files in `seen` are now known, so they no longer count as unseen.
        if let Some(unseen) = losses.counts.get_mut(&LossKind::MappedContents) {
            *unseen = unseen.saturating_sub(seen.len() as u64);
        }
        losses.counts.retain(|_, count| *count > 0);
        Ok(())
    }
}
