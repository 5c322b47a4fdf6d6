//! Writes a journal.

use crate::encode::{has_side, DataCall, RecordEncoder};
use crate::faults::encode_faults;
use crate::frame::{put_frame, put_header, FrameKind, MAGIC, VERSION};
use crate::meta::{Closing, JournalMeta};
use crate::side::{encode_mounts, encode_samples, encode_usages};
use iodock_event::{Batch, FaultBatch, LossKind, Mount, Record, Sample, TaskUsage};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(1);
/// Size in bytes at which the collected records are written as a frame. It corresponds to a few thousand
/// calls.
const FRAME_BYTES: usize = 256 << 10;

/// A write to the journal failed. Frames that were flushed before remain readable.
#[derive(Debug)]
pub struct JournalError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl std::fmt::Display for JournalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cause = self.source.to_string();
        let cause = cause.split(" (os error").next().unwrap_or_default();
        write!(f, "{}: cannot write the recording: {cause}", self.path.display())
    }
}

impl std::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl JournalError {
    /// Returns what the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull => "the disk is full; give the store a place with more room: -o PATH",
            io::ErrorKind::QuotaExceeded => "your quota is used up; give the store another place: -o PATH",
            io::ErrorKind::ReadOnlyFilesystem => {
                "the file system is read-only; give the store another place: -o PATH"
            }
            io::ErrorKind::PermissionDenied => {
                "you may not write there; give the store another place: -o PATH"
            }
            io::ErrorKind::AlreadyExists => "a recording is there already; give another name: -o PATH",
            io::ErrorKind::NotFound => "the folder does not exist; create it or give another place: -o PATH",
            _ => "give the store another place: -o PATH",
        }
    }
}

/// Appends to a journal. The writer collects records and writes them a frame at a time. Call
/// [`JournalWriter::flush`] about once a second, because a crash loses all that was not flushed.
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    encoder: RecordEncoder,
    /// Losses and counts since the last frame. This batch contains no records.
    side: Batch,
    /// Finished frames that are not written yet. Empty between calls.
    out: Vec<u8>,
    sequence: u32,
    /// Length of the file up to the end of its last complete frame, and the number of frames.
    good_length: u64,
    good_sequence: u32,
    /// Number of records in `out`.
    pending: u64,
    written: u64,
    frame_bytes: usize,
    /// Set by the first write error. From then on the writer only counts records.
    failed: bool,
    dropped: u64,
}

impl JournalWriter {
    /// Creates the journal's file, which must not exist, and writes `meta`.
    pub fn create(path: impl AsRef<Path>, meta: &JournalMeta) -> Result<JournalWriter, JournalError> {
        let path = path.as_ref().to_path_buf();
        let file = match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(source) => return Err(JournalError { path, source }),
        };
        // The recorder holds this lock until it ends: a process that finds the journal unlocked may convert
        // it to tables. A file system without locks offers no such protection.
        lock(&file);
        let mut writer = JournalWriter {
            path,
            file,
            encoder: RecordEncoder::default(),
            side: Batch::default(),
            out: Vec::new(),
            sequence: 0,
            good_length: 0,
            good_sequence: 0,
            pending: 0,
            written: 0,
            frame_bytes: FRAME_BYTES,
            failed: false,
            dropped: 0,
        };
        writer.out.extend_from_slice(&MAGIC);
        writer.out.extend_from_slice(&VERSION.to_le_bytes());
        writer.out.extend_from_slice(&[0; 4]);
        writer.frame(FrameKind::Meta, &meta.encode())?;
        writer.write_out(&[])?;
        Ok(writer)
    }

    /// Returns the path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes that this writer has written, which a recording reports as its own I/O.
    pub fn written_bytes(&self) -> u64 {
        self.written
    }

    /// Adds bytes that the recorder wrote to other files.
    pub fn add_written(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Returns the number of records that are lost because they arrived after a write error.
    pub fn dropped_records(&self) -> u64 {
        self.dropped
    }

    /// Returns whether a write has failed. After that the writer stores nothing.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Adds one record, whose texts are in `batch`. The first failure returns an error; from then on records
    /// are only counted ([`JournalWriter::dropped_records`]).
    pub fn push_record(&mut self, record: &Record, batch: &Batch) -> Result<(), JournalError> {
        if self.failed {
            self.dropped += 1;
            return Ok(());
        }
        self.encoder.push(record, batch);
        if self.encoder.len() >= self.frame_bytes {
            return self.flush();
        }
        Ok(())
    }

    /// Adds a data call.
    ///
    /// # Errors
    /// Fails like `push_record`.
    #[inline]
    pub fn push_data(&mut self, data: &DataCall) -> Result<(), JournalError> {
        if self.failed {
            self.dropped += 1;
            return Ok(());
        }
        self.encoder.push_data(data);
        if self.encoder.len() >= self.frame_bytes {
            return self.flush();
        }
        Ok(())
    }

    /// Adds everything in a batch: records, forks, losses, counts.
    pub fn push(&mut self, batch: &Batch) -> Result<(), JournalError> {
        self.side.losses.merge(&batch.losses);
        self.side.counts.add(&batch.counts);
        if !self.failed {
            batch.forks.iter().for_each(|fork| self.encoder.push_fork(fork));
        }
        let mut result = Ok(());
        for record in &batch.records {
            let pushed = self.push_record(record, batch);
            result = result.and(pushed);
        }
        result
    }

    /// Counts a loss. The next flush writes it.
    pub fn lose(&mut self, kind: LossKind, count: u64) {
        self.side.losses.add(kind, count);
    }

    pub fn samples(&mut self, samples: &[Sample]) -> Result<(), JournalError> {
        self.write_side(FrameKind::Samples, || encode_samples(samples))
    }

    pub fn mounts(&mut self, mounts: &[Mount]) -> Result<(), JournalError> {
        self.write_side(FrameKind::Mounts, || encode_mounts(mounts))
    }

    pub fn usages(&mut self, usages: &[TaskUsage]) -> Result<(), JournalError> {
        self.write_side(FrameKind::Usages, || encode_usages(usages))
    }

    pub fn faults(&mut self, faults: &FaultBatch) -> Result<(), JournalError> {
        self.write_side(FrameKind::Faults, || encode_faults(faults))
    }

    /// Writes a raw frame with `payload`, immediately.
    ///
    /// # Errors
    /// Fails like `push_record`. After an error nothing more is written.
    pub fn raw(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        if self.failed {
            return Ok(());
        }
        self.frame_records()?;
        let fits = put_header(&mut self.out, FrameKind::Raw, self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
        fits.ok_or_else(|| self.error(io::ErrorKind::FileTooLarge.into()))?;
        self.write_out(payload)
    }

    /// Writes the collected frames with one write. If the recorder is killed after it, none of them is lost.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        if self.failed {
            return Ok(());
        }
        self.frame_records()?;
        self.write_out(&[])
    }

    /// Writes the collected frames, and forces the data to the device (fdatasync), so that they survive a
    /// power cut. This is slow, and the writer never does it by itself.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        self.file.sync_data().map_err(|source| JournalError { path: self.path.clone(), source })
    }

    /// Writes the collected frames and the closing frame. The closing frame is tried even after a write
    /// error, because it is small and contains the number of missing records.
    pub fn close(mut self, closing: &Closing) -> Result<(), JournalError> {
        let flushed = self.flush();
        self.failed = false;
        self.side.losses.add(LossKind::DroppedRecords, self.dropped);
        self.frame_records()?;
        let closing = Closing { written_bytes: self.written, ..closing.clone() };
        self.frame(FrameKind::Closing, &closing.encode())?;
        let closed = self.write_out(&[]);
        flushed.and(closed)
    }

    fn write_side(&mut self, kind: FrameKind, payload: impl FnOnce() -> Vec<u8>) -> Result<(), JournalError> {
        if self.failed {
            return Ok(());
        }
        self.frame_records()?;
        self.frame(kind, &payload())?;
        self.write_out(&[])
    }

    fn frame_records(&mut self) -> Result<(), JournalError> {
        if self.encoder.is_empty() && !has_side(&self.side) {
            return Ok(());
        }
        self.pending += self.encoder.count;
        let records = self.encoder.finish(&self.side);
        self.side.clear();
        let names = std::mem::take(&mut self.encoder.names);
        if !names.is_empty() {
            self.frame(FrameKind::Names, &names)?;
        }
        self.frame(FrameKind::Records, &records)
    }

    fn frame(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), JournalError> {
        let fits = put_frame(&mut self.out, kind, self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
        fits.ok_or_else(|| self.error(io::ErrorKind::FileTooLarge.into()))
    }

    /// Writes `out`, followed by `more`.
    fn write_out(&mut self, more: &[u8]) -> Result<(), JournalError> {
        let result = write_both(&mut self.file, &self.out, more);
        let length = (self.out.len() + more.len()) as u64;
        self.out.clear();
        match result {
            Ok(()) => {
                self.good_length += length;
                self.good_sequence = self.sequence;
                self.written += length;
                self.pending = 0;
                Ok(())
            }
            Err(source) => Err(self.error(source)),
        }
    }

    /// Stops writing, and removes an incomplete frame, so that the journal ends with a complete one.
    fn error(&mut self, source: io::Error) -> JournalError {
        self.failed = true;
        self.dropped += self.pending;
        self.pending = 0;
        self.sequence = self.good_sequence;
        self.out.clear();
        // If the truncation also fails, the reader stops at the damaged frame.
        let _ = self.file.set_len(self.good_length);
        JournalError { path: self.path.clone(), source }
    }
}

/// Locks the journal. It tries several times, because a process that checks whether the recorder is alive
/// also holds the lock for a moment.
fn lock(file: &File) {
    for _ in 0..LOCK_TRIES {
        let Err(TryLockError::WouldBlock) = file.try_lock() else { return };
        std::thread::sleep(LOCK_PAUSE);
    }
}

/// Writes both buffers, usually with one system call, without copying a long `second` first.
fn write_both(file: &mut File, first: &[u8], second: &[u8]) -> io::Result<()> {
    let written = loop {
        match file.write_vectored(&[IoSlice::new(first), IoSlice::new(second)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => break written?,
        }
    };
    file.write_all(first.get(written..).unwrap_or_default())?;
    file.write_all(&second[written.saturating_sub(first.len())..])
}
