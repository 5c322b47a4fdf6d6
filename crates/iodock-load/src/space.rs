//! What is free: bytes, inodes, and the user's quota, looked at before anything is written.

use crate::error::{Kind, LoadError};
use std::io;
use std::os::fd::RawFd;

/// What a run may need at most at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    pub bytes: u64,
    pub inodes: u64,
}

/// None where the file system has no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub bytes: Option<u64>,
    pub inodes: Option<u64>,
}

/// # Errors
/// The file system does not answer.
pub fn free(fd: RawFd) -> io::Result<Free> {
    // SAFETY: zeroes are a valid statvfs; the kernel fills it in.
    let status = unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        if libc::fstatvfs(fd, &mut status) != 0 {
            return Err(io::Error::last_os_error());
        }
        status
    };
    Ok(Free {
        // A tmpfs without a size says zero blocks.
        bytes: (status.f_blocks > 0).then(|| status.f_bavail.saturating_mul(status.f_frsize)),
        // btrfs, NFS servers and others that make inodes as needed say zero.
        inodes: (status.f_files > 0).then_some(status.f_favail),
    })
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

/// What the quotas of this user and group leave; None where there is none, or the file system does not say.
pub fn quota(fd: RawFd) -> Free {
    // SAFETY: no arguments, can't fail.
    let ids = unsafe { [(0, libc::geteuid()), (1, libc::getegid())] };
    let left = ids.map(|(kind, id)| quota_of(fd, kind, id));
    let least = |one: fn(&Free) -> Option<u64>| left.iter().filter_map(one).min();
    Free { bytes: least(|free| free.bytes), inodes: least(|free| free.inodes) }
}

fn quota_of(fd: RawFd, kind: i32, id: u32) -> Free {
    let mut quota = Quota::default();
    let command = (Q_GETQUOTA << 8) | kind;
    // SAFETY: the kernel fills in a struct of its layout; an unknown call number gives ENOSYS.
    let done = unsafe { libc::syscall(SYS_QUOTACTL_FD, fd, command, id, std::ptr::from_mut(&mut quota)) };
    if done != 0 {
        return Free { bytes: None, inodes: None };
    }
    let limit = |hard: u64, soft: u64| [soft, hard].into_iter().filter(|&limit| limit > 0).min();
    let bytes = limit(quota.block_hard_kib, quota.block_soft_kib).map(|kib| kib.saturating_mul(1024));
    Free {
        bytes: bytes.map(|limit| limit.saturating_sub(quota.used_bytes)),
        inodes: limit(quota.inode_hard, quota.inode_soft)
            .map(|limit| limit.saturating_sub(quota.used_inodes)),
    }
}

/// That there is room for `need`, and a twentieth and 1 MiB besides for the file system's own tables.
///
/// # Errors
/// `NoSpace`, with what is wanted and what there is.
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
