//! Many ranges of one file, divided into regions. A random access finds the short list of its region by hash,
//! instead of searching one deep tree. Ranges read and ranges written are stored together, because each
//! access needs both.

use super::ranges::{self, Ranges};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::mem::size_of;

/// Size of a region in bytes, as a power of two.
const REGION_BITS: u32 = 20;
const REGION: u64 = 1 << REGION_BITS;
/// Largest number of regions that one access may span (64 GiB). Linux moves at most 2 GiB in one call.
const MOST_REGIONS: u64 = 1 << 16;

/// The ranges of a file for two directions, called ways: way 0 is read, way 1 is written.
#[derive(Clone, Default)]
pub struct Regions {
    /// Regions in which at least one way covers some, but not all bytes.
    partial: FxHashMap<u64, Region>,
    full: [Runs; 2],
    /// Memory that the lists use, bytes.
    listed: usize,
}

#[derive(Clone, Default)]
struct Region {
    /// Ranges as offsets within the region; empty if the way covers the whole region.
    lists: [Ranges<u32>; 2],
    /// One bit for each way that covers the whole region. Two separate fields that are written one by one and
    /// then copied together would stall the processor.
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

/// Runs of completely covered regions: the first region of each run, and the region after its last.
#[derive(Clone, Default)]
struct Runs(BTreeMap<u64, u64>);

impl Runs {
    fn contains(&self, region: u64) -> bool {
        !self.0.is_empty() && self.0.range(..=region).next_back().is_some_and(|(_, &end)| region < end)
    }

    /// Adds a run of regions that were not covered before, and merges it with adjacent runs.
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
        // A hash table is at most 7/8 full. A tree entry is two numbers plus a share of its node, about 24
        // bytes.
        let entry = size_of::<(u64, Region)>() + 1;
        let runs: usize = self.full.iter().map(|runs| runs.0.len() * 24).sum();
        self.partial.capacity() * entry * 8 / 7 + runs + self.listed
    }

    /// Adds `start..end` to a way. Returns how many of these bytes this way and the other way already
    /// covered. `None` if the range spans too many regions.
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

    /// Adds a range to a region in which each way covers either all bytes or none.
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

    /// Marks the whole region as covered by the way.
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

    /// Adds a range of any length that does not touch another range of its way.
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

    /// Marks the way as full in those regions of `first..last` in which the other way covers only some bytes.
    fn note_full(&mut self, way: usize, first: u64, last: u64) {
        for (region, found) in &mut self.partial {
            if (first..last).contains(region) {
                found.set_full(way);
            }
        }
    }
}

/// Splits a range by region. Yields each region's number, and the beginning and end within it.
fn pieces(start: u64, end: u64) -> impl Iterator<Item = (u64, u32, u32)> {
    let regions = start >> REGION_BITS..if start < end { ((end - 1) >> REGION_BITS) + 1 } else { 0 };
    regions.map(move |region| {
        let base = region << REGION_BITS;
        (region, (start.max(base) - base) as u32, (end.min(base + REGION) - base) as u32)
    })
}
