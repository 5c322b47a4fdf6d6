//! Synchronises the ranks that mpirun or srun started, on any number of machines. They use small files in the
//! tree, or the calling process, which uses MPI.
//!
//! Rank 0 creates the tree, a state file for each rank, and its own file `go`. A rank that reaches a barrier
//! writes the barrier's number into its state file. When all ranks have done this, rank 0 writes the number
//! into `go`. Each check opens the files again, so that an NFS client fetches what other machines wrote
//! (close-to-open consistency). Rank 0 creates all files before any rank reads them, because clients cache
//! for a long time that a file does not exist.

use crate::error::{Kind, LoadError};
use crate::plan::{Job, Plan};
use crate::result::Event;
use crate::signals;
use crate::tree::Tree;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time that a rank waits for a missing rank, so that a job in which a rank hangs ends by itself.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time limit at the start, when ranks with different installations may wait in different ways. It allows for
/// thousands of ranks that start Python from one slow file system and may be minutes apart.
const PATIENCE_AT_START: Duration = Duration::from_secs(300);
const AT_START: &str =
    "are the folder, iodock and mpi4py the same on all nodes? --meet files does without mpi4py";
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LAST_PAUSE: Duration = Duration::from_millis(20);
/// Interval at which a rank checks whether another has stopped, if MPI and not files show their arrival.
const LOOK: Duration = Duration::from_millis(250);
const FAREWELL: Duration = Duration::from_secs(20);
const AWAY: &str = "0 away";
const STOPPED: &str = "0 stopped";

/// Returns the token in the name of a job's tree. It is the same on every rank.
pub fn token_of(job: &Job) -> String {
    // FNV-1a is sufficient here, because the token is no secret.
    let hash = job
        .key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// Synchronises one rank with the others of its job.
pub struct Meeting {
    folder: PathBuf,
    pub rank: u32,
    pub size: u32,
    met_outside: bool,
    barriers: u64,
}

impl Meeting {
    /// Creates the files for synchronising, on rank 0. The file `plan` is created last and shows that all
    /// others exist.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn open(tree: &Tree, job: &Job, plan: &Plan) -> Result<Self, LoadError> {
        let meeting = Meeting::of(job, tree.path().join("meet"));
        let made = fs::create_dir(&meeting.folder)
            .and_then(|()| (0..job.size).try_for_each(|rank| meeting.write(&format!("r{rank}"), "0 here")))
            .and_then(|()| meeting.write("go", "0 here"))
            .and_then(|()| Ok(serde_json::to_string(plan)?))
            .and_then(|text| meeting.write("plan.new", &text))
            .and_then(|()| fs::rename(meeting.folder.join("plan.new"), meeting.folder.join("plan")));
        made.map(|()| meeting).map_err(|error| LoadError::system(tree.path().display(), &error))
    }

    fn of(job: &Job, folder: PathBuf) -> Self {
        Meeting { folder, rank: job.rank, size: job.size, met_outside: job.met_outside, barriers: 0 }
    }

    /// Waits until rank 0 has created the tree, and returns its plan. All other ranks call it. It calls `on`
    /// in every round of waiting.
    ///
    /// # Errors
    /// Fails if the tree did not appear in time, or `on` returns an error.
    pub fn join(
        plan: &Plan,
        job: &Job,
        on: &mut dyn FnMut() -> Result<(), LoadError>,
    ) -> Result<(Tree, Self, Plan), LoadError> {
        let start = Instant::now();
        loop {
            on()?;
            if let Ok(tree) = Tree::join(&plan.directory, &token_of(job)) {
                let folder = tree.path().join("meet");
                // Listing a folder queries the server, but a client may answer the lookup of a name from its
                // cache.
                let there =
                    fs::read_dir(&folder).is_ok_and(|all| all.flatten().any(|one| one.file_name() == "plan"));
                let text = if there { fs::read(folder.join("plan")).ok() } else { None };
                if let Some(plan) = text.and_then(|text| serde_json::from_slice(&text).ok()) {
                    return Ok((tree, Meeting::of(job, folder), plan));
                }
            }
            if start.elapsed() > PATIENCE_AT_START {
                let message = format!("rank 0 did not come to {}", plan.directory.display());
                return Err(LoadError::new(Kind::System, message, AT_START));
            }
            std::thread::sleep(LAST_PAUSE);
        }
    }

    fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        fs::write(self.folder.join(name), text)
    }

    /// Reads from the state file of a rank (or `go`) the number of the barrier and the state.
    fn read(&self, name: &str) -> Option<(u64, String)> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        let (number, state) = text.split_once(' ')?;
        Some((number.parse().ok()?, state.to_owned()))
    }

    /// Waits until all ranks have reached the barrier. It calls `on` in every round of waiting. With MPI,
    /// `tell` reports to the calling process that this rank waits.
    ///
    /// # Errors
    /// Fails if a rank stopped or did not arrive within ten minutes (five at the start), or if `on` returns
    /// an error.
    pub fn barrier(
        &mut self,
        tell: &mut dyn FnMut(&Event),
        on: &mut dyn FnMut() -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        self.barriers += 1;
        if self.met_outside {
            tell(&Event::Barrier { number: self.barriers });
            return self.wait_outside(on);
        }
        let here = format!("{} here", self.barriers);
        let failed = |error| LoadError::system(self.folder.display(), &error);
        if self.rank == 0 {
            for rank in 1..self.size {
                self.wait_for(&format!("r{rank}"), on)?;
            }
            self.write("go", &here).map_err(failed)
        } else {
            self.write(&format!("r{}", self.rank), &here).map_err(failed)?;
            self.wait_for("go", on)
        }
    }

    fn wait_outside(&self, on: &mut dyn FnMut() -> Result<(), LoadError>) -> Result<(), LoadError> {
        let (start, mut looked) = (Instant::now(), Instant::now());
        while !signals::let_go(Duration::from_millis(1))? {
            on()?;
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                self.check_others()?;
            }
            if start.elapsed() > PATIENCE {
                let hint = "iodock health clean DIR removes what is left";
                return Err(LoadError::new(Kind::System, "another rank does not come", hint));
            }
        }
        Ok(())
    }

    /// Checks that all ranks are still there.
    ///
    /// # Errors
    /// Fails if a rank that is still needed has left.
    fn check_others(&self) -> Result<(), LoadError> {
        let names = if self.rank == 0 {
            (1..self.size).map(|rank| format!("r{rank}")).collect()
        } else {
            vec!["go".into()]
        };
        let left = |name: &String| self.read(name).is_some_and(|(_, state)| state != "here");
        if names.iter().any(left) || !self.folder.exists() {
            return Err(LoadError::stopped("another rank stopped"));
        }
        Ok(())
    }

    fn wait_for(&self, name: &str, on: &mut dyn FnMut() -> Result<(), LoadError>) -> Result<(), LoadError> {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        let (patience, hint) = match self.barriers {
            1 => (PATIENCE_AT_START, AT_START),
            _ => (PATIENCE, "iodock health clean DIR removes what is left"),
        };
        loop {
            match self.read(name) {
                Some((number, _)) if number >= self.barriers => return Ok(()),
                Some((_, state)) if state != "here" => {
                    return Err(LoadError::stopped("another rank stopped"));
                }
                None if !self.folder.exists() => return Err(LoadError::stopped("rank 0 stopped")),
                _ => {}
            }
            on()?;
            if start.elapsed() > patience {
                let who = if name == "go" { "rank 0".into() } else { name.replace('r', "rank ") };
                return Err(LoadError::new(Kind::System, format!("{who} does not answer"), hint));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Stores the results of this rank for rank 0. A rank calls this before the barrier after which rank 0
    /// collects the results.
    ///
    /// # Errors
    /// Fails if the results cannot be written.
    pub fn hand_in(&self, step: u64, text: &str) -> Result<(), LoadError> {
        let name = format!("s{step}.{}", self.rank);
        self.write(&name, text).map_err(|error| LoadError::system(self.folder.join(name).display(), &error))
    }

    /// Returns the results of the other ranks. Rank 0 calls this after the barrier.
    ///
    /// # Errors
    /// Fails if a file with results is missing.
    pub fn collect(&self, step: u64) -> Result<Vec<String>, LoadError> {
        let mut texts = Vec::new();
        for rank in 1..self.size {
            let path = self.folder.join(format!("s{step}.{rank}"));
            texts.push(fs::read_to_string(&path).map_err(|error| LoadError::system(path.display(), &error))?);
            let _ = fs::remove_file(path);
        }
        Ok(texts)
    }

    /// Reports that this rank no longer uses the tree. Rank 0 waits a few seconds for the others, and returns
    /// the number of ranks that did not report this.
    pub fn leave(&self, well: bool) -> u32 {
        if self.rank > 0 {
            let _ = self.write(&format!("r{}", self.rank), AWAY);
            return 0;
        }
        if !well {
            let _ = self.write("go", STOPPED);
        }
        let start = Instant::now();
        let mut missing = 0;
        for rank in 1..self.size {
            let name = format!("r{rank}");
            while self.read(&name).is_none_or(|(_, state)| state == "here") {
                if start.elapsed() > FAREWELL {
                    missing += 1;
                    break;
                }
                std::thread::sleep(LAST_PAUSE);
            }
        }
        missing
    }
}
