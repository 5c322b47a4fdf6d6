//! Creates a recording's folder under the requested name. If a store has this name, it gets a number
//! (`run-1.iodock`, where the newest store has the highest number), or is replaced (--force). Ranks of one
//! launch share one store. If the name belongs to something other than a store, the recording gets the
//! number.
//!
//! All recorders of a store share a lock on its folder. Moving or replacing the store requires the exclusive
//! lock, and also a lock on the parent folder, so that no rank mistakes a store that another rank has just
//! created for an older one.

use iodock_store::own;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Number of attempts to get a lock, and pause between them. Together they take some seconds.
const TRIES: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);
const ENDING: &[u8] = b".iodock";
/// Largest number of digits of a store's number. Longer numbers are dates and similar.
const MOST_DIGITS: usize = 6;

/// The launch of an MPI program to which this process belongs.
pub struct Launch {
    pub name: String,
    pub rank: i32,
}

/// How a store got its name.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// New path of the store that had the name before.
    pub kept: Option<PathBuf>,
    /// Reason why the name differs from the requested one.
    pub elsewhere: Option<String>,
    /// The topmost parent folder of the store that had to be created.
    pub made: Option<PathBuf>,
}

pub struct Taken {
    pub store: PathBuf,
    /// Lock that all recorders of the store share. None if the file system has no locks.
    pub folder: Option<File>,
    /// Whether this recorder created the store. Otherwise it joined the store of another one.
    pub created: bool,
    pub way: Way,
}

#[derive(Debug)]
pub enum Claim {
    /// The folder contains files that do not belong to a store. The text describes them.
    Foreign(String),
    /// Other recorders are using the store.
    Busy,
    /// Another process changed the folder while it was being examined.
    Raced,
    Failed(io::Error),
    /// A store has the name and can't be moved, and no other name is available.
    Stuck(io::Error),
}

impl From<io::Error> for Claim {
    fn from(error: io::Error) -> Self {
        Claim::Failed(error)
    }
}

/// Creates a folder for a recording, or joins the folder of this launch.
pub fn take(asked: &Path, force: bool, launch: Option<&Launch>) -> Result<Taken, Claim> {
    let parent = asked.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = make_folders(parent)?;
    let mut taken = take_in(parent, asked, force, launch)?;
    taken.way.made = made;
    Ok(taken)
}

fn take_in(parent: &Path, asked: &Path, force: bool, launch: Option<&Launch>) -> Result<Taken, Claim> {
    let alone = File::open(parent).ok();
    for _ in 0..TRIES {
        if let Some(taken) = free_or_joined(asked, launch)? {
            return Ok(taken);
        }
        // On file systems without locks, the lock counts as obtained.
        let is_ours = !matches!(alone.as_ref().map(File::try_lock), Some(Err(TryLockError::WouldBlock)));
        if is_ours {
            match make_way(asked, force, launch) {
                // The old folder disappeared in between, or a new one appeared, so this is tried again.
                Err(Claim::Raced) => {}
                other => return other,
            }
        }
        sleep(PAUSE);
    }
    make_way(asked, force, launch)
}

/// Creates the folder if its name is free, or joins it if it is a recording of this launch. Returns `None`
/// otherwise.
fn free_or_joined(path: &Path, launch: Option<&Launch>) -> Result<Option<Taken>, Claim> {
    let taken = |folder, created| Some(Taken { store: path.into(), folder, created, way: Way::default() });
    match fs::create_dir(path) {
        Ok(()) => match begin(path, launch) {
            Ok(folder) => Ok(taken(folder, true)),
            Err(Claim::Busy | Claim::Raced) => Ok(None),
            Err(error) => {
                // An incomplete store must not remain. With several ranks, another rank may complete it.
                let _ = launch.is_none().then(|| fs::remove_dir_all(path));
                Err(error)
            }
        },
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        Err(_) if launch.is_some_and(|launch| has_room_for(path, launch)) => match shared(path) {
            Ok(folder) => Ok(taken(folder, false)),
            Err(Claim::Busy | Claim::Raced) => Ok(None),
            Err(error) => Err(error),
        },
        Err(_) => Ok(None),
    }
}

/// Creates the initial files of a recording in a new folder.
fn begin(store: &Path, launch: Option<&Launch>) -> Result<Option<File>, Claim> {
    let folder = shared(store)?;
    // Another recorder may have used the folder before this one locked it. The recorder that creates the
    // folder `journal` has the store.
    if let Err(error) = fs::create_dir(store.join("journal")) {
        // The folder remains if it is not empty.
        let _ = fs::remove_dir(store);
        return Err(if error.kind() == ErrorKind::AlreadyExists { Claim::Raced } else { error.into() });
    }
    let manifest = concat!(
        "{\"schema\": 1, \"state\": \"recording\", \"writer\": \"iodock ",
        env!("CARGO_PKG_VERSION"),
        "\"}\n"
    );
    fs::write(store.join("manifest.json"), manifest)?;
    // This file is created last and in one step, so that a process that sees it sees a complete store.
    let draft = store.join("journal/job.draft");
    fs::write(&draft, launch.map_or("", |launch| &launch.name))?;
    fs::rename(draft, store.join("journal/job"))?;
    Ok(folder)
}

/// Returns whether the store is a recording of this launch that has no part of this rank yet. Another rank
/// may be creating it at this moment, so this waits.
fn has_room_for(store: &Path, launch: &Launch) -> bool {
    for _ in 0..TRIES {
        match fs::read_to_string(store.join("journal/job")) {
            Ok(name) => return name == launch.name && !has_part(store, launch.rank),
            Err(_) if !is_being_made(store) => return false,
            Err(_) => sleep(PAUSE),
        }
    }
    false
}

/// Returns whether the store already has a part of this rank. This happens if a rank records again, or if a
/// launch happens to have the name of an interrupted one.
fn has_part(store: &Path, rank: i32) -> bool {
    let ours = format!("rank-{rank:05}-");
    let Ok(entries) = fs::read_dir(store.join("journal")) else { return false };
    entries.flatten().any(|entry| entry.file_name().as_bytes().starts_with(ours.as_bytes()))
}

/// Returns whether another rank is creating this store: it contains only initial files of a recording.
fn is_being_made(store: &Path) -> bool {
    let Ok(entries) = fs::read_dir(store) else { return false };
    let is_first = |name: OsString| name == "journal" || name == "manifest.json";
    entries.flatten().all(|entry| is_first(entry.file_name()))
        && !store.join("journal/job").exists()
        && !fs::symlink_metadata(store).is_ok_and(|status| status.is_symlink())
}

/// Creates a recording's folder when the name is taken: moves or replaces the existing folder, or chooses
/// another name.
fn make_way(asked: &Path, force: bool, launch: Option<&Launch>) -> Result<Taken, Claim> {
    if let Some(taken) = free_or_joined(asked, launch)? {
        return Ok(taken);
    }
    if let Some(launch) = launch {
        if let Some(taken) = joined_elsewhere(asked, launch)? {
            return Ok(taken);
        }
    }
    let made_way = if force { replace(asked).map(|()| None) } else { keep(asked) };
    let why = match made_way {
        Ok(kept) => {
            let taken = free_or_joined(asked, launch)?;
            return taken
                .map(|taken| Taken { way: Way { kept, ..Way::default() }, ..taken })
                .ok_or(Claim::Raced);
        }
        Err(Claim::Raced) => return Err(Claim::Raced),
        Err(error) if force => return Err(error),
        Err(Claim::Foreign(what)) => what,
        Err(Claim::Busy) => "another recording is being written there".into(),
        Err(Claim::Failed(error) | Claim::Stuck(error)) => {
            let why = format!("the store that is there can't be moved: {}", crate::error::plain(&error));
            return elsewhere(asked, launch, why).map_err(stuck);
        }
    };
    elsewhere(asked, launch, why)
}

fn stuck(claim: Claim) -> Claim {
    match claim {
        Claim::Failed(error) => Claim::Stuck(error),
        other => other,
    }
}

fn joined_elsewhere(asked: &Path, launch: &Launch) -> Result<Option<Taken>, Claim> {
    for number in numbers(asked) {
        let path = numbered(asked, number);
        if path.is_dir() && has_room_for(&path, launch) {
            return free_or_joined(&path, Some(launch));
        }
    }
    Ok(None)
}

fn elsewhere(asked: &Path, launch: Option<&Launch>, why: String) -> Result<Taken, Claim> {
    let first = next_number(asked);
    for number in first..first + TRIES {
        if let Some(taken) = free_or_joined(&numbered(asked, number), launch)? {
            let way = Way { elsewhere: Some(why), ..Way::default() };
            return Ok(Taken { way, ..taken });
        }
    }
    Err(Claim::Raced)
}

/// Moves a store to a numbered name, unless a recorder is using it. An empty folder is removed.
fn keep(store: &Path) -> Result<Option<PathBuf>, Claim> {
    let folder = alone(store)?;
    if fs::remove_dir(store).is_ok() {
        return Ok(None);
    }
    if !own::has_manifest(store) {
        return Err(Claim::Foreign(format!(
            "is no iodock store ({})",
            own::named(&own::foreign(store)?, store)
        )));
    }
    let kept = numbered(store, next_number(store));
    fs::rename(store, &kept)?;
    if !is_at(&folder, &kept) {
        // On a file system without locks, another process may have created a store with this name at this
        // moment.
        fs::rename(&kept, store)?;
        return Err(Claim::Raced);
    }
    Ok(Some(kept))
}

/// Removes a store, unless a recorder is using it or it contains other files.
fn replace(store: &Path) -> Result<(), Claim> {
    let _folder = alone(store)?;
    // This is checked after locking, because before it another rank may have been creating the store.
    let foreign = own::foreign(store)?;
    if !foreign.is_empty() {
        let what =
            if own::has_manifest(store) { "holds what is not of a store" } else { "is no iodock store" };
        return Err(Claim::Foreign(format!("{what} ({})", own::named(&foreign, store))));
    }
    Ok(own::remove_own(store)?)
}

/// Locks a folder exclusively, so that no recorder uses it and no process makes its tables (which locks
/// `journal`).
fn alone(store: &Path) -> Result<File, Claim> {
    let status = fs::symlink_metadata(store).map_err(gone)?;
    if status.is_symlink() {
        return Err(Claim::Foreign("is a link".into()));
    }
    if !status.is_dir() {
        return Err(Claim::Foreign("is a file".into()));
    }
    let mut tries = 0..TRIES / 5;
    while is_being_made(store) && tries.next().is_some() {
        sleep(PAUSE);
    }
    let folder = open(store)?;
    held(folder.try_lock())?;
    let journal = store.join("journal");
    if journal.is_dir() {
        File::open(journal).map_or(Ok(()), |journal| held(journal.try_lock()))?;
    }
    is_at(&folder, store).then_some(folder).ok_or(Claim::Raced)
}

/// Locks the folder of a store together with all its other recorders.
fn shared(store: &Path) -> Result<Option<File>, Claim> {
    let folder = open(store)?;
    held(folder.try_lock_shared())?;
    is_at(&folder, store).then_some(Some(folder)).ok_or(Claim::Raced)
}

fn open(store: &Path) -> Result<File, Claim> {
    File::open(store).map_err(gone)
}

/// Converts an error for a folder that existed before: if it is missing, another process is moving or
/// replacing it.
fn gone(error: io::Error) -> Claim {
    match error.kind() {
        ErrorKind::NotFound => Claim::Raced,
        _ => error.into(),
    }
}

/// Converts the result of locking. On file systems without locks, the lock counts as obtained.
fn held(lock: Result<(), TryLockError>) -> Result<(), Claim> {
    match lock {
        Err(TryLockError::WouldBlock) => Err(Claim::Busy),
        _ => Ok(()),
    }
}

/// Returns whether the path still belongs to this folder, which may have been replaced before it was locked.
fn is_at(folder: &File, path: &Path) -> bool {
    let identity = |status: fs::Metadata| (status.dev(), status.ino());
    let (held, there) = (folder.metadata().map(identity), fs::metadata(path).map(identity));
    matches!((held, there), (Ok(held), Ok(there)) if held == there)
}

/// Creates a folder with all its parents. Returns the topmost folder that did not exist.
fn make_folders(folder: &Path) -> io::Result<Option<PathBuf>> {
    let missing = folder.ancestors().take_while(|one| !one.as_os_str().is_empty() && !one.exists()).last();
    fs::create_dir_all(folder)?;
    Ok(missing.map(Path::to_path_buf))
}

/// Returns a numbered name, such as `run-3.iodock` for `run.iodock`, or `run-3` for `run`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let (stem, ending) = parts(path);
    let name = [stem, format!("-{number}").as_bytes(), ending].concat();
    path.with_file_name(OsString::from_vec(name))
}

fn parts(path: &Path) -> (&[u8], &[u8]) {
    let name = path.file_name().map_or(&b""[..], OsStrExt::as_bytes);
    match name.strip_suffix(ENDING) {
        Some(stem) if !stem.is_empty() => (stem, ENDING),
        _ => (name, b""),
    }
}

/// Returns the numbers that stores with this name have.
fn numbers(path: &Path) -> Vec<u32> {
    let (stem, ending) = parts(path);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let number = |name: OsString| -> Option<u32> {
        let digits = name.as_bytes().strip_prefix(stem)?.strip_prefix(b"-")?.strip_suffix(ending)?;
        let digits = std::str::from_utf8(digits).ok()?;
        let is_number = digits.len() <= MOST_DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter_map(|entry| number(entry.file_name())).collect()
}

/// Returns the number of the next store. The newest store has the highest number.
fn next_number(path: &Path) -> u32 {
    numbers(path).into_iter().max().unwrap_or(0) + 1
}

#[cfg(test)]
mod tests;
