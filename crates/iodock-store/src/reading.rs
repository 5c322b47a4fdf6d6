//! Reads the tables of a store row by row, and events by columns. Merging stores uses this.

use crate::error::StoreError;
use crate::table::Cell;
use iodock_event::{EventColumns, NONE, NO_FD, UNKNOWN};
use parquet::column::reader::{get_typed_column_reader, ColumnReaderImpl};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, StoreError>;

fn damaged(path: &Path, error: &ParquetError) -> StoreError {
    StoreError::Damaged { path: path.into(), what: format!("can't be read: {error}") }
}

fn open(path: &Path) -> Result<SerializedFileReader<File>> {
    let file = File::open(path).map_err(|error| StoreError::io(path, error, 0))?;
    SerializedFileReader::new(file).map_err(|error| damaged(path, &error))
}

/// Returns the number of rows and the names of the columns of one file, from its footer.
pub fn shape(path: &Path) -> Result<(i64, Vec<String>)> {
    let reader = open(path)?;
    let metadata = reader.metadata().file_metadata();
    let columns = metadata.schema_descr().root_schema().get_fields();
    Ok((metadata.num_rows(), columns.iter().map(|column| column.name().to_string()).collect()))
}

/// One row of a table.
#[derive(Clone, Debug)]
pub struct Record(Row);

impl Record {
    fn field(&self, column: &str) -> Option<&Field> {
        self.0.get_column_iter().find(|(name, _)| *name == column).map(|(_, field)| field)
    }

    pub fn text(&self, column: &str) -> Option<&str> {
        match self.field(column)? {
            Field::Str(text) => Some(text),
            _ => None,
        }
    }

    pub fn bytes(&self, column: &str) -> Option<&[u8]> {
        match self.field(column)? {
            Field::Bytes(bytes) => Some(bytes.data()),
            Field::Str(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// Returns a number, signed or unsigned, of any width.
    pub fn number(&self, column: &str) -> Option<i64> {
        number_of(self.field(column)?)
    }

    pub fn id(&self, column: &str) -> Option<u32> {
        self.number(column).and_then(|id| u32::try_from(id).ok())
    }

    pub fn narrow(&self, column: &str) -> Option<i32> {
        self.number(column).and_then(|number| i32::try_from(number).ok())
    }

    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.field(column)? {
            Field::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn list(&self, column: &str) -> Vec<&str> {
        let Some(Field::ListInternal(list)) = self.field(column) else { return Vec::new() };
        let texts = list.elements().iter().map(|element| match element {
            Field::Str(text) => text.as_str(),
            _ => "",
        });
        texts.collect()
    }

    /// Returns the elements of a list column.
    pub(crate) fn texts(&self, column: &str) -> Option<Vec<Cow<'_, str>>> {
        let is_list = matches!(self.field(column)?, Field::ListInternal(_));
        is_list.then(|| self.list(column).into_iter().map(Cow::Borrowed).collect())
    }

    /// Returns the cell as it was written, unless it is a list. If an older store lacks the column, the cell
    /// is null.
    pub(crate) fn cell(&self, column: &str) -> Cell<'_> {
        match self.field(column) {
            None => Cell::Null,
            Some(Field::Bool(flag)) => Cell::Bool(*flag),
            Some(Field::Long(number)) => Cell::Wide(*number),
            Some(Field::Double(number)) => Cell::Real(*number),
            Some(Field::Str(text)) => Cell::text(text),
            Some(Field::Bytes(bytes)) => Cell::Bytes(bytes.data()),
            // Parquet keeps the bits of unsigned numbers, so the conversion to a signed number keeps the
            // value.
            Some(field) => number_of(field).map_or(Cell::Null, |number| Cell::Narrow(number as i32)),
        }
    }
}

fn number_of(field: &Field) -> Option<i64> {
    Some(match field {
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => *number,
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        _ => return None,
    })
}

/// The rows of all files of one table, in order.
pub struct Records {
    files: VecDeque<PathBuf>,
    rows: Option<(PathBuf, RowIter<'static>)>,
}

impl Records {
    /// Makes a reader. `files` may be empty if the store lacks the table.
    pub fn open(files: Vec<PathBuf>) -> Records {
        Records { files: files.into(), rows: None }
    }

    /// Returns the next row; `None` at the end.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn next_row(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some((path, rows)) = &mut self.rows {
                match rows.next() {
                    Some(row) => {
                        return row.map(|row| Some(Record(row))).map_err(|error| damaged(path, &error))
                    }
                    None => self.rows = None,
                }
            }
            let Some(path) = self.files.pop_front() else { return Ok(None) };
            let rows = RowIter::from_file_into(Box::new(open(&path)?));
            self.rows = Some((path, rows));
        }
    }
}

/// A reader of the events of a store, in their order.
pub struct EventReader {
    files: VecDeque<PathBuf>,
    /// The current file, and its row groups that are not read yet.
    file: Option<(PathBuf, SerializedFileReader<File>, std::ops::Range<usize>)>,
    group: Option<(Columns, usize)>,
}

impl EventReader {
    pub fn open(files: Vec<PathBuf>) -> EventReader {
        EventReader { files: files.into(), file: None, group: None }
    }

    /// Appends at most `rows` rows to `events`. Returns false at the end.
    ///
    /// # Errors
    /// A file cannot be read, or its columns are not those of events.
    pub fn read(&mut self, rows: usize, events: &mut EventColumns) -> Result<bool> {
        self.read_columns(rows, events, Columns::open, Columns::read)
    }

    /// Appends rows like [`EventReader::read`], but reads only the column `handle` and leaves the others
    /// empty.
    ///
    /// # Errors
    /// A file cannot be read, or its columns are not those of events.
    pub fn read_handles(&mut self, rows: usize, events: &mut EventColumns) -> Result<bool> {
        self.read_columns(rows, events, Columns::open_handles, Columns::read_handles)
    }

    fn read_columns(
        &mut self,
        rows: usize,
        events: &mut EventColumns,
        opened: fn(&dyn RowGroupReader) -> parquet::errors::Result<Columns>,
        read: fn(&mut Columns, usize, &mut EventColumns) -> parquet::errors::Result<()>,
    ) -> Result<bool> {
        loop {
            if let (Some((path, ..)), Some((columns, left))) = (&self.file, &mut self.group) {
                if *left > 0 {
                    let taken = rows.min(*left);
                    read(columns, taken, events).map_err(|error| damaged(path, &error))?;
                    *left -= taken;
                    return Ok(true);
                }
            }
            self.group = None;
            if let Some((path, reader, groups)) = &mut self.file {
                if let Some(next) = groups.next() {
                    let open = || {
                        let group = reader.get_row_group(next)?;
                        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
                        Ok((opened(group.as_ref())?, rows))
                    };
                    self.group = Some(open().map_err(|error| damaged(path, &error))?);
                    continue;
                }
            }
            let Some(path) = self.files.pop_front() else { return Ok(false) };
            let reader = open(&path)?;
            let groups = 0..reader.num_row_groups();
            self.file = Some((path, reader, groups));
        }
    }
}

impl Columns {
    fn open_handles(group: &dyn RowGroupReader) -> parquet::errors::Result<Columns> {
        Ok(Columns { handle: Typed::open(group, "handle_id", is_narrow)?, ..Columns::default() })
    }

    fn read_handles(&mut self, rows: usize, into: &mut EventColumns) -> parquet::errors::Result<()> {
        match &mut self.handle {
            Some(column) => column.read(rows, &mut into.handle, NONE, |value| value as u32),
            None => Ok(()),
        }
    }
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    nullable: bool,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Typed<T>
where
    T::T: Copy,
{
    fn open(
        group: &dyn RowGroupReader,
        name: &str,
        matches: fn(parquet::basic::Type) -> bool,
    ) -> parquet::errors::Result<Option<Typed<T>>> {
        let columns = group.metadata().columns();
        let Some(index) = columns.iter().position(|column| column.column_path().string() == name) else {
            return Ok(None);
        };
        let descriptor = columns[index].column_descr();
        if !matches(descriptor.physical_type())
            || descriptor.max_rep_level() > 0
            || descriptor.max_def_level() > 1
        {
            return Err(ParquetError::General(format!("column {name} is of another type")));
        }
        let nullable = descriptor.max_def_level() == 1;
        let reader = get_typed_column_reader(group.get_column_reader(index)?);
        Ok(Some(Typed { reader, nullable, values: Vec::new(), levels: Vec::new() }))
    }

    fn read<V: Copy>(
        &mut self,
        rows: usize,
        into: &mut Vec<V>,
        null: V,
        converted: impl Fn(T::T) -> V,
    ) -> parquet::errors::Result<()> {
        self.values.clear();
        self.levels.clear();
        let levels = self.nullable.then_some(&mut self.levels);
        let (found, ..) = self.reader.read_records(rows, levels, None, &mut self.values)?;
        if found != rows {
            return Err(ParquetError::General("a column ends before the others".into()));
        }
        let mut values = self.values.iter().map(|&value| converted(value));
        if !self.nullable || self.values.len() == rows {
            into.extend(values);
        } else {
            into.extend(self.levels.iter().map(|&level| match level {
                0 => null,
                _ => values.next().unwrap_or(null),
            }));
        }
        Ok(())
    }
}

fn is_narrow(physical: parquet::basic::Type) -> bool {
    physical == parquet::basic::Type::INT32
}

fn is_wide(physical: parquet::basic::Type) -> bool {
    physical == parquet::basic::Type::INT64
}

macro_rules! columns {
    ($($name:ident $column:literal: $type:ty = $parquet:ident $matches:ident, $null:expr;)+) => {
        /// The columns of one row group. A column that an older store lacks is null.
        #[derive(Default)]
        struct Columns { $($name: Option<Typed<$parquet>>,)+ }
        impl Columns {
            fn open(group: &dyn RowGroupReader) -> parquet::errors::Result<Columns> {
                Ok(Columns { $($name: Typed::open(group, $column, $matches)?,)+ })
            }
            fn read(&mut self, rows: usize, into: &mut EventColumns) -> parquet::errors::Result<()> {
                $(match &mut self.$name {
                    Some(column) => column.read(rows, &mut into.$name, $null, |value| value as $type)?,
                    None => into.$name.extend(std::iter::repeat_n($null, rows)),
                })+
                Ok(())
            }
        }
    };
}

columns! {
    ts "ts": i64 = Int64Type is_wide, UNKNOWN;
    end_ts "end_ts": i64 = Int64Type is_wide, UNKNOWN;
    dur "dur": i64 = Int64Type is_wide, UNKNOWN;
    sys_cpu "sys_cpu_ns": i64 = Int64Type is_wide, UNKNOWN;
    call "call_id": u16 = Int32Type is_narrow, 0;
    errno "errno_id": u16 = Int32Type is_narrow, u16::MAX;
    result "result": i64 = Int64Type is_wide, UNKNOWN;
    utid "utid": u32 = Int32Type is_narrow, 0;
    file "file_id": u32 = Int32Type is_narrow, NONE;
    other_file "other_file_id": u32 = Int32Type is_narrow, NONE;
    side "side": u8 = Int32Type is_narrow, 0;
    requested "requested_bytes": i64 = Int64Type is_wide, UNKNOWN;
    offset "offset_bytes": i64 = Int64Type is_wide, UNKNOWN;
    bytes "bytes": i64 = Int64Type is_wide, UNKNOWN;
    direction "direction": u8 = Int32Type is_narrow, 0;
    fd "fd": i32 = Int32Type is_narrow, NO_FD;
    handle "handle_id": u32 = Int32Type is_narrow, NONE;
    flags "flags": u32 = Int32Type is_narrow, u32::MAX;
    pattern "pattern": u8 = Int32Type is_narrow, 0;
    gap "gap_bytes": i64 = Int64Type is_wide, UNKNOWN;
    own_read "own_read_bytes": i64 = Int64Type is_wide, UNKNOWN;
    any_read "any_read_bytes": i64 = Int64Type is_wide, UNKNOWN;
    own_written "own_written_bytes": i64 = Int64Type is_wide, UNKNOWN;
    any_written "any_written_bytes": i64 = Int64Type is_wide, UNKNOWN;
    interface_call "interface_call_id": u32 = Int32Type is_narrow, NONE;
    site "site_id": u32 = Int32Type is_narrow, NONE;
    stack "stack_id": u32 = Int32Type is_narrow, NONE;
}
