//! Finds the entries of a target that changed since its last reading. Between readings it keeps only the
//! owner and a hash of the values of each entry, because a metadata server may have 50,000 jobs.

use super::owners::{read_owner, write_owner};
use super::Round;
use crate::sample::{Entry, Evidence, Name, Names};
use iodock_samples::batch::Part;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// Approximate encoded size in bytes of a piece of a reading. At most this amount of entries is in memory.
const PIECE_BYTES: usize = 128 << 10;
/// Approximate encoded sizes in bytes of an entry and of a value, before compression.
const ENTRY_BYTES: usize = 24;
const VALUE_BYTES: usize = 10;

/// State of a target that is kept between two readings.
#[derive(Debug, Default)]
pub struct Known {
    /// Entries, with the encoded owner as key.
    entries: HashMap<Box<[u8]>, Seen>,
    /// Number of readings so far.
    reading: u32,
    /// Value of [`Round::full`] at the last full reading.
    pub full: u64,
    /// Number of the round that contained the last reading.
    pub round: u64,
    hashing: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    values: u64,
    reading: u32,
}

/// Result of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Number of entries that could not be sent.
    pub left_out: u64,
    /// Whether the round accepted all pieces of the reading.
    pub is_taken: bool,
}

/// Compares one reading of a target with the previous one. Passes the changes to the round in pieces, as they
/// become ready.
pub struct Comparison {
    known: Known,
    round: Round,
    /// Header that all pieces share, and the entries of the next piece.
    part: Part,
    weight: usize,
    /// Hashes of the names, by the names' numbers. They are valid only for one reading.
    names: Vec<u64>,
    key: Vec<u8>,
    left_out: u64,
    /// Whether the round has accepted all pieces so far.
    is_taken: bool,
}

impl Comparison {
    /// Begins a comparison. `part` contains the source, the target and the time of the reading.
    pub fn new(mut known: Known, round: Round, mut part: Part) -> Self {
        part.full = known.full < round.full;
        known.reading += 1;
        known.round = round.number;
        let (names, key) = (Vec::new(), Vec::new());
        Comparison { known, round, part, weight: 0, names, key, left_out: 0, is_taken: true }
    }

    pub fn entry(&mut self, entry: &Entry, names: &Names) {
        write_owner(&entry.owner, &mut self.key);
        let now = Seen { values: self.hash(entry, names), reading: self.known.reading };
        match self.known.entries.get_mut(&self.key[..]) {
            // The file has a second entry of the same owner. Adding the two would need all owners' values in
            // memory.
            Some(seen) if seen.reading == now.reading => {
                self.left_out += 1;
                return;
            }
            Some(seen) => {
                let is_same = seen.values == now.values;
                *seen = now;
                if is_same && !self.part.full {
                    return;
                }
            }
            None => {
                self.known.entries.insert(self.key.as_slice().into(), now);
            }
        }
        // The entry comes from a damaged file, and the collector would not accept it.
        if !entry.is_sound() {
            self.left_out += 1;
            return;
        }
        self.weight += ENTRY_BYTES + self.key.len() + VALUE_BYTES * entry.values.len();
        self.part.entries.push(entry.clone());
        if self.weight >= PIECE_BYTES {
            self.give(names, false);
        }
    }

    /// Ends the comparison. `is_complete` says whether the target was read to its end.
    pub fn end(mut self, names: &Names, is_complete: bool) -> Ended {
        if is_complete {
            self.find_gone(names);
            self.give(names, true);
        } else if !self.part.entries.is_empty() {
            self.give(names, false);
        }
        if is_complete && self.part.full {
            self.known.full = self.round.full;
        }
        // The state of the target is kept only if the round accepted all parts. Otherwise the collector lacks
        // a part, so the state is dropped here and the next reading is sent in full.
        if self.is_taken {
            self.round.put_back(&self.part, self.known);
        }
        Ended { left_out: self.left_out, is_taken: self.is_taken }
    }

    fn find_gone(&mut self, names: &Names) {
        let (now, mut entries) = (self.known.reading, std::mem::take(&mut self.known.entries));
        for (key, _) in entries.extract_if(|_, seen| seen.reading != now) {
            if !self.part.full {
                self.weight += ENTRY_BYTES + key.len();
                self.part.gone.push(read_owner(&key));
            }
            if self.weight >= PIECE_BYTES {
                self.give(names, false);
            }
        }
        if entries.capacity() > 1024 && entries.capacity() / 4 > entries.len() {
            entries.shrink_to_fit();
        }
        self.known.entries = entries;
    }

    fn give(&mut self, names: &Names, last: bool) {
        let known = if self.part.entries.is_empty() { Vec::new() } else { names.texts().collect() };
        let piece = Part {
            names: known.into_iter().map(str::to_owned).collect(),
            last,
            source: self.part.source.clone(),
            file_system: self.part.file_system.clone(),
            target: self.part.target.clone(),
            entries: std::mem::take(&mut self.part.entries),
            gone: std::mem::take(&mut self.part.gone),
            ..self.part
        };
        self.part.piece += 1;
        self.is_taken &= self.round.take(piece, std::mem::take(&mut self.weight));
    }

    fn hash(&mut self, entry: &Entry, names: &Names) -> u64 {
        while self.names.len() < names.texts().len() {
            let text = names.text(Name::numbered(self.names.len()));
            self.names.push(self.known.hashing.hash_one(text));
        }
        let mut hasher = self.known.hashing.build_hasher();
        for (metric, value) in &entry.values {
            hasher.write_u64(self.names[metric.operation.number()]);
            hasher.write_u64(metric.quantity as u64 | metric.bucket.rotate_left(8));
            hasher.write_u64(*value);
        }
        entry.start_time.hash(&mut hasher);
        // The entry of a whole target has the time of the reading in `updated`, which is not a change.
        if entry.owner.evidence != Evidence::Nobody {
            entry.updated.hash(&mut hasher);
        }
        hasher.finish()
    }
}
