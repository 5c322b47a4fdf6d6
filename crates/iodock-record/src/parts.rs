//! Manages a recording's part of its store. Usually a store has one journal. Recorders that mpirun or srun
//! started with the same `-o` each write the journal of their rank to one store, and the last one to end
//! completes it. They coordinate only through files: `journal/job` names the job, each part has a `.done`
//! file next to its journal when it is complete, and a lock decides which is last.

use crate::error::{RecordError, Refusal};
use crate::naming::{self, Claim, Launch, Taken, Way};
use iodock_event::ranks::{counts, RANK_NAMES, SLURM_STEP};
use iodock_journal::{JournalMeta, JournalWriter};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

pub struct Part {
    pub store: PathBuf,
    /// Base name of this part's files.
    name: String,
    ranks: Option<i32>,
    pub created: bool,
    /// Descriptor of the store's folder. It is locked while the store is recorded and its tables are made.
    pub folder: Option<File>,
    /// Describes how the store got its name.
    pub way: Way,
}

/// Returns rank and number of ranks from the launcher's variables.
pub fn rank_of_this_process() -> (Option<i32>, Option<i32>) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    let is_step = std::env::var_os(SLURM_STEP).is_some();
    for (rank, size) in RANK_NAMES.into_iter().filter(|&(name, _)| counts(name, is_step)) {
        if let Some(rank) = number(rank) {
            return (Some(rank), number(size).or_else(|| number("SLURM_NTASKS")));
        }
    }
    (None, None)
}

/// Returns a name that all ranks of one launch have in common: the launcher's name for it, or else their host
/// and parent process.
fn job() -> String {
    let names =
        ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_STEP_ID", "HYDI_CONTROL_FD"];
    let step = std::env::var("SLURM_JOB_ID").unwrap_or_default();
    let name = names.iter().find_map(|name| std::env::var(name).ok());
    // SAFETY: getppid has no arguments and can't fail.
    let parent = unsafe { libc::getppid() };
    let host = crate::places::host_name();
    name.map_or_else(|| format!("{host} {parent}"), |name| format!("{step} {name}"))
}

/// Returns the launcher's name for the launch, if it is the same on all nodes.
pub fn launch() -> Option<String> {
    let names = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_STEP_ID"];
    let step = std::env::var("SLURM_JOB_ID").unwrap_or_default();
    let name = names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
    Some(format!("{step} {name}").trim_start().to_owned())
}

fn store_error(store: &Path, error: &std::io::Error) -> RecordError {
    RecordError::Store(Refusal::new(
        format!("{}: the store can't be made: {}", store.display(), crate::error::plain(error)),
        "give it another place: -o PATH",
    ))
}

fn refusal(store: &Path, claim: Claim) -> RecordError {
    let name = store.display();
    match claim {
        Claim::Foreign(what) => RecordError::Store(Refusal::new(
            format!("{name}: {what}, and --force replaces only stores"),
            "give another name with -o",
        )),
        Claim::Busy | Claim::Raced => RecordError::Store(Refusal::new(
            format!("{name}: another recording is being written there"),
            "wait until it has ended, or give another name with -o",
        )),
        Claim::Failed(error) => store_error(store, &error),
        Claim::Stuck(error) => RecordError::InTheWay(Refusal::new(
            format!(
                "{name}: a store is there, and none can be made beside it: {}",
                crate::error::plain(&error)
            ),
            "give another name with -o",
        )),
    }
}

impl Part {
    /// Creates the store, or joins a store that another rank of this launch has created.
    pub fn claim(store: &Path, force: bool, meta: &JournalMeta) -> Result<Part, RecordError> {
        // Several recorders share a store only if the launcher sets the number of ranks.
        let ranks = meta.ranks.filter(|&ranks| ranks > 1 && meta.rank.is_some());
        let name = match meta.rank {
            Some(rank) => format!("rank-{rank:05}-{}-{}", meta.host, std::process::id()),
            None => "main".into(),
        };
        let shared_by = meta.rank.filter(|_| ranks.is_some()).map(|rank| Launch { name: job(), rank });
        let Taken { store, folder, created, way } =
            naming::take(store, force, shared_by.as_ref()).map_err(|claim| refusal(store, claim))?;
        Ok(Part { store, name, ranks, created, folder, way })
    }

    pub fn open_journal(&self, meta: &JournalMeta) -> Result<JournalWriter, RecordError> {
        let path = self.store.join("journal").join(format!("{}.journal", self.name));
        JournalWriter::create(path, meta)
            .map_err(|error| RecordError::Store(Refusal::new(error.to_string(), error.hint())))
    }

    /// Returns the path of the session for a recording without a recorder process. It is inside the store, so
    /// that it still exists when the store is opened.
    pub fn session(&self) -> PathBuf {
        self.store.join("journal").join(format!("{}.session", self.name))
    }

    /// Removes the files of this part, so that the recording can begin again.
    pub fn clear(&self) {
        let journal = self.store.join("journal");
        // A file that can't be removed remains, because this error can't be reported.
        use iodock_preload::calls::{ENDING, TRACED_ENDING};
        for ending in ["journal", ENDING, TRACED_ENDING, crate::faults::ENDING] {
            let _ = fs::remove_file(journal.join(format!("{}.{ending}", self.name)));
        }
        let _ = fs::remove_dir_all(self.session());
    }

    /// Removes all files of a recording that recorded nothing.
    pub fn abandon(&self) {
        self.clear();
        if self.created && self.ranks.is_none() {
            let _ = fs::remove_dir_all(&self.store);
            // The store that was moved gets its name back.
            let _ = self.way.kept.as_ref().map(|kept| fs::rename(kept, &self.store));
        } else {
            let _ = self.close();
        }
    }

    /// Marks this part as complete. Returns whether it is the last part.
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
        // Closing the file at the end of this function releases the lock.
        Ok(done as i64 >= i64::from(ranks))
    }
}

fn wait_for(lock: &File) -> std::io::Result<()> {
    // SAFETY: the descriptor is open. On file systems without locks only the count decides.
    let result = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) };
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        _ if result == 0 => Ok(()),
        Some(libc::ENOSYS | libc::ENOLCK | libc::EOPNOTSUPP) => Ok(()),
        _ => Err(error),
    }
}
