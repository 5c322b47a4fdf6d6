//! Removes sessions of killed recorders, to free their memory. Normally a session is read and removed when
//! its store is completed (`calls::recover`). That is no longer possible if the store was removed, or
//! completed on another machine.

use crate::format::{header, MAGIC};
use crate::own;
use crate::session::{Session, SESSION_NAME};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Prefix of the names of sessions' folders.
pub const NAME: &str = "iodock-";
/// Name of a link in the session's folder that points to the file of its calls.
const CALLS: &str = "calls";
/// Age at which a session is removed. Before, the file system with its calls may be unavailable for a while.
const AGE: Duration = Duration::from_secs(24 * 3600);

/// Creates a link in the session's folder that points to the file of its calls.
///
/// # Errors
/// The link can't be created. A session without it is never removed.
pub fn name_calls(session: &Session, calls: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(std::path::absolute(calls)?, session.folder.join(CALLS))
}

/// Removes from `place` the sessions of this user's killed recorders that can't be completed any more. Files
/// that can't be removed are left.
pub fn remove(place: &Path, now: SystemTime) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(NAME.as_bytes()));
    for folder in ours.map(|entry| entry.path()).filter(|folder| own::is_folder(folder)) {
        let Ok(file) = own::open(&folder.join(SESSION_NAME)) else { continue };
        let is_left = is_old(&file, now) && is_session_of_these_processes(&file) && has_no_calls(&folder);
        // A locked file belongs to a running recorder. The lock is tried last, because a recorder that is
        // about to lock its new file must not find it locked.
        if is_left && file.try_lock().is_ok() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn is_old(file: &File, now: SystemTime) -> bool {
    let changed = file.metadata().and_then(|about| about.modified());
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > AGE))
}

/// Whether the session belongs to this PID namespace. Processes of another container may see other files.
fn is_session_of_these_processes(file: &File) -> bool {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at as u64).map(|()| u64::from_le_bytes(bytes)).ok()
    };
    word(header::MAGIC) == Some(MAGIC) && word(header::ID_SPACE) == Some(own::id_space())
}

fn has_no_calls(folder: &Path) -> bool {
    let is_link = fs::symlink_metadata(folder.join(CALLS)).is_ok();
    is_link && fs::metadata(folder.join(CALLS)).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Place(PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn place(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("iodock-left-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).expect("made");
        Place(place)
    }

    /// Creates a session whose calls are in `calls`.
    fn session(place: &Place, calls: &Path) -> (PathBuf, Session) {
        let folder = place.0.join(format!("{NAME}1-a"));
        let session = Session::create(&folder, &[]).expect("a session");
        name_calls(&session, calls).expect("named");
        (folder, session)
    }

    #[test]
    fn incomplete_sessions_are_removed_after_one_day() {
        let place = place("gone");
        let (folder, session) = session(&place, &place.0.join("run.calls"));
        let now = SystemTime::now();
        drop(session);
        remove(&place.0, now + AGE / 2);
        assert!(folder.exists());
        remove(&place.0, now + AGE * 2);
        assert!(!folder.exists());
    }

    #[test]
    fn active_and_recoverable_sessions_are_kept() {
        let place = place("stays");
        let later = SystemTime::now() + AGE * 2;
        let calls = place.0.join("run.calls");
        let (folder, session) = session(&place, &calls);
        remove(&place.0, later);
        assert!(folder.exists(), "its recorder is alive");
        drop(session);
        fs::write(&calls, "").expect("written");
        remove(&place.0, later);
        assert!(folder.exists(), "its store is there");
        fs::remove_file(&calls).expect("removed");
        let file = fs::OpenOptions::new().write(true).open(folder.join(SESSION_NAME)).expect("there");
        file.write_all_at(&7_u64.to_le_bytes(), header::ID_SPACE as u64).expect("written");
        drop(file);
        remove(&place.0, later);
        assert!(folder.exists(), "it is of other processes");
    }

    #[test]
    fn files_that_are_not_sessions_are_kept() {
        let place = place("others");
        let other = place.0.join(format!("{NAME}bench-7"));
        fs::create_dir(&other).expect("made");
        fs::write(other.join("notes"), "mine").expect("written");
        remove(&place.0, SystemTime::now() + AGE * 2);
        assert!(other.join("notes").exists());
    }
}
