//! While a program runs: what its threads have written, from the session to the file, unread. Only the
//! chunks' headers are looked at.

use super::file::{CallsWriter, Lost};
use crate::format::{chunk, header};
use crate::reader::{self, Flight};
use crate::session::{self, Mapped, Session};
use std::collections::{HashMap, VecDeque};
use std::io;

/// Chunks that were found begun since the last time and are handed over at once: 8 MiB, of a /dev/shm that
/// may have 64.
const PRESSING: u64 = 128;

/// Chunks that were set aside and are looked at in one round: there may be many, few of them are begun, and
/// the system finds nothing slower than a page that is not there.
const SET_ASIDE: usize = 64;

pub struct Keeper<'a> {
    session: &'a Session,
    pub file: CallsWriter,
    live: Vec<Live>,
    /// Chunks whose process seems to be gone: looked at once more at the end. (It may have a process id of
    /// another name space, and then it is not gone.)
    resting: Vec<Live>,
    /// The last chunk of each stream, by sequence.
    newest: HashMap<u32, u32>,
    /// How many chunks were given out when that was looked at last.
    chunks: u64,
    /// Those given out since the time before, without a header: mostly they are begun by the next time.
    unready: Vec<u64>,
    /// Older ones without: a process has set them aside for threads that it has not made, and perhaps never
    /// makes.
    set_aside: VecDeque<u64>,
    /// Found begun since the last time that all was handed over.
    found_begun: u64,
    memory: Option<Mapped>,
    bytes: Vec<u8>,
}

/// A chunk that more may be written to.
struct Live {
    index: u64,
    /// Handed over up to here.
    at: u32,
    stream: u32,
    sequence: u32,
    owner: u32,
    /// Nothing came since the last time.
    quiet: bool,
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
            memory: session.map(),
            bytes: Vec::new(),
        }
    }

    /// Looks for new chunks; `found` is told the processes that they belong to.
    pub fn collect(&mut self, mut found: impl FnMut(u32)) -> io::Result<()> {
        let count = self.session.counter(header::NEXT_CHUNK)?.min(self.session.most_chunks());
        let new = self.chunks..count;
        self.chunks = count.max(self.chunks);
        let some = self.set_aside.len().min(SET_ASIDE);
        let mut old: Vec<u64> = self.set_aside.drain(..some).collect();
        old.append(&mut self.unready);
        for index in old {
            match self.look_at(index)? {
                Some(owner) => found(owner),
                None => self.set_aside.push_back(index),
            }
        }
        for index in new {
            match self.look_at(index)? {
                Some(owner) => found(owner),
                None => self.unready.push(index),
            }
        }
        Ok(())
    }

    /// Where it is begun, whose it is.
    fn look_at(&mut self, index: u64) -> io::Result<Option<u32>> {
        let Some(head) = reader::head(&self.session.head(index)?) else { return Ok(None) };
        self.found_begun += 1;
        let newest = self.newest.entry(head.stream).or_insert(head.sequence);
        *newest = head.sequence.max(*newest);
        let (stream, sequence, owner) = (head.stream, head.sequence, head.owner);
        self.live.push(Live { index, at: 0, stream, sequence, owner, quiet: false });
        Ok(Some(owner))
    }

    /// Is there so much that it should not wait for its second?
    pub fn is_pressing(&self) -> bool {
        self.found_begun >= PRESSING
    }

    /// Skips what the file holds already of chunk `index`.
    pub fn skip(&mut self, held: impl Fn(u64) -> u32) {
        for live in &mut self.live {
            live.at = held(live.index);
        }
    }

    /// Hands over what is new, and gives the memory back of chunks that nothing more comes to.
    ///
    /// # Errors
    /// The session can't be read or the file can't be written. What was not handed over stays.
    pub fn hand_over(&mut self, mut is_alive: impl FnMut(u32) -> bool) -> io::Result<()> {
        self.found_begun = 0;
        let mut done = Vec::new();
        let mut live = std::mem::take(&mut self.live);
        let mut result = Ok(());
        for mut one in live.drain(..) {
            // Asked before the chunk is read: nothing comes afterwards.
            let superseded = self.newest.get(&one.stream).is_some_and(|&newest| newest > one.sequence);
            let over = match result {
                Ok(()) => self.hand_over_one(&mut one),
                Err(_) => Ok(false),
            };
            match over {
                Ok(over) if superseded || over => {
                    done.push(one.index);
                    if over {
                        self.newest.remove(&one.stream);
                    }
                }
                Ok(_) if one.quiet && !is_alive(one.owner) => self.resting.push(one),
                Ok(_) => self.live.push(one),
                Err(error) => result = Err(error),
            }
        }
        result?;
        self.file.flush()?;
        done.sort_unstable();
        for run in done.chunk_by(|one, next| one + 1 == *next) {
            self.session.discard(run[0], run.len() as u64);
        }
        Ok(())
    }

    /// The header of a chunk that is begun: its page is there.
    fn head(&self, index: u64) -> io::Result<[u8; chunk::BYTES]> {
        self.memory.as_ref().map_or_else(|| self.session.head(index), |memory| Ok(memory.head(index)))
    }

    /// Is that all of it?
    fn hand_over_one(&mut self, live: &mut Live) -> io::Result<bool> {
        // A copy: the program goes on changing it while it is summed up and written.
        let head = self.head(live.index)?;
        let used = session::used(&head);
        // Is that still all, now that it is known to be over?
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
        self.file.chunk(live.index, live.at, first, bytes)?;
        live.at = from + bytes.len() as u32;
        Ok(over)
    }

    /// Everything that is left; then the file is complete.
    pub fn end(&mut self) -> io::Result<()> {
        for index in std::mem::take(&mut self.unready).into_iter().chain(std::mem::take(&mut self.set_aside))
        {
            self.look_at(index)?;
        }
        let mut live = std::mem::take(&mut self.live);
        live.append(&mut self.resting);
        for one in &mut live {
            self.hand_over_one(one)?;
            if let Some(flight) = Flight::of(&self.head(one.index)?, self.session.time_shift) {
                self.file.flight(one.index, flight)?;
            }
        }
        let counter = |at| self.session.counter(at);
        self.file.end(Lost {
            calls: counter(header::LOST_CALLS)?,
            streams: counter(header::LOST_STREAMS)?,
            stopped: counter(header::STOPPED_PROCESSES)?,
        })
    }
}
