//! Reads the runs of pages in a file of raw records. A caller uses them after it knows the names of the
//! files.

use super::meta::epoch_of;
use super::rounds;
use crate::format::{Kind, PAGES_OF_DEVICE};
use crate::record::Record;
use iodock_event::{FileIdentity, PageCause, PageRun, SourceError};
use iodock_journal::JournalReader;
use std::path::Path;

const PAGE_SHIFT: u32 = 12;

/// Decodes a record of pages. `epoch`, added to monotonic ns, gives ns since the epoch.
pub fn run_of(record: Record, epoch: i64) -> Option<PageRun> {
    let &[_, _, begun, last, _, inode, page, count] = record.words else { return None };
    let (device, cause) = record.halves(4);
    let cause = match cause & !PAGES_OF_DEVICE {
        0 => PageCause::Read,
        1 => PageCause::Written,
        _ => PageCause::Unclear,
    };
    let time = |monotonic: u64| (monotonic as i64).wrapping_add(epoch);
    let bytes = |pages: u64| i64::try_from(pages).unwrap_or(0).wrapping_shl(PAGE_SHIFT);
    Some(PageRun {
        ts: time(begun),
        end: time(last),
        tid: record.tid(),
        file: FileIdentity { device, inode },
        cause,
        offset: bytes(page),
        bytes: bytes(count),
    })
}

/// Returns the runs of pages in a file, one round of the recorder at a time.
pub struct PagesSource {
    reader: JournalReader,
    epoch: i64,
}

impl PagesSource {
    /// Opens a file of raw records.
    ///
    /// # Errors
    /// Fails if the file can't be read.
    pub fn open(path: &Path) -> Result<PagesSource, SourceError> {
        Ok(PagesSource::of(JournalReader::open(path)?))
    }

    pub fn of(reader: JournalReader) -> PagesSource {
        let epoch = epoch_of(&reader).unwrap_or_default();
        PagesSource { reader, epoch }
    }

    /// Returns the runs of the next round, which may have none. Returns `None` at the end.
    ///
    /// # Errors
    /// Fails if the file can't be read further.
    pub fn next_runs(&mut self) -> Result<Option<Vec<PageRun>>, SourceError> {
        let Some(payload) = self.reader.next_raw()? else { return Ok(None) };
        let eights = payload.chunks_exact(8).filter_map(|eight| eight.try_into().ok());
        let words: Vec<u64> = eights.map(u64::from_le_bytes).collect();
        let mut runs = Vec::new();
        let of_records = |&(what, _): &(u32, &[u64])| what != rounds::END && what != rounds::IN_CALL;
        for (_, mut part) in rounds::parts(&words).filter(of_records) {
            while let Some(record) = Record::first_of(part) {
                if record.kind() == Kind::Pages {
                    runs.extend(run_of(record, self.epoch));
                }
                part = &part[record.words.len()..];
            }
        }
        Ok(Some(runs))
    }
}
