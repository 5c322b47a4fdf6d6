//! Receives pushes, and writes the files of the store.

use crate::catalogue::{day_of, name_of, Catalogue, FileEntry};
use crate::disk;
use crate::error::MonitorError;
use crate::journal::{self, Journal, Replayed};
use crate::readings::Readings;
use crate::rows::{LossRow, Rows};
use crate::sender::SenderId;
use crate::taking::{next_batch, now, Taken, Terms};
use crate::work::Work;
use iodock_samples::batch::Batch;
use iodock_store::checksum;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// First bytes of a snapshot. The last of them is the version of its content.
const STATE: &[u8] = b"IODOCKM\x02";
/// First bytes of a snapshot of an older version, which contains no job steps.
const STATE_BEFORE: &[u8] = b"IODOCKM\x01";
/// Interval between snapshots. It limits the part of the journal that must be read again after a crash.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(600);

/// Writes into a store. All writes go through this type, which threads can share.
pub struct Intake {
    folder: PathBuf,
    live: Mutex<Live>,
    /// Locked while files are written, so that two flushes do not write the same rows.
    catalogue: Mutex<Catalogue>,
    replayed: Replayed,
    /// Lock on the whole store, until this value is dropped.
    _lock: File,
}

struct Live {
    readings: Readings,
    rows: Rows,
    journal: Journal,
    /// Whether the journal's disk has failed. Until the next snapshot, it is not known what is stored.
    is_unsure: bool,
    snapshot: Instant,
    /// A snapshot that no catalogue on the disk contains yet.
    saved: Option<Saved>,
}

#[derive(Clone, PartialEq, Eq)]
struct Saved {
    state: String,
    checksum: String,
    /// Number of the first journal segment after the snapshot.
    journal: u64,
}

/// Numbers of rows and files that a flush wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    pub rows: u64,
    pub files: u64,
}

impl Intake {
    /// Opens or creates a store, and reads from the journal the batches that are not in its files.
    ///
    /// # Errors
    /// Fails if another collector uses the store, if it is damaged, or if the file system fails.
    pub fn open(folder: &Path) -> Result<Intake, MonitorError> {
        disk::make_folder(folder)?;
        let lock = lock(folder)?;
        let mut catalogue = Catalogue::open(folder)?;
        let mut readings = snapshot(folder, &catalogue)?;
        let mut rows = Rows::default();
        let replayed = journal::replay(&folder.join("journal"), catalogue.journal, &mut |batch| {
            // Rows that files contain already are discarded, but the readings of their batch are needed.
            let mut unwanted = Rows::default();
            let is_in_files = batch.sequence <= catalogue.applied(&SenderId::of(&batch));
            readings.apply(&batch, if is_in_files { &mut unwanted } else { &mut rows });
        })?;
        leave_out_missing(folder, &mut catalogue, &mut rows);
        remove_strays(folder, &catalogue);
        let journal = Journal::begin(&folder.join("journal"), replayed.next)?;
        let snapshot = Instant::now();
        // `is_unsure` makes the next flush write a snapshot with the replayed batches, so that repeated
        // crashes do not make starts slower.
        let live = Live { readings, rows, journal, is_unsure: true, snapshot, saved: None };
        let (live, catalogue) = (Mutex::new(live), Mutex::new(catalogue));
        let intake = Intake { folder: folder.into(), live, catalogue, replayed, _lock: lock };
        intake.flush()?;
        Ok(intake)
    }

    /// Returns which part of the journal was in no file when the store was opened.
    pub fn replayed(&self) -> &Replayed {
        &self.replayed
    }

    /// Accepts frames of one sender. They are safe only after the next [`Intake::sync`], which may be for
    /// many senders.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn take(&self, mut bytes: &[u8], terms: &Terms) -> Result<Taken, MonitorError> {
        let mut taken = Taken::default();
        while !bytes.is_empty() && !terms.most.is_some_and(|most| taken.work.is_spent(&most)) {
            match next_batch(bytes, terms, &mut taken.work) {
                Ok((batch, encoded, rest)) => {
                    self.keep(&batch, encoded, &mut taken)?;
                    taken.sender = Some(SenderId::of(&batch));
                    bytes = rest;
                }
                Err(refused) => {
                    taken.refused = Some(refused);
                    break;
                }
            }
        }
        Ok(taken)
    }

    /// Adds a row to the table `losses`.
    pub fn lose(&self, host: &str, name: &str, target: &str, count: u64, detail: &str) {
        let (host, name, target, detail) = (host.into(), name.into(), target.into(), detail.into());
        let row = LossRow { time: now(), host, name, source: "collector".into(), target, count, detail };
        self.live().rows.losses.push(row);
    }

    /// Makes all accepted batches survive a power failure.
    ///
    /// # Errors
    /// Fails if the disk fails. It is then unknown what is stored, and the next push begins a new journal.
    pub fn sync(&self) -> Result<(), MonitorError> {
        // The lock on `live` is released before the sync, so that other senders need not wait.
        let appended = self.live().journal.appended();
        appended.sync().inspect_err(|_| self.live().is_unsure = true)
    }

    fn keep(&self, batch: &Batch, encoded: &[u8], taken: &mut Taken) -> Result<(), MonitorError> {
        if self.live().is_unsure {
            self.flush()?;
        }
        let mut live = self.live();
        let Live { readings, rows, journal, .. } = &mut *live;
        let sender = SenderId::of(batch);
        if batch.sequence > readings.applied(&sender) {
            journal.append(encoded)?;
            taken.work += Work { names: readings.new_names(batch), ..Work::of(batch) };
            readings.apply(batch, rows);
        }
        taken.receipt = readings.receipt(&sender);
        Ok(())
    }

    /// Writes the rows since the last flush into files.
    ///
    /// # Errors
    /// Fails if the file system fails. The rows are kept for the next flush.
    pub fn flush(&self) -> Result<Flushed, MonitorError> {
        let mut catalogue = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut live = self.live();
        let mut next = catalogue.clone();
        if live.is_unsure || live.snapshot.elapsed() > SNAPSHOT_EVERY {
            live.readings.forget_old(now());
            save(&self.folder, &mut live)?;
        }
        let saved = live.saved.clone();
        if let Some(Saved { state, checksum, journal }) = saved.clone() {
            (next.state, next.state_checksum, next.journal) = (Some(state), Some(checksum), journal);
        }
        let rows = std::mem::take(&mut live.rows);
        next.applied = live.readings.all_applied().map(|(sender, last)| (name_of(sender), last)).collect();
        drop(live);
        match write(&self.folder, &rows, &mut next) {
            Ok(flushed) => {
                *catalogue = next;
                let mut live = self.live();
                live.saved = live.saved.take().filter(|later| Some(later) != saved.as_ref());
                Ok(flushed)
            }
            Err(error) => {
                let mut live = self.live();
                let later = std::mem::replace(&mut live.rows, rows);
                live.rows.append(later);
                Err(error)
            }
        }
    }

    /// Replaces files in one step: the files in `replaced` are removed, those in `new` belong to the store
    /// from now on, and those in `rolled` are marked as summed up in them. Names are those in the catalogue.
    ///
    /// # Errors
    /// Fails without a change if one of `replaced` does not belong to the store any more, or if the file
    /// system fails.
    pub fn replace(
        &self,
        replaced: &[String],
        rolled: &[String],
        new: Vec<(String, String, FileEntry)>,
    ) -> Result<(), MonitorError> {
        let with_checksum = |(table, resolution, entry): (String, String, FileEntry)| {
            Ok((table, resolution, entry.with_checksum(&self.folder)?))
        };
        let new = new.into_iter().map(with_checksum).collect::<Result<Vec<_>, MonitorError>>()?;
        let mut catalogue = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = catalogue.clone();
        let mut found = 0;
        for files in next.tables.values_mut().flat_map(BTreeMap::values_mut) {
            found += files.extract_if(.., |entry| replaced.contains(&entry.file)).count();
            for entry in files.iter_mut().filter(|entry| rolled.contains(&entry.file)) {
                entry.rolled = true;
            }
        }
        if found != replaced.len() {
            let why = "a file that was to be replaced does not count any more".into();
            return Err(MonitorError::NotAStore { path: self.folder.clone(), why });
        }
        for (table, resolution, entry) in new {
            next.add(&table, &resolution, entry);
        }
        next.write(&self.folder)?;
        *catalogue = next;
        for file in replaced {
            // Removal may fail, for example while a reader has the file open. The next start then removes it.
            let _ = fs::remove_file(self.folder.join(file));
        }
        Ok(())
    }

    /// Returns the name in the catalogue and the path of a new file.
    ///
    /// # Errors
    /// Fails if the file system fails.
    pub fn new_file(
        &self,
        table: &str,
        resolution: &str,
        time: i64,
    ) -> Result<(String, PathBuf), MonitorError> {
        let mut catalogue = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        catalogue.new_file(&self.folder, table, resolution, &day_of(time))
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(folder: &Path) -> Result<File, MonitorError> {
    let path = folder.join("lock");
    let file = File::create(&path).map_err(MonitorError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(MonitorError::InUse { path: folder.into() }),
        Err(fs::TryLockError::Error(source)) => Err(MonitorError::Io { path, source }),
    }
}

fn snapshot(folder: &Path, catalogue: &Catalogue) -> Result<Readings, MonitorError> {
    let Some(name) = &catalogue.state else { return Ok(Readings::default()) };
    let path = folder.join(name);
    let content = fs::read(&path).map_err(MonitorError::io(&path))?;
    let damaged = |why: String| MonitorError::NotAStore { path: path.clone(), why };
    if catalogue.state_checksum.as_ref().is_some_and(|written| checksum::of_bytes(&content) != *written) {
        return Err(damaged(checksum::DIFFERS.into()));
    }
    let readings = match (content.strip_prefix(STATE), content.strip_prefix(STATE_BEFORE)) {
        (Some(readings), _) => postcard::from_bytes(readings),
        (None, Some(readings)) => Readings::without_steps(readings),
        (None, None) => return Err(damaged("last readings of another version of iodock".into())),
    };
    readings.map_err(|error| damaged(format!("damaged last readings: {error}")))
}

/// Saves the readings and begins a new segment of the journal. The catalogue may refer to both only after all
/// earlier rows are in files. Until then the old snapshot and segments stay.
fn save(folder: &Path, live: &mut Live) -> Result<(), MonitorError> {
    let journal = Journal::begin(&folder.join("journal"), live.journal.number() + 1)?;
    // Threads that sync after this sync the new segment, so the old one is synced here.
    live.journal.appended().sync()?;
    let name = format!("state-{:012}.bin", journal.number());
    let path = folder.join(&name);
    let content = postcard::to_extend(&live.readings, STATE.to_vec())
        .map_err(|error| MonitorError::NotAStore { path: path.clone(), why: error.to_string() })?;
    disk::replace(&path, &content)?;
    let checksum = checksum::of_bytes(&content);
    live.saved = Some(Saved { state: name, checksum, journal: journal.number() });
    (live.journal, live.is_unsure, live.snapshot) = (journal, false, Instant::now());
    Ok(())
}

/// Writes rows into files, and then the catalogue with these files.
fn write(folder: &Path, rows: &Rows, catalogue: &mut Catalogue) -> Result<Flushed, MonitorError> {
    let day = day_of(now());
    let mut files = BTreeMap::new();
    let mut place = |table| {
        let (name, path) = catalogue.new_file(folder, table, "fine", &day)?;
        files.insert(table, (name, path.clone()));
        Ok(path)
    };
    let written = rows.write(&mut place)?;
    for one in &written {
        let Some((file, path)) = files.remove(one.table) else { continue };
        path.parent().map_or(Ok(()), disk::sync_folder)?;
        let (begin, end, rows) = (one.begin, one.end, one.rows);
        let entry = FileEntry { file, begin, end, rows, rolled: false, checksum: None };
        catalogue.add(one.table, "fine", entry.with_checksum(folder)?);
    }
    catalogue.write(folder)?;
    forget_old_states(folder, catalogue);
    Ok(Flushed { rows: rows.len() as u64, files: written.len() as u64 })
}

/// Removes snapshots and segments that the catalogue on the disk does not need. Files whose names have
/// another form stay.
fn forget_old_states(folder: &Path, catalogue: &Catalogue) {
    let is_old_state = |name: &str| is_state(name) && Some(name) != catalogue.state.as_deref();
    let is_old_segment = |name: &str| {
        name.strip_suffix(".frames").and_then(number).is_some_and(|number| number < catalogue.journal)
    };
    remove(folder, &is_old_state);
    remove(&folder.join("journal"), &is_old_segment);
}

/// Returns whether the name is that of a snapshot, such as `state-000000000012.bin`, or of its draft.
fn is_state(name: &str) -> bool {
    let parts = name.strip_prefix("state-").and_then(|name| name.rsplit_once('.'));
    parts.is_some_and(|(text, ending)| matches!(ending, "bin" | "draft") && number(text).is_some())
}

/// Parses the number of a snapshot or segment, which has at least twelve digits.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.len() >= 12)
}

/// Removes the files of a folder for whose names `is_old` returns true.
fn remove(folder: &Path, is_old: &dyn Fn(&str) -> bool) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_old)) {
        // A file that can't be removed now is removed the next time.
        let _ = fs::remove_file(entry.path());
    }
}

/// Removes entries from the catalogue whose files are missing, for example in an incomplete copy, so that
/// queries can use the remaining files.
fn leave_out_missing(folder: &Path, catalogue: &mut Catalogue, rows: &mut Rows) {
    let mut missing = Vec::new();
    for files in catalogue.tables.values_mut().flat_map(BTreeMap::values_mut) {
        missing.extend(files.extract_if(.., |entry| !folder.join(&entry.file).is_file()));
    }
    if let Some(first) = missing.first() {
        rows.losses.push(LossRow {
            time: now(),
            host: String::new(),
            name: "missing-files".into(),
            source: "store".into(),
            target: String::new(),
            count: missing.len() as u64,
            detail: first.file.clone(),
        });
    }
}

/// Removes files of rows that a crash left: their numbers are not assigned in the catalogue. Other files
/// stay.
fn remove_strays(folder: &Path, catalogue: &Catalogue) {
    let number = |path: &Path| path.file_name()?.to_str()?.strip_suffix(".parquet")?.parse::<u64>().ok();
    for table in ["job_io", "targets", "losses", "events", "job_names"] {
        let days = below(&folder.join(table)).into_iter().flat_map(|path| below(&path));
        for path in days.flat_map(|path| below(&path)) {
            if number(&path).is_some_and(|number| number >= catalogue.next_file) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

fn below(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A temporary folder of one test, removed when it is dropped.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("iodock-monitor-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_interrupted_first_start_leaves_a_valid_store() {
        let folder = Folder::new("first-start");
        // A file in place of the journal's folder makes the start fail, as if the process was killed before
        // it created the journal.
        fs::write(folder.0.join("journal"), b"").expect("room");
        assert!(Intake::open(&folder.0).is_err());
        fs::remove_file(folder.0.join("journal")).expect("it is there");
        fs::create_dir(folder.0.join("journal")).expect("room");
        fs::write(folder.0.join("journal/000000000000.frames"), b"").expect("room");
        assert!(Intake::open(&folder.0).is_ok());
    }

    #[test]
    fn only_files_of_the_collector_are_removed() {
        let folder = Folder::new("own-names");
        drop(Intake::open(&folder.0).expect("a store"));
        let day = folder.0.join("job_io/fine/2026-11-22");
        fs::create_dir_all(&day).expect("room");
        let mine = ["state-of-the-cluster.md", "state-1.bin", "journal/0.frames", "000000000000.frames"]
            .map(|name| folder.0.join(name));
        let mine = mine.into_iter().chain([day.join("99999999.csv")]).collect::<Vec<_>>();
        let own = ["state-000000099999.bin", "state-000000099999.draft", "journal/000000000000.frames"]
            .map(|name| folder.0.join(name));
        let own = own.into_iter().chain([day.join("99999999.parquet")]).collect::<Vec<_>>();
        for path in mine.iter().chain(&own) {
            fs::write(path, b"").expect("room");
        }
        drop(Intake::open(&folder.0).expect("a store"));
        assert_eq!(mine.iter().find(|path| !path.exists()), None);
        assert_eq!(own.iter().find(|path| path.exists()), None);
    }

    #[test]
    fn a_flipped_bit_in_the_last_readings_is_detected() {
        let folder = Folder::new("state-flipped");
        drop(Intake::open(&folder.0).expect("a store"));
        let state = Catalogue::open(&folder.0).expect("a store").state.expect("a snapshot");
        let mut content = fs::read(folder.0.join(&state)).expect("it is there");
        *content.last_mut().expect("not empty") ^= 1;
        fs::write(folder.0.join(&state), content).expect("room");
        let error = Intake::open(&folder.0).err().expect("damaged").to_string();
        assert!(error.contains("its bytes are not those that were written"), "{error}");
    }
}
