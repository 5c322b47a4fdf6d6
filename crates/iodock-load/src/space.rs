//! Checks free space before a run writes anything: bytes, inodes and the user's quota.

use crate::cache;
use crate::error::{Kind, LoadError};
use std::io;
use std::os::fd::RawFd;
use std::time::{SystemTime, UNIX_EPOCH};

/// Largest amounts that a run may need at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    pub bytes: u64,
    pub inodes: u64,
}

/// Free space and inodes. None if the file system has no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub bytes: Option<u64>,
    pub inodes: Option<u64>,
}

/// Returns the free space of a file system.
///
/// # Errors
/// Fails if the file system does not report it.
pub fn free(fd: RawFd) -> io::Result<Free> {
    // SAFETY: zeroes are a valid statvfs, and the kernel fills it in.
    let status = unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        if libc::fstatvfs(fd, &mut status) != 0 {
            return Err(io::Error::last_os_error());
        }
        status
    };
    // A tmpfs without a size limit reports zero blocks.
    let blocks = (status.f_blocks > 0).then(|| status.f_bavail.saturating_mul(status.f_frsize));
    let memory = if cache::is_in_memory(cache::magic_of(fd)) { memory_left() } else { None };
    Ok(Free {
        bytes: [blocks, memory].into_iter().flatten().min(),
        // btrfs, NFS servers and other systems that create inodes as needed report zero.
        inodes: (status.f_files > 0).then_some(status.f_favail),
    })
}

/// Returns the bytes that files in memory may use before the kernel would kill programs. This limit is needed
/// because a tmpfs may promise more than the memory holds. Returns None if /proc does not show it.
fn memory_left() -> Option<u64> {
    let said = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(memory_in(&said)?.saturating_mul(1024) / 4 * 3)
}

/// Parses /proc/meminfo (proc(5)), and returns the KiB of free memory and swap.
fn memory_in(said: &str) -> Option<u64> {
    let of = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(of("MemAvailable")? + of("SwapFree").unwrap_or(0))
}

/// The kernel's `struct if_dqblk`.
#[repr(C)]
#[derive(Default)]
struct Quota {
    block_hard_kib: u64,
    block_soft_kib: u64,
    used_bytes: u64,
    inode_hard: u64,
    inode_soft: u64,
    used_inodes: u64,
    block_time: u64,
    inode_time: u64,
    valid: u32,
}

const Q_GETQUOTA: i32 = 0x80_0007;
const SYS_QUOTACTL_FD: libc::c_long = 443;

/// Returns the remaining quota of this user, and of the group that new files in the folder get. Its fields
/// are None if there is no quota, or the file system does not report it. `free` already includes the project
/// quota of a folder, which ordinary users may not query.
pub fn quota(fd: RawFd) -> Free {
    // SAFETY: geteuid has no arguments and can't fail.
    let user = unsafe { libc::geteuid() };
    let left = [(0, user), (1, group_of_new_files(fd))].map(|(kind, id)| quota_of(fd, kind, id));
    let least = |one: fn(&Free) -> Option<u64>| left.iter().filter_map(one).min();
    Free { bytes: least(|free| free.bytes), inodes: least(|free| free.inodes) }
}

/// Returns the group of new files. A folder with the set-group-ID bit passes on its own group.
fn group_of_new_files(fd: RawFd) -> u32 {
    // SAFETY: zeroes are a valid stat, which the kernel fills in; getegid can't fail.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let is_known = libc::fstat(fd, &mut status) == 0;
        if is_known && status.st_mode & libc::S_ISGID != 0 {
            status.st_gid
        } else {
            libc::getegid()
        }
    }
}

fn quota_of(fd: RawFd, kind: i32, id: u32) -> Free {
    let mut quota = Quota::default();
    let command = (Q_GETQUOTA << 8) | kind;
    // SAFETY: the kernel fills in a struct of its layout. An unknown call number only gives ENOSYS.
    let done = unsafe { libc::syscall(SYS_QUOTACTL_FD, fd, command, id, std::ptr::from_mut(&mut quota)) };
    if done != 0 {
        return Free { bytes: None, inodes: None };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let kib = |kib: u64| kib.saturating_mul(1024);
    let bytes = Limits {
        used: quota.used_bytes,
        soft: kib(quota.block_soft_kib),
        hard: kib(quota.block_hard_kib),
        grace_end: quota.block_time,
    };
    let inodes = Limits {
        used: quota.used_inodes,
        soft: quota.inode_soft,
        hard: quota.inode_hard,
        grace_end: quota.inode_time,
    };
    Free { bytes: bytes.left(now), inodes: inodes.left(now) }
}

/// Limits of a quota. A limit of 0 means that there is none; `grace_end` is 0 if the grace time has not
/// begun.
struct Limits {
    used: u64,
    soft: u64,
    hard: u64,
    /// Time by which usage must be below the soft limit again, in seconds since the epoch.
    grace_end: u64,
}

impl Limits {
    /// Returns the amount that the kernel still allows: up to the hard limit, or nothing if the soft limit
    /// was exceeded for too long. A program may exceed the soft limit until the grace time ends.
    fn left(&self, now: u64) -> Option<u64> {
        if self.soft > 0 && self.used > self.soft && (1..=now).contains(&self.grace_end) {
            return Some(0);
        }
        (self.hard > 0).then(|| self.hard.saturating_sub(self.used))
    }
}

/// Checks that there is room for `need`, plus one twentieth and 1 MiB for the file system's metadata.
///
/// # Errors
/// Fails with `NoSpace`, with the required and the available amount, if there is too little.
pub fn check(fd: RawFd, place: &str, need: Need) -> Result<(), LoadError> {
    let free = free(fd).map_err(|error| LoadError::system(place, &error))?;
    let quota = quota(fd);
    let bytes = need.bytes.saturating_add(need.bytes / 20).saturating_add(1 << 20);
    let inodes = need.inodes.saturating_add(need.inodes / 20).saturating_add(16);
    let short = [
        (bytes, free.bytes, "bytes free"),
        (bytes, quota.bytes, "bytes left of your quota"),
        (inodes, free.inodes, "inodes free"),
        (inodes, quota.inodes, "inodes left of your quota"),
    ];
    for (wanted, there, what) in short {
        if let Some(there) = there.filter(|&there| there < wanted) {
            let message = format!("{place}: {there} {what}, and this check-up needs {wanted}");
            let hint = "make room, take a smaller class, or fewer --processes and smaller --sizes";
            return Err(LoadError::new(Kind::NoSpace, message, hint));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_space_under_a_quota_is_what_the_kernel_grants() {
        let left = |used, soft, hard, grace_end| Limits { used, soft, hard, grace_end }.left(1000);
        assert_eq!(left(5, 0, 0, 0), None);
        assert_eq!(left(5, 0, 20, 0), Some(15));
        assert_eq!(left(25, 0, 20, 0), Some(0));
        // Above the soft limit, the hard limit applies until the grace time is over.
        assert_eq!(left(15, 10, 20, 1001), Some(5));
        assert_eq!(left(15, 10, 20, 1000), Some(0));
        assert_eq!(left(15, 10, 0, 0), None);
        assert_eq!(left(15, 10, 0, 999), Some(0));
        // Usage fell below the soft limit in time, so the recorded end of the grace time no longer counts.
        assert_eq!(left(10, 10, 20, 999), Some(10));
    }

    #[test]
    fn files_in_memory_need_memory() {
        let said = "MemTotal:  100 kB\nMemFree:    1 kB\nMemAvailable:      40 kB\nSwapFree:  2 kB\n";
        assert_eq!(memory_in(said), Some(42));
        assert_eq!(memory_in("MemAvailable: 40 kB\n"), Some(40));
        assert_eq!(memory_in("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn files_in_a_setgid_folder_count_for_its_group() {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let place = std::env::temp_dir().join(format!("iodock-load-group-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        let folder = std::fs::File::open(&place).unwrap();
        // SAFETY: these functions have no arguments and can't fail.
        let (own, user) = unsafe { (libc::getegid(), libc::geteuid()) };
        assert_eq!(group_of_new_files(folder.as_raw_fd()), own);
        let other = if user == 0 { 65534 } else { own };
        std::os::unix::fs::chown(&place, None, Some(other)).unwrap();
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o2755)).unwrap();
        assert_eq!(group_of_new_files(folder.as_raw_fd()), other);
        let made = place.join("made");
        std::fs::write(&made, "").unwrap();
        assert_eq!(made.metadata().unwrap().gid(), other);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
