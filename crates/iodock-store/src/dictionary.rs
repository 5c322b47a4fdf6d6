//! Dictionaries of a row group's column: map values to indices in the order of first use.

/// Ids below this are looked up in a table: 1 MB at most.
const TABLE: u64 = 1 << 18;
/// Other values are hashed while there are few: at most half as many as slots. Most look-ups should hit the
/// L1 cache.
const SLOTS: usize = 1 << 13;
/// For columns with a few frequent and many rare values, such as results: this still takes less space and
/// time than differences. 1 MB.
const MANY_SLOTS: usize = 1 << 18;

enum Lookup {
    /// Index + 1 by value; 0: none.
    Table(Vec<u32>),
    /// A hash table with open addressing. Each slot is an index + 1 (0: empty), and the value is in `keys`.
    Hashed(Vec<u32>),
}

pub struct Dictionary {
    lookup: Lookup,
    keys: Vec<u64>,
    pub indices: Vec<u32>,
}

impl Dictionary {
    /// For small dense numbers.
    pub fn of_ids() -> Dictionary {
        Dictionary { lookup: Lookup::Table(Vec::new()), keys: Vec::new(), indices: Vec::new() }
    }

    /// For any numbers with few distinct values.
    pub fn of_few() -> Dictionary {
        Dictionary { lookup: Lookup::Hashed(vec![0; SLOTS]), keys: Vec::new(), indices: Vec::new() }
    }

    /// For any numbers with few frequent values.
    pub fn of_many() -> Dictionary {
        Dictionary { lookup: Lookup::Hashed(vec![0; MANY_SLOTS]), keys: Vec::new(), indices: Vec::new() }
    }

    /// Prepares for the next row group.
    pub fn clear(&mut self) {
        self.keys.clear();
        match &mut self.lookup {
            Lookup::Table(table) => table.fill(0),
            Lookup::Hashed(slots) => slots.fill(0),
        }
    }

    /// Values in the order of their indices.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Fills `indices`. False if these values do not suit a dictionary; it may then contain entries that no
    /// page uses.
    #[inline(always)]
    pub fn index(&mut self, keys: impl ExactSizeIterator<Item = u64>) -> bool {
        // Not cleared before: all of them are overwritten.
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
        // Fibonacci hashing: the product's high bits depend on all of the key's.
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
