//! A table of names. It starts with the known names, and grows when a log shows a new one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::RwLock;

/// Hashes with FNV-1a, which is faster than the default hasher for names of a few bytes.
#[derive(Clone)]
pub struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        NameHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

pub type NameMap<V> = HashMap<Box<[u8]>, V, BuildHasherDefault<NameHasher>>;

/// Names first seen while reading: a map from name to id, and the names in the order of their ids.
type Added = (NameMap<u16>, Vec<Box<[u8]>>);

/// Maps names to dense ids. The `known` names have the first ids, in their order.
pub struct Interner {
    known: NameMap<u16>,
    added: RwLock<Added>,
    known_count: usize,
}

impl Interner {
    pub fn new<'a>(known: impl Iterator<Item = &'a str>) -> Self {
        let known: NameMap<u16> =
            known.enumerate().map(|(id, name)| (name.as_bytes().into(), id as u16)).collect();
        let known_count = known.len();
        Interner { known, added: RwLock::default(), known_count }
    }

    /// Returns the id of `name`, and assigns one if the name is new. `None` if all 65,535 ids are taken,
    /// which happens only with a maliciously constructed log.
    pub fn intern(&self, name: &[u8]) -> Option<u16> {
        if let Some(&id) = self.known.get(name) {
            return Some(id);
        }
        if let Some(&id) = self.added.read().unwrap_or_else(|e| e.into_inner()).0.get(name) {
            return Some(id);
        }
        let mut added = self.added.write().unwrap_or_else(|e| e.into_inner());
        if let Some(&id) = added.0.get(name) {
            return Some(id);
        }
        let id = u16::try_from(self.known_count + added.1.len()).ok().filter(|&id| id < u16::MAX)?;
        added.0.insert(name.into(), id);
        added.1.push(name.into());
        Some(id)
    }

    /// Returns the name of an id that was assigned later, and `None` for the ids of `known` names.
    pub fn added_name(&self, id: u16) -> Option<String> {
        let index = (id as usize).checked_sub(self.known_count)?;
        let added = self.added.read().unwrap_or_else(|e| e.into_inner());
        added.1.get(index).map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// Returns the number of ids assigned so far.
    pub fn len(&self) -> usize {
        self.known_count + self.added.read().unwrap_or_else(|e| e.into_inner()).1.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
