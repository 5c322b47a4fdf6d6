//! Removes a tree. It removes only files with names that this program gives; all other files stay and are
//! reported.

use crate::folders::{open_directory, status_of};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the file that identifies the process that created a tree.
pub const TAG: &CStr = c"tag";
/// Longest time for which the removal waits, for example for a server.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Removes this program's files in a tree, and the tree itself. Returns the files that stay.
pub fn remove_tree(path: &Path, root: &OwnedFd) -> Vec<String> {
    let start = Instant::now();
    let mut foreign;
    loop {
        foreign = Vec::new();
        let device = status_of(root.as_raw_fd()).map(|status| status.st_dev).unwrap_or(0);
        empty(root, path, device, true, &mut foreign);
        if foreign.is_empty() {
            // The tag is removed last, so that a later run can still remove the rest if the removal is
            // interrupted.
            // SAFETY: the descriptor is open, and the name is a C string.
            unsafe { libc::unlinkat(root.as_raw_fd(), TAG.as_ptr(), 0) };
        }
        match std::fs::remove_dir(path) {
            Ok(()) => return Vec::new(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            // The folder may not be empty yet: a server may still process an earlier creation, and an NFS
            // client keeps removed files that are open.
            Err(_) if foreign.is_empty() && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(_) => break,
        }
    }
    if foreign.is_empty() {
        foreign.push(path.display().to_string());
    }
    foreign
}

/// Removes this program's files in a folder, except the tag, and adds all others to `foreign`.
fn empty(folder: &OwnedFd, path: &Path, device: libc::dev_t, is_root: bool, foreign: &mut Vec<String>) {
    let Ok(names) = entries(folder) else { return foreign.push(path.display().to_string()) };
    for name in names {
        if is_root && name.as_c_str() == TAG {
            continue;
        }
        let place = || path.join(OsStr::from_bytes(name.to_bytes()));
        let gone = match kind_of(name.to_bytes()) {
            Some(Own::File) => unlink(folder, &name, 0),
            Some(Own::Folder) => {
                if let Ok(inner) = open_directory(folder.as_raw_fd(), &name) {
                    if status_of(inner.as_raw_fd()).is_ok_and(|status| status.st_dev == device) {
                        empty(&inner, &place(), device, false, foreign);
                    }
                }
                unlink(folder, &name, libc::AT_REMOVEDIR)
            }
            None => false,
        };
        if !gone && foreign.len() < 20 {
            foreign.push(place().display().to_string());
        }
    }
}

fn unlink(folder: &OwnedFd, name: &CStr, flags: i32) -> bool {
    // SAFETY: the descriptor is open, and the name is a C string.
    unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), flags) == 0 }
}

#[derive(Debug, PartialEq, Eq)]
enum Own {
    File,
    Folder,
}

/// Returns whether a name that this program gives is that of a file or a folder. None for other names.
fn kind_of(name: &[u8]) -> Option<Own> {
    let numbered =
        |rest: &[u8]| !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    match name {
        b"meet" => Some(Own::Folder),
        b"plan" | b"plan.new" | b"go" => Some(Own::File),
        [b'w' | b'd', rest @ ..] if numbered(rest) => Some(Own::Folder),
        // These are files of workers, states of ranks, and results of ranks.
        [b'f' | b'r' | b's' | b'n', rest @ ..] if numbered(rest) => Some(Own::File),
        _ => None,
    }
}

/// Returns the names in a folder, without `.` and `..`.
pub fn entries(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    // A separate descriptor is needed, because closedir closes it, and because reading must start at the
    // beginning.
    let own = open_directory(folder.as_raw_fd(), c".")?;
    // SAFETY: fdopendir takes over the descriptor, and each name is copied before the next readdir.
    unsafe {
        let stream = libc::fdopendir(std::os::fd::IntoRawFd::into_raw_fd(own));
        if stream.is_null() {
            return Err(io::Error::last_os_error());
        }
        let mut names = Vec::new();
        while let Some(entry) = libc::readdir(stream).as_ref() {
            let name = CStr::from_ptr(entry.d_name.as_ptr());
            if name != c"." && name != c".." {
                names.push(name.to_owned());
            }
        }
        libc::closedir(stream);
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_names_of_iodock_are_removed() {
        for name in ["w0", "w12", "d7", "meet"] {
            assert_eq!(kind_of(name.as_bytes()), Some(Own::Folder), "{name}");
        }
        for name in ["f0", "r3", "s17.2", "go", "plan"] {
            assert_eq!(kind_of(name.as_bytes()), Some(Own::File), "{name}");
        }
        for name in ["", "w", "f", "work", "f1.dat", "thesis.tex", "W1", "f-1", "..", "w1 "] {
            assert_eq!(kind_of(name.as_bytes()), None, "{name}");
        }
    }
}
