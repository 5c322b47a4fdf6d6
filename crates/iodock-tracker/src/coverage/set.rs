//! A set of bytes of a file: one range while that suffices, then a few, then regions.

use super::ranges::{self, overlap};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::mem::size_of;

/// So many ranges are kept in one list; more are spread over regions.
const FEW: usize = 64;
/// Bytes of a region, as a power of two: random accesses then meet a short list, found by hash, in place
/// of one deep tree.
const REGION_BITS: u32 = 20;
const REGION: u64 = 1 << REGION_BITS;
/// An access over more regions than this is not followed (64 GiB; Linux moves at most 2 GiB at a time).
const MOST_REGIONS: u64 = 1 << 16;

#[derive(Clone, Default)]
pub struct Set {
    start: u64,
    end: u64,
    more: Option<Box<More>>,
}

#[derive(Clone)]
enum More {
    Few(Vec<(u64, u64)>),
    Regions(Regions),
}

/// Whole regions as runs, the others each as a list of its own.
#[derive(Clone, Default)]
struct Regions {
    partial: FxHashMap<u64, Vec<(u32, u32)>>,
    /// First region of a run -> the one after its last.
    full: BTreeMap<u64, u64>,
    /// Bytes that the lists hold.
    listed: usize,
}

impl Set {
    /// Adds `start..end`; returns how much of it was there before, `None` if that is too much to follow.
    pub fn add(&mut self, start: u64, end: u64) -> Option<i64> {
        let before = match self.more.as_deref_mut() {
            None if start <= self.end && end >= self.start || self.start == self.end => {
                return Some(self.extend(start, end));
            }
            None => {
                let mut list = vec![(self.start, self.end)];
                let before = ranges::add(&mut list, start, end);
                self.more = Some(Box::new(More::Few(list)));
                before
            }
            Some(More::Few(list)) => {
                let before = ranges::add(list, start, end);
                self.settle();
                before
            }
            Some(More::Regions(regions)) => regions.add(start, end)?,
        };
        Some(before as i64)
    }

    fn extend(&mut self, start: u64, end: u64) -> i64 {
        if self.start == self.end {
            (self.start, self.end) = (start, end);
            return 0;
        }
        let before = overlap(self.start, self.end, start, end);
        self.start = self.start.min(start);
        self.end = self.end.max(end);
        before as i64
    }

    /// One range again, or too many for a list.
    fn settle(&mut self) {
        let Some(More::Few(list)) = self.more.as_deref_mut() else { return };
        if let [only] = list[..] {
            (self.start, self.end) = only;
            self.more = None;
        } else if list.len() > FEW {
            let mut regions = Regions::default();
            for &(start, end) in list.iter() {
                regions.add_new(start, end);
            }
            self.more = Some(Box::new(More::Regions(regions)));
        }
    }

    /// How much of `start..end` is there.
    pub fn covered(&self, start: u64, end: u64) -> i64 {
        let covered = match self.more.as_deref() {
            None => overlap(self.start, self.end, start, end),
            Some(More::Few(list)) => ranges::covered(list, start, end),
            Some(More::Regions(regions)) => regions.covered(start, end),
        };
        covered as i64
    }

    /// Bytes held beyond the set itself.
    pub fn held(&self) -> usize {
        match self.more.as_deref() {
            None => 0,
            Some(More::Few(list)) => size_of::<More>() + list.capacity() * size_of::<(u64, u64)>(),
            Some(More::Regions(regions)) => size_of::<More>() + regions.held(),
        }
    }
}

impl Regions {
    fn held(&self) -> usize {
        // A hash table is at most 7/8 full; a tree node's entry is two numbers and its share of the rest.
        let entry = size_of::<(u64, Vec<(u32, u32)>)>() + 1;
        self.partial.capacity() * entry * 8 / 7 + self.full.len() * 24 + self.listed
    }

    fn add(&mut self, start: u64, end: u64) -> Option<u64> {
        if (end - start) >> REGION_BITS > MOST_REGIONS {
            return None;
        }
        let mut before = 0;
        for (region, low, high) in pieces(start, end) {
            before += self.add_piece(region, low, high);
        }
        Some(before)
    }

    fn add_piece(&mut self, region: u64, low: u32, high: u32) -> u64 {
        let Some(list) = self.partial.get_mut(&region) else {
            if self.is_full(region) {
                return u64::from(high - low);
            }
            if u64::from(high - low) == REGION {
                self.add_full(region, region + 1);
                return 0;
            }
            // Room for one: most regions of a large sparse file never hold more.
            let list = vec![(low, high)];
            self.listed += size_of::<(u32, u32)>();
            self.partial.insert(region, list);
            return 0;
        };
        let capacity = list.capacity();
        let before = ranges::add(list, low, high);
        self.listed += (list.capacity() - capacity) * size_of::<(u32, u32)>();
        if list[0] == (0, REGION as u32) {
            self.listed -= list.capacity() * size_of::<(u32, u32)>();
            self.partial.remove(&region);
            self.add_full(region, region + 1);
        }
        before
    }

    /// Adds a range that touches none of those here, of any length.
    fn add_new(&mut self, start: u64, end: u64) {
        let (first, last) = (start.div_ceil(REGION), end >> REGION_BITS);
        if first >= last {
            for (region, low, high) in pieces(start, end) {
                self.add_piece(region, low, high);
            }
            return;
        }
        self.add_full(first, last);
        for (region, low, high) in pieces(start, first << REGION_BITS).chain(pieces(last << REGION_BITS, end))
        {
            self.add_piece(region, low, high);
        }
    }

    fn is_full(&self, region: u64) -> bool {
        self.full.range(..=region).next_back().is_some_and(|(_, &end)| region < end)
    }

    /// Adds a run of whole regions that were not full, joined with its neighbours.
    fn add_full(&mut self, mut first: u64, mut end: u64) {
        if let Some(next) = self.full.remove(&end) {
            end = next;
        }
        if let Some((&run, &run_end)) = self.full.range(..first).next_back() {
            if run_end == first {
                first = run;
            }
        }
        self.full.insert(first, end);
    }

    fn covered(&self, start: u64, end: u64) -> u64 {
        if (end - start) >> REGION_BITS > MOST_REGIONS {
            return 0;
        }
        let covered = pieces(start, end).map(|(region, low, high)| match self.partial.get(&region) {
            Some(list) => ranges::covered(list, low, high),
            None if self.is_full(region) => u64::from(high - low),
            None => 0,
        });
        covered.sum()
    }
}

/// A range region by region: which, and where in it.
fn pieces(start: u64, end: u64) -> impl Iterator<Item = (u64, u32, u32)> {
    let regions = start >> REGION_BITS..if start < end { ((end - 1) >> REGION_BITS) + 1 } else { 0 };
    regions.map(move |region| {
        let base = region << REGION_BITS;
        (region, (start.max(base) - base) as u32, (end.min(base + REGION) - base) as u32)
    })
}
