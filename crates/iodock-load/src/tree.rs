//! Manages the tree that a check-up creates, owns and removes: `DIR/.iodock-load-TOKEN/`, with a tag file
//! that contains the token.
//!
//! The program removes only files with names that it gives, in a folder with its tag that belongs to this
//! user, on the same file system, and never through a link. All other files stay and are reported.

use crate::error::{Kind, LoadError};
use crate::folders::{open_at, open_directory, status_of};
use crate::removal::{entries, remove_tree, PATIENCE, TAG};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const PREFIX: &str = ".iodock-load-";

/// Content of a tag file: the process that created the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tag {
    /// Last part of the tree's folder name.
    pub token: String,
    pub host: String,
    pub boot: String,
    pub pid: u32,
    /// Start time of the process in clock ticks since boot. It is needed because the system reuses process
    /// ids.
    pub start_ticks: u64,
    pub uid: u32,
}

impl Tag {
    fn of_this_process(token: &str) -> Self {
        let pid = std::process::id();
        Tag {
            token: token.to_owned(),
            host: host_name(),
            boot: boot_id(),
            pid,
            start_ticks: start_ticks(pid).unwrap_or(0),
            // SAFETY: geteuid has no arguments and can't fail.
            uid: unsafe { libc::geteuid() },
        }
    }

    /// Returns whether the process that created the tree still runs on this machine.
    fn runs_here(&self) -> bool {
        self.boot == boot_id() && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// Returns the identifier of this boot of the machine. It is equal in all containers of the machine.
pub fn boot_id() -> String {
    first_line("/proc/sys/kernel/random/boot_id")
}

/// Returns the kernel's host name of this container or machine.
pub fn host_name() -> String {
    first_line("/proc/sys/kernel/hostname")
}

fn first_line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Returns the start time of a process. None if it does not exist or is a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may contain any characters. The state follows it, and the start time comes 19
    // fields later.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then_some(())?;
    fields.nth(18)?.parse().ok()
}

/// A tree that this process uses.
pub struct Tree {
    path: PathBuf,
    root: OwnedFd,
    /// Tag file, which is locked while a process uses the tree. Workers inherit the lock. None in ranks that
    /// did not create the tree.
    _tag: Option<File>,
}

impl Tree {
    /// Creates a tree in `directory`. `token` is None for a random token; with several ranks it is given, so
    /// that all ranks find the tree.
    ///
    /// # Errors
    /// Fails if the folder cannot be written, or a tree with this token exists.
    pub fn make(directory: &Path, token: Option<&str>) -> Result<Self, LoadError> {
        let token = match token {
            Some(token) => token.to_owned(),
            None => random_token().map_err(|error| LoadError::system("getrandom", &error))?,
        };
        let path = directory.join(format!("{PREFIX}{token}"));
        let failed = |error: &io::Error| LoadError::system(directory.display(), error);
        if let Err(error) =
            std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path)
        {
            return Err(if error.kind() == io::ErrorKind::AlreadyExists {
                taken(&path)
            } else {
                failed(&error)
            });
        }
        let made = open_directory(libc::AT_FDCWD, &c_path(&path)).and_then(|root| {
            let tag = write_tag(&root, &Tag::of_this_process(&token))?;
            Ok(Tree { path: path.clone(), root, _tag: Some(tag) })
        });
        made.map_err(|error| {
            let _ = std::fs::remove_file(path.join("tag"));
            let _ = std::fs::remove_dir(&path);
            failed(&error)
        })
    }

    /// Opens the tree that another rank created.
    ///
    /// # Errors
    /// Fails if the tree does not exist (yet).
    pub fn join(directory: &Path, token: &str) -> io::Result<Self> {
        let path = directory.join(format!("{PREFIX}{token}"));
        let root = open_directory(libc::AT_FDCWD, &c_path(&path))?;
        Ok(Tree { path, root, _tag: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn fd(&self) -> RawFd {
        self.root.as_raw_fd()
    }

    /// Removes this program's files and the tree. Returns the files that stay.
    pub fn remove(self) -> Vec<String> {
        remove_tree(&self.path, &self.root)
    }
}

fn taken(path: &Path) -> LoadError {
    let hint = "another run uses it, or left it behind: iodock health clean DIR removes what was left";
    LoadError::new(Kind::Taken, format!("{}: exists already", path.display()), hint)
}

fn random_token() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

fn write_tag(root: &OwnedFd, tag: &Tag) -> io::Result<File> {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
    let mut file = File::from(open_at(root.as_raw_fd(), TAG, flags)?);
    // On a file system without locks, host and process in the tag must suffice.
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    serde_json::to_writer(&mut file, tag)?;
    file.write_all(b"\n")?;
    Ok(file)
}

/// Result of a search for trees that earlier check-ups left in `directory`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cleaned {
    pub removed: Vec<String>,
    /// Paths of trees that are in use or may be in use, each with the reason.
    pub kept: Vec<(String, String)>,
    /// Files in removed trees that this program did not create.
    pub foreign: Vec<String>,
}

/// Removes this user's trees in `directory` that no check-up uses any more. With `force`, this includes trees
/// of other machines if locks do not show whether they are in use.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn clean(directory: &Path, force: bool) -> Result<Cleaned, LoadError> {
    let mut cleaned = Cleaned::default();
    let failed = |error: io::Error| LoadError::system(directory.display(), &error);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(token) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let path = directory.join(&name);
        match left_behind(&path, token, force) {
            Ok(Some(root)) => {
                let foreign = remove_tree(&path, &root);
                if foreign.is_empty() {
                    cleaned.removed.push(path.display().to_string());
                } else {
                    cleaned.foreign.extend(foreign);
                }
            }
            Ok(None) => {}
            Err(why) => cleaned.kept.push((path.display().to_string(), why)),
        }
    }
    Ok(cleaned)
}

/// Opens a tree that belongs to this user and is not in use. Returns None if it does not belong to the user,
/// and the reason if it may be in use.
fn left_behind(path: &Path, token: &str, force: bool) -> Result<Option<OwnedFd>, String> {
    // SAFETY: geteuid has no arguments and can't fail.
    let user = unsafe { libc::geteuid() };
    let Ok(root) = open_directory(libc::AT_FDCWD, &c_path(path)) else { return Ok(None) };
    let owned = |fd: RawFd| status_of(fd).is_ok_and(|status| status.st_uid == user);
    if !owned(root.as_raw_fd()) {
        return Ok(None);
    }
    let Ok(tag) = open_at(root.as_raw_fd(), TAG, libc::O_RDWR) else {
        // The process was killed between mkdir and the creation of the tag. Such an empty folder of this user
        // can be removed.
        let empty = entries(&root).is_ok_and(|names| names.is_empty());
        return if empty { Ok(Some(root)) } else { Err("it has no tag, so it may be somebody's own".into()) };
    };
    let mut tag = File::from(tag);
    let mut text = String::new();
    let read = owned(tag.as_raw_fd()) && tag.read_to_string(&mut text).is_ok();
    let known: Option<Tag> = read.then(|| serde_json::from_str(&text).ok()).flatten();
    match known {
        Some(known) if known.token == token => in_use(&tag, &known, force).map_or(Ok(Some(root)), Err),
        // The tag is empty because the disk was full when it was written, or because the process was killed.
        None if read && text.is_empty() && lock(&tag) == Lock::Ours => Ok(Some(root)),
        _ => Err("its tag names another tree".into()),
    }
}

fn in_use(tag: &File, known: &Tag, force: bool) -> Option<String> {
    let start = Instant::now();
    loop {
        let who = format!("process {} on {} uses it", known.pid, known.host);
        match lock(tag) {
            _ if known.runs_here() => return Some(who),
            Lock::Ours => return None,
            // Workers of a killed engine are killed too, but may hold the lock a little longer.
            Lock::Taken if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
            Lock::Taken => return Some(who),
            Lock::Unknown if force || known.boot == boot_id() => return None,
            Lock::Unknown => {
                let why = "it was made on {}, and this file system has no locks: look there, then --force";
                return Some(why.replace("{}", &known.host));
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Lock {
    Ours,
    Taken,
    Unknown,
}

fn lock(file: &File) -> Lock {
    // SAFETY: the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Lock::Ours;
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EWOULDBLOCK) => Lock::Taken,
        _ => Lock::Unknown,
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("iodock-load-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn removing_a_tree_leaves_files_of_others() {
        let folder = scratch("foreign");
        let outside = folder.join("outside.txt");
        std::fs::write(&outside, "mine").unwrap();
        let tree = Tree::make(&folder, None).unwrap();
        let root = tree.path().to_owned();
        std::fs::create_dir(root.join("w0")).unwrap();
        std::fs::write(root.join("w0/f1"), "x").unwrap();
        std::fs::write(root.join("w0/thesis.tex"), "x").unwrap();
        // The removal must not follow a link that has one of this program's names.
        std::os::unix::fs::symlink(&folder, root.join("w1")).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("f2")).unwrap();
        let left = tree.remove();
        assert!(left.contains(&root.join("w0/thesis.tex").display().to_string()), "{left:?}");
        assert!(!root.join("w0/f1").exists() && !root.join("f2").exists());
        assert!(root.join("tag").exists());
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_unused_trees_are_cleaned() {
        let folder = scratch("clean");
        let tree = Tree::make(&folder, None).unwrap();
        std::fs::create_dir(folder.join(".iodock-load-mine")).unwrap();
        std::fs::write(folder.join(".iodock-load-mine/notes"), "x").unwrap();
        let cleaned = clean(&folder, false).unwrap();
        assert!(cleaned.removed.is_empty() && cleaned.kept.len() == 2, "{cleaned:?}");
        let root = tree.path().to_owned();
        let mut tag: Tag = serde_json::from_str(&std::fs::read_to_string(root.join("tag")).unwrap()).unwrap();
        // The test imitates a killed engine: there is no lock, and the process id belongs to another process.
        drop(tree);
        tag.start_ticks += 1;
        std::fs::write(root.join("tag"), serde_json::to_string(&tag).unwrap()).unwrap();
        assert_eq!(clean(&folder, false).unwrap().removed, [root.display().to_string()]);
        assert!(!root.exists() && folder.join(".iodock-load-mine/notes").exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
