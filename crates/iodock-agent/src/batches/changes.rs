//! Finds the entries of a target that changed since its last reading. Between readings only the owner and a
//! hash of the values of each entry are kept, since a metadata server has 50,000 jobs.

use super::owners::{read_owner, write_owner};
use super::Round;
use crate::sample::{Entry, Evidence, Name, Names};
use iodock_samples::batch::Part;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// Approximate size of a piece as it is sent. A reading keeps entries in memory up to this size.
const PIECE_BYTES: usize = 128 << 10;
/// Approximate size of an entry as it is sent, uncompressed.
const ENTRY_BYTES: usize = 24;
const VALUE_BYTES: usize = 10;

/// The state of a target between two readings.
#[derive(Debug, Default)]
pub struct Known {
    /// Entries by the bytes of their owner.
    entries: HashMap<Box<[u8]>, Seen>,
    /// Number of readings so far.
    reading: u32,
    /// The number of requests for a full reading when the last one was made.
    pub full: u64,
    /// The round of the last reading.
    pub round: u64,
    hashing: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    values: u64,
    reading: u32,
}

/// The result of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Number of entries that could not be sent.
    pub left_out: u64,
    /// All pieces of the comparison are in the round, or none was needed.
    pub is_taken: bool,
}

/// One reading of a target, compared with the previous one. Passes its pieces to the round as they become
/// ready.
pub struct Comparison {
    known: Known,
    round: Round,
    /// The header that all pieces share.
    part: Part,
    weight: usize,
    /// Values by the number of their name. The numbers are valid for one reading.
    names: Vec<u64>,
    key: Vec<u8>,
    left_out: u64,
    /// The round accepted all pieces so far.
    is_taken: bool,
}

impl Comparison {
    /// `part`: what is read, and the time of reading.
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
            // A second entry of the same owner in one file. Adding them up would need memory for all owners.
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
        // The entry comes from a damaged file, and no collector accepts it.
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

    /// Ends the comparison. `is_complete`: the target was read to its end.
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
        // The collector does not know what the round rejected, so the next reading must start from the
        // beginning.
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
        // The entry of a whole target always has the time of reading, which is no change.
        if entry.owner.evidence != Evidence::Nobody {
            entry.updated.hash(&mut hasher);
        }
        hasher.finish()
    }
}
