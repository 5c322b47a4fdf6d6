//! Merges the threads' streams of records into one, in the order in which calls ended.

use super::births::{self, ForkCall};
use super::file::{CallsFile, Lost};
use crate::format::chunk;
use crate::reader::{self, ChunkReader, Entry, Flight};
use crate::session::{place_of, Session};
use crate::shapes::Shapes;
use iodock_event::Fork;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::io;

/// Number of entries that are read ahead in a stream to find a fork. Calls that handlers make during a fork
/// come before it.
const MOST_AHEAD: usize = 64;

/// Sources of chunks: the file, and a session whose remaining data could not be written to it.
pub struct Chunks {
    pub file: CallsFile,
    pub session: Option<Session>,
}

impl Chunks {
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = self.file.numbers();
        if let Some(session) = &self.session {
            numbers.append(&mut session.numbers()?);
            numbers.sort_unstable();
            numbers.dedup();
        }
        Ok(numbers)
    }

    fn head(&self, number: u64, bytes: &mut Vec<u8>) -> io::Result<Option<reader::Head>> {
        self.file.read(number, chunk::BYTES, bytes)?;
        if let (None, Some(session)) = (reader::head(bytes), &self.session) {
            return session.head_of(number);
        }
        Ok(reader::head(bytes))
    }

    fn flight(&self, number: u64) -> Option<Flight> {
        let session = || {
            let session = self.session.as_ref()?;
            session.head_of(number).ok()??;
            Flight::of(&session.head(place_of(number)).ok()?, session.time_shift)
        };
        self.file.flight(number).or_else(session)
    }

    fn read(&self, number: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.file.read(number, usize::MAX, bytes)?;
        match &self.session {
            Some(session) if session.head_of(number)?.is_some() => {
                session.more_of_chunk(place_of(number), bytes.len(), bytes)
            }
            _ => Ok(()),
        }
    }
}

pub struct Streams {
    chunks: Chunks,
    shapes: &'static Shapes,
    streams: Vec<Stream>,
    /// Streams of each process. A child of vfork uses its parent's stream, which is listed under the parent.
    by_process: HashMap<u32, Vec<usize>>,
    /// Forks that were read but are not processed yet, by the child's id and the fork's start.
    forks: BTreeMap<(u32, u64), Fork>,
    /// Streams ordered by the time of their next entry. For equal times the stream's number decides, so that
    /// the order does not depend on when a stream was found.
    order: BinaryHeap<Reverse<(u64, u32, usize)>>,
    /// Index of a stream by the number of its first chunk, and (`by_chunk`) by the number of each of its
    /// chunks.
    by_first_chunk: HashMap<u32, usize>,
    by_chunk: HashMap<u64, usize>,
    /// Chunks that could not be read to their end.
    pub damaged: u64,
    /// Bytes read so far.
    pub done: u64,
    /// A buffer that was read to its end and is kept for reuse.
    spare: Vec<u8>,
    followed: Option<Followed>,
}

/// Facts about the entries that were already returned from a file that is followed. They show whether entries
/// that arrive later would have changed the result.
struct Followed {
    /// Time and stream of the last returned entry.
    passed: (u64, u32),
    /// For each process the time when a call last changed the meaning of descriptors.
    changed: HashMap<u32, u64>,
    /// Ids of all children that recorded forks have created.
    children: HashSet<u32>,
    /// Whether a later entry, or a fact that is known only at the end, would have changed the result.
    is_uncertain: bool,
}

struct Stream {
    /// The number of the stream's first chunk.
    number: u32,
    /// The process under which the stream is listed.
    pid: u32,
    current: Option<ChunkReader>,
    /// Number of the current chunk.
    chunk: u64,
    /// Sequence number of the chunk that follows the current one.
    begun: u32,
    /// Chunks that are not read yet, by sequence number.
    waiting: BTreeMap<u32, u64>,
    /// The stream's next entry.
    head: Option<Entry>,
    /// Entries after `head` that were read ahead.
    ahead: VecDeque<Entry>,
}

pub fn time_of(entry: &Entry) -> u64 {
    match entry {
        Entry::Call(call) => call.end,
        Entry::Process(process) => process.time,
        Entry::Usage(usage) => usage.time,
        Entry::Counted(counted) => counted.time,
        Entry::Interface(interface) => interface.time,
        Entry::Task { time, .. } | Entry::Traced { time, .. } => *time,
    }
}

impl Streams {
    /// # Errors
    /// The chunks can't be read.
    pub fn new(chunks: Chunks) -> io::Result<Self> {
        let mut streams = Streams {
            chunks,
            shapes: Shapes::of_this_machine(),
            streams: Vec::new(),
            by_process: HashMap::new(),
            forks: BTreeMap::new(),
            order: BinaryHeap::new(),
            by_first_chunk: HashMap::new(),
            by_chunk: HashMap::new(),
            damaged: 0,
            done: 0,
            spare: Vec::new(),
            followed: None,
        };
        streams.followed = streams.chunks.file.is_followed().then(|| Followed {
            passed: (0, 0),
            changed: HashMap::new(),
            children: HashSet::from([streams.chunks.file.root]),
            is_uncertain: false,
        });
        let numbers = streams.chunks.numbers()?;
        streams.add_chunks(&numbers)?;
        Ok(streams)
    }

    fn add_chunks(&mut self, numbers: &[u64]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for &number in numbers {
            match self.chunks.head(number, &mut bytes)? {
                Some(head) => self.add_chunk(number, head),
                // The thread was killed before it completed the header, or (if there are data) the header is
                // lost.
                None => self.damaged += u64::from(self.chunks.file.held(number) > 0),
            }
        }
        Ok(())
    }

    /// Adds data that have arrived in the file since the last call. Returns all readings of the clock.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn go_on(&mut self) -> io::Result<&[(u64, i64)]> {
        let grown = self.chunks.file.read_on()?;
        let is_new = |number: &u64| !self.by_chunk.contains_key(number);
        let new: Vec<u64> = grown.iter().copied().filter(is_new).collect();
        self.add_chunks(&new)?;
        for number in grown {
            if let Some(&stream) = self.by_chunk.get(&number) {
                self.refill(stream)?;
            }
        }
        if self.followed.is_some() && !self.is_growing() {
            // At the end of the file, streams may get a last entry: the call from which the thread never
            // returned.
            (0..self.streams.len()).try_for_each(|stream| self.refill(stream))?;
        }
        Ok(&self.chunks.file.clocks)
    }

    /// Reads the next entry of a stream that had none.
    fn refill(&mut self, index: usize) -> io::Result<()> {
        if self.streams[index].head.is_none() {
            self.advance(index)?;
            self.judge(index);
        }
        Ok(())
    }

    /// Marks the result as uncertain if a stream's new next entry arrived too late: it would have been
    /// returned earlier, or would have been a call in flight when descriptors changed.
    fn judge(&mut self, index: usize) {
        let (stream, Some(followed)) = (&self.streams[index], &mut self.followed) else { return };
        let Some(head) = &stream.head else { return };
        let changed = followed.changed.get(&stream.pid);
        let was_in_flight = match head {
            Entry::Call(call) => changed.is_some_and(|&changed| call.start < changed),
            _ => false,
        };
        followed.is_uncertain |= was_in_flight || (time_of(head), stream.number) < followed.passed;
    }

    /// Notes that a call of the process that ended at `time` has changed the meaning of descriptors, and that
    /// the process's other calls in flight were searched.
    pub fn note_change(&mut self, pid: u32, time: u64) {
        if let Some(followed) = &mut self.followed {
            let changed = followed.changed.entry(pid).or_default();
            *changed = time.max(*changed);
        }
    }

    /// Whether the entries returned so far are the same as those of the complete file.
    pub fn is_certain(&self) -> bool {
        let file = &self.chunks.file;
        let is_uncertain = self.followed.as_ref().is_some_and(|followed| followed.is_uncertain);
        !is_uncertain && self.damaged == 0 && file.is_in_order()
    }

    /// Whether the file is, or was until its end, followed while it grows.
    pub fn is_followed(&self) -> bool {
        self.followed.is_some()
    }

    /// Returns counts of data that the library did not record; `None` until the file is complete.
    pub fn lost(&self) -> Option<Lost> {
        self.chunks.file.lost
    }

    /// Whether more data may be appended to the file.
    pub fn is_growing(&self) -> bool {
        self.chunks.file.until().is_some()
    }

    /// Returns the time of day at the last reading of the clock.
    pub fn last_clock(&self) -> Option<i64> {
        self.chunks.file.clocks.last().map(|&(_, time)| time)
    }

    /// Returns the length of the known part of the file, in bytes.
    pub fn length(&self) -> u64 {
        self.chunks.file.length()
    }

    fn add_chunk(&mut self, number: u64, head: reader::Head) {
        let stream = match self.by_first_chunk.get(&head.stream) {
            Some(&stream) => stream,
            None => self.add_stream(head),
        };
        let begun = &mut self.streams[stream];
        if let Some(followed) = &mut self.followed {
            followed.is_uncertain |= head.sequence < begun.begun;
        }
        begun.waiting.insert(head.sequence, number);
        if self.is_growing() {
            self.by_chunk.insert(number, stream);
        }
    }

    fn add_stream(&mut self, head: reader::Head) -> usize {
        let birth = Entry::Task { tid: head.tid, pid: head.pid, time: head.base };
        let index = self.streams.len();
        self.order.push(Reverse((head.base, head.stream, index)));
        self.streams.push(Stream {
            number: head.stream,
            pid: head.pid,
            current: None,
            chunk: 0,
            begun: 0,
            waiting: BTreeMap::new(),
            head: Some(birth),
            ahead: VecDeque::new(),
        });
        let others = self.by_process.entry(head.pid).or_default();
        let place = others.partition_point(|&other| self.streams[other].number < head.stream);
        others.insert(place, index);
        self.by_first_chunk.insert(head.stream, index);
        self.judge(index);
        index
    }

    /// Reads the stream's next entry, if there is one, and sorts it into the order.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let next = match self.streams[index].ahead.pop_front() {
            None => self.read_entry(index)?,
            next => next,
        };
        if let Some(entry) = next {
            self.order.push(Reverse((time_of(&entry), self.streams[index].number, index)));
            self.streams[index].head = Some(entry);
        }
        Ok(())
    }

    /// Reads the stream's next entry, if there is one.
    fn read_entry(&mut self, index: usize) -> io::Result<Option<Entry>> {
        let stream = &mut self.streams[index];
        loop {
            if let Some(reader) = &mut stream.current {
                match reader.next_entry(self.shapes) {
                    Ok(Some(entry)) => {
                        if let Some(ForkCall { fork, start }) = births::fork_of(&entry) {
                            self.forks.insert((fork.child_tid, start), fork);
                            if let Some(followed) = &mut self.followed {
                                // With two forks of the same child id, it depends on the data read ahead
                                // which one is found.
                                followed.is_uncertain |= !followed.children.insert(fork.child_tid);
                            }
                        }
                        return Ok(Some(entry));
                    }
                    Ok(None) if self.followed.is_some() || self.chunks.file.until().is_some() => {
                        let mut bytes = Vec::new();
                        self.chunks.read(stream.chunk, &mut bytes)?;
                        if bytes.len() > reader.length() {
                            self.done += (bytes.len() - reader.length()) as u64;
                            reader.grow(bytes);
                            continue;
                        }
                        if stream.waiting.is_empty() && self.chunks.file.until().is_some() {
                            return Ok(None);
                        }
                    }
                    Ok(None) => {}
                    Err(_) => self.damaged += 1,
                }
            }
            let over = stream.current.take();
            let next = stream.waiting.pop_first();
            let Some((sequence, next)) = next else {
                let flight = self.chunks.flight(stream.chunk);
                return Ok(over.zip(flight).and_then(|(over, flight)| over.no_return(flight, self.shapes)));
            };
            if let Some(over) = over {
                self.spare = over.into_bytes();
            }
            if let Some(followed) = &mut self.followed {
                // If a chunk of this stream is missing, it may arrive later.
                followed.is_uncertain |= sequence != stream.begun;
            }
            stream.begun = sequence + 1;
            stream.chunk = next;
            let mut bytes = std::mem::take(&mut self.spare);
            self.chunks.read(next, &mut bytes)?;
            self.done += bytes.len() as u64;
            stream.current = ChunkReader::new(bytes);
        }
    }

    /// Returns the fork that created `child`, if the fork began by `time` and is not processed yet. A fork
    /// that began later created another child with the same id.
    pub fn fork_in_flight(&self, child: u32, time: u64) -> Option<ForkCall> {
        let (&(_, start), &fork) = self.forks.range((child, 0)..=(child, time)).next_back()?;
        Some(ForkCall { fork, start })
    }

    /// Reads ahead to find the fork that created `child`, which appears at `time`: a fork that a handler
    /// interrupted comes after the handler's calls. Returns false if the fork was not found, but later data
    /// of a file that is followed may contain it.
    ///
    /// # Errors
    /// The chunks can't be read.
    pub fn look_for_parent(&mut self, child: u32, time: u64) -> io::Result<bool> {
        let mut is_sure = true;
        for index in 0..self.streams.len() {
            while self.streams[index].current.is_some() && self.streams[index].ahead.len() < MOST_AHEAD {
                let Some(entry) = self.read_entry(index)? else {
                    is_sure &= self.followed.is_none() || !self.is_growing();
                    break;
                };
                self.streams[index].ahead.push_back(entry);
                if self.fork_in_flight(child, time).is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(is_sure)
    }

    /// Returns the next entry, with the index of its stream.
    ///
    /// # Errors
    /// The chunks can't be read.
    pub fn next(&mut self) -> io::Result<Option<(usize, Entry)>> {
        let until = self.chunks.file.until().unwrap_or(u64::MAX);
        let Some(&Reverse((time, number, index))) = self.order.peek() else { return Ok(None) };
        if time > until {
            return Ok(None);
        }
        self.order.pop();
        if let Some(followed) = &mut self.followed {
            followed.passed = (time, number);
        }
        let entry = self.streams[index].head.take();
        if let Some(ForkCall { fork, start }) = entry.as_ref().and_then(births::fork_of) {
            self.forks.remove(&(fork.child_tid, start));
        }
        self.advance(index)?;
        Ok(entry.map(|entry| (index, entry)))
    }

    /// Returns the next entry of each stream of a process.
    pub fn heads(&self, pid: u32) -> impl Iterator<Item = &Entry> {
        let streams = self.by_process.get(&pid).map_or(&[][..], Vec::as_slice);
        streams.iter().filter_map(|&index| self.streams[index].head.as_ref())
    }
}
