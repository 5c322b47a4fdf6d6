//! Checks whether a file system is local to this machine.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

// Types of file systems in the result of statfs(2).
const EXT4: i64 = 0xef53;
const XFS: i64 = 0x5846_5342;
const BTRFS: i64 = 0x9123_683e;
const F2FS: i64 = 0xf2f5_2010;
const ZFS: i64 = 0x2fc1_2fc1;
const OVERLAY: i64 = 0x794c_7630;
const TMPFS: i64 = 0x0102_1994;
const LOCAL: [i64; 7] = [EXT4, XFS, BTRFS, F2FS, ZFS, OVERLAY, TMPFS];

/// Whether the file system is local; false for network and parallel file systems, and for unknown types.
///
/// # Errors
/// The path does not exist, or can't be examined.
pub fn is_local(path: &Path) -> io::Result<bool> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero byte, and there is space for the result.
    let (done, system) = unsafe {
        let mut system: libc::statfs = std::mem::zeroed();
        (libc::statfs(path.as_ptr(), &mut system) == 0, system)
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    Ok(LOCAL.contains(&system.f_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_the_kernel_are_not_local_disks() {
        assert!(!is_local(Path::new("/proc")).expect("its type"));
        assert!(is_local(Path::new("/nowhere at all")).is_err());
    }
}
