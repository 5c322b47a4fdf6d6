//! A short sorted list of ranges. Ranges that touch are merged.

use smallvec::SmallVec;

/// The list stores up to two ranges without allocating memory, which suffices for most files.
pub type Ranges<T> = SmallVec<[(T, T); 2]>;

/// A number type for the bounds of ranges.
pub trait Bound: Copy + Ord {
    fn length(start: Self, end: Self) -> u64;
}

impl Bound for u64 {
    fn length(start: u64, end: u64) -> u64 {
        end - start
    }
}

impl Bound for u32 {
    fn length(start: u32, end: u32) -> u64 {
        u64::from(end - start)
    }
}

/// Adds `start..end`. Returns the length of the part that the list already contained.
pub fn add<T: Bound>(list: &mut Ranges<T>, start: T, end: T) -> u64 {
    let first = list.partition_point(|range| range.1 < start);
    let (mut low, mut high, mut before) = (start, end, 0);
    let mut last = first;
    while let Some(&(other_start, other_end)) = list.get(last).filter(|range| range.0 <= end) {
        before += overlap(other_start, other_end, start, end);
        low = low.min(other_start);
        high = high.max(other_end);
        last += 1;
    }
    if last == first {
        list.insert(first, (low, high));
    } else {
        list[first] = (low, high);
        if last > first + 1 {
            list.drain(first + 1..last);
        }
    }
    before
}

/// Returns the length of the part of `start..end` that the list contains.
pub fn covered<T: Bound>(list: &[(T, T)], start: T, end: T) -> u64 {
    let first = list.partition_point(|range| range.1 <= start);
    let touching = list[first..].iter().take_while(|range| range.0 < end);
    touching.map(|range| overlap(range.0, range.1, start, end)).sum()
}

pub fn overlap<T: Bound>(start: T, end: T, other_start: T, other_end: T) -> u64 {
    let (low, high) = (start.max(other_start), end.min(other_end));
    if low < high {
        T::length(low, high)
    } else {
        0
    }
}

/// Returns the memory that the list has allocated, bytes.
pub fn heap<T>(list: &Ranges<T>) -> usize {
    if list.spilled() {
        list.capacity() * std::mem::size_of::<(T, T)>()
    } else {
        0
    }
}
