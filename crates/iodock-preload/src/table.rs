//! The table of a library's patches, which becomes a module of the session file.

use crate::format::{module, MODULE_BYTES, MOVED_BYTES, PATCH_BYTES};

/// A jump from a call site to its trampoline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Offset of the jump from the library's load address.
    pub at: u32,
    /// Offset of the trampoline from the beginning of the trampolines.
    pub trampoline: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub build_id: Vec<u8>,
    /// Number of sites that were found but are not safe to patch.
    pub left: u32,
    /// The patches, sorted by address.
    pub sites: Vec<Patch>,
    /// Offsets in the trampolines of relative references to the library. They are corrected if the
    /// trampolines are not at their usual distance.
    pub moved: Vec<u32>,
    pub trampolines: Vec<u8>,
}

/// Offsets of a table's parts in the session file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionOffsets {
    pub trampolines: u64,
    /// Offset of the patched text; 0 if it is not in the session file.
    pub text: u64,
    /// The number of the separate file with the text; 0 if there is none.
    pub text_number: u64,
    /// Identity of the separate file.
    pub text_file: u64,
    pub text_from: u32,
    pub text_bytes: u32,
    /// Identity of the library's file ([`crate::mapping::Mapping::identity`]).
    pub file: u64,
}

impl Table {
    /// Encodes the table as a module of the session file, without the trampolines.
    pub fn module(&self, places: &SessionOffsets) -> Vec<u8> {
        let mut bytes = vec![0; MODULE_BYTES];
        bytes[..self.build_id.len()].copy_from_slice(&self.build_id);
        let mut put = |at: usize, number: usize| {
            bytes[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
        };
        put(module::BUILD_ID_BYTES, self.build_id.len());
        put(module::SITES, self.sites.len());
        put(module::LEFT, self.left as usize);
        put(module::BYTES, self.module_bytes());
        put(module::MOVED, self.moved.len());
        put(module::TRAMPOLINES_BYTES, self.trampolines.len());
        put(module::TEXT_FROM, places.text_from as usize);
        put(module::TEXT_BYTES, places.text_bytes as usize);
        for (at, place) in [
            (module::TRAMPOLINES_AT, places.trampolines),
            (module::TEXT_AT, places.text),
            (module::FILE, places.file),
            (module::TEXT_NUMBER, places.text_number),
            (module::TEXT_FILE, places.text_file),
        ] {
            bytes[at..at + 8].copy_from_slice(&place.to_le_bytes());
        }
        let sites = self.sites.iter().flat_map(|site| [site.at, site.trampoline]);
        bytes.extend(sites.chain(self.moved.iter().copied()).flat_map(u32::to_le_bytes));
        bytes.resize(self.module_bytes(), 0);
        bytes
    }

    /// Returns the size of the module in bytes, a multiple of 8.
    pub fn module_bytes(&self) -> usize {
        (MODULE_BYTES + self.sites.len() * PATCH_BYTES + self.moved.len() * MOVED_BYTES).next_multiple_of(8)
    }

    /// Encodes the whole table, to store it.
    pub fn bytes(&self) -> Vec<u8> {
        [self.module(&SessionOffsets::default()), self.trampolines.clone()].concat()
    }

    /// Parses the result of [`Table::bytes`]; `None` if it is invalid.
    pub fn parse(bytes: &[u8]) -> Option<Table> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (sites, moved) = (number(module::SITES)?, number(module::MOVED)?);
        let numbers = |at: usize, count: usize| -> Option<Vec<u32>> {
            let bytes = bytes.get(at..at.checked_add(count.checked_mul(4)?)?)?;
            Some(
                bytes
                    .chunks_exact(4)
                    .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                    .collect(),
            )
        };
        let patches = numbers(MODULE_BYTES, sites.checked_mul(2)?)?;
        let table = Table {
            build_id: bytes.get(..number(module::BUILD_ID_BYTES)?.min(module::BUILD_ID_BYTES))?.to_vec(),
            left: number(module::LEFT)? as u32,
            sites: patches.chunks_exact(2).map(|pair| Patch { at: pair[0], trampoline: pair[1] }).collect(),
            moved: numbers(MODULE_BYTES + sites * PATCH_BYTES, moved)?,
            trampolines: bytes.get(number(module::BYTES)?..)?.to_vec(),
        };
        let inside = |at: u32| (at as usize) < table.trampolines.len();
        let whole = number(module::BYTES)? == table.module_bytes()
            && number(module::TRAMPOLINES_BYTES)? == table.trampolines.len()
            && table.sites.iter().all(|site| inside(site.trampoline))
            && table.moved.iter().all(|&at| inside(at.saturating_add(3)));
        whole.then_some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back_unless_it_is_incomplete() {
        let table = Table {
            build_id: vec![7; 20],
            left: 3,
            sites: vec![Patch { at: 0x1000, trampoline: 24 }, Patch { at: 0x2000, trampoline: 30 }],
            moved: vec![26, 32, 33],
            trampolines: (0..64).collect(),
        };
        let bytes = table.bytes();
        assert_eq!(Table::parse(&bytes), Some(table));
        for end in 0..bytes.len() {
            assert_eq!(Table::parse(&bytes[..end]), None, "{end} of {}", bytes.len());
        }
        assert_eq!(Table::parse(&[0xff; 200]), None);
    }
}
