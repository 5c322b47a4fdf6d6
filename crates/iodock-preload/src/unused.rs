//! Removes tables and texts that no recording has used for a long time, such as those of removed libraries
//! and of older versions of iodock.
//!
//! A file's access time shows when it was last used; with `relatime` the kernel updates it once a day. On a
//! file system with `noatime`, a file is removed some time after its creation. The next recording that needs
//! it creates it again, which takes 20 ms.

use crate::own;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Time without use after which a file is removed.
const UNUSED: Duration = DAY.saturating_mul(30);
/// Name of a file whose modification time is the time of the last check.
const LOOKED: &str = "looked-for-unused";

/// Removes unused files from the folders of tables and texts in `base`, at most once a day. Ignores files
/// that can't be removed.
pub fn remove(base: &Path, now: SystemTime) {
    if own::is_folder(base) && is_due(base, now) {
        let folders = entries(base).filter(|folder| is_ours(folder) && own::is_folder(folder));
        for folder in folders {
            for file in entries(&folder).filter(|file| is_unused(file, now)) {
                let _ = fs::remove_file(file);
            }
            // This removes the folder only if it is empty now.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Whether a check is due. If so it is marked as done at once, so that only one of several simultaneous
/// recordings makes it.
fn is_due(base: &Path, now: SystemTime) -> bool {
    let path = base.join(LOOKED);
    let looked = fs::symlink_metadata(&path).and_then(|about| about.modified());
    if looked.is_ok_and(|looked| age(looked, now) < DAY) {
        return false;
    }
    let _ = fs::remove_file(&path);
    own::create(&path).and_then(|file| file.set_modified(now)).is_ok()
}

fn entries(folder: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_ours(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sites-"))
}

fn is_unused(file: &Path, now: SystemTime) -> bool {
    fs::symlink_metadata(file).is_ok_and(|about| about.is_file() && age(last_use(&about), now) > UNUSED)
}

fn last_use(about: &Metadata) -> SystemTime {
    let known = [about.accessed(), about.modified()].into_iter().flatten();
    known.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns the time since `time`; zero if that is in the future.
fn age(time: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("iodock-unused-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.join("sites-4-now")).expect("made");
        fs::create_dir_all(place.join("sites-1-then")).expect("made");
        place
    }

    /// A file that was created and read these numbers of days ago.
    fn file(path: PathBuf, made: u32, read: u32, now: SystemTime) -> PathBuf {
        let times = FileTimes::new().set_modified(now - DAY * made).set_accessed(now - DAY * read);
        File::create(&path).and_then(|file| file.set_times(times)).expect("made");
        path
    }

    #[test]
    fn only_files_unused_for_a_month_are_removed() {
        let (base, now) = (place("month"), SystemTime::now());
        let used = file(base.join("sites-4-now/text-1"), 90, 3, now);
        let new = file(base.join("sites-4-now/text-2"), 2, 90, now);
        let gone = [
            file(base.join("sites-4-now/text-3"), 90, 40, now),
            file(base.join("sites-1-then/own-4"), 31, 31, now),
        ];
        let other = file(base.join("settings.toml"), 900, 900, now);
        remove(&base, now);
        assert!(used.exists() && new.exists() && other.exists());
        assert!(gone.iter().all(|file| !file.exists()));
        assert!(!base.join("sites-1-then").exists(), "a folder with nothing in it goes, too");
        fs::remove_dir_all(&base).expect("removed");
    }

    #[test]
    fn unused_files_are_searched_once_per_day() {
        let (base, now) = (place("day"), SystemTime::now());
        file(base.join("sites-4-now/text-0"), 0, 0, now);
        remove(&base, now);
        let old = file(base.join("sites-4-now/text-1"), 90, 90, now);
        remove(&base, now + DAY / 2);
        assert!(old.exists());
        remove(&base, now + DAY + DAY / 2);
        assert!(!old.exists());
        fs::remove_dir_all(&base).expect("removed");
    }

    #[test]
    fn a_folder_that_other_users_may_write_to_is_not_cleaned() {
        let (base, now) = (place("others"), SystemTime::now());
        let old = file(base.join("sites-4-now/text-1"), 90, 90, now);
        fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).expect("opened");
        remove(&base, now);
        assert!(old.exists() && !base.join(LOOKED).exists());
        fs::remove_dir_all(&base).expect("removed");
    }
}
