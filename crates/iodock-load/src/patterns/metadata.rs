//! Creates, examines, opens and removes directories and empty files.

use crate::calls::{failed, Ended, Name};
use crate::plan::Metadata;
use crate::shared::Record;
use crate::worker::{folder_of, Timer, Work, Worker};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, RawFd};

/// Acts in the order of `Pattern::phases`. A pattern without directories skips the first three.
const ORDER: [Act; 7] = [
    Act::MakeFolder,
    Act::Stat(b'd'),
    Act::RemoveFolder,
    Act::MakeFile,
    Act::Stat(b'f'),
    Act::Open,
    Act::RemoveFile,
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    MakeFolder,
    MakeFile,
    Stat(u8),
    Open,
    RemoveFolder,
    RemoveFile,
}

pub struct Items<'a> {
    metadata: &'a Metadata,
    /// Number of files or folders that exist.
    made: u64,
    /// Number of files or folders that were removed within the time limit.
    removed: u64,
    name: Name,
}

impl<'a> Items<'a> {
    pub fn new(metadata: &'a Metadata) -> Self {
        Items { metadata, made: 0, removed: 0, name: Name::new() }
    }

    fn act(&self, at: usize) -> Act {
        ORDER[at + if self.metadata.directories { 0 } else { 3 }]
    }

    fn make(&mut self, act: Act, folder: RawFd, timer: &mut Timer) -> Result<(), Ended> {
        self.made = 0;
        for item in 0..self.metadata.items {
            if act == Act::MakeFile {
                create(folder, self.name.set(b'f', item))?;
            } else {
                make_folder(folder, self.name.set(b'd', item))?;
            }
            self.made = item + 1;
            if !timer.done(0)? {
                break;
            }
        }
        Ok(())
    }

    fn look(&mut self, act: Act, worker: &Worker, timer: &mut Timer) -> Result<(), Ended> {
        let source = worker.position.read_from();
        let own = source == worker.position.index;
        let folder = folder_of(worker, source)?;
        let count = if own { self.made } else { self.metadata.items };
        timer.skip()?;
        for item in 0..count {
            let done = match act {
                Act::Stat(letter) => stat(folder.as_raw_fd(), self.name.set(letter, item)),
                _ => open_and_close(
                    folder.as_raw_fd(),
                    self.name.set(b'f', item),
                    libc::O_RDONLY,
                    "open of a file",
                ),
            };
            match done {
                // The worker whose files are examined stopped before creating this one.
                Err(Ended::Failed(libc::ENOENT, _)) if !own => break,
                other => other?,
            }
            if !timer.done(0)? {
                break;
            }
        }
        Ok(())
    }

    fn remove(&mut self, act: Act, folder: RawFd, timer: &mut Timer) -> Result<(), Ended> {
        self.removed = 0;
        while self.removed < self.made {
            self.remove_one(act, folder)?;
            if !timer.done(0)? {
                break;
            }
        }
        Ok(())
    }

    fn remove_one(&mut self, act: Act, folder: RawFd) -> Result<(), Ended> {
        let (letter, flags) = if act == Act::RemoveFolder { (b'd', libc::AT_REMOVEDIR) } else { (b'f', 0) };
        let name = self.name.set(letter, self.removed);
        // SAFETY: the descriptor is open, and the name is a C string.
        if unsafe { libc::unlinkat(folder, name.as_ptr(), flags) } != 0 {
            return Err(failed("removal"));
        }
        self.removed += 1;
        Ok(())
    }
}

impl Work for Items<'_> {
    fn run(
        &mut self,
        worker: &mut Worker,
        at: usize,
        timer: &mut Timer,
        _: &mut [Record],
    ) -> Result<(), Ended> {
        let folder = worker.folder.as_raw_fd();
        match self.act(at) {
            act @ (Act::MakeFolder | Act::MakeFile) => self.make(act, folder, timer),
            act @ (Act::Stat(_) | Act::Open) => self.look(act, worker, timer),
            act @ (Act::RemoveFolder | Act::RemoveFile) => self.remove(act, folder, timer),
        }
    }

    fn finish(&mut self, worker: &mut Worker, at: usize) -> Result<(), Ended> {
        // Files that remain after the time limit are removed without being measured.
        let act = self.act(at);
        if matches!(act, Act::RemoveFolder | Act::RemoveFile) {
            while self.removed < self.made {
                worker.go_on()?;
                self.remove_one(act, worker.folder.as_raw_fd())?;
            }
        }
        Ok(())
    }
}

// The following functions make plain system calls, as an application does.

#[inline]
fn create(folder: RawFd, name: &CStr) -> Result<(), Ended> {
    open_and_close(folder, name, libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY, "creation of a file")
}

#[inline]
fn open_and_close(folder: RawFd, name: &CStr, flags: i32, what: &'static str) -> Result<(), Ended> {
    // SAFETY: the descriptor is open, the name is a C string, and the new descriptor is closed at once.
    unsafe {
        let fd = libc::openat(folder, name.as_ptr(), flags, 0o600);
        if fd < 0 {
            return Err(failed(what));
        }
        if libc::close(fd) != 0 {
            return Err(failed("close"));
        }
    }
    Ok(())
}

#[inline]
fn make_folder(folder: RawFd, name: &CStr) -> Result<(), Ended> {
    // SAFETY: the descriptor is open, and the name is a C string.
    if unsafe { libc::mkdirat(folder, name.as_ptr(), 0o700) } != 0 {
        return Err(failed("mkdir"));
    }
    Ok(())
}

#[inline]
fn stat(folder: RawFd, name: &CStr) -> Result<(), Ended> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills in the struct, which is never read.
    if unsafe { libc::fstatat(folder, name.as_ptr(), status.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW) } != 0 {
        return Err(failed("stat"));
    }
    Ok(())
}
