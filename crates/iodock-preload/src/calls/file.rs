//! Writes and reads the file of raw calls, to which the recorder appends pieces.
//! docs/explanation/rewrite-buffers.md documents the format.

use crate::reader::Flight;
use crate::session::Session;
use crate::shapes::Shapes;
use iodock_event::SourceError;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"IODOCKC\n";
const VERSION: u32 = 5;
/// Length of the header in bytes: magic number, version, checksum of the shapes, number of the session, id of
/// its first process, zero.
const HEADER: usize = 32;
/// Length of a piece's header: kind, length, checksum.
const PIECE: usize = 12;
/// A piece of a chunk begins with the chunk's number (8 bytes) and the offset of the bytes in the chunk (4
/// bytes).
const CHUNK_PIECE: usize = 12;
/// Largest length of a valid piece; chunks have 64 KiB.
const MOST: u32 = 1 << 20;
/// Number of collected bytes that are written at once.
const WRITE_BYTES: usize = 256 << 10;
/// Length from which data are written without a copy. Shorter data are collected: 12 KiB take three times as
/// long in a write of their own as in a write of 256 KiB.
const LONG: usize = 48 << 10;

const SESSION: u32 = 1;
const CLOCK: u32 = 2;
const CHUNK: u32 = 3;
const END: u32 = 4;
const FLIGHT: u32 = 5;
const TABLE: u32 = 6;
/// A piece with the earliest start of a call that was in flight when the data before this piece were read (8
/// bytes). A reading of the clock follows.
const HELD: u32 = 7;
/// A piece of a table begins with the table's number (8 bytes), the offset of the bytes in the table, and the
/// table's full length (4 bytes each).
const TABLE_PIECE: usize = 16;
/// Number of bytes of a table in one piece.
const TABLE_BYTES: usize = 512 << 10;
/// Largest kind of a piece. Unknown kinds up to this number may come from later versions, and are skipped.
const LAST_KIND: u32 = 255;

/// Appends pieces to a file of raw calls.
pub struct CallsWriter {
    file: File,
    out: Vec<u8>,
    /// Length up to the end of the last complete piece.
    good_length: u64,
    failed: bool,
}

/// Returns a checksum of the shapes of all calls. A file can only be read by an iodock with the same shapes.
fn shapes_sum() -> u32 {
    let shapes = Shapes::of_this_machine();
    let bytes: Vec<u8> = shapes.by_number.iter().flat_map(|shape| shape.bytes()).collect();
    crc32fast::hash(&bytes)
}

impl CallsWriter {
    /// Creates the file at `path` for a session whose first process is `root`.
    pub fn create(path: &Path, session: &Session, root: u32) -> io::Result<CallsWriter> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&shapes_sum().to_le_bytes());
        out.extend_from_slice(&session.number.to_le_bytes());
        out.extend_from_slice(&root.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let mut writer = CallsWriter { file, out, good_length: 0, failed: false };
        writer.piece(SESSION, &[session.folder.as_os_str().as_bytes()])?;
        writer.flush()?;
        Ok(writer)
    }

    /// Continues a file that a killed recorder left, after the file's last complete piece.
    pub fn go_on(calls: &CallsFile) -> io::Result<CallsWriter> {
        let file = OpenOptions::new().append(true).open(&calls.path)?;
        file.set_len(calls.good_length)?;
        Ok(CallsWriter { file, out: Vec::new(), good_length: calls.good_length, failed: false })
    }

    /// Writes the session's clock and the time of day (ns since the epoch), which were read together.
    pub fn clock(&mut self, (units, time): (u64, i64)) -> io::Result<()> {
        self.piece(CLOCK, &[&units.to_le_bytes(), &time.to_le_bytes()])
    }

    /// Writes such a reading of the clocks after `held`: the earliest start of a call that had not ended when
    /// the chunks were read, in units of the session's clock.
    pub fn clock_and_held(&mut self, clock: (u64, i64), held: u64) -> io::Result<()> {
        self.piece(HELD, &[&held.to_le_bytes()])?;
        self.clock(clock)
    }

    /// Writes bytes of the chunk with this number, at offset `from` in the chunk, in two parts. The bytes
    /// must not change during this call: their checksum is computed before they are written.
    pub fn chunk(&mut self, number: u64, from: u32, first: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.piece(CHUNK, &[&number.to_le_bytes(), &from.to_le_bytes(), first, bytes])
    }

    /// Writes the call in flight of the thread that wrote this chunk.
    pub fn flight(&mut self, chunk: u64, flight: Flight) -> io::Result<()> {
        let (number, fd) = (flight.number.to_le_bytes(), flight.fd.to_le_bytes());
        self.piece(FLIGHT, &[&chunk.to_le_bytes(), &number, &fd, &flight.start.to_le_bytes()])
    }

    /// Writes a table of counters.
    pub fn table(&mut self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let mut from = 0u32;
        for part in bytes.chunks(TABLE_BYTES) {
            let whole = (bytes.len() as u32).to_le_bytes();
            self.piece(TABLE, &[&number.to_le_bytes(), &from.to_le_bytes(), &whole, part])?;
            from += part.len() as u32;
        }
        Ok(())
    }

    /// Ends the file: no more chunks follow. `lost`: the calls that the library did not record.
    pub fn end(&mut self, lost: Lost) -> io::Result<()> {
        let numbers = [lost.calls, lost.streams, lost.stopped, lost.unread_paths, lost.python, lost.unplaced]
            .map(u64::to_le_bytes);
        self.piece(END, &[&numbers.concat()])?;
        self.flush()
    }

    fn piece(&mut self, kind: u32, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut sum = crc32fast::Hasher::new();
        parts.iter().for_each(|part| sum.update(part));
        self.out.extend_from_slice(&kind.to_le_bytes());
        self.out.extend_from_slice(&(length as u32).to_le_bytes());
        self.out.extend_from_slice(&sum.finalize().to_le_bytes());
        let Some((last, first)) = parts.split_last() else { return Ok(()) };
        first.iter().for_each(|part| self.out.extend_from_slice(part));
        if last.len() >= LONG {
            return self.write(last);
        }
        self.out.extend_from_slice(last);
        if self.out.len() >= WRITE_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.good_length
    }

    /// Writes the collected data, so that they survive if the recorder is killed. After an error nothing more
    /// is written: the file ends with its last complete piece.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write(&[])
    }

    /// Writes the collected data, followed by `more`.
    fn write(&mut self, more: &[u8]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("writing has failed before"));
        }
        let length = self.out.len() + more.len();
        let result = write_both(&mut self.file, &self.out, more);
        if result.is_ok() {
            self.good_length += length as u64;
        } else {
            self.failed = true;
            // If truncating fails too, the reader stops at the damaged piece.
            let _ = self.file.set_len(self.good_length);
        }
        self.out.clear();
        result
    }
}

fn write_both(file: &mut File, first: &[u8], second: &[u8]) -> io::Result<()> {
    let written = loop {
        match file.write_vectored(&[io::IoSlice::new(first), io::IoSlice::new(second)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => break written?,
        }
    };
    file.write_all(first.get(written..).unwrap_or_default())?;
    file.write_all(&second[written.saturating_sub(first.len())..])
}

/// Counts of data that the library did not record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub calls: u64,
    pub streams: u64,
    /// Number of processes that continued after recording had stopped in them.
    pub stopped: u64,
    /// Number of paths of failed calls that a seccomp filter made unreadable. Nonzero only in files of older
    /// versions.
    pub unread_paths: u64,
    /// Number of processes whose Python frames could not be read.
    pub python: u64,
    /// Number of threads that made calls on stacks that can't be read.
    pub unplaced: u64,
}

/// Position of some bytes of a chunk.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: u32,
    length: u32,
    at: u64,
}

/// A file of raw calls that is open for reading, with an index of the parts of chunks that it contains.
pub struct CallsFile {
    pub path: PathBuf,
    file: File,
    pub session: PathBuf,
    pub number: u64,
    pub root: u32,
    /// Readings of the session's clock (units) and of the time of day (ns since the epoch).
    pub clocks: Vec<(u64, i64)>,
    /// Counts of unrecorded data; `None` for a recording that was not completed.
    pub lost: Option<Lost>,
    /// Number of damaged pieces. An incomplete piece at the end does not count: it is left by a killed
    /// recorder.
    pub damaged: u64,
    chunks: Vec<(u64, Piece)>,
    flights: HashMap<u64, Flight>,
    /// Tables of counters by their numbers, each with its full length.
    tables: BTreeMap<u64, (usize, Vec<u8>)>,
    /// Length up to the end of the last complete piece.
    good_length: u64,
    /// Whether the file's recorder may append more. Then the file is read up to its last reading of the
    /// clock, because everything before that was written together, from all threads.
    is_growing: bool,
    /// Whether the file is read while it grows, with the same result as after its end.
    is_followed: bool,
    /// The content of the last HELD piece, until its reading of the clock follows.
    held: Option<u64>,
    /// All calls that began before this time of the session's clock have ended and are in the file.
    settled: u64,
    /// Whether each reading of the clock was later than the previous one.
    is_in_order: bool,
}

impl CallsFile {
    /// Reads the index of the file at `path`. Damaged pieces are counted and skipped.
    ///
    /// # Errors
    /// The file can't be read, is not a file of raw calls, or has another version.
    pub fn open(path: &Path) -> Result<CallsFile, SourceError> {
        let mut calls = CallsFile::begin(path)?;
        calls.read_on().map_err(|error| refusal(path, &error.to_string(), CHECK))?;
        Ok(calls)
    }

    /// Does the same for a file that is still being written.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_growing(path: &Path) -> Result<CallsFile, SourceError> {
        let mut calls = CallsFile { is_growing: true, ..CallsFile::begin(path)? };
        calls.read_on().map_err(|error| refusal(path, &error.to_string(), CHECK))?;
        Ok(calls)
    }

    /// Does the same for a file that is followed while it grows. It is read only as far as later data can't
    /// change the result, so that the result is the same as after its end.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_followed(path: &Path) -> Result<CallsFile, SourceError> {
        let calls = CallsFile::begin(path)?;
        let mut calls = CallsFile { is_growing: true, is_followed: true, ..calls };
        calls.read_on().map_err(|error| refusal(path, &error.to_string(), CHECK))?;
        Ok(calls)
    }

    /// Opens the file and reads its header.
    fn begin(path: &Path) -> Result<CallsFile, SourceError> {
        let mut file = File::open(path).map_err(|error| refusal(path, &error.to_string(), CHECK))?;
        let mut header = [0; HEADER];
        let read = file.read_exact(&mut header);
        if read.is_err() || header[..8] != MAGIC {
            return Err(refusal(path, "holds no raw calls", "only iodock record writes such files"));
        }
        if number(&header[8..12]) != u64::from(VERSION) || number(&header[12..16]) != u64::from(shapes_sum())
        {
            let hint = "finish it with the iodock that recorded it: iodock info STORE";
            return Err(refusal(path, "was recorded by another version of iodock", hint));
        }
        Ok(CallsFile {
            path: path.into(),
            session: PathBuf::new(),
            number: number(&header[16..24]),
            root: number(&header[24..28]) as u32,
            clocks: Vec::new(),
            lost: None,
            damaged: 0,
            chunks: Vec::new(),
            flights: HashMap::new(),
            tables: BTreeMap::new(),
            good_length: HEADER as u64,
            is_growing: false,
            is_followed: false,
            held: None,
            settled: 0,
            is_in_order: true,
            file,
        })
    }

    /// Reads data that follow the known parts. Returns the numbers of the chunks with new data.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn read_on(&mut self) -> io::Result<Vec<u64>> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(self.good_length))?;
        let mut input = BufReader::with_capacity(256 << 10, file);
        let (mut payload, mut at, mut passed) = (Vec::new(), self.good_length, 0);
        let known = self.chunks.len();
        let mut whole = (known, at);
        while let Some((kind, is_whole)) = next_piece(&mut input, &mut payload) {
            if is_whole {
                self.take(kind, at, &payload);
                self.damaged += std::mem::take(&mut passed);
            } else {
                passed += 1;
            }
            at += (PIECE + payload.len()) as u64;
            if is_whole && (!self.is_growing || matches!(kind, CLOCK | END)) {
                whole = (self.chunks.len(), at);
            }
        }
        self.good_length = whole.1;
        self.chunks.truncate(whole.0);
        // Damaged bytes after the last complete piece count as one damaged piece, because it is unknown how
        // many they contain.
        self.damaged += u64::from(passed > 0 && !self.is_growing);
        let mut new: Vec<u64> = self.chunks[known..].iter().map(|&(number, _)| number).collect();
        new.sort_unstable();
        new.dedup();
        self.chunks.sort_by_key(|&(number, piece)| (number, piece.from));
        Ok(new)
    }

    /// Returns the time on the session's clock up to which all ended calls are present; `None` if no more
    /// data will follow.
    pub fn until(&self) -> Option<u64> {
        let last = || self.clocks.last().map_or(0, |&(units, _)| units);
        let until = || if self.is_followed { self.settled.saturating_sub(1) } else { last() };
        (self.is_growing && self.lost.is_none()).then(until)
    }

    /// Whether the file is, or was until its end, followed while it grows.
    pub fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Whether the file fulfils the conditions for following it: increasing readings of the clock, and no
    /// damage.
    pub fn is_in_order(&self) -> bool {
        self.is_in_order && self.damaged == 0
    }

    /// Adds a reading of the clock. Calls that ended before the previous reading are settled: at least a
    /// second has passed since, in which their threads have written them.
    fn take_clock(&mut self, units: u64, time: i64) {
        let before = self.clocks.last().map(|&(before, _)| before);
        self.is_in_order &= before.is_none_or(|before| before < units);
        if let (Some(before), Some(held)) = (before, self.held.take()) {
            self.settled = self.settled.max(before.min(held));
        }
        self.clocks.push((units, time));
    }

    /// Processes a piece that begins at offset `at` of the file.
    fn take(&mut self, kind: u32, at: u64, payload: &[u8]) {
        let at = at + (PIECE + CHUNK_PIECE) as u64;
        match (kind, payload.len()) {
            (SESSION, _) => self.session = std::ffi::OsString::from_vec(payload.to_vec()).into(),
            (CLOCK, 16) => self.take_clock(number(&payload[..8]), number(&payload[8..]) as i64),
            (HELD, 8) => self.held = Some(number(payload)),
            (END, 24 | 32 | 40 | 48) => {
                // Older files lack the last of these numbers.
                let [calls, streams, stopped, unread_paths, python, unplaced] =
                    [0, 8, 16, 24, 32, 40].map(|at| payload.get(at..at + 8).map_or(0, number));
                self.lost = Some(Lost { calls, streams, stopped, unread_paths, python, unplaced });
            }
            (FLIGHT, 24) => {
                let (call, fd) = (number(&payload[8..12]) as u32, number(&payload[12..16]) as i32);
                let flight = Flight { number: call, fd, start: number(&payload[16..]) };
                self.flights.insert(number(&payload[..8]), flight);
            }
            (CHUNK, length) if length > CHUNK_PIECE => {
                let length = (length - CHUNK_PIECE) as u32;
                let from = number(&payload[8..CHUNK_PIECE]) as u32;
                self.chunks.push((number(&payload[..8]), Piece { from, length, at }));
            }
            (TABLE, length) if length > TABLE_PIECE => {
                let (from, whole) = (number(&payload[8..12]) as usize, number(&payload[12..16]) as usize);
                let table = self.tables.entry(number(&payload[..8])).or_default();
                table.0 = whole;
                // A killed recorder may have begun to write this table. The table is then written again from
                // its beginning.
                table.1.truncate(from);
                table.1.extend_from_slice(&payload[TABLE_PIECE..]);
            }
            // Later versions may add kinds of pieces that older versions can skip.
            _ => {}
        }
    }

    pub fn length(&self) -> u64 {
        self.good_length
    }

    /// Returns the complete tables of counters with their numbers.
    pub fn tables(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let whole = self.tables.iter().filter(|(_, (whole, bytes))| bytes.len() == *whole);
        whole.map(|(&number, (_, bytes))| (number, bytes.as_slice()))
    }

    pub fn holds_table(&self, number: u64) -> bool {
        self.tables.get(&number).is_some_and(|(whole, bytes)| bytes.len() == *whole)
    }

    /// Returns the numbers of the chunks with data in the file.
    pub fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.chunks.iter().map(|&(number, _)| number).collect();
        numbers.dedup();
        numbers
    }

    /// Returns the number of bytes of this chunk in the file, from the chunk's beginning without gaps.
    pub fn held(&self, number: u64) -> u32 {
        self.pieces(number).fold(0, |held, piece| match piece.from <= held {
            true => held.max(piece.from.saturating_add(piece.length)),
            false => held,
        })
    }

    /// Returns the call from which the thread that wrote this chunk never returned.
    pub fn flight(&self, number: u64) -> Option<Flight> {
        self.flights.get(&number).copied()
    }

    fn pieces(&self, number: u64) -> impl Iterator<Item = Piece> + '_ {
        let first = self.chunks.partition_point(|&(other, _)| other < number);
        self.chunks[first..].iter().take_while(move |&&(other, _)| other == number).map(|&(_, piece)| piece)
    }

    /// Reads the first bytes of the chunk with this number, at most `most`.
    pub fn read(&self, number: u64, most: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        for piece in self.pieces(number) {
            let skip = bytes.len() as u64 - u64::from(piece.from).min(bytes.len() as u64);
            // The piece is skipped if there is a gap before it, or if it contains no new data.
            if piece.from as usize > bytes.len() || skip >= u64::from(piece.length) {
                continue;
            }
            let start = bytes.len();
            let count = ((u64::from(piece.length) - skip) as usize).min(most - start);
            bytes.resize(start + count, 0);
            self.file.read_exact_at(&mut bytes[start..], piece.at + skip)?;
        }
        Ok(())
    }
}

const CHECK: &str = "check the file system that holds the store";

fn refusal(path: &Path, message: &str, hint: &str) -> SourceError {
    SourceError { file: path.display().to_string(), line: None, message: message.into(), hint: hint.into() }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Returns a piece's kind, and whether its checksum is right. `None` at the end, or if no piece begins there.
fn next_piece(input: &mut (impl Read + Seek), payload: &mut Vec<u8>) -> Option<(u32, bool)> {
    let mut head = [0; PIECE];
    input.read_exact(&mut head).ok()?;
    let (kind, length) = (number(&head[..4]) as u32, number(&head[4..8]) as u32);
    if length > MOST || !(SESSION..=LAST_KIND).contains(&kind) {
        return None;
    }
    payload.resize(length as usize, 0);
    input.read_exact(payload).ok()?;
    Some((kind, u64::from(crc32fast::hash(payload)) == number(&head[8..])))
}
