//! Events to Parquet, in a thread of their own.

use crate::column::{ColumnChunk, RowGroup};
use crate::error::StoreError;
use crate::schema::Schema;
use iodock_event::{EventColumns, NONE, NO_FD, UNKNOWN};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedFileWriter;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

const GROUP_ROWS: u64 = 1 << 20;
const GROUPS_PER_PART: usize = 64;

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventTotals {
    pub rows: u64,
    /// First start and last end, ns.
    pub first: Option<i64>,
    pub last: Option<i64>,
}

impl EventTotals {
    fn add(&mut self, events: &EventColumns) {
        self.rows += events.len() as u64;
        let known = |time: &i64| *time != UNKNOWN;
        let first = events.ts.iter().copied().filter(known).min();
        let ends = events.ts.iter().zip(&events.dur).zip(&events.end_ts);
        // UNKNOWN is the least number there is: it never wins against a known one.
        let last = ends.map(|((&ts, &dur), &end)| end.max(ts.saturating_add(dur.max(0)))).max();
        self.first = first.into_iter().chain(self.first).min();
        self.last = last.filter(known).into_iter().chain(self.last).max();
    }
}

/// Writes `events/part-NNNNN.parquet`.
pub struct EventWriter {
    folder: PathBuf,
    schema: Schema,
    part: SerializedFileWriter<BufWriter<File>>,
    part_path: PathBuf,
    parts: usize,
    groups: usize,
    group: RowGroup,
    group_rows: u64,
    scratch: Scratch,
    totals: EventTotals,
    /// Bytes of parts already closed.
    written: u64,
}

impl EventWriter {
    /// `folder` exists and is empty.
    pub fn create(folder: &Path) -> std::result::Result<EventWriter, StoreError> {
        let schema = Schema::of_events().map_err(|error| StoreError::parquet(folder, error, 0))?;
        let (part_path, part) = create_part(folder, 0, &schema, 0)?;
        Ok(EventWriter {
            folder: folder.into(),
            group: RowGroup::new(&schema),
            schema,
            part,
            part_path,
            parts: 1,
            groups: 0,
            group_rows: 0,
            scratch: Scratch::default(),
            totals: EventTotals::default(),
            written: 0,
        })
    }

    pub fn write(&mut self, events: &EventColumns) -> std::result::Result<(), StoreError> {
        encode(events, &mut self.group.columns, &mut self.scratch).map_err(|error| self.error(error))?;
        self.totals.add(events);
        self.group_rows += events.len() as u64;
        if self.group_rows >= GROUP_ROWS {
            self.close_group()?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> std::result::Result<EventTotals, StoreError> {
        if self.group_rows > 0 {
            self.close_group()?;
        }
        self.part.finish().map_err(|error| self.error(error))?;
        Ok(self.totals)
    }

    fn close_group(&mut self) -> std::result::Result<(), StoreError> {
        if self.groups == GROUPS_PER_PART {
            self.next_part()?;
        }
        let group = std::mem::replace(&mut self.group, RowGroup::new(&self.schema));
        group.write_to(&mut self.part).map_err(|error| self.error(error))?;
        self.groups += 1;
        self.group_rows = 0;
        Ok(())
    }

    fn next_part(&mut self) -> std::result::Result<(), StoreError> {
        self.part.finish().map_err(|error| self.error(error))?;
        self.written += self.part.bytes_written() as u64;
        (self.part_path, self.part) = create_part(&self.folder, self.parts, &self.schema, self.written)?;
        self.parts += 1;
        self.groups = 0;
        Ok(())
    }

    fn error(&self, error: ParquetError) -> StoreError {
        StoreError::parquet(&self.part_path, error, self.written + self.part.bytes_written() as u64)
    }
}

type Part = (PathBuf, SerializedFileWriter<BufWriter<File>>);

fn create_part(
    folder: &Path,
    number: usize,
    schema: &Schema,
    written: u64,
) -> std::result::Result<Part, StoreError> {
    let path = folder.join(format!("part-{number:05}.parquet"));
    let file = File::create(&path).map_err(|error| StoreError::io(&path, error, written))?;
    let output = BufWriter::with_capacity(1 << 18, file);
    let part = SerializedFileWriter::new(output, schema.root.clone(), schema.properties.clone());
    match part {
        Ok(part) => Ok((path, part)),
        Err(error) => Err(StoreError::parquet(&path, error, written)),
    }
}

/// Reused between chunks.
#[derive(Default)]
struct Scratch {
    wide: Vec<i64>,
    narrow: Vec<i32>,
    levels: Vec<i16>,
    /// Levels of columns that are all null, or not null at all.
    zeros: Vec<i16>,
    ones: Vec<i16>,
}

/// A number that lies as 32 bits in Parquet, signed or not.
trait Narrow: Copy + PartialEq {
    fn bits(self) -> i32;
}

macro_rules! narrow {
    ($($type:ty)+) => { $(impl Narrow for $type { fn bits(self) -> i32 { self as i32 } })+ };
}
narrow!(u8 u16 u32 i32);

impl Scratch {
    fn prepare(&mut self, rows: usize) {
        if self.ones.len() < rows {
            self.ones.resize(rows, 1);
            self.zeros.resize(rows, 0);
            self.levels.resize(rows, 0);
            self.wide.resize(rows, 0);
            self.narrow.resize(rows, 0);
        }
    }

    /// 64-bit numbers of which [`UNKNOWN`] is null.
    fn wide(&mut self, column: &mut ColumnChunk, values: &[i64]) -> Result<()> {
        let rows = values.len();
        let nulls = values.iter().filter(|&&value| value == UNKNOWN).count();
        if nulls == 0 {
            return column.write::<Int64Type>(values, Some(&self.ones[..rows]), None);
        }
        if nulls == rows {
            return column.write::<Int64Type>(&[], Some(&self.zeros[..rows]), None);
        }
        let mut kept = 0;
        for (&value, level) in values.iter().zip(&mut self.levels) {
            let present = value != UNKNOWN;
            self.wide[kept] = value;
            *level = i16::from(present);
            kept += usize::from(present);
        }
        column.write::<Int64Type>(&self.wide[..kept], Some(&self.levels[..rows]), None)
    }

    /// 32-bit numbers of which `null` is null.
    fn narrow<T: Narrow>(&mut self, column: &mut ColumnChunk, values: &[T], null: T) -> Result<()> {
        let rows = values.len();
        let nulls = values.iter().filter(|&&value| value == null).count();
        if nulls == rows {
            return column.write::<Int32Type>(&[], Some(&self.zeros[..rows]), None);
        }
        let mut kept = 0;
        for (&value, level) in values.iter().zip(&mut self.levels) {
            let present = value != null;
            self.narrow[kept] = value.bits();
            *level = i16::from(present);
            kept += usize::from(present);
        }
        let levels = if nulls == 0 { &self.ones[..rows] } else { &self.levels[..rows] };
        column.write::<Int32Type>(&self.narrow[..kept], Some(levels), None)
    }

    /// 32-bit numbers that are never null.
    fn required<T: Narrow>(&mut self, column: &mut ColumnChunk, values: &[T]) -> Result<()> {
        for (place, &value) in self.narrow.iter_mut().zip(values) {
            *place = value.bits();
        }
        column.write::<Int32Type>(&self.narrow[..values.len()], None, None)
    }
}

/// Appends a chunk to the columns, which are in the order of the schema.
fn encode(events: &EventColumns, columns: &mut [ColumnChunk], scratch: &mut Scratch) -> Result<()> {
    let [ts, end_ts, dur, sys_cpu, call, errno, result, utid, file, other_file, side, requested, offset, bytes, direction, fd, handle, flags, pattern, gap, own_read, any_read, own_written, any_written] =
        columns
    else {
        return Err(ParquetError::General("the schema has other columns than events".into()));
    };
    scratch.prepare(events.len());
    scratch.wide(ts, &events.ts)?;
    scratch.wide(end_ts, &events.end_ts)?;
    scratch.wide(dur, &events.dur)?;
    scratch.wide(sys_cpu, &events.sys_cpu)?;
    scratch.required(call, &events.call)?;
    scratch.narrow(errno, &events.errno, u16::MAX)?;
    scratch.wide(result, &events.result)?;
    scratch.required(utid, &events.utid)?;
    scratch.narrow(file, &events.file, NONE)?;
    scratch.narrow(other_file, &events.other_file, NONE)?;
    scratch.required(side, &events.side)?;
    scratch.wide(requested, &events.requested)?;
    scratch.wide(offset, &events.offset)?;
    scratch.wide(bytes, &events.bytes)?;
    scratch.required(direction, &events.direction)?;
    scratch.narrow(fd, &events.fd, NO_FD)?;
    scratch.narrow(handle, &events.handle, NONE)?;
    scratch.narrow(flags, &events.flags, u32::MAX)?;
    scratch.required(pattern, &events.pattern)?;
    scratch.wide(gap, &events.gap)?;
    scratch.wide(own_read, &events.own_read)?;
    scratch.wide(any_read, &events.any_read)?;
    scratch.wide(own_written, &events.own_written)?;
    scratch.wide(any_written, &events.any_written)
}
