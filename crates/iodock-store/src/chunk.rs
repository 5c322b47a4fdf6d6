//! A column of events under construction. Pages are encoded and compressed as rows arrive, and kept until the
//! row group is full. This is necessary because Parquet stores columns one after the other, while rows arrive
//! with all columns at a time. A million unencoded rows would take 130 MB.

use crate::dictionary::Dictionary;
use crate::encodings::{put_delta_narrow, put_delta_wide, put_indices, Presence};
use crate::frame::{Framer, Gain};
use crate::schema::ZSTD_LEVEL;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::io::Write;

/// The encoding of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The column is written as differences: times, offsets, handles.
    Delta,
    /// The column has a dictionary of small dense numbers.
    Ids,
    /// The column has a dictionary while there are few distinct values, else it is written as differences.
    Few,
    /// The column is written as with `Few`, but its dictionary may be larger.
    Many,
}

/// A number in Parquet's representation.
pub trait Value: Copy + Default + Ord {
    fn put_delta(out: &mut Vec<u8>, values: &[Self]);
    fn put_plain(self, out: &mut Vec<u8>);
    /// Returns the key in a dictionary. Small ids have small keys.
    fn key(self) -> u64;
    fn from_key(key: u64) -> Self;
    /// Maps the number to one whose signed order is the given order. Applied twice, it returns the number
    /// itself.
    fn flip(self, order: Order) -> Self;
    fn statistics(range: Option<(Self, Self)>, nulls: u64) -> Statistics;
}

impl Value for i64 {
    #[inline(always)]
    fn put_delta(out: &mut Vec<u8>, values: &[i64]) {
        put_delta_wide(out, values);
    }
    fn put_plain(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn key(self) -> u64 {
        self as u64
    }
    fn from_key(key: u64) -> i64 {
        key as i64
    }
    fn flip(self, order: Order) -> i64 {
        self ^ if order == Order::Unsigned { i64::MIN } else { 0 }
    }
    fn statistics(range: Option<(i64, i64)>, nulls: u64) -> Statistics {
        Statistics::new(range.map(|range| range.0), range.map(|range| range.1), None, Some(nulls), false)
    }
}

impl Value for i32 {
    #[inline(always)]
    fn put_delta(out: &mut Vec<u8>, values: &[i32]) {
        put_delta_narrow(out, values);
    }
    fn put_plain(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn key(self) -> u64 {
        u64::from(self as u32)
    }
    fn from_key(key: u64) -> i32 {
        key as i32
    }
    fn flip(self, order: Order) -> i32 {
        self ^ if order == Order::Unsigned { i32::MIN } else { 0 }
    }
    fn statistics(range: Option<(i32, i32)>, nulls: u64) -> Statistics {
        Statistics::new(range.map(|range| range.0), range.map(|range| range.1), None, Some(nulls), false)
    }
}

/// A number of [`iodock_event::EventColumns`], which Parquet represents by 32 or 64 bits.
pub trait Stored: Copy + PartialEq {
    type As: Value;
    fn stored(self) -> Self::As;
}

/// Sort order of a column's numbers: ids are stored as signed numbers but compare as unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Signed,
    Unsigned,
}

/// Buffers that all columns share.
pub struct Workspace {
    pub presence: Presence,
    framer: Framer,
    page: Vec<u8>,
    /// The compressed last page, kept to reuse its memory.
    compressed: Bytes,
    #[cfg(target_arch = "x86_64")]
    has_avx2: bool,
}

impl Workspace {
    pub fn new() -> Result<Workspace> {
        Ok(Workspace {
            presence: Presence::default(),
            framer: Framer::new().map_err(ParquetError::from)?,
            page: Vec::new(),
            compressed: Bytes::new(),
            #[cfg(target_arch = "x86_64")]
            has_avx2: is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt"),
        })
    }

    /// Returns the page, compressed if that is worthwhile. Allocating a new buffer of the maximum length for
    /// each page would cost more than compressing. The last page's buffer is reused if no other reference to
    /// it exists.
    fn compress(&mut self, gain: &mut Gain) -> Result<Bytes> {
        let mut compressed = Vec::from(std::mem::take(&mut self.compressed));
        self.framer.put(&self.page, gain, &mut compressed).map_err(ParquetError::from)?;
        self.compressed = Bytes::from(compressed);
        Ok(self.compressed.clone())
    }
}

/// One column of a row group.
pub struct Chunk<T> {
    descriptor: ColumnDescPtr,
    order: Order,
    nullable: bool,
    dictionary: Option<Dictionary>,
    /// Whether a page did not fit the dictionary. The rest of the row group is then written without it.
    given_up: bool,
    kept: Vec<T>,
    gain: Gain,
    pages: Pages,
    encodings: Vec<Encoding>,
    rows: u64,
    nulls: u64,
    range: Option<(T, T)>,
}

/// Returns the range, in the given sort order, extended to include `values`.
#[inline(always)]
fn extend<T: Value>(range: Option<(T, T)>, values: &[T], order: Order) -> Option<(T, T)> {
    let Some(first) = values.first().map(|value| value.flip(order)) else { return range };
    let (mut least, mut most) = range.unwrap_or((first, first));
    for value in values {
        let value = value.flip(order);
        least = least.min(value);
        most = most.max(value);
    }
    Some((least, most))
}

/// Encoded pages in the format of the file.
#[derive(Default)]
struct Pages {
    bytes: Vec<u8>,
    uncompressed: usize,
}

impl Pages {
    fn write(&mut self, page: Page, uncompressed: usize) -> Result<()> {
        let page = CompressedPage::new(page, uncompressed);
        let mut out = TrackedWrite::new(&mut self.bytes);
        let written = SerializedPageWriter::new(&mut out).write_page(page)?;
        out.flush()?;
        self.uncompressed += written.uncompressed_size;
        Ok(())
    }

    /// Removes the pages but keeps the memory.
    fn clear(&mut self) {
        self.bytes.clear();
        self.uncompressed = 0;
    }
}

/// A finished column in the format of the file. Because its bytes are contiguous, it is written without
/// another copy.
struct Laid<'a>(&'a [u8]);

impl Length for Laid<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl<'a> ChunkReader for Laid<'a> {
    type T = &'a [u8];

    fn get_read(&self, start: u64) -> Result<&'a [u8]> {
        Ok(self.0.get(start as usize..).unwrap_or_default())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.get_read(start)?;
        Ok(Bytes::copy_from_slice(&bytes[..length.min(bytes.len())]))
    }
}

impl<T: Value> Chunk<T> {
    pub fn new(descriptor: ColumnDescPtr, plan: Plan, order: Order) -> Chunk<T> {
        let dictionary = match plan {
            Plan::Delta => None,
            Plan::Ids => Some(Dictionary::of_ids()),
            Plan::Few => Some(Dictionary::of_few()),
            Plan::Many => Some(Dictionary::of_many()),
        };
        Chunk {
            nullable: descriptor.max_def_level() > 0,
            descriptor,
            order,
            dictionary,
            given_up: false,
            kept: Vec::new(),
            gain: Gain::default(),
            pages: Pages::default(),
            encodings: vec![Encoding::RLE],
            rows: 0,
            nulls: 0,
            range: None,
        }
    }

    /// Appends one page of values. `null` is the value that marks a missing one, if the column has such a
    /// value.
    pub fn write<S: Stored<As = T>>(
        &mut self,
        work: &mut Workspace,
        values: &[S],
        null: Option<S>,
    ) -> Result<()> {
        let encoding = self.encode(work, values, null);
        self.add_encoding(encoding);
        let page = Page::DataPage {
            buf: work.compress(&mut self.gain)?,
            num_values: values.len() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.write(page, work.page.len())
    }

    fn encode<S: Stored<As = T>>(&mut self, work: &mut Workspace, values: &[S], null: Option<S>) -> Encoding {
        #[cfg(target_arch = "x86_64")]
        if work.has_avx2 {
            // SAFETY: `has_avx2` is true only if the processor supports the instructions that the function is
            // compiled for.
            return unsafe { self.encode_avx2(work, values, null) };
        }
        self.encode_page(work, values, null)
    }

    /// Encodes a page with the loops compiled for processors with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn encode_avx2<S: Stored<As = T>>(
        &mut self,
        work: &mut Workspace,
        values: &[S],
        null: Option<S>,
    ) -> Encoding {
        self.encode_page(work, values, null)
    }

    /// Encodes a page into `work.page`. The function is inlined with everything that it calls, so that each
    /// caller compiles it for its own instruction set.
    #[inline(always)]
    fn encode_page<S: Stored<As = T>>(
        &mut self,
        work: &mut Workspace,
        values: &[S],
        null: Option<S>,
    ) -> Encoding {
        work.presence.scan(values, null, &mut self.kept, S::stored);
        let present = work.presence.present;
        self.rows += values.len() as u64;
        self.nulls += (values.len() - present) as u64;
        work.page.clear();
        if self.nullable {
            work.presence.put_levels(&mut work.page);
        }
        self.put_values(present, &mut work.page)
    }

    #[inline(always)]
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
        self.range = extend(self.range, values, self.order);
        T::put_delta(out, values);
        Encoding::DELTA_BINARY_PACKED
    }

    fn add_encoding(&mut self, encoding: Encoding) {
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
    }

    /// Appends the column to `group`, and prepares for the next group.
    pub fn finish<W: Write + Send>(
        &mut self,
        work: &mut Workspace,
        group: &mut SerializedRowGroupWriter<W>,
    ) -> Result<()> {
        let mut dictionary = Pages::default();
        if let Some((page, uncompressed)) = self.take_dictionary(work)? {
            dictionary.write(page, uncompressed)?;
        }
        let closed = self.close(&dictionary)?;
        // The dictionary is complete only now, but the file format requires it before the values.
        self.pages.bytes.splice(..0, dictionary.bytes);
        group.append_column(&Laid(&self.pages.bytes), closed)?;
        self.pages.clear();
        Ok(())
    }

    /// Returns the column's metadata in the form that Parquet needs.
    fn close(&mut self, dictionary: &Pages) -> Result<ColumnCloseResult> {
        let encodings = std::mem::replace(&mut self.encodings, vec![Encoding::RLE]);
        let range = self.range.take().map(|(low, high)| (low.flip(self.order), high.flip(self.order)));
        let first = dictionary.bytes.len();
        let length = first + self.pages.bytes.len();
        let metadata = ColumnChunkMetaData::builder(self.descriptor.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_encodings(encodings)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size(length as i64)
            .set_total_uncompressed_size((dictionary.uncompressed + self.pages.uncompressed) as i64)
            .set_data_page_offset(first as i64)
            .set_dictionary_page_offset((first > 0).then_some(0))
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
        Ok(closed)
    }

    /// Returns the dictionary as a page, if a page of values uses it.
    fn take_dictionary(&mut self, work: &mut Workspace) -> Result<Option<(Page, usize)>> {
        let Some(dictionary) = &mut self.dictionary else { return Ok(None) };
        let used = self.encodings.contains(&Encoding::RLE_DICTIONARY);
        work.page.clear();
        if used {
            // Values that did not fit the dictionary are in `range` already, so the range now has the exact
            // minimum and maximum of all rows.
            let values: Vec<T> = dictionary.keys().iter().map(|&key| T::from_key(key)).collect();
            self.range = extend(self.range, &values, self.order);
            values.iter().for_each(|value| value.put_plain(&mut work.page));
        }
        let num_values = dictionary.keys().len() as u32;
        dictionary.clear();
        if !used {
            return Ok(None);
        }
        self.add_encoding(Encoding::PLAIN);
        let buf = work.compress(&mut Gain::default())?;
        let page = Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false };
        Ok(Some((page, work.page.len())))
    }
}
