//! Keeps the largest owners of one target and the exact sum of all others. The table has a limited size for
//! any number of jobs.

use crate::sample::{Entry, Evidence, Metric, Quantity};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of bytes for which one operation counts, so that metadata and data can be ranked together.
const OPERATION_BYTES: u64 = 4096;

/// Result of a [`Ranking`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Entries without an owner, then the others from largest to smallest. Each owner appears once.
    pub listed: Vec<Entry>,
    /// Number of entries that are not listed.
    pub others: u64,
    /// Sums over the entries that are not listed.
    pub other: Vec<(Metric, u128)>,
}

/// Accepts entries one by one and keeps the `limit` largest. Entries without an owner are always kept.
#[derive(Debug, Default)]
pub struct Ranking {
    limit: usize,
    nobodys: Vec<Entry>,
    kept: Vec<Entry>,
    lightest: BinaryHeap<Reverse<(u64, usize)>>,
    others: u64,
    /// Sums over entries that were not kept, sorted by metric.
    other: Vec<(Metric, u128)>,
}

impl Ranking {
    pub fn new(limit: usize) -> Self {
        Ranking { limit, ..Ranking::default() }
    }

    pub fn add(&mut self, entry: &Entry) {
        if entry.owner.evidence == Evidence::Nobody {
            self.nobodys.push(entry.clone());
            return;
        }
        let weight = weight(entry);
        if self.kept.len() < self.limit {
            self.lightest.push(Reverse((weight, self.kept.len())));
            self.kept.push(entry.clone());
            return;
        }
        match self.lightest.peek() {
            Some(&Reverse((least, place))) if least < weight => {
                self.lightest.pop();
                self.lightest.push(Reverse((weight, place)));
                let mut evicted = std::mem::take(&mut self.kept[place]);
                self.unlist(&evicted);
                evicted.owner.copy_from(&entry.owner);
                evicted.values.clone_from(&entry.values);
                (evicted.start_time, evicted.updated) = (entry.start_time, entry.updated);
                self.kept[place] = evicted;
            }
            _ => self.unlist(entry),
        }
    }

    fn unlist(&mut self, entry: &Entry) {
        self.others += 1;
        for &(metric, value) in &entry.values {
            match self.other.binary_search_by_key(&metric, |&(known, _)| known) {
                Ok(place) => self.other[place].1 += u128::from(value),
                Err(place) => self.other.insert(place, (metric, u128::from(value))),
            }
        }
    }

    /// Returns the table. Listed entries of the same owner are added up, because a manipulated or damaged
    /// file may contain an id twice.
    pub fn finish(self) -> Table {
        let mut listed = self.kept;
        listed.extend(self.nobodys);
        listed.sort_by(|one, two| one.owner.cmp(&two.owner));
        listed.dedup_by(|later, first| {
            let same = later.owner == first.owner;
            if same {
                merge(first, later);
            }
            same
        });
        listed.sort_by_key(|entry| (entry.owner.evidence != Evidence::Nobody, Reverse(weight(entry))));
        Table { listed, others: self.others, other: self.other }
    }
}

fn merge(into: &mut Entry, from: &Entry) {
    for &(metric, value) in &from.values {
        match into.values.iter_mut().find(|(known, _)| *known == metric) {
            Some((_, sum)) => *sum = sum.saturating_add(value),
            None => into.values.push((metric, value)),
        }
    }
    into.start_time = None;
    into.updated = into.updated.max(from.updated);
}

/// Returns the weight of an entry: its bytes and weighted operations since the counters started.
fn weight(entry: &Entry) -> u64 {
    entry.values.iter().fold(0, |weight: u64, (metric, value)| match metric.quantity {
        Quantity::Bytes => weight.saturating_add(*value),
        Quantity::Count => weight.saturating_add(value.saturating_mul(OPERATION_BYTES)),
        _ => weight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Names, Owner};

    fn entries(count: u64, names: &mut Names) -> Vec<Entry> {
        let read = Metric::new(names.intern(b"read").expect("a name"), Quantity::Bytes);
        let open = Metric::new(names.intern(b"open").expect("a name"), Quantity::Count);
        let entry = |number: u64| Entry {
            owner: Owner {
                evidence: Evidence::Server,
                job: number.to_string().into_bytes(),
                ..Owner::default()
            },
            values: vec![(read, number * 7919 % 1009 * 1_000_000), (open, 1 + number % 3)],
            ..Entry::default()
        };
        (0..count).map(entry).collect()
    }

    fn sums(entries: &[Entry]) -> u128 {
        entries.iter().flat_map(|entry| &entry.values).map(|(_, value)| u128::from(*value)).sum()
    }

    #[test]
    fn the_heaviest_owners_are_listed_and_the_sums_are_exact() {
        let mut all = entries(1000, &mut Names::default());
        let mut ranking = Ranking::new(10);
        all.iter().for_each(|entry| ranking.add(entry));
        let table = ranking.finish();
        assert_eq!((table.listed.len(), table.others), (10, 990));
        let other: u128 = table.other.iter().map(|(_, value)| value).sum();
        assert_eq!(sums(&table.listed) + other, sums(&all));
        all.sort_by_key(|entry| Reverse(weight(entry)));
        assert_eq!(table.listed, all[..10]);
    }

    #[test]
    fn an_owner_is_listed_once() {
        let mut all = entries(2, &mut Names::default());
        all[1].owner = all[0].owner.clone();
        let mut ranking = Ranking::new(10);
        all.iter().for_each(|entry| ranking.add(entry));
        let table = ranking.finish();
        assert_eq!((table.listed.len(), sums(&table.listed)), (1, sums(&all)));
    }

    #[test]
    fn a_limit_of_zero_sums_all_owners() {
        let all = entries(5, &mut Names::default());
        let mut ranking = Ranking::new(0);
        all.iter().for_each(|entry| ranking.add(entry));
        assert_eq!(ranking.finish().others, 5);
    }

    #[test]
    fn load_without_an_owner_is_always_listed() {
        let mut all = entries(3, &mut Names::default());
        all[1].owner = Owner::default();
        let mut ranking = Ranking::new(0);
        all.iter().for_each(|entry| ranking.add(entry));
        let table = ranking.finish();
        assert_eq!((table.listed, table.others), (vec![all[1].clone()], 2));
    }
}
