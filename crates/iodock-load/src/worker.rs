//! One process that carries out a pattern: what it works with, and how it times what it does.

use crate::plan::{Pattern, Phase, Step};
use crate::shared::{Control, Record, Shared, Slot};

use crate::{cache, folders, patterns};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Why a worker ends early.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody asked to.
    Stopped,
    /// A system call failed: errno and what it was for.
    Failed(i32, &'static str),
}

/// The last system call's error.
pub fn failed(what: &'static str) -> Ended {
    Ended::Failed(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO), what)
}

fn failed_of(error: &io::Error, what: &'static str) -> Ended {
    Ended::Failed(error.raw_os_error().unwrap_or(libc::EIO), what)
}

/// Nanoseconds of one of the system's clocks.
#[inline]
pub fn now_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the struct; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since this machine's boot.
#[inline]
pub fn now() -> u64 {
    now_of(libc::CLOCK_MONOTONIC)
}

/// Where a worker stands among all.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Among those of all ranks.
    pub index: u32,
    pub total: u32,
    /// On this rank.
    pub local: u32,
    pub on_rank: u32,
    /// Ranks on one machine.
    pub ranks_per_node: u32,
}

impl Position {
    /// Whose files to read: where there are several ranks, those of the next machine's if ranks fill one machine after
    /// the other, as launchers do unless told otherwise.
    pub fn read_from(&self) -> u32 {
        if !self.several_ranks() {
            return self.index;
        }
        let node = self.on_rank * self.ranks_per_node.max(1);
        (self.index + if node < self.total { node } else { self.on_rank }) % self.total
    }

    pub fn several_ranks(&self) -> bool {
        self.total > self.on_rank
    }
}

/// What a pattern works with.
pub struct Worker<'a> {
    pub position: Position,
    pub tree: RawFd,
    /// The worker's own folder.
    pub folder: OwnedFd,
    /// Random bytes to write: at least the largest request, at any of the page-aligned `start`s below `SLACK`.
    pub source: &'a [u8],
    pub source_slack: usize,
    /// Room for the largest request, aligned to pages.
    pub buffer: &'a mut [u8],
    control: &'a Control,
}

impl<'a> Worker<'a> {
    /// For loops that no timer looks after.
    ///
    /// # Errors
    /// Somebody asked to stop.
    #[inline]
    pub fn go_on(&self) -> Result<(), Ended> {
        if self.control.is_stopped() {
            return Err(Ended::Stopped);
        }
        Ok(())
    }

    /// What request `number` writes: neighbours and processes write different bytes.
    pub fn bytes_to_write(&self, number: u64, length: usize) -> &'a [u8] {
        let pages = (self.source_slack / 4096) as u64;
        let start =
            (u64::from(self.position.index).wrapping_mul(7919).wrapping_add(number) % pages) as usize * 4096;
        &self.source[start..start + length]
    }
}

/// A phase's record while it runs: the end of one operation is the start of the next.
pub struct Timer<'a> {
    pub record: &'a mut Record,
    control: &'a Control,
    last_ns: u64,
    deadline_ns: u64,
}

impl Timer<'_> {
    /// An operation ended, having moved `bytes`; whether time is left for another.
    ///
    /// # Errors
    /// Somebody asked to stop.
    #[inline]
    pub fn done(&mut self, bytes: u64) -> Result<bool, Ended> {
        let end = now();
        self.record.histogram.record(end - self.last_ns);
        self.record.operations += 1;
        self.record.bytes += bytes;
        self.last_ns = end;
        self.go_on()
    }

    /// What was done since the last operation belongs to none of them.
    pub fn skip(&mut self) -> Result<bool, Ended> {
        self.last_ns = now();
        self.go_on()
    }

    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    #[inline]
    fn go_on(&mut self) -> Result<bool, Ended> {
        if self.control.is_stopped() {
            return Err(Ended::Stopped);
        }
        if self.last_ns >= self.deadline_ns {
            self.record.limited = 1;
            return Ok(false);
        }
        Ok(true)
    }
}

/// What is done while the clock stands: between phases.
pub trait Work {
    /// Before the barrier of phase `at`.
    fn prepare(&mut self, _worker: &mut Worker, _at: usize, _record: &mut Record) -> Result<(), Ended> {
        Ok(())
    }

    /// The phase itself.
    fn run(
        &mut self,
        worker: &mut Worker,
        at: usize,
        timer: &mut Timer,
        others: &mut [Record],
    ) -> Result<(), Ended>;

    /// After its end.
    fn finish(&mut self, _worker: &mut Worker, _at: usize) -> Result<(), Ended> {
        Ok(())
    }
}

/// What a worker process is given.
pub struct Task<'a> {
    pub step: &'a Step,
    pub phases: &'a [Phase],
    pub position: Position,
    pub tree: RawFd,
    pub source: &'a [u8],
    pub source_slack: usize,
    pub buffer: &'a mut [u8],
}

/// The whole life of a worker: all phases, or what ended it early in its slot.
pub fn live(task: Task, shared: &Shared) {
    let slot = shared.own_slot(task.position.local as usize);
    match carry_out(task, shared.control(), slot) {
        Ok(()) => {}
        Err(Ended::Stopped) => shared.control().stop(),
        Err(Ended::Failed(code, what)) => {
            slot.error = code;
            let length = what.len().min(slot.what.len());
            slot.what[..length].copy_from_slice(&what.as_bytes()[..length]);
            shared.control().stop();
        }
    }
}

fn carry_out(task: Task, control: &Control, slot: &mut Slot) -> Result<(), Ended> {
    let Task { step, phases, position, tree, source, source_slack, buffer } = task;
    let name = numbered(b'w', u64::from(position.index));
    // SAFETY: the descriptor is open, the name a C string.
    if unsafe { libc::mkdirat(tree, name.as_ptr(), 0o700) } != 0 {
        return Err(failed("mkdir"));
    }
    let folder =
        folders::open_directory(tree, &name).map_err(|error| failed_of(&error, "open of a folder"))?;
    let limit_ns = (step.limit_seconds * 1e9) as u64;
    let mut worker = Worker { position, tree, folder, source, source_slack, buffer, control };
    let mut work: Box<dyn Work> = match &step.pattern {
        Pattern::Data(data) => Box::new(patterns::data::Files::new(data)),
        Pattern::Metadata(metadata) => Box::new(patterns::metadata::Items::new(metadata)),
        Pattern::Mixed(mixed) => Box::new(patterns::mixed::Mixture::new(mixed, position.index)),
    };
    for at in 0..phases.len() {
        let (record, others) = slot.records[at..].split_first_mut().expect("a record for each phase");
        work.prepare(&mut worker, at, record)?;
        if !control.arrive_and_wait(at as u32, position.on_rank) {
            return Err(Ended::Stopped);
        }
        let cpu = now_of(libc::CLOCK_PROCESS_CPUTIME_ID);
        let start = now();
        let mut timer =
            Timer { record, control, last_ns: start, deadline_ns: start.saturating_add(limit_ns) };
        let done = work.run(&mut worker, at, &mut timer, others);
        record.start_ns = start;
        record.end_ns = now();
        record.cpu_ns = now_of(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu;
        done?;
        work.finish(&mut worker, at)?;
    }
    drop(worker);
    // SAFETY: as above. What can't be removed here is seen when the whole tree goes.
    unsafe { libc::unlinkat(tree, name.as_ptr(), libc::AT_REMOVEDIR) };
    Ok(())
}

/// `f17` and the like, as a C string.
pub fn numbered(letter: u8, number: u64) -> CString {
    CString::new(format!("{}{number}", letter as char)).expect("no NUL")
}

/// The same without memory of its own, for hot paths.
pub struct Name {
    bytes: [u8; 24],
    start: usize,
}

impl Name {
    pub fn new() -> Self {
        Name { bytes: [0; 24], start: 23 }
    }

    #[inline]
    pub fn set(&mut self, letter: u8, mut number: u64) -> &CStr {
        // The last byte stays NUL.
        let mut at = 22;
        loop {
            self.bytes[at] = b'0' + (number % 10) as u8;
            number /= 10;
            at -= 1;
            if number == 0 {
                break;
            }
        }
        self.bytes[at] = letter;
        self.start = at;
        CStr::from_bytes_until_nul(&self.bytes[self.start..]).unwrap_or(c"")
    }
}

impl Default for Name {
    fn default() -> Self {
        Name::new()
    }
}

/// Opens a worker's folder: one's own or another's.
pub fn folder_of(worker: &Worker, index: u32) -> Result<OwnedFd, Ended> {
    let name = numbered(b'w', u64::from(index));
    folders::open_directory(worker.tree, &name).map_err(|error| failed_of(&error, "open of a folder"))
}

/// Opens for the hot path, where no descriptor outlives an exec and nobody else writes in the folder.
#[inline]
pub fn open(folder: RawFd, name: &CStr, flags: i32, what: &'static str) -> Result<OwnedFd, Ended> {
    folders::open_at(folder, name, flags).map_err(|error| failed_of(&error, what))
}

/// All of `bytes` at `offset`.
#[inline]
pub fn write_all(fd: RawFd, mut bytes: &[u8], mut offset: u64) -> Result<(), Ended> {
    while !bytes.is_empty() {
        // SAFETY: the slice is readable for its length.
        let done = unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), offset as libc::off_t) };
        match done {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(failed("write")),
            // Nothing written and no error: not foreseen, and not to be tried for ever.
            0 => return Err(Ended::Failed(libc::ENOSPC, "write")),
            done => {
                bytes = &bytes[done as usize..];
                offset += done as u64;
            }
        }
    }
    Ok(())
}

/// Up to `buffer.len()` bytes at `offset`: fewer only at the end of the file.
#[inline]
pub fn read_full(fd: RawFd, buffer: &mut [u8], offset: u64) -> Result<usize, Ended> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        let place = (offset + filled as u64) as libc::off_t;
        // SAFETY: the slice is writable for its length.
        match unsafe { libc::pread(fd, rest.as_mut_ptr().cast(), rest.len(), place) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(failed("read")),
            0 => break,
            done => filled += done as usize,
        }
    }
    Ok(filled)
}

pub fn sync(fd: &OwnedFd) -> Result<(), Ended> {
    // SAFETY: the descriptor is open.
    if unsafe { libc::fsync(fd.as_raw_fd()) } != 0 {
        return Err(failed("fsync"));
    }
    Ok(())
}

/// Closes and looks at the result: some file systems tell of a lack of space only then.
pub fn close(fd: OwnedFd) -> Result<(), Ended> {
    // SAFETY: owned, and given away here.
    if unsafe { libc::close(std::os::fd::IntoRawFd::into_raw_fd(fd)) } != 0 {
        return Err(failed("close"));
    }
    Ok(())
}

pub fn unlink(folder: RawFd, name: &CStr) -> Result<(), Ended> {
    // SAFETY: the descriptor is open, the name a C string.
    if unsafe { libc::unlinkat(folder, name.as_ptr(), 0) } != 0 {
        return Err(failed("unlink"));
    }
    Ok(())
}

/// The size of an open file.
pub fn size_of_file(fd: &OwnedFd) -> Result<u64, Ended> {
    folders::status_of(fd.as_raw_fd())
        .map(|status| status.st_size as u64)
        .map_err(|error| failed_of(&error, "fstat"))
}

/// Looks at the cache and adds what it found to `record`. `forget`: drops the file from it first.
pub fn look_at_cache(fd: &OwnedFd, length: u64, forget: bool, record: &mut Record) {
    let look = if forget { cache::drop_and_look } else { cache::look };
    let pages = look(fd.as_raw_fd(), length);
    record.pages.looked_at += pages.looked_at;
    record.pages.in_memory += pages.in_memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered() {
        let mut name = Name::new();
        for number in [0, 7, 10, 99, 1_234_567_890, u64::MAX / 100] {
            assert_eq!(name.set(b'f', number).to_bytes(), format!("f{number}").as_bytes());
            assert_eq!(numbered(b'f', number).as_bytes(), format!("f{number}").as_bytes());
        }
    }

    #[test]
    fn each_rank_reads_what_the_next_one_wrote() {
        let at = |index| Position { index, total: 6, local: index % 2, on_rank: 2, ranks_per_node: 1 };
        assert_eq!((0..6).map(|index| at(index).read_from()).collect::<Vec<_>>(), [2, 3, 4, 5, 0, 1]);
        let alone = Position { index: 1, total: 2, local: 1, on_rank: 2, ranks_per_node: 1 };
        assert_eq!(alone.read_from(), 1);
        // Two machines of three ranks, two processes each.
        let far = |index| Position { index, total: 12, local: index % 2, on_rank: 2, ranks_per_node: 3 };
        assert!((0..12).all(|index| far(index).read_from() / 6 != index / 6));
        // All on one machine.
        let near = Position { index: 0, total: 12, local: 0, on_rank: 2, ranks_per_node: 6 };
        assert_eq!(near.read_from(), 2);
    }
}
