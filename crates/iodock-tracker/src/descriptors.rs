//! Open file descriptions, and the descriptor tables that refer to them.

use crate::access::LastAccess;
use crate::slab::Slab;
use iodock_event::UNKNOWN;
use rustc_hash::FxHashMap;

/// An open file description. open() creates it; dup and fork make further descriptors that share it.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Number of descriptors in all tables, plus the number of calls in progress, that use this description.
    references: u32,
    /// Number of the description, unique in the store.
    pub handle: u32,
    pub file: u32,
    /// Offset of the next read or write, bytes; [`UNKNOWN`] if it cannot be determined.
    pub position: i64,
    /// Whether it has a position that the tracker can follow.
    pub seekable: bool,
    pub append: bool,
    /// For a pipe: whether it is the read end.
    pub read_end: bool,
    /// For a pidfd: the id of the process, 0 if unknown.
    pub process: u32,
    /// Whether several tasks used it in an order that the source does not show.
    pub unordered: bool,
    pub last: LastAccess,
}

impl Description {
    pub fn new(handle: u32, file: u32) -> Self {
        Description {
            references: 0,
            handle,
            file,
            position: UNKNOWN,
            seekable: false,
            append: false,
            read_end: false,
            process: 0,
            unordered: false,
            last: LastAccess::default(),
        }
    }

    /// Records that the file is a FIFO or another file without a position.
    pub fn has_no_position(&mut self) {
        (self.seekable, self.position) = (false, UNKNOWN);
    }

    /// Advances the position after a transfer of `bytes` at the position.
    pub fn advance(&mut self, bytes: i64) {
        if self.position != UNKNOWN {
            self.position = self.position.saturating_add(bytes);
        }
    }
}

/// All open file descriptions, with reference counts.
#[derive(Default)]
pub struct Descriptions(Slab<Description>);

impl Descriptions {
    /// Adds a description and returns its slot. The caller owns the first reference.
    pub fn add(&mut self, description: Description) -> u32 {
        self.0.insert(Description { references: 1, ..description })
    }
    pub fn hold(&mut self, slot: u32) {
        self.0[slot].references += 1;
    }
    pub fn release(&mut self, slot: u32) {
        let description = &mut self.0[slot];
        description.references -= 1;
        if description.references == 0 {
            self.0.release(slot);
        }
    }
    pub fn get(&self, slot: u32) -> &Description {
        &self.0[slot]
    }
    pub fn get_mut(&mut self, slot: u32) -> &mut Description {
        &mut self.0[slot]
    }
}

const EMPTY: u32 = u32::MAX;
/// Descriptors below this number are array indices; larger ones are kept in a map. Few programs use larger
/// numbers, but maliciously constructed logs do.
const DENSE: usize = 1 << 16;

/// A descriptor table. An entry is one number: the description's slot and the close-on-exec flag.
#[derive(Debug, Default)]
pub struct FdTable {
    pub references: u32,
    /// Whether a fork copied the table, or it received descriptors from other processes. A descriptor whose
    /// open call was not seen may then be shared with another table.
    pub foreign: bool,
    dense: Vec<u32>,
    sparse: FxHashMap<i32, u32>,
}

fn entry(slot: u32, close_on_exec: bool) -> u32 {
    slot << 1 | u32::from(close_on_exec)
}

impl FdTable {
    /// Makes an empty table that one task refers to.
    pub fn new() -> Self {
        FdTable { references: 1, ..FdTable::default() }
    }

    pub fn get(&self, fd: i32) -> Option<u32> {
        if let Some(&entry) = self.dense.get(fd as usize) {
            return (entry != EMPTY).then_some(entry >> 1);
        }
        if self.sparse.is_empty() {
            return None;
        }
        self.sparse.get(&fd).map(|entry| entry >> 1)
    }

    /// Sets an entry and returns the previous one. `fd` must not be negative.
    pub fn set(&mut self, fd: i32, slot: u32, close_on_exec: bool) -> Option<u32> {
        let index = fd as usize;
        if index >= DENSE {
            return self.sparse.insert(fd, entry(slot, close_on_exec)).map(|old| old >> 1);
        }
        if index >= self.dense.len() {
            self.dense.resize(index + 1, EMPTY);
        }
        let old = std::mem::replace(&mut self.dense[index], entry(slot, close_on_exec));
        (old != EMPTY).then_some(old >> 1)
    }

    pub fn remove(&mut self, fd: i32) -> Option<u32> {
        let Some(place) = self.dense.get_mut(fd as usize) else {
            return self.sparse.remove(&fd).map(|old| old >> 1);
        };
        let old = std::mem::replace(place, EMPTY);
        while self.dense.last() == Some(&EMPTY) {
            self.dense.pop();
        }
        (old != EMPTY).then_some(old >> 1)
    }

    pub fn set_close_on_exec(&mut self, fd: i32, on: bool) {
        let place = match self.dense.get_mut(fd as usize) {
            Some(place) => Some(place),
            None => self.sparse.get_mut(&fd),
        };
        if let Some(place) = place.filter(|place| **place != EMPTY) {
            *place = *place & !1 | u32::from(on);
        }
    }

    /// Yields descriptors and their slots. Descriptors below [`DENSE`] come in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (i32, u32)> + '_ {
        let dense = self.dense.iter().enumerate().map(|(fd, &entry)| (fd as i32, entry));
        let sparse = self.sparse.iter().map(|(&fd, &entry)| (fd, entry));
        dense.chain(sparse).filter(|&(_, entry)| entry != EMPTY).map(|(fd, entry)| (fd, entry >> 1))
    }

    /// Returns the descriptors that exec closes.
    pub fn closing_on_exec(&self) -> Vec<i32> {
        let dense = self.dense.iter().enumerate().map(|(fd, &entry)| (fd as i32, entry));
        let sparse = self.sparse.iter().map(|(&fd, &entry)| (fd, entry));
        dense.chain(sparse).filter(|&(_, entry)| entry != EMPTY && entry & 1 == 1).map(|(fd, _)| fd).collect()
    }

    /// Returns the open descriptors from `first` to `last`.
    pub fn range(&self, first: i64, last: i64) -> Vec<i32> {
        self.iter().map(|(fd, _)| fd).filter(|&fd| (first..=last).contains(&i64::from(fd))).collect()
    }

    /// Returns a copy for a child. The caller must count the copy's references.
    pub fn copy(&self) -> FdTable {
        FdTable {
            references: 1,
            foreign: self.foreign,
            dense: self.dense.clone(),
            sparse: self.sparse.clone(),
        }
    }
}
