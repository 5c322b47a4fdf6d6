//! Makes operations on whole files in a random order: create, write, append, read, delete, stat.

use crate::calls::{close, open, read_full, size_of_file, sync, unlink, write_all, Ended, Name};
use crate::plan::{Mixed, MIXED_OPERATIONS};
use crate::shared::Record;
use crate::worker::{Timer, Work, Worker};
use std::os::fd::AsRawFd;

const CREATE: usize = 0;
const WRITE: usize = 1;
const APPEND: usize = 2;
const READ: usize = 3;
const DELETE: usize = 4;
const STAT: usize = 5;

pub struct Mixture<'a> {
    mixed: &'a Mixed,
    random: Random,
    /// Numbers of the files that exist.
    files: Vec<u64>,
    next: u64,
    name: Name,
}

/// Random numbers from xorshift64*, so that a seed gives the same order of operations everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % limit.max(1)
    }
}

impl<'a> Mixture<'a> {
    pub fn new(mixed: &'a Mixed, index: u32) -> Self {
        let seed = mixed.seed.wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
        Mixture { mixed, random: Random(seed), files: Vec::new(), next: 0, name: Name::new() }
    }

    fn choose(&mut self) -> usize {
        let weights = self.mixed.weights.listed();
        let mut left = self.random.below(weights.iter().map(|&weight| u64::from(weight)).sum());
        let wanted = weights.iter().position(|&weight| {
            let here = left < u64::from(weight);
            left = left.saturating_sub(u64::from(weight));
            here
        });
        match wanted.unwrap_or(STAT) {
            // Without a file only a creation is possible. At twice the initial number of files, one is
            // deleted instead.
            _ if self.files.is_empty() => CREATE,
            CREATE if self.files.len() as u64 >= (self.mixed.files * 2).max(1) => DELETE,
            other => other,
        }
    }

    /// Creates a file or writes all of it, and returns the number of bytes.
    fn write_whole(&mut self, worker: &Worker, number: u64, flags: i32) -> Result<u64, Ended> {
        let sizes = &self.mixed.sizes_bytes;
        let size = sizes[self.random.below(sizes.len() as u64) as usize];
        self.put(worker, number, flags, size, 0)
    }

    fn put(
        &mut self,
        worker: &Worker,
        number: u64,
        flags: i32,
        bytes: u64,
        start: u64,
    ) -> Result<u64, Ended> {
        let folder = worker.folder.as_raw_fd();
        let fd = open(folder, self.name.set(b'f', number), flags | libc::O_WRONLY, "open of a file")?;
        let start = if start == u64::MAX { size_of_file(&fd)? } else { start };
        let mut done = 0;
        while done < bytes {
            let length = self.mixed.request_bytes.min(bytes - done);
            write_all(
                fd.as_raw_fd(),
                worker.bytes_to_write(number + done / 4096, length as usize),
                start + done,
            )?;
            done += length;
        }
        if self.mixed.sync {
            sync(&fd)?;
        }
        close(fd)?;
        Ok(bytes)
    }

    fn read_whole(&mut self, worker: &mut Worker, number: u64) -> Result<u64, Ended> {
        let fd =
            open(worker.folder.as_raw_fd(), self.name.set(b'f', number), libc::O_RDONLY, "open of a file")?;
        let request = self.mixed.request_bytes as usize;
        let mut done = 0;
        loop {
            let got = read_full(fd.as_raw_fd(), &mut worker.buffer[..request], done)?;
            done += got as u64;
            if got < request {
                break;
            }
        }
        close(fd)?;
        Ok(done)
    }

    fn act(&mut self, worker: &mut Worker, operation: usize) -> Result<u64, Ended> {
        if operation == CREATE {
            let number = self.next;
            self.next += 1;
            self.files.push(number);
            return self.write_whole(worker, number, libc::O_CREAT | libc::O_EXCL);
        }
        let at = self.random.below(self.files.len() as u64) as usize;
        let number = self.files[at];
        match operation {
            WRITE => self.write_whole(worker, number, libc::O_TRUNC),
            APPEND => self.put(worker, number, libc::O_APPEND, self.mixed.append_bytes, u64::MAX),
            READ => self.read_whole(worker, number),
            DELETE => {
                self.files.swap_remove(at);
                unlink(worker.folder.as_raw_fd(), self.name.set(b'f', number)).map(|()| 0)
            }
            _ => {
                let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
                let name = self.name.set(b'f', number);
                // SAFETY: the descriptor is open, the name is a C string, and the struct is never read.
                let done = unsafe {
                    libc::fstatat(
                        worker.folder.as_raw_fd(),
                        name.as_ptr(),
                        status.as_mut_ptr(),
                        libc::AT_SYMLINK_NOFOLLOW,
                    )
                };
                if done != 0 {
                    return Err(crate::calls::failed("stat"));
                }
                Ok(0)
            }
        }
    }
}

impl Work for Mixture<'_> {
    fn prepare(&mut self, worker: &mut Worker, at: usize, _: &mut Record) -> Result<(), Ended> {
        if at == 0 {
            for _ in 0..self.mixed.files {
                worker.go_on()?;
                self.act(worker, CREATE)?;
            }
        }
        Ok(())
    }

    /// Runs one phase. Its own record counts all operations; the records in `others` from 1 on count those of
    /// each kind.
    fn run(
        &mut self,
        worker: &mut Worker,
        at: usize,
        timer: &mut Timer,
        others: &mut [Record],
    ) -> Result<(), Ended> {
        if at > 0 {
            for at in 0..self.files.len() {
                worker.go_on()?;
                unlink(worker.folder.as_raw_fd(), self.name.set(b'f', self.files[at]))?;
            }
            return Ok(());
        }
        for _ in 0..self.mixed.operations {
            let operation = self.choose();
            let start = timer.last_ns();
            let bytes = self.act(worker, operation)?;
            let more = timer.done(bytes)?;
            // The first record in `others` belongs to the phase that removes the files.
            let own = &mut others[1 + operation];
            own.histogram.record(timer.last_ns() - start);
            own.operations += 1;
            own.bytes += bytes;
            if !more {
                break;
            }
        }
        Ok(())
    }
}

const _: () = assert!(MIXED_OPERATIONS.len() + 2 <= crate::plan::MOST_PHASES);
