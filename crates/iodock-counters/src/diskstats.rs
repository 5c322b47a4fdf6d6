//! Parses lines of /proc/diskstats (Linux Documentation/admin-guide/iostats.rst).

use crate::numbers::{whole, words};

/// Size in bytes of a sector in this file. It does not depend on the disk's own sector size.
pub const SECTOR_BYTES: u64 = 512;
/// Largest number of fields after the device name: 11 in old kernels, 15 with discards (Linux 4.18), 17 with
/// flushes (Linux 5.5).
pub const FIELDS: usize = 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub name: &'a [u8],
    values: [u64; FIELDS],
    count: usize,
}

impl Line<'_> {
    /// Returns the fields that this kernel prints, in the file's order.
    pub fn values(&self) -> &[u64] {
        &self.values[..self.count]
    }
}

pub fn line(text: &[u8]) -> Option<Line<'_>> {
    let mut fields = words(text).skip(2);
    let mut line = Line { name: fields.next()?, values: [0; FIELDS], count: 0 };
    for field in fields.take(FIELDS) {
        line.values[line.count] = whole(field)?;
        line.count += 1;
    }
    (line.count >= 11).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_fields_of_old_and_new_kernels_are_read() {
        let old = line(b"   8       0 sda 1 2 3 4 5 6 7 8 9 10 11").expect("a disk");
        assert_eq!((old.name, old.values().len()), (&b"sda"[..], 11));
        let new = line(b" 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17").expect("a disk");
        assert_eq!(new.values()[16], 17);
        assert_eq!(line(b"8 0 sda 1 2 x 4 5 6 7 8 9 10 11"), None);
        assert_eq!(line(b"8 0 sda 1 2"), None);
    }
}
