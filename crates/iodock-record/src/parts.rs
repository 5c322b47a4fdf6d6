//! A recording's place in its store. Usually a store has one journal; recorders started by mpirun or
//! srun with the same `-o` each write their rank's journal into one store, and the last to end finishes
//! it. They agree through files, since nothing else joins them: `journal/job` names the job, each part
//! leaves a `.done` beside its journal, and a lock decides who is last.
//!
//! Other recorders may be told to replace the store meanwhile (--force): all that record into it share a lock of its folder, which
//! who replaces it must have alone.

use crate::error::{RecordError, Refusal};
use crate::process::RANK_NAMES;
use iodock_journal::{JournalMeta, JournalWriter};
use iodock_store::own;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub struct Part {
    pub store: PathBuf,
    /// Of this part's files, without ending.
    name: String,
    ranks: Option<i32>,
    created: bool,
    /// The store's folder, locked as long as this is recorded and its tables are made.
    pub folder: Option<File>,
}

/// Rank and number of ranks, as the launcher says.
pub fn rank_of_this_process() -> (Option<i32>, Option<i32>) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    for (rank, size) in RANK_NAMES {
        if let Some(rank) = number(rank) {
            return (Some(rank), number(size).or_else(|| number("SLURM_NTASKS")));
        }
    }
    (None, None)
}

/// What all ranks of one job have in common: the launcher's name for it, else their parent.
fn job() -> String {
    let names =
        ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_STEP_ID", "HYDI_CONTROL_FD"];
    let step = std::env::var("SLURM_JOB_ID").unwrap_or_default();
    let name = names.iter().find_map(|name| std::env::var(name).ok());
    // SAFETY: can't fail.
    let parent = unsafe { libc::getppid() };
    let host = crate::places::host_name();
    name.map_or_else(|| format!("{host} {parent}"), |name| format!("{step} {name}"))
}

fn store_error(store: &Path, error: &std::io::Error) -> RecordError {
    RecordError::Store(Refusal::new(
        format!("{}: the store can't be made: {}", store.display(), crate::error::plain(error)),
        "give it another place: -o PATH",
    ))
}

impl Part {
    /// Makes the store, or joins the one that another rank of this job has made.
    pub fn claim(store: &Path, force: bool, meta: &JournalMeta) -> Result<Part, RecordError> {
        // Several recorders only share a store where the launcher says how many there are.
        let ranks = meta.ranks.filter(|&ranks| ranks > 1 && meta.rank.is_some());
        let name = match meta.rank {
            Some(rank) => format!("rank-{rank:05}-{}-{}", meta.host, std::process::id()),
            None => "main".into(),
        };
        let mut part = Part { store: store.to_path_buf(), name, ranks, created: false, folder: None };
        let made = part.make(force);
        // Nobody is to find half a store. (Ranks leave it to each other.)
        if matches!(made, Err(Claim::Failed(_))) && part.created && ranks.is_none() {
            part.abandon();
        }
        made.map_err(|error| match error {
            Claim::Foreign(what) => RecordError::Store(Refusal::new(
                format!("{}: {what}, and --force replaces only stores", store.display()),
                "give another name with -o",
            )),
            Claim::Taken => RecordError::Store(Refusal::new(
                format!("{}: exists already", store.display()),
                "give another name with -o, or replace it with --force",
            )),
            Claim::Busy => RecordError::Store(Refusal::new(
                format!("{}: another recording is being written there", store.display()),
                "wait until it has ended, or give another name with -o",
            )),
            Claim::Failed(error) => store_error(store, &error),
        })?;
        Ok(part)
    }

    fn make(&mut self, force: bool) -> Result<(), Claim> {
        let parent = self.store.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            fs::create_dir_all(parent)?;
        }
        // Ranks that replace a store must not take what another one has just made for what was there before.
        let _alone = (force && self.ranks.is_some()).then(|| locked(parent.unwrap_or(Path::new("."))));
        match fs::create_dir(&self.store) {
            Ok(()) => {}
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            Err(_) if self.ranks.is_some() && self.same_job() => {
                self.folder = shared(&self.store)?;
                return Ok(());
            }
            Err(_) if force => replace(&self.store)?,
            Err(_) => return Err(Claim::Taken),
        }
        self.folder = shared(&self.store)?;
        // Another one may have replaced the folder before we had its lock: whoever makes this one has the store.
        if let Err(error) = make_folder(&self.store.join("journal")) {
            // It stays if there is anything in it.
            let _ = fs::remove_dir(&self.store);
            return Err(error);
        }
        self.created = true;
        let manifest = concat!(
            "{\"schema\": 1, \"state\": \"recording\", \"writer\": \"iodock ",
            env!("CARGO_PKG_VERSION"),
            "\"}\n"
        );
        fs::write(self.store.join("manifest.json"), manifest)?;
        // Last, and in one step: who sees it, sees a store that is ready.
        let draft = self.store.join("journal/job.draft");
        fs::write(&draft, job())?;
        fs::rename(draft, self.store.join("journal/job"))?;
        Ok(())
    }

    /// Another rank may be making the store at this moment: give it some seconds.
    fn same_job(&self) -> bool {
        for _ in 0..100 {
            match fs::read_to_string(self.store.join("journal/job")) {
                Ok(other) => return other == job(),
                Err(_) if self.store.join("events").exists() => return false,
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
            }
        }
        false
    }

    pub fn open_journal(&self, meta: &JournalMeta) -> Result<JournalWriter, RecordError> {
        let path = self.store.join("journal").join(format!("{}.journal", self.name));
        JournalWriter::create(path, meta)
            .map_err(|error| RecordError::Store(Refusal::new(error.to_string(), error.hint())))
    }

    /// Removes what this part has written, so that it may begin again.
    pub fn clear(&self) {
        let journal = self.store.join("journal");
        // What can't be removed stays; there is nobody to tell.
        use iodock_preload::calls::{ENDING, TRACED_ENDING};
        for ending in ["journal", ENDING, TRACED_ENDING, crate::faults::ENDING] {
            let _ = fs::remove_file(journal.join(format!("{}.{ending}", self.name)));
        }
    }

    /// Nothing was recorded: leaves no trace.
    pub fn abandon(&self) {
        self.clear();
        if self.created && self.ranks.is_none() {
            let _ = fs::remove_dir_all(&self.store);
        } else {
            let _ = self.close();
        }
    }

    /// This part is complete. Is it the last?
    pub fn close(&self) -> Result<bool, RecordError> {
        let Some(ranks) = self.ranks else { return Ok(true) };
        self.mark_done(ranks).map_err(|error| store_error(&self.store, &error))
    }

    fn mark_done(&self, ranks: i32) -> std::io::Result<bool> {
        let journal = self.store.join("journal");
        let lock = OpenOptions::new().create(true).append(true).open(journal.join("lock"))?;
        wait_for(&lock)?;
        File::create(journal.join(format!("{}.done", self.name)))?.write_all(b"done\n")?;
        let done = fs::read_dir(&journal)?
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "done"))
            .count();
        // The lock is given back when the file is closed.
        Ok(done as i64 >= i64::from(ranks))
    }
}

fn wait_for(lock: &File) -> std::io::Result<()> {
    // SAFETY: a descriptor that is open. File systems without locks leave it to the count alone.
    let result = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) };
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        _ if result == 0 => Ok(()),
        Some(libc::ENOSYS | libc::ENOLCK | libc::EOPNOTSUPP) => Ok(()),
        _ => Err(error),
    }
}

/// Locks a folder until what is returned is dropped; where its file system has no locks, nothing is locked.
fn locked(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    // SAFETY: a descriptor that is ours.
    unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX) };
    Some(folder)
}

/// The folder of a store, locked together with all who record into it.
fn shared(store: &Path) -> Result<Option<File>, Claim> {
    let folder = open(store)?;
    held(folder.try_lock_shared())?;
    is_at(&folder, store).then_some(Some(folder)).ok_or(Claim::Busy)
}

/// Makes the folder anew, empty, unless somebody records into it, or makes its tables (for which `journal` is locked).
fn replace(store: &Path) -> Result<(), Claim> {
    let folder = open(store)?;
    held(folder.try_lock())?;
    let journal = File::open(store.join("journal"));
    journal.map_or(Ok(()), |journal| held(journal.try_lock()))?;
    if !is_at(&folder, store) {
        return Err(Claim::Busy);
    }
    // Under the lock: another rank may be making the store until then.
    check_own(store)?;
    own::remove_own(store)?;
    make_folder(store)
}

fn make_folder(folder: &Path) -> Result<(), Claim> {
    fs::create_dir(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Claim::Busy,
        _ => error.into(),
    })
}

fn open(store: &Path) -> Result<File, Claim> {
    File::open(store).map_err(|error| match error.kind() {
        // It was there a moment ago: it is being replaced.
        ErrorKind::NotFound => Claim::Busy,
        _ => error.into(),
    })
}

/// File systems without locks go without.
fn held(lock: Result<(), TryLockError>) -> Result<(), Claim> {
    match lock {
        Err(TryLockError::WouldBlock) => Err(Claim::Busy),
        _ => Ok(()),
    }
}

/// Has nobody put another folder in its place before it was locked?
fn is_at(folder: &File, path: &Path) -> bool {
    let identity = |status: fs::Metadata| (status.dev(), status.ino());
    let (held, there) = (folder.metadata().map(identity), fs::metadata(path).map(identity));
    matches!((held, there), (Ok(held), Ok(there)) if held == there)
}

/// --force replaces stores, nothing else.
fn check_own(store: &Path) -> Result<(), Claim> {
    if fs::symlink_metadata(store)?.is_symlink() {
        return Err(Claim::Foreign("is a link".into()));
    }
    if !fs::metadata(store)?.is_dir() {
        return Err(Claim::Foreign("is a file".into()));
    }
    let foreign = own::foreign(store)?;
    if foreign.is_empty() {
        return Ok(());
    }
    let what = if own::has_manifest(store) { "holds what is not of a store" } else { "is no iodock store" };
    Err(Claim::Foreign(format!("{what} ({})", own::named(&foreign, store))))
}

enum Claim {
    Taken,
    /// With something in it that is not ours: said as what.
    Foreign(String),
    /// Others are at it.
    Busy,
    Failed(std::io::Error),
}

impl From<std::io::Error> for Claim {
    fn from(error: std::io::Error) -> Self {
        Claim::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn of_several_that_replace_a_store_one_gets_it() {
        const CLAIMANTS: usize = 4;
        const ROUNDS: usize = 200;
        let store = std::env::temp_dir().join(format!("iodock-parts-{}.iodock", std::process::id()));
        let (meta, together) = (JournalMeta::default(), Barrier::new(CLAIMANTS));
        let mut won = 0;
        for _ in 0..ROUNDS {
            let claim = || {
                together.wait();
                Part::claim(&store, true, &meta)
            };
            let claims: Vec<_> = std::thread::scope(|scope| {
                let claims: Vec<_> = (0..CLAIMANTS).map(|_| scope.spawn(claim)).collect();
                claims.into_iter().map(|claim| claim.join().expect("no panic")).collect()
            });
            let (got, refused): (Vec<_>, Vec<_>) = claims.into_iter().partition(Result::is_ok);
            assert!(got.len() < 2, "{} have it", got.len());
            won += got.len();
            for error in refused.into_iter().filter_map(Result::err) {
                assert!(error.to_string().contains("another recording is being written there"), "{error}");
            }
            assert!(got.is_empty() || store.join("journal/job").is_file());
        }
        // A program that another test starts just then has the last round's lock until its exec.
        assert!(won > ROUNDS * 9 / 10, "{won}");
        fs::remove_dir_all(&store).expect("a store is left");
    }
}
