//! A column of events in the making: pages are encoded and compressed as rows come, and kept until the
//! row group is full. Parquet wants columns one after the other, while rows come all columns at a time,
//! and a million rows as they come would take 130 MB.

use crate::dictionary::Dictionary;
use crate::encodings::{put_delta_narrow, put_delta_wide, put_indices, Presence};
use crate::schema::ZSTD_LEVEL;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::io::Write;

/// How a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Differences: times, offsets, handles.
    Delta,
    /// A dictionary of small dense numbers.
    Ids,
    /// A dictionary as long as few values differ, else differences.
    Few,
}

/// A number as Parquet stores it.
pub trait Value: Copy + Default + Ord {
    fn put_delta(out: &mut Vec<u8>, values: &[Self]);
    fn put_plain(out: &mut Vec<u8>, key: u64);
    /// For a dictionary: small ids stay small.
    fn key(self) -> u64;
    /// Maps to a number that compares as this one shall, and back.
    fn flip(self, order: Order) -> Self;
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics;
}

impl Value for i64 {
    fn put_delta(out: &mut Vec<u8>, values: &[i64]) {
        put_delta_wide(out, values);
    }
    fn put_plain(out: &mut Vec<u8>, key: u64) {
        out.extend_from_slice(&key.to_le_bytes());
    }
    fn key(self) -> u64 {
        self as u64
    }
    fn flip(self, order: Order) -> i64 {
        self ^ if order == Order::Unsigned { i64::MIN } else { 0 }
    }
    fn statistics(range: Option<(i64, i64)>, nulls: u64) -> Statistics {
        Statistics::new(range.map(|range| range.0), range.map(|range| range.1), None, Some(nulls), false)
    }
}

impl Value for i32 {
    fn put_delta(out: &mut Vec<u8>, values: &[i32]) {
        put_delta_narrow(out, values);
    }
    fn put_plain(out: &mut Vec<u8>, key: u64) {
        out.extend_from_slice(&(key as u32).to_le_bytes());
    }
    fn key(self) -> u64 {
        u64::from(self as u32)
    }
    fn flip(self, order: Order) -> i32 {
        self ^ if order == Order::Unsigned { i32::MIN } else { 0 }
    }
    fn statistics(range: Option<(i32, i32)>, nulls: u64) -> Statistics {
        Statistics::new(range.map(|range| range.0), range.map(|range| range.1), None, Some(nulls), false)
    }
}

/// A number of [`iodock_event::EventColumns`] and how Parquet has it: 32 or 64 bits.
pub trait Stored: Copy + PartialEq {
    type As: Value;
    fn stored(self) -> Self::As;
}

/// How a column's numbers compare: ids lie as signed numbers but are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Signed,
    Unsigned,
}

/// Reused by all columns.
pub struct Workspace {
    pub presence: Presence,
    compressor: zstd::bulk::Compressor<'static>,
    page: Vec<u8>,
}

impl Workspace {
    pub fn new() -> Result<Workspace> {
        let compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(ParquetError::from)?;
        Ok(Workspace { presence: Presence::default(), compressor, page: Vec::new() })
    }
}

/// One column of a row group.
pub struct Chunk<T> {
    descriptor: ColumnDescPtr,
    order: Order,
    nullable: bool,
    dictionary: Option<Dictionary>,
    /// The dictionary did not hold a page: the rest of the group goes without.
    given_up: bool,
    kept: Vec<T>,
    pages: Pages,
    encodings: Vec<Encoding>,
    rows: u64,
    nulls: u64,
    range: Option<(T, T)>,
}

/// Pages as they will lie in the file.
struct Pages {
    bytes: TrackedWrite<Vec<u8>>,
    uncompressed: usize,
}

impl Pages {
    fn new() -> Pages {
        Pages { bytes: TrackedWrite::new(Vec::new()), uncompressed: 0 }
    }

    fn write(&mut self, page: Page, uncompressed: usize) -> Result<()> {
        let page = CompressedPage::new(page, uncompressed);
        let written = SerializedPageWriter::new(&mut self.bytes).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        Ok(())
    }
}

impl<T: Value> Chunk<T> {
    pub fn new(descriptor: ColumnDescPtr, plan: Plan, order: Order) -> Chunk<T> {
        let dictionary = match plan {
            Plan::Delta => None,
            Plan::Ids => Some(Dictionary::of_ids()),
            Plan::Few => Some(Dictionary::of_few()),
        };
        Chunk {
            nullable: descriptor.max_def_level() > 0,
            descriptor,
            order,
            dictionary,
            given_up: false,
            kept: Vec::new(),
            pages: Pages::new(),
            encodings: vec![Encoding::RLE],
            rows: 0,
            nulls: 0,
            range: None,
        }
    }

    /// Appends one page of values; `null` is what means that there is none, if anything does.
    pub fn write<S: Stored<As = T>>(
        &mut self,
        work: &mut Workspace,
        values: &[S],
        null: Option<S>,
    ) -> Result<()> {
        work.presence.scan(values, null, &mut self.kept, S::stored);
        let present = work.presence.present;
        self.count(values.len(), present);
        work.page.clear();
        if self.nullable {
            work.presence.put_levels(&mut work.page);
        }
        let encoding = self.put_values(present, &mut work.page);
        self.add_encoding(encoding);
        let buffer = work.compressor.compress(&work.page).map_err(ParquetError::from)?;
        let page = Page::DataPage {
            buf: Bytes::from(buffer),
            num_values: values.len() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.write(page, work.page.len())
    }

    fn count(&mut self, rows: usize, present: usize) {
        self.rows += rows as u64;
        self.nulls += (rows - present) as u64;
        let flipped = || self.kept[..present].iter().map(|value| value.flip(self.order));
        if let (Some(least), Some(most)) = (flipped().min(), flipped().max()) {
            let (low, high) = self.range.unwrap_or((least, most));
            self.range = Some((low.min(least), high.max(most)));
        }
    }

    fn put_values(&mut self, present: usize, out: &mut Vec<u8>) -> Encoding {
        let values = &self.kept[..present];
        if values.is_empty() {
            return Encoding::PLAIN;
        }
        if let Some(dictionary) = self.dictionary.as_mut().filter(|_| !self.given_up) {
            if dictionary.index(values.iter().map(|value| value.key())) {
                put_indices(out, &dictionary.indices);
                return Encoding::RLE_DICTIONARY;
            }
            self.given_up = true;
        }
        T::put_delta(out, values);
        Encoding::DELTA_BINARY_PACKED
    }

    fn add_encoding(&mut self, encoding: Encoding) {
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
    }

    /// The column's bytes and what Parquet must know of them. Then it is ready for the next group.
    pub fn finish(&mut self, work: &mut Workspace) -> Result<(Bytes, ColumnCloseResult)> {
        let pages = std::mem::replace(&mut self.pages, Pages::new());
        // The dictionary is complete only now, but comes first in the file.
        let mut whole = Pages { bytes: TrackedWrite::new(Vec::new()), uncompressed: pages.uncompressed };
        if let Some((page, uncompressed)) = self.take_dictionary(work)? {
            whole.write(page, uncompressed)?;
        }
        let dictionary_bytes = whole.bytes.bytes_written();
        whole.bytes.write_all(&pages.bytes.into_inner()?)?;
        let encodings = std::mem::replace(&mut self.encodings, vec![Encoding::RLE]);
        let range = self.range.take().map(|(low, high)| (low.flip(self.order), high.flip(self.order)));
        let length = whole.bytes.bytes_written();
        let metadata = ColumnChunkMetaData::builder(self.descriptor.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_encodings(encodings)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size(length as i64)
            .set_total_uncompressed_size(whole.uncompressed as i64)
            .set_data_page_offset(dictionary_bytes as i64)
            .set_dictionary_page_offset((dictionary_bytes > 0).then_some(0))
            .set_statistics(T::statistics(range, self.nulls))
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: length as u64,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        (self.rows, self.nulls, self.given_up) = (0, 0, false);
        Ok((Bytes::from(whole.bytes.into_inner()?), closed))
    }

    /// The dictionary as a page, if a page of values uses it.
    fn take_dictionary(&mut self, work: &mut Workspace) -> Result<Option<(Page, usize)>> {
        let Some(dictionary) = &mut self.dictionary else { return Ok(None) };
        let used = self.encodings.contains(&Encoding::RLE_DICTIONARY);
        work.page.clear();
        if used {
            dictionary.keys().iter().for_each(|&key| T::put_plain(&mut work.page, key));
        }
        let num_values = dictionary.keys().len() as u32;
        dictionary.clear();
        if !used {
            return Ok(None);
        }
        self.add_encoding(Encoding::PLAIN);
        let buf = Bytes::from(work.compressor.compress(&work.page).map_err(ParquetError::from)?);
        let page = Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false };
        Ok(Some((page, work.page.len())))
    }
}
