//! Stores pushes that are not in files yet. The journal consists of segments with consecutive frames. Each
//! segment follows a snapshot of the readings.

use crate::disk;
use crate::error::MonitorError;
use iodock_samples::batch::Batch;
use iodock_samples::frame::{self, Damage};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of bytes of a segment that are read at a time.
const WINDOW: usize = 32 << 20;
const LONGEST_FRAME: usize = frame::HEADER + frame::LONGEST + frame::LONGEST / 128;

pub struct Journal {
    folder: PathBuf,
    number: u64,
    file: Arc<File>,
    length: u64,
    synced: Arc<Mutex<u64>>,
}

/// Data that were appended to the journal and may not survive a power failure yet.
pub struct Appended {
    path: PathBuf,
    file: Arc<File>,
    end: u64,
    synced: Arc<Mutex<u64>>,
}

impl Appended {
    /// Waits until the data survive a power failure. One sync serves all threads that wait for it.
    ///
    /// # Errors
    /// Fails if the disk fails. It is then unknown what is stored.
    pub fn sync(&self) -> Result<(), MonitorError> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if *synced >= self.end {
            return Ok(());
        }
        // The sync covers all data that the file contains now.
        let length = self.file.metadata().map_err(MonitorError::io(&self.path))?.len();
        self.file.sync_data().map_err(MonitorError::io(&self.path))?;
        *synced = length;
        Ok(())
    }
}

impl Journal {
    /// Begins segment `number` and discards its earlier content.
    ///
    /// # Errors
    /// Fails if the file system fails.
    pub fn begin(folder: &Path, number: u64) -> Result<Journal, MonitorError> {
        disk::make_folder(folder)?;
        let path = segment(folder, number);
        let file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(MonitorError::io(&path))?;
        file.set_len(0).and_then(|()| file.sync_all()).map_err(MonitorError::io(&path))?;
        disk::sync_folder(folder)?;
        Ok(Journal { folder: folder.into(), number, file: Arc::new(file), length: 0, synced: Arc::default() })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// Fails if the file system fails. The journal is then unchanged.
    pub fn append(&mut self, frame: &[u8]) -> Result<(), MonitorError> {
        let path = segment(&self.folder, self.number);
        if let Err(error) = (&*self.file).write_all(frame) {
            // An incomplete frame would make the frames after it unreadable.
            self.file.set_len(self.length).map_err(MonitorError::io(&path))?;
            return Err(MonitorError::Io { path, source: error });
        }
        self.length += frame.len() as u64;
        Ok(())
    }

    /// Returns a handle for syncing all data in the segment.
    pub fn appended(&self) -> Appended {
        let (file, synced) = (Arc::clone(&self.file), Arc::clone(&self.synced));
        Appended { path: segment(&self.folder, self.number), file, end: self.length, synced }
    }
}

/// Result of reading the journal at the start.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Replayed {
    pub batches: u64,
    /// Number of bytes after the last complete batch of each segment. The machine crashed while the collector
    /// wrote them, so the collector did not acknowledge them.
    pub torn: u64,
    /// Number of the next segment.
    pub next: u64,
}

/// Calls `take` with every batch in segment `first` and later ones, in order of arrival.
///
/// # Errors
/// Fails if the file system fails.
pub fn replay(folder: &Path, first: u64, take: &mut dyn FnMut(Batch)) -> Result<Replayed, MonitorError> {
    let mut replayed = Replayed { next: first, ..Replayed::default() };
    for (number, path) in segments(folder).map_err(MonitorError::io(folder))? {
        if number < first {
            continue;
        }
        replayed.next = number + 1;
        File::open(&path)
            .and_then(|mut file| replay_segment(&mut file, WINDOW, &mut replayed, take))
            .map_err(MonitorError::io(&path))?;
    }
    Ok(replayed)
}

/// Reads a segment of any length, with memory for two windows. A window holds at least the longest frame.
fn replay_segment(
    input: &mut impl Read,
    window: usize,
    replayed: &mut Replayed,
    take: &mut dyn FnMut(Batch),
) -> io::Result<()> {
    let (mut buffer, mut start, mut is_whole) = (Vec::new(), 0, false);
    loop {
        if !is_whole && buffer.len() - start < LONGEST_FRAME {
            buffer.drain(..start);
            start = 0;
            is_whole = input.by_ref().take(window as u64).read_to_end(&mut buffer)? < window;
            continue;
        }
        let rest = &buffer[start..];
        if rest.is_empty() {
            return Ok(());
        }
        match frame::decode(rest) {
            Ok((batch, behind)) => {
                take(batch);
                replayed.batches += 1;
                start = buffer.len() - behind.len();
            }
            Err(damage) => {
                let found = next_frame(rest, &damage).len();
                // A frame that begins near the end of the window continues in the next window.
                let kept = if found == 0 && !is_whole { LONGEST_FRAME - 1 } else { found };
                replayed.torn += (rest.len() - kept) as u64;
                start += rest.len() - kept;
            }
        }
    }
}

/// Returns the bytes from the next complete frame on, or none if there is no further frame.
fn next_frame<'a>(bytes: &'a [u8], damage: &Damage) -> &'a [u8] {
    let begins = |at: &usize| frame::split(&bytes[*at..]).is_ok();
    // After a cut frame, the search begins at the next byte. This is slow, but happens only once, at the end
    // of a file.
    let from = if matches!(damage, Damage::Cut(_)) { 1 } else { frame::HEADER };
    let at = (from..bytes.len()).find(begins);
    at.map_or(&[], |at| &bytes[at..])
}

fn segment(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.frames"))
}

fn segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_segment = path.extension().is_some_and(|ending| ending == "frames");
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        found.extend(number.filter(|_| is_segment).map(|number: u64| (number, path)));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::tests::Folder;

    fn frame(sequence: u64) -> Vec<u8> {
        frame::encode(&Batch { sequence, ..Batch::default() }).expect("short")
    }

    fn sequences(folder: &Path, first: u64) -> (Vec<u64>, Replayed) {
        let mut found = Vec::new();
        let replayed = replay(folder, first, &mut |batch| found.push(batch.sequence)).expect("readable");
        (found, replayed)
    }

    #[test]
    fn appended_entries_are_replayed_in_order() {
        let folder = Folder::new("journal-order");
        let mut journal = Journal::begin(&folder.0, 3).expect("a journal");
        for sequence in 1..4 {
            journal.append(&frame(sequence)).expect("room");
            journal.appended().sync().expect("synced");
        }
        Journal::begin(&folder.0, 4).expect("the next").append(&frame(9)).expect("room");
        assert_eq!(sequences(&folder.0, 3).0, [1, 2, 3, 9]);
        assert_eq!(sequences(&folder.0, 4), (vec![9], Replayed { batches: 1, torn: 0, next: 5 }));
    }

    #[test]
    fn frames_behind_damage_longer_than_a_window_are_found() {
        for garbage in
            [LONGEST_FRAME - frame(2).len(), LONGEST_FRAME - 9, LONGEST_FRAME + 7, 2 * LONGEST_FRAME]
        {
            let mut content = frame(1);
            content.resize(content.len() + garbage, b'x');
            content.extend([frame(2), frame(3)].concat());
            let (mut found, mut replayed) = (Vec::new(), Replayed::default());
            let mut take = |batch: Batch| found.push(batch.sequence);
            replay_segment(&mut content.as_slice(), 1 << 20, &mut replayed, &mut take).expect("memory");
            assert_eq!(found, [1, 2, 3], "{garbage}");
            assert_eq!(replayed, Replayed { batches: 3, torn: garbage as u64, next: 0 });
        }
    }

    #[test]
    fn damage_in_a_journal_loses_only_the_affected_entries() {
        let folder = Folder::new("journal-torn");
        let mut journal = Journal::begin(&folder.0, 0).expect("a journal");
        let whole = frame(1).len();
        for sequence in 1..4 {
            journal.append(&frame(sequence)).expect("room");
        }
        let path = segment(&folder.0, 0);
        let mut content = fs::read(&path).expect("readable");
        for end in 2 * whole + 1..3 * whole {
            fs::write(&path, &content[..end]).expect("room");
            let (found, replayed) = sequences(&folder.0, 0);
            assert_eq!((found, replayed.torn), (vec![1, 2], (end - 2 * whole) as u64));
        }
        content[whole + frame::HEADER] ^= 1;
        fs::write(&path, &content).expect("room");
        assert_eq!(
            sequences(&folder.0, 0),
            (vec![1, 3], Replayed { batches: 2, torn: whole as u64, next: 1 })
        );
    }
}
