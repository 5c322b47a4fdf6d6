//! Writes a table row by row. All tables but events use this; for events it would be too slow.

use crate::checksum::Summing;
use crate::column::{ColumnChunk, RowGroup};
use crate::error::StoreError;
use crate::schema::Schema;
use bytes::Bytes;
use parquet::basic::Type;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedFileWriter;
use std::borrow::Cow;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Number of rows that are buffered before they are encoded, and number of rows of a row group.
const BUFFER_ROWS: usize = 1 << 14;
const GROUP_ROWS: usize = 1 << 18;
/// Number of rows below which a row group is not compressed.
const FEW_ROWS: usize = 1 << 10;

/// One field of a row.
pub enum Cell<'a> {
    Null,
    /// A number of 32 bits. It may be unsigned, because Parquet keeps the bits.
    Narrow(i32),
    Wide(i64),
    Real(f64),
    Bool(bool),
    Bytes(&'a [u8]),
    List(&'a [Cow<'a, str>]),
}

impl<'a> Cell<'a> {
    pub fn text(text: &'a str) -> Cell<'a> {
        Cell::Bytes(text.as_bytes())
    }
    pub fn optional(text: Option<&'a str>) -> Cell<'a> {
        text.map_or(Cell::Null, Cell::text)
    }
    pub fn id(id: u32) -> Cell<'a> {
        Cell::Narrow(id as i32)
    }
    pub fn optional_number(number: Option<i32>) -> Cell<'a> {
        number.map_or(Cell::Null, Cell::Narrow)
    }
    pub fn wide(number: Option<i64>) -> Cell<'a> {
        number.map_or(Cell::Null, Cell::Wide)
    }
    pub fn real(number: Option<f64>) -> Cell<'a> {
        number.map_or(Cell::Null, Cell::Real)
    }
    /// Makes a cell of a number, where [`iodock_event::UNKNOWN`] is null.
    pub fn quantity(value: i64) -> Cell<'a> {
        if value == iodock_event::UNKNOWN {
            Cell::Null
        } else {
            Cell::Wide(value)
        }
    }
}

enum Values {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    Real(Vec<f64>),
    Bool(Vec<bool>),
    Bytes(Texts),
}

/// Concatenated texts, which take one memory block instead of one for each text.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Returns the texts for the encoder, and leaves none.
    fn take(&mut self) -> Vec<ByteArray> {
        let room = self.bytes.len();
        let bytes = Bytes::from(std::mem::replace(&mut self.bytes, Vec::with_capacity(room)));
        let mut start = 0;
        let texts =
            self.ends.drain(..).map(|end| bytes.slice(std::mem::replace(&mut start, end)..end).into());
        texts.collect()
    }
}

struct Column {
    values: Values,
    levels: Vec<i16>,
    repeats: Vec<i16>,
    nullable: bool,
    list: bool,
}

impl Column {
    fn new(physical: Type, max_level: i16, max_repeat: i16) -> Column {
        let values = match physical {
            Type::INT32 => Values::Narrow(Vec::new()),
            Type::INT64 => Values::Wide(Vec::new()),
            Type::DOUBLE => Values::Real(Vec::new()),
            Type::BOOLEAN => Values::Bool(Vec::new()),
            _ => Values::Bytes(Texts::default()),
        };
        Column {
            values,
            levels: Vec::new(),
            repeats: Vec::new(),
            nullable: max_level > 0,
            list: max_repeat > 0,
        }
    }

    fn push(&mut self, cell: Cell) -> Result<()> {
        match (&mut self.values, cell) {
            (_, Cell::Null) if self.nullable && !self.list => {
                self.levels.push(0);
                return Ok(());
            }
            (Values::Narrow(values), Cell::Narrow(value)) => values.push(value),
            (Values::Wide(values), Cell::Wide(value)) => values.push(value),
            (Values::Real(values), Cell::Real(value)) => values.push(value),
            (Values::Bool(values), Cell::Bool(value)) => values.push(value),
            (Values::Bytes(values), Cell::Bytes(value)) => values.push(value),
            (Values::Bytes(values), Cell::List(list)) if self.list => {
                // Parquet represents an empty list by one level without a value.
                if list.is_empty() {
                    self.levels.push(0);
                    self.repeats.push(0);
                }
                for (index, text) in list.iter().enumerate() {
                    values.push(text.as_bytes());
                    self.levels.push(1);
                    self.repeats.push(i16::from(index > 0));
                }
                return Ok(());
            }
            _ => return Err(ParquetError::General("a cell does not fit its column".into())),
        }
        if self.nullable {
            self.levels.push(1);
        }
        Ok(())
    }

    fn write(&mut self, chunk: &mut ColumnChunk) -> Result<()> {
        let levels = self.nullable.then_some(self.levels.as_slice());
        let repeats = self.list.then_some(self.repeats.as_slice());
        match &mut self.values {
            Values::Narrow(values) => {
                chunk.write::<Int32Type>(values, levels, repeats).map(|()| values.clear())
            }
            Values::Wide(values) => {
                chunk.write::<Int64Type>(values, levels, repeats).map(|()| values.clear())
            }
            Values::Real(values) => {
                chunk.write::<DoubleType>(values, levels, repeats).map(|()| values.clear())
            }
            Values::Bool(values) => chunk.write::<BoolType>(values, levels, repeats).map(|()| values.clear()),
            Values::Bytes(values) => chunk.write::<ByteArrayType>(&values.take(), levels, repeats),
        }?;
        self.levels.clear();
        self.repeats.clear();
        Ok(())
    }
}

/// A table's file that has been written.
#[derive(Clone, Debug)]
pub struct Written {
    pub path: PathBuf,
    pub rows: u64,
    pub checksum: String,
}

/// A Parquet file that is written row by row.
pub struct TableWriter {
    path: PathBuf,
    schema: Schema,
    file: SerializedFileWriter<BufWriter<Summing<File>>>,
    columns: Vec<Column>,
    buffered: usize,
    /// The current row group; `None` until its first row.
    group: Option<RowGroup>,
    group_rows: usize,
    rows: u64,
}

impl TableWriter {
    pub fn create(path: &Path, message: &str) -> std::result::Result<TableWriter, StoreError> {
        let file = File::create(path).map_err(|error| StoreError::io(path, error, 0))?;
        let open = || {
            let schema = Schema::of_table(message)?;
            let output = BufWriter::new(Summing::new(file));
            let file = SerializedFileWriter::new(output, schema.root.clone(), schema.properties.clone())?;
            Ok((schema, file))
        };
        let (schema, file) = open().map_err(|error| StoreError::parquet(path, error, 0))?;
        let columns = schema.descriptor.columns().iter();
        let columns = columns.map(|column| {
            Column::new(column.physical_type(), column.max_def_level(), column.max_rep_level())
        });
        Ok(TableWriter {
            path: path.into(),
            columns: columns.collect(),
            buffered: 0,
            group: None,
            group_rows: 0,
            schema,
            file,
            rows: 0,
        })
    }

    /// Appends a row, which must have a cell for each column of the schema.
    pub fn row<'a, R>(&mut self, cells: R) -> std::result::Result<(), StoreError>
    where
        R: IntoIterator<Item = Cell<'a>, IntoIter: ExactSizeIterator>,
    {
        self.try_row(cells.into_iter()).map_err(|error| self.error(error))
    }

    /// Writes the remaining rows, and closes the file.
    pub fn finish(mut self) -> std::result::Result<Written, StoreError> {
        let finished =
            self.encode().and_then(|()| self.close_group()).and_then(|()| self.file.finish().map(drop));
        finished.map_err(|error| self.error(error))?;
        let checksum = self.file.inner().get_ref().checksum();
        Ok(Written { path: self.path, rows: self.rows, checksum })
    }

    fn try_row<'a>(&mut self, cells: impl ExactSizeIterator<Item = Cell<'a>>) -> Result<()> {
        if cells.len() != self.columns.len() {
            return Err(ParquetError::General("a row has another number of cells than columns".into()));
        }
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell)?;
        }
        self.rows += 1;
        self.buffered += 1;
        if self.buffered == BUFFER_ROWS {
            self.encode()?;
        }
        if self.group_rows >= GROUP_ROWS {
            self.close_group()?;
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<()> {
        if self.buffered == 0 {
            return Ok(());
        }
        let compressed = self.buffered >= FEW_ROWS;
        let group = self.group.get_or_insert_with(|| RowGroup::new(&self.schema, compressed));
        for (column, chunk) in self.columns.iter_mut().zip(&mut group.columns) {
            column.write(chunk)?;
        }
        self.group_rows += self.buffered;
        self.buffered = 0;
        Ok(())
    }

    fn close_group(&mut self) -> Result<()> {
        self.group_rows = 0;
        self.group.take().map_or(Ok(()), |group| group.write_to(&mut self.file))
    }

    fn error(&self, error: ParquetError) -> StoreError {
        StoreError::parquet(&self.path, error, self.file.bytes_written() as u64)
    }
}
