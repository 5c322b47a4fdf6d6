//! Reads and writes by place, call, direction, access pattern and size.

use crate::batch::{Batch, Kind, Wanted};
use crate::error::FoldError;
use crate::folding::Fold;
use crate::groups::{mixed, Groups, Key, Sums};
use crate::known::{add, first_known, id_of};
use crate::table::{Column, Table, Values};
use iodock_event::{NONE, UNKNOWN};
use std::sync::Arc;

const COLUMNS: &[Wanted] = &[
    Wanted { name: "file_id", kind: Kind::OptionalId(NONE as i64) },
    Wanted { name: "call_id", kind: Kind::Id(1 << 16) },
    Wanted { name: "direction", kind: Kind::Id(1 << 8) },
    Wanted { name: "pattern", kind: Kind::Id(1 << 8) },
    Wanted { name: "bytes", kind: Kind::Amount },
    Wanted { name: "dur", kind: Kind::Amount },
    Wanted { name: "sys_cpu_ns", kind: Kind::Amount },
    Wanted { name: "requested_bytes", kind: Kind::Amount },
    Wanted { name: "own_read_bytes", kind: Kind::Amount },
    Wanted { name: "any_read_bytes", kind: Kind::Amount },
    Wanted { name: "own_written_bytes", kind: Kind::Amount },
    Wanted { name: "any_written_bytes", kind: Kind::Amount },
    Wanted { name: "offset_bytes", kind: Kind::Number },
    Wanted { name: "gap_bytes", kind: Kind::Number },
];
/// Largest number of missing file numbers. Files are numbered from 0 without gaps in a store of iodock.
const MOST_GAPS: usize = 1 << 16;
/// Limit for a product of times. Below it, one more factor cannot cause an overflow.
const MOST_PRODUCT: f64 = 1e280;
const PAGE_BYTES: i64 = 4096;
/// The directions of the rows that move bytes: 1 is read, 2 is write.
const DIRECTIONS: std::ops::RangeInclusive<i64> = 1..=2;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Transfer {
    place: u32,
    call: u16,
    direction: u8,
    pattern: u8,
    bin: i8,
}

impl Key for Transfer {
    fn hash(&self) -> u64 {
        let how = u64::from(self.direction) << 16 | u64::from(self.pattern) << 8 | u64::from(self.bin as u8);
        mixed(mixed(u64::from(self.place) << 16 | u64::from(self.call)) ^ how)
    }
}

/// Sums of a group. A sum is [`UNKNOWN`] if no row of the group has a value.
#[repr(C)]
struct Moved {
    count: u32,
    /// Number of rows with a known time.
    timed: u32,
    unaligned: u32,
    known: u32,
    overlapping: u32,
    back: u32,
    time: i64,
    /// The sum of the logarithms of the times, except those times that are still multiplied in `product`.
    /// Taking the logarithm of a product saves calls.
    logarithms: f64,
    product: f64,
    bytes: i64,
    requested: i64,
    own_read: i64,
    any_read: i64,
    own_written: i64,
    any_written: i64,
}

impl Default for Moved {
    fn default() -> Moved {
        Moved {
            count: 0,
            time: UNKNOWN,
            timed: 0,
            logarithms: 0.0,
            product: 1.0,
            bytes: UNKNOWN,
            requested: UNKNOWN,
            own_read: UNKNOWN,
            any_read: UNKNOWN,
            own_written: UNKNOWN,
            any_written: UNKNOWN,
            unaligned: 0,
            known: 0,
            overlapping: 0,
            back: 0,
        }
    }
}

impl Sums for Moved {
    fn tail(&self) -> i64 {
        self.any_written
    }

    fn absorb(&mut self, other: &Moved) {
        self.count += other.count;
        self.timed += other.timed;
        self.unaligned += other.unaligned;
        self.known += other.known;
        self.overlapping += other.overlapping;
        self.back += other.back;
        self.logarithms += other.logarithms();
        add(&mut self.time, other.time);
        add(&mut self.bytes, other.bytes);
        add(&mut self.requested, other.requested);
        add(&mut self.own_read, other.own_read);
        add(&mut self.any_read, other.any_read);
        add(&mut self.own_written, other.own_written);
        add(&mut self.any_written, other.any_written);
    }
}

impl Moved {
    fn add_time(&mut self, time: i64) {
        add(&mut self.time, time);
        if time != UNKNOWN {
            self.timed += 1;
            self.product *= time as f64 + 1.0;
            if self.product > MOST_PRODUCT {
                self.logarithms += self.product.ln();
                self.product = 1.0;
            }
        }
    }

    fn logarithms(&self) -> f64 {
        self.logarithms + self.product.ln()
    }

    /// Adds the position of a transfer of `requested` bytes at `offset`. `gap` is the distance in bytes from
    /// the end of the previous transfer.
    fn add_place(&mut self, offset: i64, gap: i64, requested: i64) {
        if offset != UNKNOWN {
            self.known += 1;
            self.unaligned += u32::from(offset % PAGE_BYTES != 0);
        }
        if gap != UNKNOWN && gap < 0 && requested != UNKNOWN {
            let inside = -gap < requested;
            self.overlapping += u32::from(inside);
            self.back += u32::from(!inside);
        }
    }
}

/// Reads and writes folded by place, call, direction, access pattern and size. This is the derived table
/// `transfers`.
pub struct Transfers {
    /// Place of each file, by its number; [`NONE`] for a file without a place.
    places: Arc<[u32]>,
    groups: Groups<Transfer, Moved>,
    /// The rows of the current batch that transfer bytes, and their keys.
    rows: Vec<usize>,
    keys: Vec<Transfer>,
}

impl Transfers {
    /// Makes an empty fold. `places` contains the place of each of `files`.
    ///
    /// # Errors
    /// The files are not numbered consecutively.
    pub fn by_place(files: &[u32], places: &[u32]) -> Result<Transfers, FoldError> {
        let most = files.iter().max().map_or(0, |&file| file as usize + 1);
        if most > files.len() + MOST_GAPS {
            return Err(FoldError::Foreign { what: format!("there is a file of number {}", most - 1) });
        }
        let mut by_file = vec![NONE; most];
        for (&file, &place) in files.iter().zip(places) {
            if std::mem::replace(&mut by_file[file as usize], place) != NONE {
                return Err(FoldError::Foreign { what: format!("there are two files of number {file}") });
            }
        }
        Ok(Transfers::of(by_file.into()))
    }

    fn of(places: Arc<[u32]>) -> Transfers {
        Transfers { places, groups: Groups::default(), rows: Vec::new(), keys: Vec::new() }
    }
}

impl Fold for Transfers {
    const COLUMNS: &'static [Wanted] = COLUMNS;

    fn fresh(&self) -> Transfers {
        Transfers::of(self.places.clone())
    }

    fn add(&mut self, batch: Batch<'_>) {
        let [file, call, direction, pattern, bytes, dur, sys_cpu, requested, own_read, any_read, own_written, any_written, offset, gap] =
            batch
        else {
            return;
        };
        let transfers = |row: &usize| DIRECTIONS.contains(&direction[*row]) && bytes[*row] != UNKNOWN;
        self.rows.clear();
        self.rows.extend((0..file.len()).filter(transfers));
        self.keys.clear();
        self.keys.extend(self.rows.iter().map(|&row| Transfer {
            place: self.places.get(id_of(file[row]) as usize).copied().unwrap_or(NONE),
            call: call[row] as u16,
            direction: direction[row] as u8,
            pattern: pattern[row] as u8,
            bin: size_bin(bytes[row]),
        }));
        let rows = &self.rows;
        self.groups.add(&self.keys, |sums, index| {
            let row = rows[index];
            sums.count += 1;
            sums.add_time(first_known(dur[row], sys_cpu[row]));
            add(&mut sums.bytes, bytes[row]);
            add(&mut sums.requested, requested[row]);
            add(&mut sums.own_read, own_read[row]);
            add(&mut sums.any_read, any_read[row]);
            add(&mut sums.own_written, own_written[row]);
            add(&mut sums.any_written, any_written[row]);
            sums.add_place(offset[row], gap[row], requested[row]);
        });
    }

    fn absorb(&mut self, other: &Transfers) {
        self.groups.absorb(&other.groups);
    }

    fn groups(&self) -> usize {
        self.groups.len()
    }

    fn table(&self) -> Table {
        let groups = &self.groups.all;
        let of = |value: fn(&Moved) -> i64| groups.iter().map(|group| value(&group.sums)).collect::<Vec<_>>();
        let counted = |name, value| Column::new(name, Values::Int64(of(value)));
        let columns = vec![
            Column::ids("place", groups.iter().map(|group| group.key.place).collect(), NONE),
            Column::new("call_id", Values::UInt16(groups.iter().map(|group| group.key.call).collect())),
            Column::new("direction", Values::UInt8(groups.iter().map(|group| group.key.direction).collect())),
            Column::new("pattern", Values::UInt8(groups.iter().map(|group| group.key.pattern).collect())),
            Column::new("size_bin", Values::Int8(groups.iter().map(|group| group.key.bin).collect())),
            counted("count", |sums| sums.count.into()),
            Column::nullable("time_ns", of(|sums| sums.time)),
            counted("timed", |sums| sums.timed.into()),
            Column::new(
                "logarithms",
                Values::Float64(groups.iter().map(|group| group.sums.logarithms()).collect()),
            ),
            Column::nullable("bytes", of(|sums| sums.bytes)),
            // A program that copies inside the kernel often requests the largest possible size, so this sum
            // may reach its limit.
            Column::saturated("requested_bytes", of(|sums| sums.requested)),
            Column::nullable("own_read_bytes", of(|sums| sums.own_read)),
            Column::nullable("any_read_bytes", of(|sums| sums.any_read)),
            Column::nullable("own_written_bytes", of(|sums| sums.own_written)),
            Column::nullable("any_written_bytes", of(|sums| sums.any_written)),
            counted("unaligned", |sums| sums.unaligned.into()),
            counted("known", |sums| sums.known.into()),
            counted("overlapping", |sums| sums.overlapping.into()),
            counted("back", |sums| sums.back.into()),
        ];
        Table { rows: groups.len(), columns }
    }
}

/// Returns the n with 2^(n-1) < `bytes` <= 2^n; 0 for 1 byte; -1 for no bytes.
fn size_bin(bytes: i64) -> i8 {
    if bytes <= 0 {
        -1
    } else {
        (64 - (bytes - 1).leading_zeros()) as i8
    }
}

#[cfg(test)]
mod tests {
    use super::size_bin;

    #[test]
    fn a_power_of_two_belongs_to_the_bin_that_it_ends() {
        let bins = [0, 1, 2, 3, 4, 5, 4096, 4097, i64::MAX].map(size_bin);
        assert_eq!(bins, [-1, 0, 1, 2, 2, 3, 12, 13, 63]);
    }
}
