//! Stores patched code of libraries from one recording to the next: one file per library, which programs map.
//!
//! The files are on a local file system, because programs must not depend on the code being available on a
//! server. The page cache of a local file system holds a file that was written at once in large pages. A
//! process maps these in a fifth of the time that shared memory takes (measured: 24 against 117 microseconds
//! for libc's text).

use crate::local_disk;
use crate::mapping::Mapping;
use crate::own;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Mark at the beginning of a file's trailer, which follows the code and also contains the code's checksum.
const MARK: &[u8; 8] = b"IODOCKT\n";
pub const TRAILER: usize = 16;
/// Largest length of the folder's path: a session's header has space for 1,023 bytes, and a process appends a
/// name.
const MOST_FOLDER: usize = 1000;

/// Returns the name of a text's file. `open_text` in native/patch.c builds the same name.
fn name(number: u64) -> String {
    format!("text-{number:016x}")
}

/// A folder with patched texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    folder: PathBuf,
}

impl Texts {
    /// Returns the folder `cache` for texts, or a folder in `/var/tmp` if `cache` is not on a local file
    /// system. `None` if neither is suitable.
    pub fn of_user(cache: Option<&Path>) -> Option<Texts> {
        let beside = cache.and_then(Path::file_name).map(|name| {
            let folder = PathBuf::from(format!("/var/tmp/iodock-{}", own::user()));
            folder.join(name)
        });
        let mut folders = cache.map(Path::to_path_buf).into_iter().chain(beside);
        folders.find_map(|folder| Texts::at(&folder).ok())
    }

    /// Creates the folder if it does not exist.
    ///
    /// # Errors
    /// The folder can't be created, other users may write to it, programs can't map code from it, or its path
    /// is too long for a session's header.
    pub fn at(folder: &Path) -> io::Result<Texts> {
        let refused = || io::Error::new(io::ErrorKind::PermissionDenied, "no place for code");
        let parent =
            folder.parent().filter(|_| folder.is_absolute() && folder.as_os_str().len() <= MOST_FOLDER);
        let parent = parent.ok_or_else(refused)?;
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(parent)?;
        if !own::is_folder(parent) {
            return Err(refused());
        }
        builder.create(folder)?;
        if !(own::is_folder(folder) && holds_code(folder)?) {
            return Err(refused());
        }
        Ok(Texts { folder: folder.into() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ensures that the text `number` exists: `bytes` long, with the content from `make`. Returns its file's
    /// identity ([`Mapping::identity`]).
    ///
    /// # Errors
    /// The text can't be written.
    pub fn keep(&self, number: u64, bytes: usize, make: impl FnOnce() -> Vec<u8>) -> io::Result<u64> {
        let path = self.folder.join(name(number));
        if let Some(identity) = whole(&path, bytes) {
            return Ok(identity);
        }
        let mut text = make();
        debug_assert_eq!(text.len(), bytes);
        let sum = crc32fast::hash(&text);
        text.extend_from_slice(MARK);
        text.extend_from_slice(&[sum.to_le_bytes(), [0; 4]].concat());
        // A process in another container may have our process id.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let new = path.with_extension(format!("{}-{now:x}", std::process::id()));
        let kept = write(&new, &text).and_then(|()| fs::rename(&new, &path));
        if kept.is_err() {
            let _ = fs::remove_file(&new);
        }
        kept?;
        whole(&path, bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Whether the folder is suitable for mapped code: on this machine, and executable.
fn holds_code(folder: &Path) -> io::Result<bool> {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero byte, and there is space for the result.
    let (done, mount) = unsafe {
        let mut mount: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut mount) == 0, mount)
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    Ok(mount.f_flag & libc::ST_NOEXEC == 0 && local_disk::is_local(folder)?)
}

/// Writes a file at once, so that the page cache holds it in large pages. The file is synced, because after a
/// crash an incomplete file could become a program's code.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = own::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Checks a text's file and returns its identity; `None` unless it is complete and unchanged. This is done
/// before each recording, because programs execute these bytes.
fn whole(path: &Path, bytes: usize) -> Option<u64> {
    let file = Mapping::of(&own::open(path).ok()?).ok().filter(|file| file.len() == bytes + TRAILER)?;
    file.read_in_large_pieces();
    let (text, trailer) = file.split_at_checked(bytes)?;
    let sum = crc32fast::hash(text).to_le_bytes();
    (trailer.starts_with(MARK) && trailer.get(8..12) == Some(&sum)).then_some(file.identity())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let place = std::env::temp_dir().join(format!("iodock-texts-{name}-{}", std::process::id()));
            fs::create_dir_all(&place).expect("made");
            Place(place)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn patched_code_is_created_once_and_again_if_damaged() {
        let place = Place::new("kept");
        let texts = Texts::at(&place.0.join("texts")).expect("a place");
        let path = texts.folder().join(name(7));
        let keep = |byte: u8| texts.keep(7, 8192, || vec![byte; 8192]).expect("kept");
        assert_eq!(keep(1), keep(2));
        assert_eq!(fs::read(&path).expect("there")[..8192], [1; 8192]);
        for damage in [0, 8191, 8192 + 9] {
            let mut bytes = fs::read(&path).expect("there");
            bytes[damage] ^= 0x40;
            fs::write(&path, bytes).expect("damaged");
            keep(3);
            assert_eq!(fs::read(&path).expect("there")[..8192], [3; 8192], "{damage}");
        }
        fs::write(&path, [3; 100]).expect("cut");
        keep(4);
        assert_eq!(fs::read(&path).expect("there").len(), 8192 + TRAILER);
        assert_eq!(fs::read_dir(texts.folder()).expect("a folder").count(), 1, "nothing else is left");
    }

    #[test]
    fn code_is_not_stored_where_other_users_may_write() {
        let place = Place::new("others");
        let open = place.0.join("open");
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("opened");
        assert!(Texts::at(&open).is_err());
        assert!(Texts::at(&open.join("inside")).is_err());
        std::os::unix::fs::symlink(&place.0, place.0.join("link")).expect("linked");
        assert!(Texts::at(&place.0.join("link")).is_err());
        assert!(Texts::at(&place.0.join("link").join("inside")).is_err());
        assert!(!place.0.join("inside").exists(), "nothing is made behind it");
        assert!(Texts::at(Path::new("/proc/self")).is_err());
        assert!(Texts::at(Path::new("relative/folder")).is_err());
        assert!(Texts::at(&place.0.join("a/".repeat(600))).is_err());
    }
}
