//! Determines where read data came from and where written data went: memory, a device, or unknown.

use crate::shared::Pages;
use crate::under::Under;
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    Cached,
    Uncached,
    /// The read bypassed the file system's page cache, but a lower layer may have a cache on this machine.
    MaybeCached,
    /// The write was not synced within the measured time, so its data went into the page cache.
    PageCache,
    Unknown,
}

/// Place where a kind of file system caches data. The kind is the magic number of statfs(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// In the kernel's page cache. mincore(2) shows which pages are there.
    Pages,
    /// In memory, where the files themselves are.
    Memory,
    /// In its own cache on this machine, which has this name. No system call shows its content.
    Elsewhere(&'static str),
    /// In a cache with this name that a server keeps for all its clients, perhaps on another machine.
    Served(&'static str),
}

/// Name of a cache that O_DIRECT bypasses.
const GPFS: &str = "GPFS's page pool";
const NFS: i64 = 0x6969;

/// The process that wrote the data being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Own,
    /// A rank on this machine, or on an unknown machine.
    OtherRank,
    OtherMachine,
}

fn keeps(magic: i64) -> Keeps {
    match magic & 0xffff_ffff {
        0x0102_1994 | 0x8584_58f6 => Keeps::Memory,
        0x4750_4653 => Keeps::Elsewhere(GPFS),
        0x2fc1_2fc1 => Keeps::Elsewhere("ZFS's ARC"),
        0x6573_5546 => Keeps::Elsewhere("the FUSE server's own cache"),
        0x0102_1997 => Keeps::Served("the 9p server's own cache"),
        _ => Keeps::Pages,
    }
}

/// Returns whether this kind of file system keeps its files only in memory.
pub fn is_in_memory(magic: i64) -> bool {
    keeps(magic) == Keeps::Memory
}

/// Returns the kind of file system, as statfs(2) numbers it; 0 if unknown.
pub fn magic_of(fd: RawFd) -> i64 {
    // SAFETY: zeroes are a valid statfs, and the kernel fills it in.
    unsafe {
        let mut status: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(fd, &mut status) == 0 {
            status.f_type as i64
        } else {
            0
        }
    }
}

/// Requests that the kernel drop the first `length` bytes of a file from memory, then counts the pages that
/// are still there.
pub fn drop_and_look(fd: RawFd, length: u64) -> Pages {
    let mut pages = Pages::default();
    for _ in 0..2 {
        // SAFETY: posix_fadvise accesses no memory of the caller, and the descriptor is open.
        unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) };
        pages = look(fd, length);
        if pages.in_memory == 0 {
            break;
        }
    }
    pages
}

/// Counts the pages of the first `length` bytes that are in memory. Returns zero pages if the kernel does not
/// report them.
pub fn look(fd: RawFd, length: u64) -> Pages {
    const WINDOW: u64 = 256 << 20;
    // SAFETY: sysconf accesses no memory of the caller.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as u64;
    let mut pages = Pages::default();
    let mut vector = Vec::new();
    for start in (0..length).step_by(WINDOW as usize) {
        let size = (length - start).min(WINDOW);
        vector.resize(size.div_ceil(page) as usize, 0u8);
        // SAFETY: the mapping is new and of an open file, its memory is not accessed, and the vector has a
        // byte per page.
        let looked = unsafe {
            let (size, start) = (size as usize, start as libc::off_t);
            let map = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, fd, start);
            if map == libc::MAP_FAILED {
                return Pages::default();
            }
            let done = libc::mincore(map, size, vector.as_mut_ptr());
            libc::munmap(map, size);
            done == 0
        };
        if !looked {
            return Pages::default();
        }
        pages.looked_at += vector.len() as u64;
        pages.in_memory += vector.iter().filter(|&&page| page & 1 == 1).count() as u64;
    }
    pages
}

/// Returns the label of a read and its reason. `pages` were counted before the read.
pub fn label(magic: i64, under: &Under, pages: Pages, origin: Origin) -> (Cache, String) {
    let share = pages.in_memory as f64 / pages.looked_at.max(1) as f64;
    let written = match origin {
        Origin::Own => "",
        Origin::OtherRank => "written by another rank; ",
        Origin::OtherMachine => "written on another node; ",
    };
    let is_far = origin == Origin::OtherMachine;
    match keeps(magic) {
        Keeps::Memory => (Cache::Cached, "this file system keeps its files in memory".into()),
        _ if is_memory(under) => (Cache::Cached, why_of(under)),
        Keeps::Elsewhere(cache) | Keeps::Served(cache) if pages.direct > 0 && cache != GPFS => {
            (Cache::MaybeCached, format!("O_DIRECT, but {cache} can't be looked into"))
        }
        _ if pages.direct > 0 => match under {
            Under::Perhaps(why) => (Cache::MaybeCached, format!("O_DIRECT, but {why}")),
            _ => (Cache::Uncached, "O_DIRECT; servers and disks may have caches of their own".into()),
        },
        Keeps::Elsewhere(cache) if is_far => {
            (Cache::Uncached, format!("{written}{cache} here had none of it"))
        }
        Keeps::Elsewhere(cache) | Keeps::Served(cache) => {
            (Cache::Unknown, format!("{written}{cache} can't be looked into"))
        }
        Keeps::Pages if pages.looked_at == 0 && is_far => {
            (Cache::Uncached, format!("{written}mincore does not tell"))
        }
        Keeps::Pages if pages.looked_at == 0 => (Cache::Unknown, format!("{written}mincore does not tell")),
        Keeps::Pages if share <= 0.01 => {
            let found =
                format!("{written}dropped by fadvise; mincore found {:.1} % in memory", share * 100.0);
            match under {
                Under::Perhaps(why) => (Cache::MaybeCached, format!("{found}, but {why}")),
                _ => (Cache::Uncached, found),
            }
        }
        Keeps::Pages if share >= 0.99 => {
            (Cache::Cached, format!("mincore found {:.1} % in memory", share * 100.0))
        }
        Keeps::Pages => (Cache::Unknown, format!("{written}mincore found {:.1} % in memory", share * 100.0)),
    }
}

fn is_memory(under: &Under) -> bool {
    matches!(under, Under::Memory(_))
}

fn why_of(under: &Under) -> String {
    match under {
        Under::Devices => String::new(),
        Under::Memory(why) | Under::Perhaps(why) => why.clone(),
    }
}

/// Returns the label of a write and its reason. `synced` says that the measured time includes fsync. The
/// label is None if the program requested that the data be written as far as possible.
pub fn label_of_write(magic: i64, under: &Under, synced: bool, direct: bool) -> (Option<Cache>, String) {
    if keeps(magic) == Keeps::Memory {
        return (Some(Cache::Cached), "this file system keeps its files in memory".into());
    }
    match under {
        Under::Memory(why) => (Some(Cache::Cached), why.clone()),
        _ if synced => (None, "fsync within the measured time".into()),
        Under::Perhaps(why) if direct => {
            (Some(Cache::MaybeCached), format!("O_DIRECT without fsync, but {why}"))
        }
        _ if direct => (None, "O_DIRECT".into()),
        // nfs(5): the client sends all data before close returns, and the measured time includes close.
        _ if magic & 0xffff_ffff == NFS => (None, "sent to the server by close".into()),
        _ => (Some(Cache::PageCache), "no fsync within the time: written into the page cache".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{label, label_of_write, Cache, Origin, NFS};
    use crate::shared::Pages;
    use crate::under::Under;
    const EXT4: i64 = 0xef53;
    const GPFS: i64 = 0x4750_4653;

    #[test]
    fn the_cache_label_claims_only_what_is_known() {
        let pages = |looked_at, in_memory, direct| Pages { looked_at, in_memory, direct };
        let own = |magic, pages| label(magic, &Under::Devices, pages, Origin::Own).0;
        assert_eq!(own(EXT4, pages(1000, 0, 0)), Cache::Uncached);
        assert_eq!(own(EXT4, pages(1000, 1000, 0)), Cache::Cached);
        assert_eq!(own(EXT4, pages(1000, 500, 0)), Cache::Unknown);
        assert_eq!(own(EXT4, pages(0, 0, 0)), Cache::Unknown);
        assert_eq!(own(EXT4, pages(0, 0, 1)), Cache::Uncached);
        assert_eq!(own(0x0102_1994, pages(0, 0, 1)), Cache::Cached);
        assert_eq!(own(0x6573_5546, pages(1000, 0, 0)), Cache::Unknown);
        // The server, on this machine or on the host of this virtual machine, may have the data in its cache.
        assert_eq!(own(0x6573_5546, pages(0, 0, 1)), Cache::MaybeCached);
        assert_eq!(own(0x0102_1997, pages(0, 0, 1)), Cache::MaybeCached);
        assert_eq!(own(0x2fc1_2fc1, pages(0, 0, 1)), Cache::MaybeCached);
        assert_eq!(own(GPFS, pages(0, 0, 1)), Cache::Uncached);
    }

    #[test]
    fn devices_below_a_file_system_may_have_a_cache() {
        let (stacked, memory) = (Under::Perhaps("loop0 is buffered".into()), Under::Memory("zram0".into()));
        let pages = |looked_at, in_memory, direct| Pages { looked_at, in_memory, direct };
        let of = |under, pages| label(EXT4, under, pages, Origin::Own).0;
        assert_eq!(of(&stacked, pages(0, 0, 1)), Cache::MaybeCached);
        assert_eq!(of(&stacked, pages(1000, 0, 0)), Cache::MaybeCached);
        assert_eq!(of(&stacked, pages(1000, 1000, 0)), Cache::Cached);
        assert_eq!(of(&stacked, pages(1000, 500, 0)), Cache::Unknown);
        assert_eq!(of(&memory, pages(0, 0, 1)), Cache::Cached);
        let why = label(EXT4, &stacked, pages(0, 0, 1), Origin::Own).1;
        assert_eq!(why, "O_DIRECT, but loop0 is buffered");
    }

    #[test]
    fn a_write_without_sync_went_into_the_page_cache() {
        let (stacked, memory) = (Under::Perhaps("loop0 is buffered".into()), Under::Memory("zram0".into()));
        let of = |magic, under, synced, direct| label_of_write(magic, under, synced, direct).0;
        assert_eq!(of(EXT4, &Under::Devices, false, false), Some(Cache::PageCache));
        assert_eq!(of(EXT4, &Under::Devices, true, false), None);
        assert_eq!(of(EXT4, &Under::Devices, false, true), None);
        assert_eq!(of(EXT4, &stacked, false, true), Some(Cache::MaybeCached));
        assert_eq!(of(EXT4, &stacked, true, true), None);
        assert_eq!(of(EXT4, &memory, true, true), Some(Cache::Cached));
        assert_eq!(of(0x0102_1994, &Under::Devices, true, false), Some(Cache::Cached));
        assert_eq!(of(NFS, &Under::Devices, false, false), None);
    }

    #[test]
    fn data_written_by_another_machine_is_not_in_the_local_cache() {
        let pages = |looked_at, in_memory| Pages { looked_at, in_memory, direct: 0 };
        let far = |magic, pages| label(magic, &Under::Devices, pages, Origin::OtherMachine);
        assert_eq!(far(GPFS, pages(0, 0)).0, Cache::Uncached);
        assert_eq!(label(GPFS, &Under::Devices, pages(0, 0), Origin::OtherRank).0, Cache::Unknown);
        assert_eq!(far(EXT4, pages(0, 0)).0, Cache::Uncached);
        assert!(far(EXT4, pages(1000, 0)).1.starts_with("written on another node; dropped"));
        // mincore shows these pages in memory, so the read may have used them.
        assert_eq!(far(EXT4, pages(1000, 500)).0, Cache::Unknown);
        assert_eq!(far(0x0102_1997, pages(0, 0)).0, Cache::Unknown);
    }
}
