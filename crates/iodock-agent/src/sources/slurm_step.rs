//! Reads totals of Slurm's job steps. The plugin in integrations/slurm writes a record at the end of each
//! step on each node. The collector knows which records it has counted, so the agent may send a record more
//! than once. It removes a record when the batch that contains it is safe in the spool.

use super::jobs::step_named;
use super::process_io::{entry, Values};
use super::users::Users;
use super::{is_gone, News, Reading};
use crate::lines::Faults;
use crate::sample::{Entry, Evidence, Names, Owner};
use iodock_counters::numbers::whole;
use iodock_counters::process_io::{self, FIELDS};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Folder of the records. It is on a tmpfs, so that neither the end of a step nor a round waits for a disk.
const FOLDER: &str = "run/iodock-steps";
const ENDING: &[u8] = b".step";
/// Name of the folder for damaged records.
const DAMAGED: &str = "damaged";
/// Longest record in bytes. Those of the plugin have about 300.
const LONGEST_BYTES: u64 = 4096;
/// Largest number of records. The plugin writes no more.
const MOST: usize = 4096;
const FIRST_LINE: &[u8] = b"iodock-step 1";
const LAST_LINE: &[u8] = b"end";

/// Records that were sent, with the number of the last batch that may contain them, or 0 until that is known.
/// Kept between rounds.
pub type Sent = Arc<Mutex<BTreeMap<OsString, u64>>>;

/// I/O of a step on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub job: Vec<u8>,
    /// Name of the step, from [`step_named`].
    pub step: Vec<u8>,
    pub user: Vec<u8>,
    /// Start and end of the step, ns since the epoch.
    pub began: i64,
    pub ended: i64,
    pub values: Values,
}

pub fn read(reading: &Reading) {
    let folder = reading.root().join(FOLDER);
    let Some(names) = names(reading, &folder) else { return };
    let is_full = names.len() >= MOST;
    let left: Vec<OsString> = names.into_iter().filter(|name| name.as_bytes().ends_with(ENDING)).collect();
    let left = remove_sent(reading, &folder, left);
    if is_full {
        let what = format!("{MOST} records of steps: of steps that end now none is left");
        reading.say(News::Refused(folder.clone(), what));
    }
    report(reading, &folder, &left);
}

/// Returns the names of all files. Returns `None` if the folder does not exist or if other users may write to
/// it.
fn names(reading: &Reading, folder: &Path) -> Option<Vec<OsString>> {
    reading.announce(folder);
    match is_safe(folder) {
        Ok(true) => {}
        Ok(false) => {
            let why = "others than its owner may write to it, so nothing in it is believed";
            reading.say(News::Refused(folder.into(), why.into()));
            return None;
        }
        Err(error) if is_gone(&error) => return None,
        Err(error) => {
            reading.refuse(folder, &error);
            return None;
        }
    }
    let entries = fs::read_dir(folder).inspect_err(|error| reading.refuse(folder, error)).ok()?;
    let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).take(2 * MOST).collect();
    names.sort();
    Some(names)
}

/// Returns whether the folder belongs to root or to the agent's user, and no other user may write to it.
fn is_safe(folder: &Path) -> io::Result<bool> {
    let status = fs::symlink_metadata(folder)?;
    // SAFETY: geteuid has no arguments and can't fail.
    let own = unsafe { libc::geteuid() };
    Ok(status.is_dir() && (status.uid() == 0 || status.uid() == own) && status.mode() & 0o022 == 0)
}

/// Removes the records that are safe in the spool, and returns the others.
fn remove_sent(reading: &Reading, folder: &Path, names: Vec<OsString>) -> Vec<OsString> {
    let Some(round) = reading.round() else { return names };
    let mut sent = reading.records().lock().unwrap_or_else(PoisonError::into_inner);
    let there: BTreeSet<&OsString> = names.iter().collect();
    sent.retain(|name, _| there.contains(name));
    // The round that sent these records is over, so its last batch is the last that may contain them.
    sent.values_mut().filter(|last| **last == 0).for_each(|last| *last = round.made());
    let safe = round.safe();
    let mut left = Vec::new();
    for name in names {
        if sent.get(&name).is_none_or(|last| *last > safe) {
            left.push(name);
            continue;
        }
        let path = folder.join(&name);
        match fs::remove_file(&path) {
            Ok(()) => drop(sent.remove(&name)),
            Err(error) => {
                reading.refuse(&path, &error);
                left.push(name);
            }
        }
    }
    left
}

/// Reports the records. If a step ran twice, because its job was requeued, the first record is reported now
/// and the second in a later round.
fn report(reading: &Reading, folder: &Path, files: &[OsString]) {
    let (mut names, mut faults, users) = (Names::default(), Faults::default(), Users::read(reading));
    let (mut told, mut entries) = (Vec::new(), BTreeMap::<Owner, Entry>::new());
    for name in files {
        let path = folder.join(name);
        reading.announce(&path);
        let text = match content(&path) {
            Ok(text) => text,
            Err(error) if is_gone(&error) => continue,
            Err(error) => {
                reading.refuse(&path, &error);
                continue;
            }
        };
        let mut of_file = Faults::default();
        match record(&text, &mut of_file) {
            Some(record) => {
                let Some(entry) = of_record(&record, &users, &mut names) else { continue };
                if !entries.contains_key(&entry.owner) {
                    told.push(name.clone());
                    entries.insert(entry.owner.clone(), entry);
                }
            }
            None => set_aside(reading, &path),
        }
        faults.absorb(of_file, &path);
    }
    let entries: Vec<Entry> = entries.into_values().collect();
    if reading.sums("slurm_step", names, &entries, faults) {
        let mut sent = reading.records().lock().unwrap_or_else(PoisonError::into_inner);
        told.into_iter().for_each(|name| {
            sent.entry(name).or_insert(0);
        });
    }
}

/// Reads a plain file. Fails if it cannot be read or can't be a record.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    // With these flags, opening a pipe does not block the round, and a link, which may point anywhere, is not
    // followed.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(wrong("not a plain file"));
    }
    let mut text = Vec::new();
    file.take(LONGEST_BYTES + 1).read_to_end(&mut text)?;
    match text.len() as u64 > LONGEST_BYTES {
        true => Err(wrong("too long for the record of a step")),
        false => Ok(text),
    }
}

/// Moves a damaged record to another folder, so that it is reported only once. This is done only in rounds
/// for a collector, in which records are also removed.
fn set_aside(reading: &Reading, path: &Path) {
    if reading.round().is_none() {
        return;
    }
    let aside: PathBuf = path.with_extension(DAMAGED);
    if let Err(error) = fs::rename(path, &aside) {
        reading.refuse(path, &error);
    }
}

fn of_record(record: &Record, users: &Users, names: &mut Names) -> Option<Entry> {
    let owner = Owner {
        evidence: Evidence::Scheduler,
        job: record.job.clone(),
        user: users.of_number(&record.user),
        session: record.step.clone(),
        command: Vec::new(),
    };
    let entry = entry(&owner, &record.values, names)?;
    Some(Entry { start_time: Some(record.began), updated: Some(record.ended), ..entry })
}

/// Parses a complete record. If it is cut or has another form, returns `None` and counts the first unreadable
/// line.
pub fn record(text: &[u8], faults: &mut Faults) -> Option<Record> {
    let (mut record, mut known, mut lines) = (Record::default(), 0u32, Lines { rest: text, faults });
    lines.next().filter(|line| *line == FIRST_LINE).or_else(|| lines.refuse())?;
    while let Some(line) = lines.next() {
        if line == LAST_LINE {
            // A complete record has each field once, and nothing after the end.
            let is_whole = known == (1 << (FIELDS.len() + 5)) - 1 && lines.rest.is_empty();
            return if is_whole { Some(record) } else { lines.refuse() };
        }
        match take(line, &mut record).filter(|field| known & (1 << field) == 0) {
            Some(field) => known |= 1 << field,
            None => return lines.refuse(),
        }
    }
    lines.refuse()
}

struct Lines<'a, 'b> {
    rest: &'a [u8],
    faults: &'b mut Faults,
}

impl<'a> Lines<'a, '_> {
    /// Returns the next line without its newline. If it has none, the record was cut.
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b'\n')?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        self.faults.lines += 1;
        Some(line)
    }

    fn refuse<T>(&mut self) -> Option<T> {
        self.faults.lines = self.faults.lines.max(1);
        self.faults.unreadable();
        None
    }
}

/// Parses the field in a line, and returns its index: first the counters, then the other fields.
fn take(line: &[u8], record: &mut Record) -> Option<usize> {
    if let Some((field, value)) = process_io::line(line) {
        record.values[field] = value;
        return Some(field);
    }
    let blank = line.iter().position(|&byte| byte == b' ')?;
    let (key, value) = (&line[..blank], &line[blank + 1..]);
    let time = || whole(value).and_then(|time| i64::try_from(time).ok());
    let number = || whole(value).filter(|number| u32::try_from(*number).is_ok()).map(|_| value.to_vec());
    match key {
        b"job" => record.job = number()?,
        b"step" => record.step = step_named(value)?,
        b"uid" => record.user = number()?,
        b"began" => record.began = time()?,
        b"ended" => record.ended = time()?,
        _ => return None,
    }
    let keys: [&[u8]; 5] = [b"job", b"step", b"uid", b"began", b"ended"];
    keys.iter().position(|known| *known == key).map(|at| FIELDS.len() + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "iodock-step 1\njob 7\nstep batch\nuid 1000\nbegan 1700000000000000000\n\
        ended 1700000001000000000\nrchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
        cancelled_write_bytes: 7\nend\n";

    fn of(text: &str) -> Option<Record> {
        record(text.as_bytes(), &mut Faults::default())
    }

    #[test]
    fn a_record_of_a_step_is_read() {
        let record = of(GOOD).expect("a record");
        assert_eq!(
            (record.job, record.step, record.user),
            (b"7".into(), b"step_batch".into(), b"1000".into())
        );
        assert_eq!((record.values, record.ended - record.began), ([1, 2, 3, 4, 5, 6, 7], 1_000_000_000));
    }

    #[test]
    fn a_record_truncated_anywhere_is_refused() {
        for end in 0..GOOD.len() {
            let mut faults = Faults::default();
            assert_eq!(record(&GOOD.as_bytes()[..end], &mut faults), None, "{end}");
            assert_eq!(faults.unreadable, 1);
        }
    }

    #[test]
    fn an_invalid_record_is_refused_with_its_line_number() {
        let changes = [
            ("iodock-step 1", "iodock-step 2", 1),
            ("job 7", "job 7; rm", 2),
            ("job 7", "job 99999999999", 2),
            ("step batch", "step ../x", 3),
            ("uid 1000", "uid -1", 4),
            ("began 1700000000000000000", "began 99999999999999999999", 5),
            ("rchar: 1", "rchar: 1\nrchar: 1", 8),
            ("rchar: 1\n", "", 13),
            ("end\n", "end\nmore\n", 14),
        ];
        for (from, to, line) in changes {
            let mut faults = Faults::default();
            assert_eq!(record(GOOD.replacen(from, to, 1).as_bytes(), &mut faults), None, "{to}");
            assert_eq!(faults.first_line, Some(line), "{to}");
        }
    }
}
