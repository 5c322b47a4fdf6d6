//! A file of raw records as a source of calls.

use super::records::Records;
use super::streams::Streams;
use crate::plans::Plans;
use iodock_event::{Batch, Clock, LossKind, RecordSource, SourceError};
use iodock_journal::{JournalMeta, JournalReader};
use std::path::Path;

const BATCH_RECORDS: usize = 1024;
const EPOCH: &str = "epoch_ns";
const TABLE: &str = "table";

/// What such a file says of itself. `epoch`: added to monotonic ns to get ns since the epoch.
pub fn meta(epoch: i64, plans: &Plans) -> JournalMeta {
    let extra = [(EPOCH, epoch.to_string()), (TABLE, format!("{:x}", plans.sum()))];
    let extra = extra.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    JournalMeta { how: "bpf".into(), extra, ..JournalMeta::default() }
}

/// Yields a file's calls in the order of their ends, and the births and ends of tasks with them.
pub struct CallsSource {
    streams: Streams,
    records: Records,
    over: bool,
    spare: Vec<Batch>,
}

impl CallsSource {
    /// # Errors
    /// The file can't be read, or was written by another version of iodock.
    pub fn open(path: &Path) -> Result<CallsSource, SourceError> {
        let reader = JournalReader::open(path)?;
        let plans = Plans::of_this_machine();
        let told = |key: &str| reader.meta().extra.get(key);
        let epoch = told(EPOCH).and_then(|text| text.parse().ok());
        let same = told(TABLE).is_some_and(|table| *table == format!("{:x}", plans.sum()));
        let (Some(epoch), true) = (epoch, same) else {
            return Err(SourceError {
                file: path.display().to_string(),
                line: None,
                message: "was recorded by another version of iodock".into(),
                hint: "finish it with the iodock that recorded it: iodock info STORE".into(),
            });
        };
        let records = Records::new(&plans, epoch);
        Ok(CallsSource { streams: Streams::new(reader), records, over: false, spare: Vec::new() })
    }

    fn lose_rest(&mut self) {
        let losses = &mut self.records.batch.losses;
        losses.add(LossKind::JournalCut, self.streams.reader.lost_bytes());
        losses.add(LossKind::DroppedRecords, self.streams.damaged);
    }
}

impl RecordSource for CallsSource {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        if self.over {
            return Ok(None);
        }
        while self.records.batch.records.len() < BATCH_RECORDS {
            if !self.streams.find()? {
                self.over = true;
                self.lose_rest();
                break;
            }
            if let Some(record) = self.streams.record() {
                self.records.take(record, &self.streams);
            }
            self.streams.advance();
        }
        let spare = self.spare.pop().unwrap_or_default();
        Ok(Some(std::mem::replace(&mut self.records.batch, spare)))
    }

    fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        self.spare.push(batch);
    }

    fn clock(&self) -> Clock {
        Clock::Epoch
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.streams.reader.progress()
    }
}
