//! Page faults of a recording: a file beside its journal, to rows of the faults table.

use crate::ImportError;
use iodock_event::{LossKind, Losses, NONE, UNKNOWN};
use iodock_journal::JournalReader;
use iodock_store::{FaultRow, StoreWriter};
use iodock_tracker::{Tracked, Tracker};
use rustc_hash::{FxHashMap, FxHashSet};
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

/// Uses of thread ids, by when they began.
struct Tasks(FxHashMap<i32, Vec<(i64, u32)>>);

impl Tasks {
    fn of_space(space: u16, tracked: &Tracked) -> Tasks {
        let mut uses: FxHashMap<i32, Vec<(i64, u32)>> = FxHashMap::default();
        let rows = tracked.tables.tasks.iter().zip(&tracked.spaces);
        for (utid, (row, _)) in rows.enumerate().filter(|(_, (_, &of))| of == space) {
            uses.entry(row.tid).or_default().push((row.start, utid as u32));
        }
        Tasks(uses)
    }

    /// Who had the id then. The first who had it counts for earlier times too: clocks differ a little.
    fn at(&self, tid: u32, time: i64) -> Option<u32> {
        let uses = self.0.get(&(tid as i32))?;
        let begun = uses.iter().filter(|(start, _)| *start == UNKNOWN || *start <= time);
        begun.max_by_key(|(start, _)| *start).or(uses.first()).map(|&(_, utid)| utid)
    }
}
