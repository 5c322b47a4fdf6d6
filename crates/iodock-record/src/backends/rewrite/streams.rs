//! The threads' streams of records, merged into one by the times at which calls end.

use super::births;
use iodock_event::Fork;
use iodock_preload::format::header;
use iodock_preload::reader::{self, ChunkReader, Entry};
use iodock_preload::session::Session;
use iodock_preload::shapes::Shapes;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io;

pub struct Streams<'a> {
    session: &'a Session,
    shapes: &'a Shapes,
    streams: Vec<Stream<'a>>,
    by_first_chunk: HashMap<u32, usize>,
    /// Streams of each process. (A child of vfork uses its parent's, and is found under that.)
    by_process: HashMap<u32, Vec<usize>>,
    /// Forks that are a stream's next entry, by child: those in flight when the child appears.
    pub forks: HashMap<u32, Fork>,
    /// Streams by their next entry's time.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Chunks seen so far, and of those the ones whose owner has not written its header yet.
    chunks: u64,
    unready: Vec<u64>,
    /// Chunks that could not be read to their end.
    pub damaged: u64,
}

struct Stream<'a> {
    current: Option<(u64, ChunkReader<'a>)>,
    /// Chunks that come after it, by sequence.
    waiting: BTreeMap<u32, u64>,
    head: Option<Entry>,
}

pub fn time_of(entry: &Entry) -> u64 {
    match entry {
        Entry::Call(call) => call.end,
        Entry::Process(process) => process.time,
        Entry::Task { time, .. } => *time,
    }
}

impl<'a> Streams<'a> {
    pub fn new(session: &'a Session, shapes: &'a Shapes) -> Self {
        Streams {
            session,
            shapes,
            streams: Vec::new(),
            by_first_chunk: HashMap::new(),
            by_process: HashMap::new(),
            forks: HashMap::new(),
            order: BinaryHeap::new(),
            chunks: 0,
            unready: Vec::new(),
            damaged: 0,
        }
    }

    /// Takes in what was written since the last time.
    pub fn collect(&mut self) -> io::Result<()> {
        let count = self.session.counter(header::NEXT_CHUNK)?;
        let mut new = std::mem::take(&mut self.unready);
        new.extend(self.chunks..count);
        self.chunks = count;
        for index in new {
            self.add_chunk(index)?;
        }
        for index in 0..self.streams.len() {
            if self.streams[index].head.is_none() {
                self.advance(index)?;
            }
        }
        Ok(())
    }

    fn add_chunk(&mut self, index: u64) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.session.chunk(index, &mut bytes)?;
        let Some(head) = reader::head(&bytes) else {
            self.unready.push(index);
            return Ok(());
        };
        let stream = *self.by_first_chunk.entry(head.stream).or_insert_with(|| {
            let birth = Entry::Task { tid: head.tid, pid: head.pid, time: head.base };
            self.order.push(Reverse((head.base, self.streams.len())));
            self.by_process.entry(head.pid).or_default().push(self.streams.len());
            self.streams.push(Stream { current: None, waiting: BTreeMap::new(), head: Some(birth) });
            self.streams.len() - 1
        });
        self.streams[stream].waiting.insert(head.sequence, index);
        Ok(())
    }

    /// Reads the stream's next entry, if there is one yet.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let stream = &mut self.streams[index];
        let mut bytes = Vec::new();
        loop {
            if let Some((chunk, reader)) = &mut stream.current {
                match reader.next_entry() {
                    Ok(Some(entry)) => {
                        self.order.push(Reverse((time_of(&entry), index)));
                        if let Some(fork) = births::fork_of(&entry) {
                            self.forks.insert(fork.child_tid, fork);
                        }
                        stream.head = Some(entry);
                        return Ok(());
                    }
                    Ok(None) => {
                        bytes.clear();
                        self.session.more_of_chunk(*chunk, reader.available(), &mut bytes)?;
                        reader.grow(&bytes);
                    }
                    Err(_) => {
                        self.damaged += 1;
                        bytes.clear();
                    }
                }
                if !bytes.is_empty() {
                    continue;
                }
            }
            // A chunk is complete once its stream has claimed the next one, and that we knew before we looked.
            let Some((_, next)) = stream.waiting.pop_first() else { return Ok(()) };
            if let Some((chunk, _)) = stream.current.take() {
                self.session.discard(chunk);
            }
            bytes.clear();
            self.session.chunk(next, &mut bytes)?;
            stream.current =
                ChunkReader::new(std::mem::take(&mut bytes), self.shapes).map(|reader| (next, reader));
        }
    }

    /// The next entry that ended by `until`, with the number of its stream.
    pub fn next(&mut self, until: u64) -> io::Result<Option<(usize, Entry)>> {
        match self.order.peek() {
            Some(&Reverse((time, index))) if time <= until => {
                self.order.pop();
                let entry = self.streams[index].head.take();
                self.advance(index)?;
                Ok(entry.map(|entry| (index, entry)))
            }
            _ => Ok(None),
        }
    }

    /// The next entries of a process's streams.
    pub fn heads(&self, pid: u32) -> impl Iterator<Item = &Entry> {
        let streams = self.by_process.get(&pid).map_or(&[][..], Vec::as_slice);
        streams.iter().filter_map(|&index| self.streams[index].head.as_ref())
    }
}
