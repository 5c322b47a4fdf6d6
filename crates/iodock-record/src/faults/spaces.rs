//! Keeps the files that are mapped in each process's memory.

use super::paths;
use iodock_event::FileMap;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A map. If it has no file, it only replaces the maps that had its addresses before.
#[derive(Clone)]
struct Map {
    end: u64,
    /// Offset in the file of the map's first byte.
    offset: u64,
    file: Option<Rc<File>>,
}

/// A file's mapping as the program created it. The parts that remain of it, and their copies in child
/// processes, refer to it.
struct File {
    made: FileMap,
    number: std::cell::Cell<Option<u32>>,
}

type Space = BTreeMap<u64, Map>;

/// The memory to which an address belongs.
pub enum Backing {
    /// A file: the number of the map, and the offset in the file.
    File(u32, u64),
    /// Memory that belongs to no file.
    NoFile,
    Unknown,
}

#[derive(Default)]
pub struct Spaces {
    of_process: HashMap<u32, Space>,
    next_number: u32,
    /// Maps that got a number since this list was last taken.
    pub numbered: Vec<FileMap>,
}

impl Spaces {
    /// Adds a new map, which replaces the maps at its addresses.
    pub fn map(&mut self, map: FileMap) {
        let space = self.of_process.entry(map.pid).or_default();
        let (start, end) = (map.start, map.start.saturating_add(map.length));
        make_room(space, start, end);
        let offset = map.offset;
        let file = paths::file_of(&map.path)
            .map(<[u8]>::to_vec)
            .map(|path| Rc::new(File { made: FileMap { path, ..map }, number: std::cell::Cell::new(None) }));
        space.insert(start, Map { end, offset, file });
    }

    /// Adds a map like [`Spaces::map`], unless a map at its first page is known already.
    pub fn fill(&mut self, map: FileMap) {
        let space = self.of_process.entry(map.pid).or_default();
        let known = space.range(..=map.start).next_back().is_some_and(|(_, before)| {
            before.end > map.start && before.file.is_some() == paths::file_of(&map.path).is_some()
        });
        if !known {
            self.map(map);
        }
    }

    pub fn fork(&mut self, parent: u32, child: u32) {
        if let Some(space) = self.of_process.get(&parent) {
            self.of_process.insert(child, space.clone());
        }
    }

    /// Removes all maps of a process that executes a program or ends.
    pub fn clear(&mut self, pid: u32) {
        if let Some(space) = self.of_process.get_mut(&pid) {
            space.clear();
        }
    }

    pub fn remove(&mut self, pid: u32) {
        self.of_process.remove(&pid);
    }

    /// Returns the memory to which `address` belongs. `page` is the size of a page.
    pub fn place(&mut self, pid: u32, address: u64, page: u64) -> Backing {
        let found = self.of_process.get(&pid).and_then(|space| space.range(..=address).next_back());
        let Some((start, map)) = found.filter(|(_, map)| address < map.end) else { return Backing::Unknown };
        let Some(file) = &map.file else { return Backing::NoFile };
        let number = file.number.get().unwrap_or_else(|| {
            let number = self.next_number;
            self.next_number += 1;
            file.number.set(Some(number));
            self.numbered.push(file.made.clone());
            number
        });
        Backing::File(number, map.offset + ((address & !(page - 1)) - start))
    }
}

/// Removes the addresses from `start` to `end` from the known maps.
fn make_room(space: &mut Space, start: u64, end: u64) {
    let before = space.range_mut(..start).next_back();
    if let Some((&from, map)) = before.filter(|(_, map)| map.end > start) {
        let rest = (map.end > end).then(|| Map { offset: map.offset + (end - from), ..map.clone() });
        map.end = start;
        if let Some(rest) = rest {
            space.insert(end, rest);
            return;
        }
    }
    let covered: Vec<u64> = space.range(start..end).map(|(&from, _)| from).collect();
    for from in covered {
        let Some(map) = space.remove(&from) else { continue };
        if map.end > end {
            space.insert(end, Map { offset: map.offset + (end - from), ..map });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pid: u32, start: u64, length: u64, offset: u64, path: &str) -> FileMap {
        FileMap { pid, time: 0, start, length, offset, path: path.as_bytes().to_vec() }
    }

    fn at(spaces: &mut Spaces, pid: u32, address: u64) -> Option<(u32, u64)> {
        match spaces.place(pid, address, 0x1000) {
            Backing::File(number, offset) => Some((number, offset)),
            _ => None,
        }
    }

    #[test]
    fn an_address_is_translated_to_a_file_offset() {
        let mut spaces = Spaces::default();
        spaces.map(map(1, 0x10000, 0x4000, 0x8000, "/data/a"));
        assert_eq!(at(&mut spaces, 1, 0x12345), Some((0, 0xa000)));
        assert_eq!(at(&mut spaces, 1, 0x13fff), Some((0, 0xb000)));
        assert!(matches!(spaces.place(1, 0x14000, 0x1000), Backing::Unknown));
        assert!(matches!(spaces.place(2, 0x10000, 0x1000), Backing::Unknown));
        assert_eq!(spaces.numbered.len(), 1);
    }

    #[test]
    fn a_new_map_replaces_the_middle_of_an_older_one() {
        let mut spaces = Spaces::default();
        spaces.map(map(1, 0x10000, 0x6000, 0, "/data/a"));
        spaces.map(map(1, 0x12000, 0x2000, 0, "//anon"));
        assert_eq!(at(&mut spaces, 1, 0x11000), Some((0, 0x1000)));
        assert!(matches!(spaces.place(1, 0x12000, 0x1000), Backing::NoFile));
        assert_eq!(at(&mut spaces, 1, 0x14000), Some((0, 0x4000)));
        spaces.map(map(1, 0xf000, 0x8000, 0, "/data/b"));
        assert_eq!(at(&mut spaces, 1, 0x11000), Some((1, 0x2000)));
        assert_eq!(at(&mut spaces, 1, 0x16fff), Some((1, 0x7000)));
    }

    #[test]
    fn a_child_has_its_parents_maps_until_exec() {
        let mut spaces = Spaces::default();
        spaces.map(map(1, 0x10000, 0x1000, 0, "/data/a"));
        spaces.fork(1, 2);
        assert_eq!(at(&mut spaces, 2, 0x10000), Some((0, 0)));
        assert_eq!(at(&mut spaces, 1, 0x10000), Some((0, 0)));
        spaces.clear(2);
        assert_eq!(at(&mut spaces, 2, 0x10000), None);
    }
}
