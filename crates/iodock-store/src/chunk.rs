//! A column of events in the making: pages are encoded and compressed as rows come, and kept until the
//! row group is full. Parquet wants columns one after the other, while rows come all columns at a time,
//! and a million rows as they come would take 130 MB.

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

/// How a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Differences: times, offsets, handles.
    Delta,
    /// A dictionary of small dense numbers.
    Ids,
    /// A dictionary as long as few values differ, else differences.
    Few,
    /// The same, with more values.
    Many,
}

/// A number as Parquet stores it.
pub trait Value: Copy + Default + Ord {
    fn put_delta(out: &mut Vec<u8>, values: &[Self]);
    fn put_plain(self, out: &mut Vec<u8>);
    /// For a dictionary: small ids stay small.
    fn key(self) -> u64;
    fn from_key(key: u64) -> Self;
    /// Maps to a number that compares as this one shall, and back.
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
    framer: Framer,
    page: Vec<u8>,
    /// The last page's, for its room.
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

    /// The page compressed, where that pays. A new buffer of the worst length for each page would cost more than
    /// compressing, so the last page's is taken back, which is free once nobody else holds it.
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
    /// The dictionary did not hold a page: the rest of the group goes without.
    given_up: bool,
    kept: Vec<T>,
    gain: Gain,
    pages: Pages,
    encodings: Vec<Encoding>,
    rows: u64,
    nulls: u64,
    range: Option<(T, T)>,
}

/// The range, flipped, that also holds `values`.
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

/// Pages as they will lie in the file.
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

    /// Keeps the room.
    fn clear(&mut self) {
        self.bytes.clear();
        self.uncompressed = 0;
    }
}

/// A finished column as it will lie in the file. In one piece, it is written without being copied once more.
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

    /// Appends one page of values; `null` is what means that there is none, if anything does.
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
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { self.encode_avx2(work, values, null) };
        }
        self.encode_page(work, values, null)
    }

    /// The same loops, compiled for wider registers.
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

    /// Encodes a page into `work.page`. Inlined, as all it calls, so that it is compiled for the
    /// processor it runs on.
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

    /// Appends the column to `group`. Then it is ready for the next group.
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
        // The dictionary is complete only now, but comes first in the file.
        self.pages.bytes.splice(..0, dictionary.bytes);
        group.append_column(&Laid(&self.pages.bytes), closed)?;
        self.pages.clear();
        Ok(())
    }

    /// What Parquet must know of the column.
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

    /// The dictionary as a page, if a page of values uses it.
    fn take_dictionary(&mut self, work: &mut Workspace) -> Result<Option<(Page, usize)>> {
        let Some(dictionary) = &mut self.dictionary else { return Ok(None) };
        let used = self.encodings.contains(&Encoding::RLE_DICTIONARY);
        work.page.clear();
        if used {
            // A value that was looked up in vain stands in the page that went without the dictionary, so
            // these are least and greatest of all rows, not bounds only.
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
