//! Single accesses, which Darshan's extended tracing (DXT) records.

use crate::{ByteOrder, Module};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Write,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    pub direction: Direction,
    /// Offset in the file; `None` in version 1 of DXT_MPIIO, where it is unreliable.
    pub offset: Option<i64>,
    pub bytes: i64,
    /// Start and end, in seconds since the job's start.
    pub start_s: f64,
    pub end_s: f64,
    /// Number of the thread (`pthread_self`), if the module's version has it.
    pub thread: Option<u64>,
}

/// The accesses of one module.
#[derive(Clone, Debug)]
pub struct Traced {
    pub module: Module,
    pub version: u32,
    pub files: Vec<TracedFile>,
    pub(crate) order: ByteOrder,
    pub(crate) bytes: Vec<u8>,
}

/// Identifies the accesses of one process to one file. [`Traced::accesses`] returns them.
#[derive(Clone, Debug)]
pub struct TracedFile {
    pub id: u64,
    pub rank: i64,
    pub host: String,
    pub writes: usize,
    pub reads: usize,
    pub(crate) accesses: Range<usize>,
}

const HOST_BYTES: usize = 64;
const FIXED_BYTES: usize = 8 * 3 + HOST_BYTES + 8 * 2;

impl Traced {
    pub(crate) fn new(module: Module, version: u32, order: ByteOrder) -> Traced {
        Traced { module, version, files: Vec::new(), order, bytes: Vec::new() }
    }

    /// Returns the file's accesses: first the writes, then the reads, each in order of time.
    pub fn accesses<'a>(&'a self, file: &'a TracedFile) -> impl ExactSizeIterator<Item = Access> + 'a {
        let bytes = self.bytes[file.accesses.clone()].chunks_exact(self.access_bytes());
        bytes.enumerate().map(move |(at, bytes)| self.access(bytes, at < file.writes))
    }

    fn has_threads(&self) -> bool {
        self.version >= if self.module == Module::DXT_MPIIO { 3 } else { 2 }
    }

    fn access_bytes(&self) -> usize {
        if self.has_threads() {
            40
        } else {
            32
        }
    }

    fn access(&self, bytes: &[u8], is_write: bool) -> Access {
        let word =
            |at: usize| self.order.u64(bytes, 8 * at).expect("an access is as long as its version has it");
        let has_offsets = self.module != Module::DXT_MPIIO || self.version > 1;
        Access {
            direction: if is_write { Direction::Write } else { Direction::Read },
            offset: has_offsets.then(|| word(0).cast_signed()),
            bytes: word(1).cast_signed(),
            start_s: f64::from_bits(word(2)),
            end_s: f64::from_bits(word(3)),
            thread: self.has_threads().then(|| word(4)),
        }
    }

    /// Returns the file whose record begins at `start`, and the offset where the next record begins. `None`
    /// if the record is cut off.
    pub(crate) fn file(&self, start: usize, end: usize) -> Option<(TracedFile, usize)> {
        let bytes = self.bytes.get(start..end)?;
        let host = bytes.get(24..24 + HOST_BYTES)?;
        let host = &host[..host.iter().position(|&byte| byte == 0).unwrap_or(HOST_BYTES)];
        let count = |at: usize| usize::try_from(self.order.i64(bytes, at)?).ok();
        let (writes, reads) = (count(24 + HOST_BYTES)?, count(32 + HOST_BYTES)?);
        let size = writes.checked_add(reads)?.checked_mul(self.access_bytes())?.checked_add(FIXED_BYTES)?;
        bytes.get(..size)?;
        let file = TracedFile {
            id: self.order.u64(bytes, 0)?,
            rank: self.order.i64(bytes, 8)?,
            host: String::from_utf8_lossy(host).into_owned(),
            writes,
            reads,
            accesses: start + FIXED_BYTES..start + size,
        };
        Some((file, start + size))
    }
}
