//! Interprets the kernel's names of maps.

/// Prefixes of names that are not files, or whose maps have no pages of a file.
const NO_FILES: [&[u8]; 7] = [b"//", b"/memfd:", b"/SYSV", b"/dev/", b"/anon_hugepage", b"/[", b"/dmabuf"];
const DELETED: &[u8] = b" (deleted)";
/// Folders that contain programs, libraries and their data.
const OF_SYSTEM: [&[u8]; 7] = [b"/usr/", b"/lib/", b"/lib64/", b"/lib32/", b"/bin/", b"/sbin/", b"/etc/"];

/// Returns the name of the file, if the map is one of a file.
pub fn file_of(path: &[u8]) -> Option<&[u8]> {
    let is_file = path.first() == Some(&b'/')
        && !is_own(path)
        && (path.starts_with(b"/dev/shm/") || NO_FILES.iter().all(|name| !path.starts_with(name)));
    is_file.then(|| path.strip_suffix(DELETED).unwrap_or(path))
}

/// Returns whether this is the file that a recorder shares with the recorded programs:
/// `iodock-PID-NUMBER/session`.
fn is_own(path: &[u8]) -> bool {
    let mut names = path.rsplit(|&byte| byte == b'/');
    names.next() == Some(b"session") && names.next().is_some_and(|folder| folder.starts_with(b"iodock-"))
}

/// Returns whether a program maps the file only because it executes it.
pub fn belongs_to_programs(path: &[u8]) -> bool {
    if OF_SYSTEM.iter().any(|folder| path.starts_with(folder)) {
        return true;
    }
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.ends_with(b".so") || name.windows(4).any(|part| part == b".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_maps_of_real_files_are_accepted() {
        assert_eq!(file_of(b"/data/a"), Some(&b"/data/a"[..]));
        assert_eq!(file_of(b"/data/a (deleted)"), Some(&b"/data/a"[..]));
        assert_eq!(file_of(b"/dev/shm/a"), Some(&b"/dev/shm/a"[..]));
        for name in [&b"//anon"[..], b"[heap]", b"/dev/zero", b"anon_inode:[x]", b""] {
            assert_eq!(file_of(name), None);
        }
        for name in [&b"/memfd:x (deleted)"[..], b"/dev/shm/iodock-7-a1/session"] {
            assert_eq!(file_of(name), None);
        }
        assert_eq!(file_of(b"/data/iodock-7/a"), Some(&b"/data/iodock-7/a"[..]));
    }

    #[test]
    fn libraries_are_recognised_by_name_and_folder() {
        for name in [&b"/opt/x/libm.so"[..], b"/home/u/libz.so.1.2", b"/usr/share/zoneinfo/UTC"] {
            assert!(belongs_to_programs(name));
        }
        for name in [&b"/data/a.sort"[..], b"/home/u/a.so.d/b", b"/scratch/usr/a"] {
            assert!(!belongs_to_programs(name));
        }
    }
}
