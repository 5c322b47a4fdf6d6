//! Runs the thread that empties the ring buffers, sorts the records, and writes the page faults in files.

use super::records::Happened;
use super::spaces::{Backing, Spaces};
use super::watch::{now, page_size, Watch, PRESENT};
use super::{proc, PageFaults};
use crate::locks::lock;
use iodock_event::{FaultBatch, FaultKind, FileMap, LossKind, Losses, PageFault};
use iodock_journal::{Closing, JournalMeta, JournalWriter};
use std::collections::{HashMap, HashSet};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Age in ns below which records wait, because the ring buffer of another CPU may still contain an older one.
const SLACK_NS: i64 = 2_000_000;
/// Longest pause while the ring buffers contain few data.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of faults that complete a frame. A flush once a second also completes one.
const FRAME_FAULTS: usize = 32 << 10;
const SECOND: i64 = 1_000_000_000;
/// Shortest interval in ns between two readings of a process's maps because of an unknown address.
const AGAIN_NS: i64 = SECOND / 5;

/// Result of following page faults.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Result in a word: `recorded`, `not-needed`, `too-late`, `refused` or `off`.
    pub state: &'static str,
    pub losses: Losses,
    /// Text of the error, if there was one.
    pub failure: Option<String>,
    pub written_bytes: u64,
}

/// Follows page faults until [`PageFaults::finish`]. `path` is the file, which is created when there is
/// something to write. `offset` is the difference in ns from the monotonic clock to the epoch.
pub fn follow(shared: &PageFaults, path: &Path, meta: &JournalMeta, offset: i64) -> Outcome {
    let mut follower = Follower { offset, ..Follower::default() };
    let mut writer = None;
    let mut outcome = Outcome::default();
    loop {
        let (over, majors_changed) = follower.take_from(shared);
        follower.majors.extend(majors_changed);
        follower.process(if over { i64::MAX } else { now() - SLACK_NS });
        let due = over || now() - follower.written_at > SECOND;
        if due || follower.batch.faults.len() >= FRAME_FAULTS {
            follower.written_at = now();
            let written = follower.write(&mut writer, path, meta);
            if let Err(error) = written {
                outcome.failure.get_or_insert(format!("{error}; {}", error.hint()));
            }
        }
        if over {
            break;
        }
    }
    outcome.state = state(shared, writer.is_some() || follower.began);
    if let Some(writer) = writer {
        outcome.written_bytes = writer.written_bytes();
        if let Err(error) = writer.close(&Closing::default()) {
            outcome.failure.get_or_insert(format!("{error}; {}", error.hint()));
        }
    }
    outcome.losses.add(LossKind::LostPageFaults, follower.lost);
    outcome.losses.add(LossKind::PageFaultsRefused, shared.refused_maps.load(Relaxed));
    outcome
}

fn state(shared: &PageFaults, began: bool) -> &'static str {
    match shared.mode {
        super::Mode::Never => "off",
        _ if began => "recorded",
        _ if lock(&shared.watch).refusal.is_some() => "refused",
        _ if shared.missed_maps.load(Relaxed) > 0 => "too-late",
        _ => "not-needed",
    }
}

#[derive(Default)]
struct Follower {
    offset: i64,
    began: bool,
    majors: HashSet<u64>,
    pending: Vec<(i64, Happened)>,
    spaces: Spaces,
    /// Time at which the maps of each process were last read because of an unknown address.
    looked: HashMap<u32, i64>,
    batch: FaultBatch,
    written_at: i64,
    lost: u64,
}

impl Follower {
    /// Waits for new records, at most for [`PAUSE`], and takes them. Returns whether the recording is over,
    /// and the new events of major faults.
    fn take_from(&mut self, shared: &PageFaults) -> (bool, Vec<u64>) {
        let mut watch = lock(&shared.watch);
        while watch.rings.is_empty() && !shared.over.load(Relaxed) {
            watch = shared.news.wait(watch).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let over = shared.over.load(Relaxed);
        if !over {
            let mut wanted = polled(&watch);
            drop(watch);
            // SAFETY: the array has this length. Its descriptors live as long as the ring buffers, which
            // exist until the recording is over.
            unsafe {
                let count = wanted.len() as libc::nfds_t;
                libc::poll(wanted.as_mut_ptr(), count, PAUSE.as_millis() as libc::c_int)
            };
            watch = lock(&shared.watch);
        }
        watch.drain();
        self.began |= !watch.majors.is_empty();
        self.pending.append(&mut watch.pending);
        let majors = watch.majors.iter().filter(|event| !self.majors.contains(event)).copied().collect();
        (over, majors)
    }

    /// Processes all records up to `until`, in the order of time.
    fn process(&mut self, until: i64) {
        self.pending.sort_by_key(|&(time, _)| time);
        let ready = self.pending.partition_point(|&(time, _)| time <= until);
        let rest = self.pending.split_off(ready);
        for (time, happened) in std::mem::replace(&mut self.pending, rest) {
            self.happened(time, happened);
        }
    }

    fn happened(&mut self, time: i64, happened: Happened) {
        match happened {
            Happened::Fault { event, pid, tid, address } => self.fault(time, event, (pid, tid), address),
            Happened::Map { pid, start, length, offset, path } => {
                let time = time + self.offset;
                self.spaces.map(FileMap { pid, time, start, length, offset, path });
            }
            Happened::Found(map) => self.spaces.map(map),
            Happened::Fork { pid, parent, .. } if pid != parent => self.spaces.fork(parent, pid),
            Happened::Exec { pid } => self.spaces.clear(pid),
            Happened::Exit { pid, tid } if pid == tid => {
                self.looked.remove(&pid);
                self.spaces.remove(pid);
            }
            Happened::Lost { records } => self.lost += records,
            Happened::Fork { .. } | Happened::Exit { .. } => {}
        }
    }

    fn fault(&mut self, time: i64, event: u64, (pid, tid): (u32, u32), address: u64) {
        let page = page_size();
        let mut place = self.spaces.place(pid, address, page);
        if matches!(place, Backing::Unknown) && self.look_again(pid, tid, time) {
            place = self.spaces.place(pid, address, page);
        }
        let Backing::File(map, offset) = place else { return };
        let kind = match event {
            PRESENT => FaultKind::Present,
            event if self.majors.contains(&event) => FaultKind::Major,
            _ => FaultKind::Minor,
        };
        let fault = PageFault { ts: time + self.offset, tid, map, offset: offset as i64, kind };
        self.batch.maps.append(&mut self.spaces.numbered);
        self.batch.faults.push(fault);
    }

    /// Reads the maps again because of an unknown address: the kernel does not report when a stack grows or a
    /// map is moved. Returns whether they were read.
    fn look_again(&mut self, pid: u32, tid: u32, time: i64) -> bool {
        let last = self.looked.get(&pid).copied().unwrap_or(i64::MIN / 2);
        if time - last < AGAIN_NS {
            return false;
        }
        self.looked.insert(pid, time);
        for line in proc::maps(tid) {
            self.spaces.fill(line.into_map(pid));
        }
        true
    }

    fn write(
        &mut self,
        writer: &mut Option<JournalWriter>,
        path: &Path,
        meta: &JournalMeta,
    ) -> Result<(), iodock_journal::JournalError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let writer = match writer {
            Some(writer) => writer,
            None => writer.insert(JournalWriter::create(path, meta)?),
        };
        writer.faults(&batch)
    }
}

fn polled(watch: &Watch) -> Vec<libc::pollfd> {
    let rings = watch.rings.iter();
    rings.map(|ring| libc::pollfd { fd: ring.event.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect()
}
