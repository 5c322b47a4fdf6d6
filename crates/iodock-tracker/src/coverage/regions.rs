//! Many ranges of a file, divided into regions. A random access finds a short list by hash, instead of
//! searching one deep tree. Ranges read and written are stored together, since each access needs both.

use super::ranges::{self, Ranges};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::mem::size_of;

/// Size of a region in bytes, as a power of two.
const REGION_BITS: u32 = 20;
const REGION: u64 = 1 << REGION_BITS;
/// An access that spans more regions than this is not tracked (64 GiB; Linux moves at most 2 GiB at a time).
const MOST_REGIONS: u64 = 1 << 16;

/// Ways are numbered: 0 read, 1 written.
#[derive(Clone, Default)]
pub struct Regions {
    /// Regions in which at least one way is neither empty nor full.
    partial: FxHashMap<u64, Region>,
    full: [Runs; 2],
    /// Bytes of memory of the lists.
    listed: usize,
}

#[derive(Clone, Default)]
struct Region {
    /// Offsets within the region; empty where full.
    lists: [Ranges<u32>; 2],
    /// One bit for each way that covers the whole region. Two numbers, written separately and copied
    /// together, would stall the processor.
    full: u8,
}

impl Region {
    fn is_full(&self, way: usize) -> bool {
        self.full >> way & 1 == 1
    }

    fn set_full(&mut self, way: usize) {
        self.full |= 1 << way;
    }
}

/// Regions that are completely covered: first of a run -> the one after its last.
#[derive(Clone, Default)]
struct Runs(BTreeMap<u64, u64>);

impl Runs {
    fn contains(&self, region: u64) -> bool {
        !self.0.is_empty() && self.0.range(..=region).next_back().is_some_and(|(_, &end)| region < end)
    }

    /// Adds regions that were not covered before, and joins them with their neighbours.
    fn add(&mut self, mut first: u64, mut end: u64) {
        if let Some(next) = self.0.remove(&end) {
            end = next;
        }
        if let Some((&run, &run_end)) = self.0.range(..first).next_back() {
            if run_end == first {
                first = run;
            }
        }
        self.0.insert(first, end);
    }
}

impl Regions {
    pub fn held(&self) -> usize {
        // A hash table is at most 7/8 full; a tree node's entry is two numbers and its share of the rest.
        let entry = size_of::<(u64, Region)>() + 1;
        let runs: usize = self.full.iter().map(|runs| runs.0.len() * 24).sum();
        self.partial.capacity() * entry * 8 / 7 + runs + self.listed
    }

    /// Adds `start..end` to a way. Returns how much of it that way and the other one already had. `None` if
    /// it spans too many regions.
    pub fn add(&mut self, way: usize, start: u64, end: u64) -> Option<(u64, u64)> {
        if (end - start) >> REGION_BITS > MOST_REGIONS {
            return None;
        }
        let (mut same, mut other) = (0, 0);
        for (region, low, high) in pieces(start, end) {
            let before = self.add_piece(way, region, low, high);
            same += before.0;
            other += before.1;
        }
        Some((same, other))
    }

    fn add_piece(&mut self, way: usize, region: u64, low: u32, high: u32) -> (u64, u64) {
        let Some(found) = self.partial.get_mut(&region) else {
            return self.add_to_whole(way, region, low, high);
        };
        let length = u64::from(high - low);
        let other = match found.is_full(1 - way) {
            true => length,
            false => ranges::covered(&found.lists[1 - way], low, high),
        };
        if found.is_full(way) {
            return (length, other);
        }
        let list = &mut found.lists[way];
        let held = ranges::heap(list);
        let same = ranges::add(list, low, high);
        self.listed = self.listed + ranges::heap(list) - held;
        if list[0] == (0, REGION as u32) {
            self.fill(way, region);
        }
        (same, other)
    }

    /// Adds to a region in which each way is either empty or full.
    fn add_to_whole(&mut self, way: usize, region: u64, low: u32, high: u32) -> (u64, u64) {
        let length = u64::from(high - low);
        let (is_full, other_full) = (self.full[way].contains(region), self.full[1 - way].contains(region));
        let other = if other_full { length } else { 0 };
        if is_full {
            return (length, other);
        }
        if length == REGION {
            self.full[way].add(region, region + 1);
        } else {
            let mut partial = Region { full: u8::from(other_full) << (1 - way), ..Region::default() };
            partial.lists[way].push((low, high));
            self.partial.insert(region, partial);
        }
        (0, other)
    }

    /// Marks a way of a region as full.
    fn fill(&mut self, way: usize, region: u64) {
        self.full[way].add(region, region + 1);
        let Some(found) = self.partial.get_mut(&region) else { return };
        let list = std::mem::take(&mut found.lists[way]);
        self.listed -= ranges::heap(&list);
        found.set_full(way);
        if found.is_full(1 - way) || found.lists[1 - way].is_empty() {
            self.partial.remove(&region);
        }
    }

    /// Adds a range of any length that touches no other of its way.
    pub fn add_new(&mut self, way: usize, start: u64, end: u64) {
        let (first, last) = (start.div_ceil(REGION), end >> REGION_BITS);
        let (head, tail) = match first < last {
            true => (start..first << REGION_BITS, last << REGION_BITS..end),
            false => (start..end, end..end),
        };
        if first < last {
            self.full[way].add(first, last);
            self.note_full(way, first, last);
        }
        for (region, low, high) in pieces(head.start, head.end).chain(pieces(tail.start, tail.end)) {
            self.add_piece(way, region, low, high);
        }
    }

    /// Marks the way as full in the regions that hold something of the other way.
    fn note_full(&mut self, way: usize, first: u64, last: u64) {
        for (region, found) in &mut self.partial {
            if (first..last).contains(region) {
                found.set_full(way);
            }
        }
    }
}

/// Splits a range by region: the region, and the part inside it.
fn pieces(start: u64, end: u64) -> impl Iterator<Item = (u64, u32, u32)> {
    let regions = start >> REGION_BITS..if start < end { ((end - 1) >> REGION_BITS) + 1 } else { 0 };
    regions.map(move |region| {
        let base = region << REGION_BITS;
        (region, (start.max(base) - base) as u32, (end.min(base + REGION) - base) as u32)
    })
}
