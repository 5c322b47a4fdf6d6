//! Copies the data that threads have written from the session to the file, while the program runs. It reads
//! only the chunks' headers and does not decode the data.

use super::file::{CallsWriter, Lost};
use super::offers::Offers;
use super::tables::Tables;
use crate::format::{chunk, header};
use crate::reader::{self, Flight};
use crate::session::{self, Mapped, Session};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;

/// Number of newly begun chunks at which data are handed over at once: 8 MiB of a /dev/shm that may have only
/// 64 MiB.
const PRESSING: u64 = 128;

/// Number of chunks begun after full ones at which data are handed over at once. A full chunk is still in the
/// processor's cache, so that its thread fills it again quickly if it gets it back soon.
const PRESSING_FULL: u64 = 4;

/// Number of set-aside chunks that are checked in one round. There may be many, few of them are in use, and a
/// read of a page that does not exist is slow.
const SET_ASIDE: usize = 64;

pub struct Keeper<'a> {
    session: &'a Session,
    pub file: CallsWriter,
    live: Vec<Live>,
    /// Chunks whose process seems to have ended. They are checked once more at the end, because a process of
    /// another PID namespace may still be running.
    resting: Vec<Live>,
    /// For each stream the sequence number of its last chunk.
    newest: HashMap<u32, u32>,
    /// Number of chunks that threads had taken at the last check.
    chunks: u64,
    /// Chunks taken since the previous check that have no header yet. Most of them have one at the next
    /// check.
    unready: Vec<u64>,
    /// Older chunks without a header. Processes have reserved them for threads that they have not created
    /// yet, and may never create.
    set_aside: VecDeque<u64>,
    /// Number of chunks that threads have begun since all data were last handed over, and number of those
    /// that were begun after a full chunk.
    found_begun: u64,
    found_behind: u64,
    /// Chunks that were offered for reuse, each with its last header, until they are used again or no longer
    /// offered.
    offered: Vec<(u64, reader::Head)>,
    offers: Option<Offers>,
    tables: Tables,
    memory: Option<Mapped>,
    bytes: Vec<u8>,
    /// The earliest start of a call in flight, from the chunks of this round.
    held: u64,
}

/// A chunk to which more data may be written.
struct Live {
    index: u64,
    head: reader::Head,
    /// Number of bytes that were handed over.
    at: u32,
    /// Whether no data were added since the last round.
    quiet: bool,
    /// Start of the call that was in flight in the last round.
    flight: Option<u64>,
}

impl Live {
    /// Whether the chunk was begun again with another generation. If a killed recorder had offered it, a
    /// thread may take it after the next recorder has read its header.
    fn is_no_longer(&self, head: &[u8; chunk::BYTES]) -> bool {
        reader::head(head).is_some_and(|head| head.generation != self.head.generation)
    }
}

impl<'a> Keeper<'a> {
    pub fn new(session: &'a Session, file: CallsWriter) -> Self {
        Keeper {
            session,
            file,
            live: Vec::new(),
            resting: Vec::new(),
            newest: HashMap::new(),
            chunks: 0,
            unready: Vec::new(),
            set_aside: VecDeque::new(),
            found_begun: 0,
            found_behind: 0,
            offered: Vec::new(),
            offers: Offers::new(session).ok(),
            tables: Tables::default(),
            memory: session.map(),
            bytes: Vec::new(),
            held: u64::MAX,
        }
    }

    /// Returns the earliest start of a call that had not ended when all data were last handed over, in units
    /// of the session's clock.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Searches for new chunks, and calls `found` with the processes to which they belong.
    ///
    /// # Errors
    /// The session can't be read. Chunks that could not be checked are checked in the next round.
    pub fn collect(&mut self, mut found: impl FnMut(u32)) -> io::Result<()> {
        let count = self.session.counter(header::NEXT_CHUNK)?.min(self.session.most_chunks());
        let new = self.chunks..count;
        self.chunks = count.max(self.chunks);
        let some = self.set_aside.len().min(SET_ASIDE);
        let mut old: Vec<u64> = self.set_aside.drain(..some).collect();
        old.append(&mut self.unready);
        let (left, looked_at_old) = self.look_at_all(old, &mut found);
        self.set_aside.extend(left);
        let (left, looked_at_new) = self.look_at_all(new, &mut found);
        self.unready = left;
        looked_at_old.and(looked_at_new).and(self.look_at_offered(found))
    }

    /// Checks chunks, and returns those that no thread has begun yet.
    fn look_at_all(
        &mut self,
        indices: impl IntoIterator<Item = u64>,
        mut found: impl FnMut(u32),
    ) -> (Vec<u64>, io::Result<()>) {
        let (mut left, mut result) = (Vec::new(), Ok(()));
        for index in indices {
            match self.look_at(index) {
                Ok(Some(owner)) => found(owner),
                Ok(None) => left.push(index),
                Err(error) => {
                    left.push(index);
                    result = Err(error);
                }
            }
        }
        (left, result)
    }

    /// Checks offered chunks, and adds those that threads have begun again.
    fn look_at_offered(&mut self, mut found: impl FnMut(u32)) -> io::Result<()> {
        let mut result = Ok(());
        for (index, before) in std::mem::take(&mut self.offered) {
            let is_open = self.offers.as_ref().is_some_and(|offers| offers.has(index));
            let new = if is_open { Ok(None) } else { self.begun_again(index, before.generation) };
            match new {
                Ok(Some(head)) => found(self.add(index, head)),
                Ok(None) => self.offered.push((index, before)),
                Err(error) => {
                    self.offered.push((index, before));
                    result = Err(error);
                }
            }
        }
        result
    }

    /// Returns the header of a chunk if a thread has begun it again, after generation `generation`. The
    /// thread first clears the magic number, then writes the other fields, and sets the magic number last. So
    /// a reader that finds the new magic number also finds the other new fields.
    fn begun_again(&self, index: u64, generation: u32) -> io::Result<Option<reader::Head>> {
        let is_other = reader::head(&self.head(index)?).is_some_and(|head| head.generation != generation);
        Ok(if is_other { reader::head(&self.head(index)?) } else { None })
    }

    /// Checks a chunk; returns its process if it is in use.
    fn look_at(&mut self, index: u64) -> io::Result<Option<u32>> {
        Ok(reader::head(&self.session.head(index)?).map(|head| self.add(index, head)))
    }

    /// Adds a chunk that is in use; returns its process.
    fn add(&mut self, index: u64, head: reader::Head) -> u32 {
        self.found_begun += 1;
        self.found_behind += u64::from(head.sequence > 0);
        let newest = self.newest.entry(head.stream).or_insert(head.sequence);
        *newest = head.sequence.max(*newest);
        self.live.push(Live { index, head, at: 0, quiet: false, flight: None });
        head.owner
    }

    /// Whether enough data have arrived to hand them over before the next regular round.
    pub fn is_pressing(&self) -> bool {
        self.found_begun >= PRESSING || self.found_behind >= PRESSING_FULL
    }

    /// Skips the tables of counters that the file already contains.
    ///
    /// # Errors
    /// The session can't be read.
    pub fn skip_tables(&mut self, is_held: impl Fn(u64) -> bool) -> io::Result<()> {
        self.tables.skip(self.session, is_held)
    }

    /// Skips data of this chunk number that the file already contains.
    pub fn skip(&mut self, held: impl Fn(u64) -> u32) {
        for live in &mut self.live {
            live.at = held(live.head.number(live.index));
        }
    }

    /// Hands over new data. Chunks that will get no more data are offered for reuse, or their memory is
    /// freed.
    ///
    /// # Errors
    /// The session can't be read or the file can't be written. Data that were not handed over are kept.
    pub fn hand_over(&mut self, mut is_alive: impl FnMut(u32) -> bool) -> io::Result<()> {
        (self.found_begun, self.found_behind) = (0, 0);
        // Chunks whose streams have ended, and chunks that their threads have left full.
        let (mut done, mut full) = (Vec::new(), Vec::new());
        let mut live = std::mem::take(&mut self.live);
        let mut result = Ok(());
        for mut one in live.drain(..) {
            // This is determined before the chunk is read: if a newer chunk exists, this one gets no more
            // data.
            let newest = self.newest.get(&one.head.stream);
            let superseded = newest.is_some_and(|&newest| newest > one.head.sequence);
            let over = match result {
                Ok(()) => self.hand_over_one(&mut one),
                Err(_) => Ok(false),
            };
            match over {
                Ok(true) => done.push((one.index, one.head)),
                Ok(false) if superseded => full.push((one.index, one.head)),
                Ok(_) if one.quiet && !is_alive(one.head.owner) => self.resting.push(one),
                Ok(_) => self.live.push(one),
                Err(error) => result = Err(error),
            }
        }
        self.held =
            self.live.iter().chain(&self.resting).filter_map(|one| one.flight).min().unwrap_or(u64::MAX);
        result?;
        self.tables.hand_over(self.session, &mut self.file)?;
        self.file.flush()?;
        let over: HashSet<u32> = done.iter().map(|(_, head)| head.stream).collect();
        let mut unwanted: Vec<u64> = done.into_iter().map(|(index, _)| index).collect();
        for (index, head) in full {
            match over.contains(&head.stream) {
                true => unwanted.push(index),
                false => unwanted.extend(self.offer(index, head)),
            }
        }
        self.newest.retain(|stream, _| !over.contains(stream));
        unwanted.sort_unstable();
        for run in unwanted.chunk_by(|one, next| one + 1 == *next) {
            self.session.discard(run[0], run.len() as u64);
        }
        Ok(())
    }

    /// Offers a full chunk for reuse, once all of its data are in the file. Returns the chunk that is no
    /// longer needed: this one, or the one that was offered in its place.
    fn offer(&mut self, index: u64, head: reader::Head) -> Option<u64> {
        let Some(offers) = self.offers.as_ref().filter(|_| head.level == 0) else { return Some(index) };
        let unwanted = offers.offer(index);
        self.offered.retain(|&(other, _)| Some(other) != unwanted);
        self.offered.push((index, head));
        unwanted
    }

    /// Reads the header of a chunk that was begun, so that its page exists.
    fn head(&self, index: u64) -> io::Result<[u8; chunk::BYTES]> {
        self.memory.as_ref().map_or_else(|| self.session.head(index), |memory| Ok(memory.head(index)))
    }

    /// Hands over one chunk's new data. Returns whether these are the last ones.
    fn hand_over_one(&mut self, live: &mut Live) -> io::Result<bool> {
        // The data are copied, because the program changes them while their checksum is computed and they are
        // written.
        let mut head = self.head(live.index)?;
        if live.is_no_longer(&head) {
            // The header is read again, because the thread may have been writing it: see `begun_again`.
            head = self.head(live.index)?;
            if let Some(head) = reader::head(&head) {
                (live.head, live.at) = (head, 0);
            }
        }
        let used = session::used(&head);
        live.flight = Flight::of(&head, self.session.time_shift).map(|flight| flight.start);
        // A chunk that is marked as over gets no more data. If its length is still the same, all data are
        // handed over.
        let over = session::is_over(&head) && session::used(&self.head(live.index)?) == used;
        live.quiet = used <= live.at;
        if live.quiet {
            return Ok(over);
        }
        let first = if live.at == 0 { &head[..] } else { &[] };
        let from = live.at + first.len() as u32;
        let bytes = match &self.memory {
            Some(memory) => memory.bytes(live.index, from, used),
            None => {
                self.bytes.clear();
                self.session.more_of_chunk(live.index, from as usize, &mut self.bytes)?;
                &self.bytes
            }
        };
        self.file.chunk(live.head.number(live.index), live.at, first, bytes)?;
        live.at = from + bytes.len() as u32;
        Ok(over)
    }

    /// Hands over all remaining data and completes the file.
    pub fn end(&mut self) -> io::Result<()> {
        for index in std::mem::take(&mut self.unready).into_iter().chain(std::mem::take(&mut self.set_aside))
        {
            self.look_at(index)?;
        }
        self.look_at_offered(|_| {})?;
        let mut live = std::mem::take(&mut self.live);
        live.append(&mut self.resting);
        for one in &mut live {
            self.hand_over_one(one)?;
            if let Some(flight) = Flight::of(&self.head(one.index)?, self.session.time_shift) {
                self.file.flight(one.head.number(one.index), flight)?;
            }
        }
        self.tables.end(self.session, &mut self.file)?;
        let counter = |at| self.session.counter(at);
        self.file.end(Lost {
            calls: counter(header::LOST_CALLS)?,
            streams: counter(header::LOST_STREAMS)?,
            stopped: counter(header::STOPPED_PROCESSES)?,
            unread_paths: 0,
            python: counter(header::PYTHON_UNREAD)? & u64::from(u32::MAX),
            unplaced: counter(header::UNPLACED)?,
        })
    }
}
