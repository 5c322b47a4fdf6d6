//! Reads the tables of counters that processes write with --light, one per process, in the session's file.
//! native/light.h defines the same layout in C.

use crate::format::{header, CALL_NUMBERS};
use crate::session::Session;
use iodock_event::numbers_x86_64::NUMBERS;
use iodock_event::ranks::{RankSet, RANK_NAMES};
use iodock_event::{Action, CallClass, CallId};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const MAGIC: u32 = u32::from_le_bytes(*b"TABL");
const HEAD: usize = 192;
const PAGE: u64 = 4096;
/// Largest number of tables: one for each process and each program that it executes; the file is sparse.
const TABLES_MOST: u64 = 1 << 18;
const ROW: usize = 8 * words::ALL;
const ACCESS: usize = 48;

/// Settings of a recording that counts calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Light {
    /// Size of a process's table in bytes.
    pub memory: u64,
    /// Number of a process's first reads and writes that are recorded individually.
    pub first: u64,
}

impl Light {
    /// Smallest size of a table in bytes.
    pub const LEAST: u64 = 256 << 10;
    pub const MOST: u64 = 64 << 20;
    pub const MOST_FIRST: u64 = 1000;

    pub(crate) fn file_bytes(self) -> u64 {
        self.table_bytes() * TABLES_MOST
    }

    fn table_bytes(self) -> u64 {
        self.memory.next_multiple_of(PAGE)
    }

    pub(crate) fn put(self, at: u64, put: &mut impl FnMut(usize, &[u8])) {
        put(header::TABLES_AT, &at.to_le_bytes());
        put(header::TABLES_MOST, &TABLES_MOST.to_le_bytes());
        put(header::TABLE_BYTES, &self.table_bytes().to_le_bytes());
        put(header::FIRST_ACCESSES, &self.first.to_le_bytes());
        put(header::COUNTING, &counting());
    }
}

/// MPI ranks whose calls are recorded, while calls of other ranks are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    pub ranks: RankSet,
    /// Whether calls of processes without a rank are counted too.
    pub counts_unranked: bool,
}

impl Whole {
    /// Largest number of ranges of ranks in the session's header.
    pub const RANGES_MOST: usize = 64;

    /// Whether calls of a process with that rank are counted. `are_calls_counted` in native/load.c decides
    /// the same.
    pub fn counts(&self, rank: Option<i32>) -> bool {
        match rank.filter(|&rank| rank >= 0) {
            Some(rank) => !self.ranks.holds(rank),
            None => self.counts_unranked,
        }
    }

    pub(crate) fn put(&self, put: &mut impl FnMut(usize, &[u8])) {
        let ranges = &self.ranks.ranges()[..self.ranks.ranges().len().min(Whole::RANGES_MOST)];
        put(header::WHOLE_COUNT, &(ranges.len() as u32).to_le_bytes());
        put(header::COUNTS_UNRANKED, &u32::from(self.counts_unranked).to_le_bytes());
        for (number, &(from, to)) in ranges.iter().enumerate() {
            put(header::WHOLE + 8 * number, &(from as u32).to_le_bytes());
            put(header::WHOLE + 8 * number + 4, &(to as u32).to_le_bytes());
        }
        let names: Vec<u8> =
            RANK_NAMES.iter().flat_map(|(name, _)| [name.as_bytes(), b"\0"].concat()).collect();
        assert!(names.len() < header::RANK_NAMES_BYTES, "room for the names of ranks");
        put(header::RANK_NAMES, &names);
    }
}

impl Default for Light {
    fn default() -> Self {
        Light { memory: 1 << 20, first: 64 }
    }
}

/// How a call is counted: the values of `enum counting` in native/light.h.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Counting {
    Nothing = 0,
    Read,
    Write,
    Copy,
    Open,
    Close,
    CloseRange,
    Dup,
    Fcntl,
    Seek,
    Stat,
    Sync,
    Metadata,
    Map,
    Directory,
    New,
    Asynchronous,
}

fn counting() -> [u8; CALL_NUMBERS] {
    let mut all = [0; CALL_NUMBERS];
    for &(number, name) in NUMBERS {
        if let Some(id) = CallId::intern(name.as_bytes()) {
            all[number as usize] = counted_as(id) as u8;
        }
    }
    all
}

fn counted_as(id: CallId) -> Counting {
    use Action as A;
    match id.spec().action {
        A::Read | A::PositionedRead | A::Receive => Counting::Read,
        A::Write | A::PositionedWrite | A::Send | A::PipeMemory => Counting::Write,
        A::Transfer => Counting::Copy,
        A::Open | A::Creat => Counting::Open,
        A::Close => Counting::Close,
        A::CloseRange => Counting::CloseRange,
        A::Dup | A::Dup2 => Counting::Dup,
        A::Fcntl => Counting::Fcntl,
        A::Seek => Counting::Seek,
        A::Stat => Counting::Stat,
        A::Map => Counting::Map,
        A::ChangeDirectory | A::ChangeDirectoryFd | A::ChangeRoot => Counting::Directory,
        // The number of bytes that these calls move is not counted.
        A::AsyncSubmit | A::RingEnter | A::ReceiveMany | A::SendMany => Counting::Asynchronous,
        A::NewSocket | A::NewAccepted | A::NewMemfd | A::NewEventfd | A::NewEpoll | A::NewTimerfd => {
            Counting::New
        }
        A::NewSignalfd | A::NewInotify | A::NewPidfd | A::NewIoUring | A::NewUnnamed | A::NewFromProcess => {
            Counting::New
        }
        A::Fork | A::Vfork | A::Clone | A::Exec | A::Exit => Counting::Nothing,
        _ => match id.spec().class {
            CallClass::Sync => Counting::Sync,
            CallClass::Metadata => Counting::Metadata,
            _ => Counting::Nothing,
        },
    }
}

/// Indices of the words of a row (`struct row` in native/light.h).
pub mod words {
    /// A bit for each entry of [`super::ALIGNMENTS`] that was the largest divisor of the offset of some
    /// access.
    pub const ALIGNMENTS: usize = 4;
    pub const FIRST: usize = 5;
    pub const LAST: usize = 6;
    pub const FILES: usize = 7;
    /// Number of reads. The next word is the number of writes, as for all words that have a direction.
    pub const CALLS: usize = 8;
    pub const BYTES: usize = 10;
    /// Number of accesses with an unknown offset.
    pub const UNPLACED: usize = 15;
    pub const SEQUENTIAL: usize = 16;
    pub const CONSECUTIVE: usize = 18;
    pub const GAPS: usize = 20;
    pub const MOST_END: usize = 28;
    pub const SWITCHES: usize = 30;
    pub const UNALIGNED: usize = 31;
    pub const TIME: usize = 32;
    pub const META_TIME: usize = 34;
    pub const UNTIMED: usize = 35;
    pub const OPENS: usize = 36;
    pub const SEEKS: usize = 37;
    pub const STATS: usize = 38;
    pub const SYNCS: usize = 39;
    pub const MAPS: usize = 40;
    pub const OTHERS: usize = 41;
    pub const FAILED: usize = 42;
    pub const SIZES: usize = 43;
    pub const TIMES: usize = 63;
    pub const ALL: usize = 80;

    /// Whether rows are combined by summing this word.
    pub fn is_sum(word: usize) -> bool {
        matches!(word, FILES..12 | UNPLACED..MOST_END | SWITCHES..75)
    }
}

/// Number of bins of the histograms among the words above.
pub const SIZE_BINS: usize = 10;
pub const GAP_BINS: usize = 8;
pub const TIME_BINS: usize = 12;
/// Meaning of the bits of the word `ALIGNMENTS`: other offsets, and multiples of 512 bytes, 4 KiB, 64 KiB and
/// 1 MiB.
pub const ALIGNMENTS: [i64; 5] = [1, 512, 4096, 65536, 1 << 20];
/// Times of less than 2^10 ticks are in the first bin. The upper bound of each next bin is four times as
/// large.
pub const FIRST_TIME: u32 = 10;

/// The files whose calls a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowKind {
    File,
    /// Files whose names differ only in their numbers.
    Pattern,
    /// Files of one folder.
    Folder,
    /// The row for all other files.
    Rest,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub kind: RowKind,
    pub name: Vec<u8>,
    pub words: [u64; words::ALL],
}

/// One of the first reads and writes of a process. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub row: usize,
    pub tid: u32,
    pub start: u64,
    pub duration: u64,
    pub offset: Option<u64>,
    pub bytes: u64,
    pub is_write: bool,
}

/// The counts of one process while it ran one program.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub pid: u32,
    /// The time when counting began, in ticks.
    pub begun: u64,
    pub rows: Vec<Row>,
    pub accesses: Vec<Access>,
    /// Size of the table's bit set of known files without their own row, in bits.
    pub seen_bits: u32,
    pub folded: u64,
    pub asynchronous: u64,
    pub unplaced: u64,
}

fn narrow(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn wide(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

impl Session {
    fn table_bytes(&self) -> io::Result<u64> {
        self.counter(header::TABLE_BYTES)
    }

    /// Returns the number of tables that processes have taken.
    ///
    /// # Errors
    /// The session can't be read.
    pub fn tables(&self) -> io::Result<u64> {
        Ok(self.counter(header::TABLES_USED)?.min(self.counter(header::TABLES_MOST)?))
    }

    fn table_at(&self, number: u64) -> io::Result<u64> {
        Ok(self.counter(header::TABLES_AT)? + number * self.table_bytes()?)
    }

    fn table_head(&self, number: u64) -> io::Result<[u8; HEAD]> {
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, self.table_at(number)?)?;
        Ok(head)
    }

    /// Whether the process of that table has ended, or executes another program.
    ///
    /// # Errors
    /// The session can't be read.
    pub fn is_table_over(&self, number: u64) -> io::Result<bool> {
        let head = self.table_head(number)?;
        Ok(narrow(&head, 0) == MAGIC && narrow(&head, OVER) != 0)
    }

    /// Reads the used parts of a table: its header, rows, names and accesses. `None` if the table was not
    /// begun.
    ///
    /// # Errors
    /// The session can't be read.
    pub fn table(&self, number: u64) -> io::Result<Option<Vec<u8>>> {
        let (at, most) = (self.table_at(number)?, self.table_bytes()?);
        let mut bytes = self.table_head(number)?.to_vec();
        if narrow(&bytes, 0) != MAGIC {
            return Ok(None);
        }
        for (from, count) in parts(&bytes) {
            if from.saturating_add(count) > most {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a damaged table of counters"));
            }
            let start = bytes.len();
            bytes.resize(start + count as usize, 0);
            self.file.read_exact_at(&mut bytes[start..], at + from)?;
        }
        Ok(Some(bytes))
    }

    /// Frees the memory of a table after it was read and is complete.
    pub fn discard_table(&self, number: u64) {
        let (Ok(at), Ok(bytes)) = (self.table_at(number), self.table_bytes()) else { return };
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (at, bytes) = (at as libc::off_t, bytes as libc::off_t);
        // SAFETY: the call accesses no memory of ours, and the descriptor is open. If the file system does
        // not support it, the memory is freed when the session is removed.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at, bytes) };
    }
}

const OVER: usize = 36;

/// Returns the offsets of rows, names and accesses in the table that begins with `head`, and the number of
/// used bytes of each.
fn parts(head: &[u8]) -> [(u64, u64); 3] {
    let used = |used: usize, most: usize| u64::from(narrow(head, used).min(narrow(head, most)));
    [
        (wide(head, 56), used(128, 16) * ROW as u64),
        (wide(head, 64), used(132, 20)),
        (wide(head, 48), used(136, 24) * ACCESS as u64),
    ]
}

impl Table {
    /// Parses the result of [`Session::table`]; `None` if the bytes are not a table.
    pub fn parse(bytes: &[u8]) -> Option<Table> {
        let head = bytes.get(..HEAD)?;
        let [(_, rows), (_, names), (_, accesses)] = parts(head).map(|(at, count)| (at, count as usize));
        let (rows, rest) = bytes[HEAD..].split_at_checked(rows)?;
        let (names, rest) = rest.split_at_checked(names)?;
        let accesses = rest.get(..accesses)?;
        Some(Table {
            pid: narrow(head, 4),
            begun: wide(head, 8),
            rows: rows.chunks_exact(ROW).map(|row| row_of(row, names)).collect(),
            accesses: accesses.chunks_exact(ACCESS).filter_map(access_of).collect(),
            seen_bits: narrow(head, 28),
            folded: wide(head, 152),
            asynchronous: wide(head, 160),
            unplaced: wide(head, 168),
        })
    }
}

fn row_of(bytes: &[u8], names: &[u8]) -> Row {
    let (at, count) = (narrow(bytes, 8) as usize, narrow(bytes, 12) as usize);
    let kind = match u16::from_le_bytes([bytes[20], bytes[21]]) {
        1 => RowKind::File,
        2 => RowKind::Pattern,
        3 => RowKind::Folder,
        _ => RowKind::Rest,
    };
    let name = names.get(at..at.saturating_add(count)).unwrap_or_default().to_vec();
    Row { kind, name, words: std::array::from_fn(|word| wide(bytes, 8 * word)) }
}

/// Parses an access; `None` if its thread was killed while it wrote the access.
fn access_of(bytes: &[u8]) -> Option<Access> {
    Some(Access {
        row: (narrow(bytes, 0) as usize).checked_sub(1)?,
        tid: narrow(bytes, 4),
        start: wide(bytes, 8),
        duration: wide(bytes, 16),
        offset: Some(wide(bytes, 24)).filter(|&offset| offset != u64::MAX),
        bytes: wide(bytes, 32),
        is_write: wide(bytes, 40) != 0,
    })
}
