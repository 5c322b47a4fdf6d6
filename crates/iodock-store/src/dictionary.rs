//! Dictionaries of a row group's column. A dictionary maps values to indices in the order of first use.

/// Limit for ids that are looked up in an array, which needs at most 1 MB.
const TABLE: u64 = 1 << 18;
/// Number of slots of the small hash table. At most half of them are used, so most look-ups hit the L1 cache.
const SLOTS: usize = 1 << 13;
/// Number of slots of the large hash table (1 MB), for columns with a few frequent and many rare values, such
/// as results. It still takes less space and time than differences.
const MANY_SLOTS: usize = 1 << 18;

enum Lookup {
    /// Index + 1 for each value; 0 marks values without an index.
    Table(Vec<u32>),
    /// Hash table with open addressing. Each slot holds an index + 1, or 0 if it is empty; the values are in
    /// `keys`.
    Hashed(Vec<u32>),
}

pub struct Dictionary {
    lookup: Lookup,
    keys: Vec<u64>,
    pub indices: Vec<u32>,
}

impl Dictionary {
    /// Makes a dictionary for small dense numbers.
    pub fn of_ids() -> Dictionary {
        Dictionary { lookup: Lookup::Table(Vec::new()), keys: Vec::new(), indices: Vec::new() }
    }

    /// Makes a dictionary for columns with few distinct values.
    pub fn of_few() -> Dictionary {
        Dictionary { lookup: Lookup::Hashed(vec![0; SLOTS]), keys: Vec::new(), indices: Vec::new() }
    }

    /// Makes a dictionary for columns with few frequent and many rare values.
    pub fn of_many() -> Dictionary {
        Dictionary { lookup: Lookup::Hashed(vec![0; MANY_SLOTS]), keys: Vec::new(), indices: Vec::new() }
    }

    /// Empties the dictionary for the next row group.
    pub fn clear(&mut self) {
        self.keys.clear();
        match &mut self.lookup {
            Lookup::Table(table) => table.fill(0),
            Lookup::Hashed(slots) => slots.fill(0),
        }
    }

    /// Returns the values in the order of their indices.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Fills `indices`. Returns false if the values do not suit a dictionary; it may then contain entries
    /// that no page uses.
    #[inline(always)]
    pub fn index(&mut self, keys: impl ExactSizeIterator<Item = u64>) -> bool {
        // The old indices need not be cleared, because all of them are overwritten.
        self.indices.resize(keys.len(), 0);
        match &mut self.lookup {
            Lookup::Table(table) => index_table(table, &mut self.keys, &mut self.indices, keys),
            Lookup::Hashed(slots) => index_hashed(slots, &mut self.keys, &mut self.indices, keys),
        }
    }
}

#[inline(always)]
fn index_table(
    table: &mut Vec<u32>,
    known: &mut Vec<u64>,
    indices: &mut [u32],
    keys: impl Iterator<Item = u64>,
) -> bool {
    for (index, key) in indices.iter_mut().zip(keys) {
        if key >= table.len() as u64 {
            if key >= TABLE {
                return false;
            }
            table.resize((key as usize + 1).next_power_of_two(), 0);
        }
        let entry = &mut table[key as usize];
        if *entry == 0 {
            known.push(key);
            *entry = known.len() as u32;
        }
        *index = *entry - 1;
    }
    true
}

#[inline(always)]
fn index_hashed(
    slots: &mut [u32],
    known: &mut Vec<u64>,
    indices: &mut [u32],
    keys: impl Iterator<Item = u64>,
) -> bool {
    let mask = slots.len() - 1;
    let shift = 64 - slots.len().trailing_zeros();
    for (index, key) in indices.iter_mut().zip(keys) {
        // With Fibonacci hashing, the high bits of the product depend on all bits of the key.
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize & mask;
        *index = loop {
            match slots[slot] {
                0 if known.len() == slots.len() / 2 => return false,
                0 => {
                    known.push(key);
                    slots[slot] = known.len() as u32;
                    break known.len() as u32 - 1;
                }
                entry if known[entry as usize - 1] == key => break entry - 1,
                _ => slot = (slot + 1) & mask,
            }
        };
    }
    true
}
