//! Writes and reads files from start to end, in requests of one size.

use crate::calls::{
    close, look_at_cache, open, read_full, size_of_file, sync, unlink, write_all, Ended, Name,
};
use crate::plan::Data;
use crate::shared::Record;
use crate::worker::{folder_of, Timer, Work, Worker};
use std::os::fd::{AsRawFd, OwnedFd};

const WRITE: usize = 0;
/// Phase that consists of a barrier only: other workers may still write when this worker has finished.
const WRITTEN: usize = 1;
const READ: usize = 2;

pub struct Files<'a> {
    data: &'a Data,
    /// Number of files that this worker created.
    made: u64,
    /// Number of bytes that this worker wrote into its last file.
    written: u64,
    /// Folder to read from, and the sizes of its files.
    from: Option<(OwnedFd, Vec<u64>)>,
    name: Name,
}

impl<'a> Files<'a> {
    pub fn new(data: &'a Data) -> Self {
        Files { data, made: 0, written: 0, from: None, name: Name::new() }
    }

    fn direct(&self) -> i32 {
        if self.data.direct {
            libc::O_DIRECT
        } else {
            0
        }
    }

    /// Returns the offset of a worker's block in a shared file.
    fn base(&self, index: u32) -> u64 {
        if self.data.shared {
            u64::from(index) * self.data.file_bytes
        } else {
            0
        }
    }

    fn write(&mut self, worker: &Worker, timer: &mut Timer) -> Result<(), Ended> {
        let base = self.base(worker.position.index);
        for file in 0..self.data.files {
            let (folder, exclusive) =
                if self.data.shared { (worker.tree, 0) } else { (worker.folder.as_raw_fd(), libc::O_EXCL) };
            let flags = libc::O_CREAT | exclusive | libc::O_WRONLY | self.direct();
            let fd = open(folder, self.name.set(b'f', file), flags, "creation of a file")?;
            self.made = file + 1;
            let mut more = timer.skip()?;
            let mut offset = 0;
            while more && offset < self.data.file_bytes {
                let length = self.data.request_bytes.min(self.data.file_bytes - offset);
                let bytes = worker.bytes_to_write(offset / 4096 + file, length as usize);
                write_all(fd.as_raw_fd(), bytes, base + offset)?;
                offset += length;
                self.written = offset;
                more = timer.done(length)?;
                // A rank that reads a shared file does not know where another rank stopped, so each block is
                // written completely.
                more |= self.data.shared && worker.position.several_ranks();
            }
            if self.data.sync {
                sync(&fd)?;
            }
            close(fd)?;
            if !timer.skip()? {
                break;
            }
        }
        Ok(())
    }

    /// Opens the files to read, drops them from the cache if requested, and checks the cache.
    fn look(&mut self, worker: &Worker, forget: bool, record: &mut Record) -> Result<(), Ended> {
        let source = worker.position.read_from();
        let own = source == worker.position.index;
        let folder = if self.data.shared { None } else { Some(folder_of(worker, source)?) };
        let place = folder.as_ref().map_or(worker.tree, AsRawFd::as_raw_fd);
        let mut sizes = Vec::new();
        for file in 0..if own { self.made } else { self.data.files } {
            worker.go_on()?;
            let fd = match open(place, self.name.set(b'f', file), libc::O_RDONLY, "open of a file") {
                // The worker whose files are read stopped before creating this one.
                Err(Ended::Failed(libc::ENOENT, _)) if !own => break,
                other => other?,
            };
            let size = size_of_file(&fd)?;
            if forget && own && !self.data.sync {
                sync(&fd)?;
            }
            look_at_cache(&fd, size, forget, record);
            sizes.push(size);
        }
        record.pages.direct = u64::from(self.data.direct);
        let folder = match folder {
            Some(folder) => folder,
            None => worker.folder.try_clone().map_err(|_| Ended::Failed(libc::EMFILE, "dup"))?,
        };
        self.from = Some((folder, sizes));
        Ok(())
    }

    fn read(&mut self, worker: &mut Worker, timer: &mut Timer) -> Result<(), Ended> {
        let Some((folder, sizes)) = &self.from else { return Ok(()) };
        let place = if self.data.shared { worker.tree } else { folder.as_raw_fd() };
        let base = self.base(worker.position.read_from());
        for (file, &size) in sizes.iter().enumerate() {
            let flags = libc::O_RDONLY | if self.data.direct { libc::O_DIRECT } else { 0 };
            let fd = open(place, self.name.set(b'f', file as u64), flags, "open of a file")?;
            let mut more = timer.skip()?;
            let end = self.end(worker, base, size);
            let mut offset = base;
            while more && offset < end {
                let length = self.data.request_bytes.min(end - offset) as usize;
                // O_DIRECT reads whole sectors, so the last request may go beyond the end of the file.
                let asked = if self.data.direct { self.data.request_bytes as usize } else { length };
                let got = read_full(fd.as_raw_fd(), &mut worker.buffer[..asked], offset)?.min(length);
                if got == 0 {
                    break;
                }
                offset += got as u64;
                more = timer.done(got as u64)?;
            }
            close(fd)?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Returns the offset at which reading ends. In a shared file of one rank, this excludes the hole after a
    /// block that the time limit cut.
    fn end(&self, worker: &Worker, base: u64, size: u64) -> u64 {
        match (self.data.shared, worker.position.several_ranks()) {
            (false, _) => size,
            (true, false) => size.min(base + self.written),
            (true, true) => size.min(base + self.data.file_bytes),
        }
    }

    fn remove(&mut self, worker: &Worker) -> Result<(), Ended> {
        if self.data.shared {
            let mine = worker.position.index == 0;
            return if mine { unlink(worker.tree, self.name.set(b'f', 0)) } else { Ok(()) };
        }
        for file in 0..self.made {
            worker.go_on()?;
            unlink(worker.folder.as_raw_fd(), self.name.set(b'f', file))?;
        }
        Ok(())
    }

    fn removing(&self) -> usize {
        READ + 1 + usize::from(self.data.reread)
    }
}

impl Work for Files<'_> {
    fn prepare(&mut self, worker: &mut Worker, at: usize, record: &mut Record) -> Result<(), Ended> {
        match at {
            WRITE | WRITTEN => Ok(()),
            at if at == self.removing() => Ok(()),
            at => self.look(worker, at == READ, record),
        }
    }

    fn run(
        &mut self,
        worker: &mut Worker,
        at: usize,
        timer: &mut Timer,
        _: &mut [Record],
    ) -> Result<(), Ended> {
        match at {
            WRITE => self.write(worker, timer),
            WRITTEN => Ok(()),
            at if at == self.removing() => self.remove(worker),
            _ => self.read(worker, timer),
        }
    }
}
