//! The bytes of a file that were read, and those that were written. Each set starts as a single range, then
//! becomes a short list of ranges. When a list becomes long, both sets move into regions.

use super::ranges::{self, overlap, Ranges};
use super::regions::Regions;
use std::mem::size_of;

/// Largest number of ranges in one list. More ranges are divided into regions.
const FEW: usize = 64;

/// Number of bytes of an access that were read before, and that were written before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    pub read: i64,
    pub written: i64,
}

/// The bytes of a file that were read, and those that were written.
#[derive(Clone, Default)]
pub struct Both {
    read: Set,
    written: Set,
    /// The ranges by region. Once this exists, it replaces the two sets.
    regions: Option<Box<Regions>>,
}

impl Both {
    /// Adds an access to `start..end`. `None` if the access spans too many regions.
    pub fn add(&mut self, writes: bool, start: u64, end: u64) -> Option<Before> {
        if let Some(regions) = &mut self.regions {
            let (moved, other) = regions.add(usize::from(writes), start, end)?;
            let (read, written) = if writes { (other, moved) } else { (moved, other) };
            return Some(Before { read: read as i64, written: written as i64 });
        }
        let (grows, other) = match writes {
            true => (&mut self.written, &self.read),
            false => (&mut self.read, &self.written),
        };
        let other = other.covered(start, end) as i64;
        let moved = grows.add(start, end) as i64;
        if grows.is_long() {
            self.spread();
        }
        let (read, written) = if writes { (other, moved) } else { (moved, other) };
        Some(Before { read, written })
    }

    fn spread(&mut self) {
        let mut regions = Regions::default();
        for (way, set) in [&self.read, &self.written].into_iter().enumerate() {
            set.each(|start, end| regions.add_new(way, start, end));
        }
        (self.read, self.written) = Default::default();
        self.regions = Some(Box::new(regions));
    }

    /// Returns the memory that the sets have allocated, bytes.
    pub fn held(&self) -> usize {
        let regions = self.regions.as_ref().map_or(0, |regions| size_of::<Regions>() + regions.held());
        self.read.held() + self.written.held() + regions
    }
}

/// A set of bytes: a single range, or a short list of ranges.
#[derive(Clone, Default)]
struct Set {
    start: u64,
    end: u64,
    few: Option<Box<Ranges<u64>>>,
}

impl Set {
    /// Adds `start..end`. Returns the length of the part that the set already contained.
    fn add(&mut self, start: u64, end: u64) -> u64 {
        if let Some(list) = &mut self.few {
            let before = ranges::add(list, start, end);
            if let [only] = list[..] {
                (self.start, self.end) = only;
                self.few = None;
            }
            return before;
        }
        if self.start == self.end {
            (self.start, self.end) = (start, end);
            return 0;
        }
        if start <= self.end && end >= self.start {
            let before = overlap(self.start, self.end, start, end);
            (self.start, self.end) = (self.start.min(start), self.end.max(end));
            return before;
        }
        let mut list = Ranges::new();
        list.push((self.start, self.end));
        ranges::add(&mut list, start, end);
        self.few = Some(Box::new(list));
        0
    }

    fn covered(&self, start: u64, end: u64) -> u64 {
        match &self.few {
            None => overlap(self.start, self.end, start, end),
            Some(list) => ranges::covered(list, start, end),
        }
    }

    fn is_long(&self) -> bool {
        self.few.as_ref().is_some_and(|list| list.len() > FEW)
    }

    fn each(&self, mut take: impl FnMut(u64, u64)) {
        match &self.few {
            None if self.start == self.end => {}
            None => take(self.start, self.end),
            Some(list) => list.iter().for_each(|&(start, end)| take(start, end)),
        }
    }

    fn held(&self) -> usize {
        self.few.as_ref().map_or(0, |list| size_of::<Ranges<u64>>() + ranges::heap(list))
    }
}
