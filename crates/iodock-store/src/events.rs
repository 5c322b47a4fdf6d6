//! Writes events to Parquet, in a separate thread.

use crate::checksum::Summing;
use crate::chunk::{Chunk, Order, Plan, Stored, Workspace};
use crate::contents::Contents;
use crate::error::StoreError;
use crate::folds::Folds;
use crate::schema::{Schema, EVENTS};
use iodock_event::{EventColumns, NONE, NO_FD, UNKNOWN};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Smallest number of rows of a page. Smaller chunks are combined, because compression is more effective on
/// large pages.
const PAGE_ROWS: usize = 1 << 15;
/// Size limits of a row group and a file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub group_rows: u64,
    pub groups_per_part: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { group_rows: 1 << 20, groups_per_part: 64 }
    }
}

/// Summary of the written events.
#[derive(Clone, Debug, Default)]
pub struct EventTotals {
    pub rows: u64,
    /// The files of events, and the small tables made from events.
    pub contents: Contents,
    /// Earliest start and latest end of the events, ns. For an event whose start is unknown, the end minus
    /// the duration counts, or the end if the duration is unknown, too.
    pub first: Option<i64>,
    pub last: Option<i64>,
}

impl EventTotals {
    fn add(&mut self, events: &EventColumns) {
        self.rows += events.len() as u64;
        let known = |time: &i64| *time != UNKNOWN;
        let ends = events.ts.iter().zip(&events.dur).zip(&events.end_ts);
        // truss may show only the end of a call. Its start is then the end minus the duration or, if the
        // duration is unknown, the end itself.
        let starts = ends.clone().map(|((&ts, &dur), &end)| match (ts, end) {
            (UNKNOWN, UNKNOWN) => UNKNOWN,
            (UNKNOWN, end) => end - dur.max(0),
            (ts, _) => ts,
        });
        let first = starts.filter(known).min();
        // UNKNOWN is the smallest number, so the maximum is a known number if there is one.
        let last = ends.map(|((&ts, &dur), &end)| end.max(ts.saturating_add(dur.max(0)))).max();
        self.first = first.into_iter().chain(self.first).min();
        self.last = last.filter(known).into_iter().chain(self.last).max();
    }
}

/// Writes `events/part-NNNNN.parquet`.
pub struct EventWriter {
    store: PathBuf,
    /// Number of rows in the current part.
    folder: PathBuf,
    limits: Limits,
    schema: Schema,
    part: SerializedFileWriter<Output>,
    part_path: PathBuf,
    parts: usize,
    groups: usize,
    columns: Columns,
    group_rows: u64,
    /// Rows that are too few for a page.
    waiting: EventColumns,
    work: Workspace,
    totals: EventTotals,
    folds: Folds,
    /// Bytes of the completed parts.
    written: u64,
}

impl EventWriter {
    /// Makes a writer. `store` must exist, but its folder of events must not.
    pub fn create(store: &Path, limits: Limits) -> std::result::Result<EventWriter, StoreError> {
        let folder = &store.join("events");
        std::fs::create_dir(folder).map_err(|error| StoreError::io(folder, error, 0))?;
        let prepare = || {
            let schema = Schema::of_table(EVENTS)?;
            Ok((Columns::new(&schema)?, schema, Workspace::new()?))
        };
        let (columns, schema, work) = prepare().map_err(|error| StoreError::parquet(folder, error, 0))?;
        let (part_path, part) = create_part(folder, 0, &schema, 0)?;
        Ok(EventWriter {
            store: store.into(),
            folder: folder.into(),
            limits,
            schema,
            part,
            part_path,
            parts: 1,
            groups: 0,
            columns,
            group_rows: 0,
            waiting: EventColumns::default(),
            work,
            totals: EventTotals::default(),
            folds: Folds::default(),
            written: 0,
        })
    }

    /// Takes all rows, and leaves `events` empty.
    pub fn write(&mut self, events: &mut EventColumns) -> std::result::Result<(), StoreError> {
        self.totals.add(events);
        self.folds.add(events);
        if self.waiting.is_empty() && events.len() >= PAGE_ROWS {
            self.write_page(events)?;
            events.clear();
            return Ok(());
        }
        self.waiting.append(events);
        if self.waiting.len() >= PAGE_ROWS {
            self.write_waiting()?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> std::result::Result<EventTotals, StoreError> {
        self.write_waiting()?;
        if self.group_rows > 0 {
            self.close_group()?;
        }
        self.finish_part()?;
        self.folds.write(&self.store, &mut self.totals.contents)?;
        Ok(self.totals)
    }

    fn write_waiting(&mut self) -> std::result::Result<(), StoreError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.write_page(&waiting)?;
        }
        waiting.clear();
        self.waiting = waiting;
        Ok(())
    }

    fn write_page(&mut self, events: &EventColumns) -> std::result::Result<(), StoreError> {
        self.columns.write(events, &mut self.work).map_err(|error| self.error(error))?;
        self.group_rows += events.len() as u64;
        if self.group_rows >= self.limits.group_rows {
            self.close_group()?;
        }
        Ok(())
    }

    fn close_group(&mut self) -> std::result::Result<(), StoreError> {
        if self.groups == self.limits.groups_per_part {
            self.next_part()?;
        }
        self.try_close_group().map_err(|error| self.error(error))?;
        self.groups += 1;
        self.group_rows = 0;
        Ok(())
    }

    fn try_close_group(&mut self) -> Result<()> {
        let mut group = self.part.next_row_group()?;
        self.columns.finish(&mut self.work, &mut group)?;
        group.close().map(|_| ())
    }

    fn next_part(&mut self) -> std::result::Result<(), StoreError> {
        self.finish_part()?;
        self.written += self.part.bytes_written() as u64;
        (self.part_path, self.part) = create_part(&self.folder, self.parts, &self.schema, self.written)?;
        self.parts += 1;
        self.groups = 0;
        Ok(())
    }

    fn finish_part(&mut self) -> std::result::Result<(), StoreError> {
        self.part.finish().map_err(|error| self.error(error))?;
        let checksum = self.part.inner().get_ref().checksum();
        self.totals.contents.add_file(&self.store, &self.part_path, checksum);
        Ok(())
    }

    fn error(&self, error: ParquetError) -> StoreError {
        StoreError::parquet(&self.part_path, error, self.written + self.part.bytes_written() as u64)
    }
}

type Output = BufWriter<Summing<File>>;
type Group<'a> = SerializedRowGroupWriter<'a, Output>;
type Part = (PathBuf, SerializedFileWriter<Output>);

fn create_part(
    folder: &Path,
    number: usize,
    schema: &Schema,
    written: u64,
) -> std::result::Result<Part, StoreError> {
    let path = folder.join(format!("part-{number:05}.parquet"));
    let file = File::create(&path).map_err(|error| StoreError::io(&path, error, written))?;
    let output = BufWriter::with_capacity(1 << 18, Summing::new(file));
    let part = SerializedFileWriter::new(output, schema.root.clone(), schema.properties.clone());
    match part {
        Ok(part) => Ok((path, part)),
        Err(error) => Err(StoreError::parquet(&path, error, written)),
    }
}

macro_rules! stored {
    ($($type:ty as $stored:ty,)+) => {
        $(impl Stored for $type {
            type As = $stored;
            fn stored(self) -> $stored { self as $stored }
        })+
    };
}
stored!(u8 as i32, u16 as i32, u32 as i32, i32 as i32, i64 as i64,);

macro_rules! columns {
    ($($name:ident: $type:ty = $plan:ident $order:ident, $null:expr;)+) => {
        /// The columns of a row group, in the order of the schema.
        struct Columns { $($name: Chunk<$type>,)+ }
        impl Columns {
            fn new(schema: &Schema) -> Result<Columns> {
                let mut descriptors = schema.descriptor.columns().iter().cloned();
                let mut next = || {
                    let missing = || ParquetError::General("the schema lacks columns of events".into());
                    descriptors.next().ok_or_else(missing)
                };
                Ok(Columns { $($name: Chunk::new(next()?, Plan::$plan, Order::$order),)+ })
            }
            /// Appends a page to each column.
            fn write(&mut self, events: &EventColumns, work: &mut Workspace) -> Result<()> {
                $(self.$name.write(work, &events.$name, $null)?;)+
                Ok(())
            }
            fn finish(&mut self, work: &mut Workspace, group: &mut Group) -> Result<()> {
                $(self.$name.finish(work, group)?;)+
                Ok(())
            }
        }
    };
}

// The encoding of each column. Columns with repeating values have a dictionary, and columns with growing
// values are written as differences. The last item is the value that means null, if the column has one.
columns! {
    ts: i64 = Delta Signed, Some(UNKNOWN);
    end_ts: i64 = Delta Signed, Some(UNKNOWN);
    dur: i64 = Few Signed, Some(UNKNOWN);
    sys_cpu: i64 = Delta Signed, Some(UNKNOWN);
    call: i32 = Ids Unsigned, None;
    errno: i32 = Ids Unsigned, Some(u16::MAX);
    result: i64 = Many Signed, Some(UNKNOWN);
    utid: i32 = Ids Unsigned, None;
    file: i32 = Ids Unsigned, Some(NONE);
    other_file: i32 = Ids Unsigned, Some(NONE);
    side: i32 = Ids Unsigned, None;
    requested: i64 = Few Signed, Some(UNKNOWN);
    offset: i64 = Delta Signed, Some(UNKNOWN);
    bytes: i64 = Few Signed, Some(UNKNOWN);
    direction: i32 = Ids Unsigned, None;
    fd: i32 = Few Signed, Some(NO_FD);
    handle: i32 = Delta Unsigned, Some(NONE);
    flags: i32 = Few Unsigned, Some(u32::MAX);
    pattern: i32 = Ids Unsigned, None;
    gap: i64 = Few Signed, Some(UNKNOWN);
    own_read: i64 = Few Signed, Some(UNKNOWN);
    any_read: i64 = Few Signed, Some(UNKNOWN);
    own_written: i64 = Few Signed, Some(UNKNOWN);
    any_written: i64 = Few Signed, Some(UNKNOWN);
    interface_call: i32 = Delta Unsigned, Some(NONE);
    site: i32 = Ids Unsigned, Some(NONE);
    stack: i32 = Ids Unsigned, Some(NONE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    fn page(first: i64) -> EventColumns {
        let rows = PAGE_ROWS;
        let narrow = vec![0; rows];
        let (ids, wide) = (vec![NONE; rows], vec![UNKNOWN; rows]);
        EventColumns {
            ts: (first..).take(rows).collect(),
            end_ts: wide.clone(),
            dur: vec![5; rows],
            sys_cpu: wide.clone(),
            call: vec![1; rows],
            errno: vec![u16::MAX; rows],
            result: wide.clone(),
            utid: vec![0; rows],
            file: ids.clone(),
            other_file: ids.clone(),
            side: narrow.clone(),
            requested: wide.clone(),
            offset: wide.clone(),
            bytes: wide.clone(),
            direction: narrow.clone(),
            fd: vec![NO_FD; rows],
            handle: ids.clone(),
            interface_call: ids.clone(),
            flags: ids.clone(),
            pattern: narrow,
            gap: wide.clone(),
            own_read: wide.clone(),
            any_read: wide.clone(),
            own_written: wide.clone(),
            any_written: wide,
            site: ids.clone(),
            stack: ids,
        }
    }

    #[test]
    fn many_row_groups_go_into_several_parts() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let folder = std::env::temp_dir().join(format!("iodock-store-parts-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder)?;
        let mut writer = EventWriter::create(&folder, Limits { group_rows: 1, groups_per_part: 2 })?;
        for index in 0..5 {
            writer.write(&mut page(index * PAGE_ROWS as i64))?;
        }
        let totals = writer.finish()?;
        let last = 5 * PAGE_ROWS as i64 - 1 + 5;
        assert_eq!((totals.rows, totals.first, totals.last), (5 * PAGE_ROWS as u64, Some(0), Some(last)));
        for (part, groups) in [(0, 2), (1, 2), (2, 1)] {
            let file = File::open(folder.join("events").join(format!("part-{part:05}.parquet")))?;
            assert_eq!(SerializedFileReader::new(file)?.metadata().num_row_groups(), groups);
        }
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }
}
