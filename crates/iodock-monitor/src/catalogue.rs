//! The catalogue, which lists the files that belong to a store. One rename replaces the catalogue, so a
//! reader never sees both a file and the file that replaces it.

use crate::disk;
use crate::error::MonitorError;
use crate::sender::SenderId;
use iodock_store::checksum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

const FORMAT: &str = "iodock monitor store";
const VERSION: u32 = 1;
const FILE: &str = "catalogue.json";
const CHANGED: &str = "if you changed it yourself, remove the line \"checksum\" from it";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Catalogue {
    format: String,
    version: u32,
    /// Number of the next file. The collector never uses a number twice.
    pub next_file: u64,
    /// Name of the snapshot of the readings.
    pub state: Option<String>,
    /// Checksum of the snapshot. None if an older version wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_checksum: Option<String>,
    pub journal: u64,
    /// For each sender, the number of the last batch whose rows are in files. The key is the spool in
    /// hexadecimal, a blank, and the host.
    pub applied: BTreeMap<String, u64>,
    /// Files by table and resolution, e.g. `job_io` and `fine`.
    pub tables: BTreeMap<String, BTreeMap<String, Vec<FileEntry>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path of the file, relative to the store's folder.
    pub file: String,
    /// Earliest begin and latest end of the file's rows, ns since the epoch.
    pub begin: i64,
    pub end: i64,
    pub rows: u64,
    /// Whether the file's rows are also summed into the next coarser resolution.
    #[serde(default)]
    pub rolled: bool,
    /// Checksum of the file's bytes. None if an older version wrote it. In JSON its key is not `checksum`,
    /// because that is the checksum of the catalogue itself.
    #[serde(default, rename = "file_checksum", skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

impl FileEntry {
    /// Adds the checksum of the file, which was just written.
    ///
    /// # Errors
    /// Fails if the file can't be read.
    pub fn with_checksum(self, folder: &Path) -> Result<FileEntry, MonitorError> {
        let path = folder.join(&self.file);
        let checksum = checksum::of_file(&path, &|| false).map_err(MonitorError::io(&path))?;
        Ok(FileEntry { checksum, ..self })
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue {
            format: FORMAT.into(),
            version: VERSION,
            next_file: 1,
            state: None,
            state_checksum: None,
            journal: 0,
            applied: BTreeMap::new(),
            tables: BTreeMap::new(),
        }
    }
}

/// Largest size of a catalogue in bytes. Readers of the store have the same limit.
const MOST_BYTES: u64 = 64 << 20;

fn read_up_to(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut content)?;
    Ok(content)
}

impl Catalogue {
    /// Reads the catalogue of a folder. If there is none, writes an empty one before any other file, so that
    /// after a crash the next start recognises the store.
    ///
    /// # Errors
    /// Fails if the folder contains other files, if the store is damaged or of a newer version, or if the
    /// file system fails.
    pub fn open(folder: &Path) -> Result<Catalogue, MonitorError> {
        let path = folder.join(FILE);
        let no_store = |why: String| MonitorError::NotAStore { path: path.clone(), why };
        let text = match read_up_to(&path, MOST_BYTES + 1) {
            Ok(text) if text.len() as u64 > MOST_BYTES => {
                return Err(no_store(format!(
                    "larger than {} MiB, the limit for a catalogue",
                    MOST_BYTES >> 20
                )));
            }
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return match remains(folder) {
                    None => Catalogue::default().write(folder).map(|()| Catalogue::default()),
                    Some(name) => Err(no_store(format!("missing, but {name} is there"))),
                };
            }
            Err(error) => return Err(MonitorError::Io { path, source: error }),
        };
        if checksum::is_whole(&text) == Some(false) {
            return Err(no_store(format!("{}; {CHANGED}", checksum::DIFFERS)));
        }
        let found: Catalogue =
            serde_json::from_slice(&text).map_err(|error| no_store(format!("not a catalogue: {error}")))?;
        match (found.format.as_str(), found.version) {
            (FORMAT, VERSION) => Ok(found),
            (FORMAT, version) => Err(no_store(format!("version {version}; this iodock reads {VERSION}"))),
            (other, _) => Err(no_store(format!("not a monitor store but {other:?}"))),
        }
    }

    /// Writes the catalogue.
    ///
    /// # Errors
    /// Fails if the file system fails. The old catalogue then stays valid.
    pub fn write(&self, folder: &Path) -> Result<(), MonitorError> {
        // Serialising can't fail, because numbers and texts always have a JSON form.
        let document = serde_json::to_string(self).unwrap_or_default();
        disk::replace(&folder.join(FILE), checksum::sealed(&document).as_bytes())
    }

    /// Returns the name of a new file, relative to the store's folder, and its path. Creates the folder that
    /// will contain it.
    ///
    /// # Errors
    /// Fails if the folder can't be created.
    pub fn new_file(
        &mut self,
        folder: &Path,
        table: &str,
        resolution: &str,
        day: &str,
    ) -> Result<(String, PathBuf), MonitorError> {
        let name = format!("{table}/{resolution}/{day}/{:08}.parquet", self.next_file);
        self.next_file += 1;
        let path = folder.join(&name);
        path.parent().map_or(Ok(()), disk::make_folder)?;
        Ok((name, path))
    }

    pub fn add(&mut self, table: &str, resolution: &str, entry: FileEntry) {
        let files = self.tables.entry(table.into()).or_default().entry(resolution.into()).or_default();
        files.push(entry);
    }

    /// Returns all files of the store.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.tables.values().flat_map(BTreeMap::values).flatten()
    }

    pub fn applied(&self, sender: &SenderId) -> u64 {
        self.applied.get(&name_of(sender)).copied().unwrap_or(0)
    }
}

pub fn name_of(sender: &SenderId) -> String {
    let spool: String = sender.spool.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{spool} {}", sender.host)
}

/// Returns the name of a part of a store that the folder contains. Without a catalogue, the collector does
/// not know which files belong to the store.
fn remains(folder: &Path) -> Option<&'static str> {
    let is_there =
        |name: &&str| fs::read_dir(folder.join(name)).is_ok_and(|mut entries| entries.next().is_some());
    ["job_io", "targets", "losses", "events", "job_names", "journal"].into_iter().find(is_there)
}

/// Returns the day in UTC of a time in ns since the epoch, as `2026-11-22`.
pub fn day_of(time: i64) -> String {
    // The algorithm is `civil_from_days` in Howard Hinnant, chrono-compatible low-level date algorithms.
    let days = time.div_euclid(86_400_000_000_000) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, wraps) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + wraps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::tests::Folder;

    #[test]
    fn a_truncated_catalogue_is_refused() {
        let folder = Folder::new("catalogue-long");
        fs::create_dir_all(&folder.0).expect("a folder");
        let file = fs::File::create(folder.0.join(FILE)).expect("a file");
        file.set_len(1 << 40).expect("a sparse file");
        let error = Catalogue::open(&folder.0).expect_err("too long");
        assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
    }

    #[test]
    fn a_flipped_bit_in_a_catalogue_is_detected() {
        let folder = Folder::new("catalogue-flipped");
        let mut written = Catalogue { next_file: 7, ..Catalogue::default() };
        let name = "job_io/fine/2026-11-22/00000007.parquet".to_string();
        fs::create_dir_all(folder.0.join("job_io/fine/2026-11-22")).expect("room");
        fs::write(folder.0.join(&name), b"rows").expect("room");
        let entry = FileEntry { file: name, begin: 1, end: 2, rows: 3, rolled: false, checksum: None };
        written.add("job_io", "fine", entry.with_checksum(&folder.0).expect("it is there"));
        written.write(&folder.0).expect("room");
        let found = Catalogue::open(&folder.0).expect("whole");
        assert!(found.files().all(|entry| entry.checksum.is_some()));
        let path = folder.0.join(FILE);
        let text = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, text.replace("\"end\":2", "\"end\":3")).expect("room");
        let error = Catalogue::open(&folder.0).expect_err("damaged").to_string();
        assert!(error.contains("is damaged") && error.contains("remove the line"), "{error}");
        let before = r#"{"format": "iodock monitor store", "version": 1, "next_file": 9, "state": null,
            "journal": 0, "applied": {}, "tables": {"job_io": {"fine": [
            {"file": "job_io/fine/2026-11-22/00000007.parquet", "begin": 1, "end": 2, "rows": 3}]}}}"#;
        fs::write(&path, before).expect("room");
        assert_eq!(Catalogue::open(&folder.0).expect("of before").next_file, 9);
    }

    #[test]
    fn days_are_counted_in_utc() {
        let second = 1_000_000_000;
        assert_eq!(day_of(0), "1970-01-01");
        assert_eq!(day_of(951_782_400 * second), "2000-02-29");
        assert_eq!(day_of(1_795_305_599 * second), "2026-11-21");
        assert_eq!(day_of(1_795_305_600 * second), "2026-11-22");
        assert_eq!(day_of(-1), "1969-12-31");
    }
}
