//! Modules whose records are counters: POSIX, STDIO, MPI-IO, HDF5, PnetCDF.
//!
//! Records stay in the log's bytes, and a value is decoded when it is read. A log therefore needs no more
//! memory than its decompressed regions. A counter that a version lacks has no value, so it cannot be
//! mistaken for a real one.

mod tables;

use crate::{ByteOrder, Module};

/// A counter, and the first and last version of its module that have it.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub first: u32,
    pub last: u32,
}

/// The order of the values in a module's records: number of the record, rank, number of the file's record
/// (only for data sets and variables), counters, and finally times and other fractions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub has_file: bool,
    pub counters: Vec<&'static str>,
    pub fractions: Vec<&'static str>,
}

const BASE_BYTES: usize = 16;

impl Layout {
    /// Returns the layout of the records of `version`. Returns `None` if the module's records are not
    /// counters.
    pub(crate) fn of(module: Module, version: u32) -> Option<Layout> {
        let (counters, fractions) = fields(module)?;
        let names = |fields: &'static [Field]| {
            let there = fields.iter().filter(|field| (field.first..=field.last).contains(&version));
            there.map(|field| field.name).collect()
        };
        let has_file = matches!(module, Module::PNETCDF_VAR) || (module == Module::H5D && version >= 2);
        Some(Layout { has_file, counters: names(counters), fractions: names(fractions) })
    }

    /// Returns the number of bytes of a record.
    pub fn size(&self) -> usize {
        self.first() + 8 * (self.counters.len() + self.fractions.len())
    }

    fn first(&self) -> usize {
        BASE_BYTES + 8 * usize::from(self.has_file)
    }

    /// Returns the index of the counter called `name`.
    pub fn counter(&self, name: &str) -> Option<usize> {
        self.counters.iter().position(|&known| known == name)
    }

    /// Returns the index of the time or other fraction called `name`.
    pub fn fraction(&self, name: &str) -> Option<usize> {
        self.fractions.iter().position(|&known| known == name)
    }
}

/// Returns the counters and fractions of all versions of a module.
pub(crate) fn fields(module: Module) -> Option<(&'static [Field], &'static [Field])> {
    Some(match module {
        Module::POSIX => (tables::POSIX, tables::POSIX_TIMES),
        Module::MPI_IO => (tables::MPIIO, tables::MPIIO_TIMES),
        Module::STDIO => (tables::STDIO, tables::STDIO_TIMES),
        Module::H5F => (tables::H5F, tables::H5F_TIMES),
        Module::H5D => (tables::H5D, tables::H5D_TIMES),
        Module::PNETCDF_FILE => (tables::PNETCDF_FILE, tables::PNETCDF_FILE_TIMES),
        Module::PNETCDF_VAR => (tables::PNETCDF_VAR, tables::PNETCDF_VAR_TIMES),
        _ => return None,
    })
}

/// The records of a module.
#[derive(Clone, Debug)]
pub struct Counted {
    pub module: Module,
    /// Version of the module; `None` for a text that does not state it.
    pub version: Option<u32>,
    pub layout: Layout,
    pub(crate) order: ByteOrder,
    /// Number of bytes from one record to the next.
    pub(crate) stride: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Counted {
    pub fn len(&self) -> usize {
        self.bytes.len() / self.stride
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn records(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        self.bytes.chunks_exact(self.stride).map(|bytes| Record { of: self, bytes })
    }

    /// Returns the sum of a counter over all records; `None` if the module's version lacks the counter.
    pub fn total(&self, counter: &str) -> Option<i128> {
        let at = self.layout.counter(counter)?;
        Some(self.records().map(|record| i128::from(record.counter(at))).sum())
    }
}

/// The counters of one file, data set or variable, for one rank or for all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    of: &'a Counted,
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Returns the number of the record, which refers to its name.
    pub fn id(&self) -> u64 {
        self.word(0)
    }

    /// Returns the rank; `None` for a record of all ranks together, which has the fastest and slowest rank
    /// and the variance in addition to the sums.
    pub fn rank(&self) -> Option<i64> {
        Some(self.word(8).cast_signed()).filter(|&rank| rank >= 0)
    }

    /// Returns the record number of the file that contains this data set or variable.
    pub fn file(&self) -> Option<u64> {
        self.of.layout.has_file.then(|| self.word(BASE_BYTES))
    }

    /// Returns the counter at index `at` of [`Layout::counters`].
    pub fn counter(&self, at: usize) -> i64 {
        self.word(self.of.layout.first() + 8 * at).cast_signed()
    }

    /// Returns the time or other fraction at index `at` of [`Layout::fractions`].
    pub fn fraction(&self, at: usize) -> f64 {
        f64::from_bits(self.word(self.of.layout.first() + 8 * (self.of.layout.counters.len() + at)))
    }

    pub fn counters(self) -> impl Iterator<Item = (&'static str, i64)> + 'a {
        self.of.layout.counters.iter().enumerate().map(move |(at, &name)| (name, self.counter(at)))
    }

    pub fn fractions(self) -> impl Iterator<Item = (&'static str, f64)> + 'a {
        self.of.layout.fractions.iter().enumerate().map(move |(at, &name)| (name, self.fraction(at)))
    }

    fn word(&self, at: usize) -> u64 {
        self.of.order.u64(self.bytes, at).expect("a record is as long as its layout")
    }
}
