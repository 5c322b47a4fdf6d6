//! Tables and texts that no recording has used for long are taken away: those of libraries that are gone, and of iodock's older versions.
//!
//! That a file is used shows in its time of access, which the kernel keeps (`relatime`: to the day). Where it keeps none (`noatime`) a
//! file goes some time after it was made, and is made again by the next recording that wants it: 20 ms.

use crate::own;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// So long they stay.
const UNUSED: Duration = DAY.saturating_mul(30);
/// Its time of modification says when they were looked at last.
const LOOKED: &str = "looked-for-unused";

/// Looks through the folders of tables and texts in `base`, once a day. Where nothing can be taken away it stays, and that is all.
pub fn remove(base: &Path, now: SystemTime) {
    if own::is_folder(base) && is_due(base, now) {
        let folders = entries(base).filter(|folder| is_ours(folder) && own::is_folder(folder));
        for folder in folders {
            for file in entries(&folder).filter(|file| is_unused(file, now)) {
                let _ = fs::remove_file(file);
            }
            // Only if it is empty by now.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Also says that it is done, before it is: of recordings that begin at once one looks.
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

/// None, if it lies in the future.
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

    /// A file that was made and read so many days ago.
    fn file(path: PathBuf, made: u32, read: u32, now: SystemTime) -> PathBuf {
        let times = FileTimes::new().set_modified(now - DAY * made).set_accessed(now - DAY * read);
        File::create(&path).and_then(|file| file.set_times(times)).expect("made");
        path
    }

    #[test]
    fn what_nobody_has_used_for_a_month_goes_and_nothing_else() {
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
    fn it_is_looked_for_once_a_day() {
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
    fn what_others_may_write_to_is_left_alone() {
        let (base, now) = (place("others"), SystemTime::now());
        let old = file(base.join("sites-4-now/text-1"), 90, 90, now);
        fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).expect("opened");
        remove(&base, now);
        assert!(old.exists() && !base.join(LOOKED).exists());
        fs::remove_dir_all(&base).expect("removed");
    }
}
