//! Sums by key.
//!
//! The groups of a large run do not fit into the processor's caches, and waiting for each of them would take
//! most of the time. Rows are therefore processed in blocks and steps. The memory accesses of a step do not
//! depend on the previous row, so the processor can fetch the groups of many rows at the same time.

/// Key for grouping rows.
pub trait Key: Copy + Eq {
    /// Returns a hash of the whole key in 64 well-mixed bits; see [`mixed`].
    fn hash(&self) -> u64;
}

/// Returns `value` with the influence of each bit spread over all bits (the finaliser of splitmix64, Steele
/// et al. 2014).
pub fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The sums of a group.
pub trait Sums: Default {
    /// Returns a number stored at the end of the structure. Reading it makes the processor fetch the rest.
    fn tail(&self) -> i64;

    /// Adds another thread's sums of the same group.
    fn absorb(&mut self, other: &Self);
}

const BLOCK: usize = 256;
/// Initial number of buckets of the hash table. The table is never more than half full.
const FIRST_PLACES: usize = 1 << 10;
const EMPTY: Bucket = Bucket { mark: 0, group: u32::MAX };

/// One group, aligned so that it occupies as few cache lines as possible.
#[repr(C, align(64))]
pub struct Group<K, S> {
    pub key: K,
    pub sums: S,
}

/// Groups in order of first appearance.
pub struct Groups<K, S> {
    pub all: Vec<Group<K, S>>,
    /// A hash table with open addressing, whose size is a power of two.
    places: Vec<Bucket>,
}

/// The location of a group. `mark` is the part of its hash that does not select the bucket.
#[derive(Clone, Copy)]
struct Bucket {
    mark: u32,
    group: u32,
}

impl<K, S> Default for Groups<K, S> {
    fn default() -> Groups<K, S> {
        Groups { all: Vec::new(), places: vec![EMPTY; FIRST_PLACES] }
    }
}

impl<K: Key, S: Sums> Groups<K, S> {
    /// Calls `add` for each of `keys` with the sums of its group and its index in `keys`.
    pub fn add(&mut self, keys: &[K], mut add: impl FnMut(&mut S, usize)) {
        let (mut found, mut hashes) = ([0; BLOCK], [0; BLOCK]);
        for (number, block) in keys.chunks(BLOCK).enumerate() {
            let found = &mut found[..block.len()];
            self.reserve(block.len());
            for (hash, key) in hashes.iter_mut().zip(block) {
                *hash = key.hash();
            }
            for ((group, key), &hash) in found.iter_mut().zip(block).zip(&hashes) {
                *group = self.likely(key, hash);
            }
            let mut looked_at = 0;
            for (group, key) in found.iter_mut().zip(block) {
                let seen = &self.all[*group as usize];
                looked_at ^= seen.sums.tail();
                if seen.key != *key {
                    *group = self.certain(key);
                }
            }
            std::hint::black_box(looked_at);
            for (index, &group) in found.iter().enumerate() {
                add(&mut self.all[group as usize].sums, number * BLOCK + index);
            }
        }
    }

    /// Adds all groups of `others`.
    pub fn absorb(&mut self, others: &Groups<K, S>) {
        let keys: Vec<K> = others.all.iter().map(|group| group.key).collect();
        self.add(&keys, |sums, index| sums.absorb(&others.all[index].sums));
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the group of `key`. In rare cases it returns another group with the same mark, because keys
    /// are not compared here.
    fn likely(&mut self, key: &K, hash: u64) -> u32 {
        self.find(key, hash, |_| true)
    }

    fn certain(&mut self, key: &K) -> u32 {
        self.find(key, key.hash(), |group| group.key == *key)
    }

    /// Returns the first group with the mark of `key` for which `is_it` is true, and adds a new group if
    /// there is none.
    fn find(&mut self, key: &K, hash: u64, is_it: impl Fn(&Group<K, S>) -> bool) -> u32 {
        let (mut at, mark) = self.start(hash);
        loop {
            let place = self.places[at];
            if place.group == EMPTY.group {
                let group = self.all.len() as u32;
                self.places[at] = Bucket { mark, group };
                self.all.push(Group { key: *key, sums: S::default() });
                return group;
            }
            if place.mark == mark && is_it(&self.all[place.group as usize]) {
                return place.group;
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }

    fn start(&self, hash: u64) -> (usize, u32) {
        (hash as usize & (self.places.len() - 1), (hash >> 32) as u32)
    }

    /// Makes room for `more` further groups.
    fn reserve(&mut self, more: usize) {
        let needed = 2 * (self.all.len() + more);
        if needed <= self.places.len() {
            return;
        }
        self.places = vec![EMPTY; needed.next_power_of_two()];
        for group in 0..self.all.len() {
            let (mut at, mark) = self.start(self.all[group].key.hash());
            while self.places[at].group != EMPTY.group {
                at = (at + 1) & (self.places.len() - 1);
            }
            self.places[at] = Bucket { mark, group: group as u32 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Poor(u64);

    impl Key for Poor {
        /// Returns a hash with many collisions.
        fn hash(&self) -> u64 {
            self.0 % 7
        }
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Good(u64);

    impl Key for Good {
        fn hash(&self) -> u64 {
            mixed(self.0)
        }
    }

    #[derive(Default)]
    struct Counted(u64, usize);

    impl Sums for Counted {
        fn tail(&self) -> i64 {
            self.1 as i64
        }

        fn absorb(&mut self, other: &Counted) {
            self.0 += other.0;
            self.1 += other.1;
        }
    }

    /// Counts `keys` with `Groups` and with a map, and compares the results.
    fn counted_alike<K: Key>(keys: &[u64], key: fn(u64) -> K, back: fn(K) -> u64) {
        let (mut groups, mut others) = (Groups::<K, Counted>::default(), Groups::<K, Counted>::default());
        let mut expected = BTreeMap::<u64, (u64, usize)>::new();
        for (number, part) in keys.chunks(1000).enumerate() {
            let groups = if number % 3 == 0 { &mut groups } else { &mut others };
            groups.add(&part.iter().map(|&number| key(number)).collect::<Vec<_>>(), |sums, row| {
                sums.0 += 1;
                sums.1 += row;
            });
            for (row, &number) in part.iter().enumerate() {
                let sums = expected.entry(number).or_default();
                sums.0 += 1;
                sums.1 += row;
            }
        }
        groups.absorb(&others);
        let found: BTreeMap<u64, (u64, usize)> =
            groups.all.iter().map(|group| (back(group.key), (group.sums.0, group.sums.1))).collect();
        assert_eq!(groups.len(), expected.len());
        assert_eq!(found, expected);
    }

    #[test]
    fn groups_give_the_same_counts_as_a_hash_map() {
        let mut state = 1;
        let mut random = || {
            state = mixed(state + 0x9e37);
            state
        };
        let many: Vec<u64> = (0..50_000).map(|_| random() % 9_000).collect();
        counted_alike(&many, Good, |key| key.0);
        let few: Vec<u64> = (0..5_000).map(|_| random() % 60).collect();
        counted_alike(&few, Poor, |key| key.0);
        counted_alike(&[], Good, |key| key.0);
    }
}
