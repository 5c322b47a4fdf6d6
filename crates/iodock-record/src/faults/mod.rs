//! Records accesses of programs through mapped files. No call shows them, but the first access to each page
//! is a page fault, and the kernel counts page faults for any user (`perf_event_open`).
//!
//! This costs nothing until a process is about to map a file that contains data and is not a program. Then
//! all its page faults and those of its descendants are sampled. A separate thread empties the kernel's ring
//! buffers and writes the faults in files to `journal/PART.faults`, a journal with nothing else. So back ends
//! only have to report which process is about to map a file ([`PageFaults::about_to_map`]).
//! docs/decisions/0008-page-faults-on-demand.md gives the reasons.

mod abi;
mod follow;
mod paths;
mod proc;
mod records;
mod ring;
mod spaces;
mod watch;

pub use follow::{follow, Outcome};

use crate::locks::lock;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use watch::Watch;

/// File name extension of the files with page faults, which are next to the journals.
pub const ENDING: &str = "faults";

/// Smallest size in bytes of a map for which a process is watched. A program reads less than a megabyte in a
/// short time.
const LEAST_BYTES: u64 = 1 << 20;

/// Says when page faults are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// From the first time that a process maps a file of 1 MiB or more that is neither program nor library.
    #[default]
    Auto,
    /// From the first map of any file, including programs and libraries.
    Always,
    Never,
}

impl Mode {
    pub const NAMES: [(&'static str, Mode); 3] =
        [("auto", Mode::Auto), ("always", Mode::Always), ("never", Mode::Never)];

    pub fn from_name(name: &str) -> Option<Mode> {
        Mode::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, mode)| mode)
    }
}

/// Flag that the dynamic linker sets and the kernel ignores.
const MAP_DENYWRITE: u64 = 0x800;

/// Returns whether the map is one of a program or library.
fn runs(protection: u64, flags: u64) -> bool {
    protection & libc::PROT_EXEC as u64 != 0 || flags & MAP_DENYWRITE != 0
}

/// An mmap(2) that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Id of the process (thread group).
    pub pid: u32,
    pub address: u64,
    /// Length of the map in bytes.
    pub length: u64,
    pub flags: u64,
}

/// Arguments of an mmap(2) that a program is about to make.
#[derive(Clone, Copy, Debug)]
pub struct MapCall {
    /// Id of the process (thread group).
    pub pid: u32,
    /// Length of the map in bytes.
    pub length: u64,
    pub protection: u64,
    pub flags: u64,
    pub fd: i32,
}

/// State that the back end and the thread that follows page faults share.
#[derive(Default)]
pub struct PageFaults {
    mode: Mode,
    watch: Mutex<Watch>,
    /// Signals that a process is watched, or that the recording is over.
    news: Condvar,
    over: AtomicBool,
    refused_maps: AtomicU64,
    /// Number of maps that did not exist any more when they were examined.
    missed_maps: AtomicU64,
}

impl PageFaults {
    pub fn new(mode: Mode) -> Self {
        PageFaults { mode, ..PageFaults::default() }
    }

    /// Starts watching a process if the file that it is about to map is worth it. If the process is stopped
    /// before its mmap, no fault in the map is missed. After a later call, pages that are present already
    /// count as accessed.
    #[inline]
    pub fn about_to_map(&self, call: &MapCall) {
        const MAP_ANONYMOUS: u64 = 0x20;
        if self.mode != Mode::Never && call.fd >= 0 && call.flags & MAP_ANONYMOUS == 0 {
            self.consider(call);
        }
    }

    /// Starts watching a process that has maps already, if one is worth it. Returns whether the process is
    /// watched now.
    pub fn look_at(&self, pid: u32) -> bool {
        let is_worth = |map: &proc::Line| self.is_worth(map.length, map.protection, 0, &map.path);
        self.mode != Mode::Never && proc::maps(pid).iter().any(is_worth) && self.begin(pid)
    }

    /// Starts watching a process after an mmap, for back ends that learn of it later.
    pub fn has_mapped(&self, mapped: &Mapped) {
        let is_enough = self.least_bytes().is_some_and(|least| mapped.length >= least);
        let may_be_data = self.mode == Mode::Always || mapped.flags & MAP_DENYWRITE == 0;
        if is_enough && may_be_data && !self.look_at(mapped.pid) {
            // If the map still exists, `look_at` has examined it and found it not worth watching. If it was
            // replaced or removed, nothing is known about it.
            let is_there = proc::maps(mapped.pid).iter().any(|map| map.is_of_a_file_at(mapped.address));
            self.missed_maps.fetch_add(u64::from(!is_there), Relaxed);
        }
    }

    /// Starts watching a process before it executes the program, if all maps are wanted, so that none is
    /// missed.
    pub fn about_to_execute(&self, pid: u32) {
        if self.mode == Mode::Always {
            self.begin_by(|watch| watch.begin_before_exec(pid));
        }
    }

    /// Returns the size in bytes from which a map may be worth watching. `None` if none is.
    pub fn least_bytes(&self) -> Option<u64> {
        match self.mode {
            Mode::Never => None,
            Mode::Always => Some(1),
            Mode::Auto => Some(LEAST_BYTES),
        }
    }

    /// Returns whether `pid` has mapped a file below `folder`. This check is needed because a process in a
    /// pid namespace reports an id that may be another process's here.
    pub fn knows(pid: u32, folder: &Path) -> bool {
        let folder = folder.as_os_str().as_bytes();
        proc::maps(pid).iter().any(|map| map.path.starts_with(folder))
    }

    fn consider(&self, call: &MapCall) {
        if self.mode == Mode::Auto && (call.length < LEAST_BYTES || runs(call.protection, call.flags)) {
            return;
        }
        let path = proc::descriptor(call.pid, call.fd);
        if self.is_worth(call.length, call.protection, call.flags, &path) {
            self.begin(call.pid);
        }
    }

    fn is_worth(&self, length: u64, protection: u64, flags: u64, path: &[u8]) -> bool {
        match paths::file_of(path) {
            None => false,
            Some(_) if self.mode == Mode::Always => true,
            Some(file) => {
                length >= LEAST_BYTES && !runs(protection, flags) && !paths::belongs_to_programs(file)
            }
        }
    }

    fn begin(&self, pid: u32) -> bool {
        let mut is_watched = false;
        // `begin_by` also returns true if the process has ended before it could be watched.
        self.begin_by(|watch| is_watched = watch.begin(pid)) && is_watched
    }

    fn begin_by(&self, begin: impl FnOnce(&mut Watch)) -> bool {
        let mut watch = lock(&self.watch);
        if watch.refusal.is_none() {
            begin(&mut watch);
            self.news.notify_all();
        }
        if watch.refusal.is_some() {
            self.refused_maps.fetch_add(1, Relaxed);
        }
        watch.refusal.is_none()
    }

    /// Ends the recording of page faults, so that [`follow`] returns.
    pub fn finish(&self) {
        let _watch = lock(&self.watch);
        self.over.store(true, Relaxed);
        self.news.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Returns the map of libc in a program, when it exists.
    fn libc_of(pid: u32) -> proc::Line {
        let begun = Instant::now();
        let libc = |map: &proc::Line| map.length >= LEAST_BYTES && map.path.ends_with(b"/libc.so.6");
        loop {
            if let Some(map) = proc::maps(pid).into_iter().find(libc) {
                return map;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it has libc in its memory");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_vanished_map_is_counted_as_missed() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let libc = libc_of(child.id());
        let faults = PageFaults::new(Mode::Auto);
        let missed = |address| {
            faults.has_mapped(&Mapped { pid: child.id(), address, length: LEAST_BYTES, flags: 0 });
            faults.missed_maps.load(Relaxed)
        };
        assert_eq!(missed(libc.start), 0, "it is there, and no data");
        assert_eq!(missed(4096), 1, "nothing is there");
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    #[test]
    fn a_process_that_has_ended_is_not_watched() {
        let mut child = Command::new("true").spawn().expect("true starts");
        let pid = child.id();
        child.wait().expect("ended");
        assert!(!PageFaults::new(Mode::Auto).begin(pid));
    }
}
