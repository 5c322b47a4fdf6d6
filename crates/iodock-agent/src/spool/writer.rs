//! Writes the files of a spool in a separate thread. Only this thread waits for the disk.

use super::segment::Segment;
use super::{Spool, SEGMENT_BYTES};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

/// Pause after a write error, before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);
/// Least number of files within the limit, so that dropping one file removes only a small part of the data.
const SEGMENTS: u64 = 8;

/// Writes batches until the process ends.
pub fn write(spool: &Arc<Spool>) {
    let mut writer = Writer { spool, file: None, current: Segment::default(), complaint: None };
    loop {
        match writer.next() {
            Some((sequence, frame)) => writer.put(sequence, frame),
            None => {
                writer.sync();
                writer.wait();
            }
        }
    }
}

struct Writer<'a> {
    spool: &'a Spool,
    file: Option<File>,
    /// Current file, including the part that is not synced yet.
    current: Segment,
    complaint: Option<String>,
}

impl Writer<'_> {
    fn next(&self) -> Option<(u64, Vec<u8>)> {
        let mut shared = self.spool.shared();
        let next = shared.waiting.pop_front()?;
        shared.waiting_bytes -= next.1.len();
        Some(next)
    }

    fn wait(&self) {
        let waiting = self.spool.put.wait_while(self.spool.shared(), |shared| shared.waiting.is_empty());
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    fn put(&mut self, sequence: u64, frame: Vec<u8>) {
        match self.append(sequence, &frame) {
            Ok(true) => self.complain(None),
            Ok(false) => self.spool.lose(1),
            Err(error) => {
                self.complain(Some(error.to_string()));
                {
                    let mut shared = self.spool.shared();
                    shared.waiting_bytes += frame.len();
                    shared.waiting.push_front((sequence, frame));
                }
                thread::sleep(PAUSE);
            }
        }
    }

    /// Appends a frame. Returns `false` if it is longer than the limit of the spool. Fails with a write error
    /// that removing old files would not avoid.
    fn append(&mut self, sequence: u64, frame: &[u8]) -> io::Result<bool> {
        self.notice_removal();
        let length = frame.len() as u64;
        if !self.make_room(sequence, length)? {
            return Ok(false);
        }
        let most = SEGMENT_BYTES.min(self.spool.limit / SEGMENTS);
        if self.file.is_none() || self.current.bytes > 0 && self.current.bytes + length > most {
            self.begin(sequence)?;
        }
        while let Err(error) = self.write(frame) {
            let is_full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
            let is_too_long = error.raw_os_error() == Some(libc::EFBIG) && self.current.bytes > 0;
            match (is_full && self.drop_oldest(), is_too_long) {
                (true, _) => {}
                (false, true) => self.begin(sequence)?,
                (false, false) => return Err(error),
            }
        }
        self.current.last = sequence;
        self.current.frames += 1;
        self.current.bytes += length;
        Ok(true)
    }

    /// Checks whether the current file was removed, because data written to it would be lost.
    fn notice_removal(&mut self) {
        let is_removed = |file: &File| file.metadata().is_ok_and(|metadata| metadata.nlink() == 0);
        if !self.file.as_ref().is_some_and(is_removed) {
            return;
        }
        self.file = None;
        let mut shared = self.spool.shared();
        if let Some(removed) = shared.segments.pop_back() {
            let unkept = removed.unkept(shared.kept);
            shared.lose(unkept);
        }
    }

    fn write(&self, frame: &[u8]) -> io::Result<()> {
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotFound.into()) };
        file.write_all_at(frame, self.current.bytes).inspect_err(|_| {
            // If the truncation fails, too, an incomplete frame remains, which the next frame overwrites.
            let _ = file.set_len(self.current.bytes);
        })
    }

    /// Removes old files until the frame fits into the limit. Returns `false` if the frame alone is longer.
    fn make_room(&mut self, sequence: u64, length: u64) -> io::Result<bool> {
        while self.total() + length > self.spool.limit {
            if self.drop_oldest() {
                continue;
            }
            if self.current.bytes == 0 {
                return Ok(false);
            }
            self.begin(sequence)?;
        }
        Ok(true)
    }

    fn total(&self) -> u64 {
        let shared = self.spool.shared();
        let known: u64 = shared.segments.iter().map(|segment| segment.bytes).sum();
        let synced = shared.segments.back().filter(|_| self.file.is_some()).map_or(0, |last| last.bytes);
        known - synced + self.current.bytes
    }

    /// Removes the oldest file. Returns `false` if only the current file exists.
    fn drop_oldest(&mut self) -> bool {
        let (oldest, saved) = {
            let mut shared = self.spool.shared();
            if shared.segments.len() <= usize::from(self.file.is_some()) {
                return false;
            }
            let Some(oldest) = shared.segments.pop_front() else { return false };
            let unkept = oldest.unkept(shared.kept);
            shared.lose(unkept);
            (oldest, shared.saved())
        };
        let _ = fs::remove_file(oldest.path(&self.spool.folder));
        saved.write(&self.spool.folder);
        true
    }

    /// Starts a new file, whose first frame will be `sequence`.
    fn begin(&mut self, sequence: u64) -> io::Result<()> {
        self.sync();
        let segment = Segment::empty(sequence);
        let path = segment.path(&self.spool.folder);
        // The folder is created again if it was removed.
        DirBuilder::new().recursive(true).mode(0o700).create(&self.spool.folder)?;
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let mut shared = self.spool.shared();
        // The previous agent may have left an empty file with this number.
        shared.segments.retain(|known| known.first != sequence);
        shared.segments.push_back(segment);
        drop(shared);
        (self.file, self.current) = (Some(file), segment);
        // The file's name must survive a power failure. An error is ignored, because the next attempt may
        // succeed.
        let _ = File::open(&self.spool.folder).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// Syncs the current file and then releases its data for sending. If data were sent before they are
    /// synced, a machine that crashed would use numbers again that the collector knows already.
    fn sync(&mut self) {
        let Some(file) = &self.file else { return };
        let is_known = self.spool.shared().segments.back() == Some(&self.current);
        if is_known {
            return;
        }
        // The disk is failing, but the data in the file may still be readable, so they are sent.
        if let Err(error) = file.sync_data() {
            (self.spool.say)(&format!("note: spool: {}: {error}", self.spool.folder.display()));
        }
        let mut shared = self.spool.shared();
        if let Some(last) = shared.segments.back_mut() {
            *last = self.current;
        }
        shared.writes += 1;
        self.spool.written.notify_all();
    }

    /// Prints a problem when it is new, has changed or is over.
    fn complain(&mut self, complaint: Option<String>) {
        if self.complaint == complaint {
            return;
        }
        let folder = self.spool.folder.display();
        if let Some(over) = &self.complaint {
            (self.spool.say)(&format!("over: note: spool: {folder}: {over}"));
        }
        if let Some(new) = &complaint {
            (self.spool.say)(&format!("note: spool: {folder}: {new}; batches wait in memory"));
        }
        self.complaint = complaint;
    }
}
