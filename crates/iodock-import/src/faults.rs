//! Page faults of a recording: a file beside its journal, to rows of the faults table.

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
    /// The file of each of its maps.
    files: Vec<u32>,
}

impl PartFaults {
    /// The one that belongs to a journal, if there is one.
    pub fn beside(journal: &Path) -> Option<PartFaults> {
        let path = journal.with_extension("faults");
        path.exists().then_some(PartFaults { path, files: Vec::new() })
    }

    /// Finds the file of each map. One that was cut before its first frame holds nothing.
    pub fn find_files(&mut self, space: u16, tracker: &mut Tracker) -> Result<(), ImportError> {
        let Ok(mut reader) = JournalReader::open(&self.path) else { return Ok(()) };
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
        let Ok(mut reader) = JournalReader::open(&self.path) else { return Ok(()) };
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
            losses.add(LossKind::LostPageFaults, (batch.faults.len() - rows.len()) as u64);
            seen.extend(rows.iter().map(|row: &FaultRow| row.file));
            writer.write_faults(&rows)?;
        }
        if reader.is_cut() {
            losses.add(LossKind::JournalCut, 1);
        }
        // What was read there is known now.
        if let Some(unseen) = losses.counts.get_mut(&LossKind::MappedContents) {
            *unseen = unseen.saturating_sub(seen.len() as u64);
        }
        losses.counts.retain(|_, count| *count > 0);
        Ok(())
    }
}
