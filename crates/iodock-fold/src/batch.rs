//! Columns of a row group, some thousand rows at a time.

use iodock_event::UNKNOWN;
use parquet::column::reader::{get_typed_column_reader, ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;

/// So few that all columns of them stay in the processor's cache.
pub const BATCH_ROWS: usize = 1 << 12;

/// Of a row group; ours have a million. Rows are counted in 32 bits: see `folding`.
pub const MOST_ROWS: usize = 1 << 29;

/// Rows of the columns that a fold asked for, in its order. Ids and sizes alike are `i64`, [`UNKNOWN`] for null.
pub type Batch<'a> = &'a [Vec<i64>];

/// The columns of one row group, read side by side.
pub struct GroupReader {
    columns: Vec<Source>,
    values: Vec<Vec<i64>>,
    rows: usize,
}

impl GroupReader {
    /// NAMES: a column that the file lacks reads as null, as an older store may.
    pub fn new(group: &dyn RowGroupReader, names: &[&str]) -> Result<GroupReader> {
        let columns = names.iter().map(|name| Source::open(group, name)).collect::<Result<_>>()?;
        let rows = usize::try_from(group.metadata().num_rows())
            .ok()
            .filter(|&rows| rows <= MOST_ROWS)
            .ok_or_else(|| ParquetError::General("a row group can't have so many rows".into()))?;
        Ok(GroupReader { columns, values: vec![Vec::with_capacity(BATCH_ROWS); names.len()], rows })
    }

    /// Rows that are still to come.
    pub fn left(&self) -> usize {
        self.rows
    }

    /// The next rows; `None` behind the last.
    pub fn next(&mut self) -> Result<Option<Batch<'_>>> {
        let rows = self.rows.min(BATCH_ROWS);
        if rows == 0 {
            return Ok(None);
        }
        for (column, values) in self.columns.iter_mut().zip(&mut self.values) {
            column.read(rows, values)?;
        }
        self.rows -= rows;
        Ok(Some(&self.values))
    }
}

/// Where the values of one column come from.
enum Source {
    Wide(Typed<Int64Type>),
    Narrow(Typed<Int32Type>),
    Missing,
}

impl Source {
    fn open(group: &dyn RowGroupReader, name: &str) -> Result<Source> {
        let columns = group.metadata().columns();
        let Some(index) = columns.iter().position(|column| column.column_path().string() == name) else {
            return Ok(Source::Missing);
        };
        let descriptor = columns[index].column_descr();
        if descriptor.max_rep_level() > 0 || descriptor.max_def_level() > 1 {
            return Err(ParquetError::General(format!("column {name} is a list")));
        }
        let nullable = descriptor.max_def_level() == 1;
        match group.get_column_reader(index)? {
            reader @ ColumnReader::Int64ColumnReader(_) => Ok(Source::Wide(Typed::new(reader, nullable))),
            reader @ ColumnReader::Int32ColumnReader(_) => Ok(Source::Narrow(Typed::new(reader, nullable))),
            _ => Err(ParquetError::General(format!("column {name} holds no numbers"))),
        }
    }

    /// Puts the next `rows` rows into `values`.
    fn read(&mut self, rows: usize, values: &mut Vec<i64>) -> Result<()> {
        match self {
            // Not signed: ids, and what is counted in few bits.
            Source::Narrow(typed) => typed.read(rows, values, |value| i64::from(value as u32)),
            Source::Wide(typed) => typed.read(rows, values, |value| value),
            Source::Missing => {
                values.clear();
                values.resize(rows, UNKNOWN);
                Ok(())
            }
        }
    }
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    nullable: bool,
    /// The values that are there, without gaps.
    dense: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Typed<T>
where
    T::T: Copy,
{
    fn new(reader: ColumnReader, nullable: bool) -> Typed<T> {
        Typed { reader: get_typed_column_reader(reader), nullable, dense: Vec::new(), levels: Vec::new() }
    }

    fn read(&mut self, rows: usize, values: &mut Vec<i64>, widened: impl Fn(T::T) -> i64) -> Result<()> {
        self.dense.clear();
        self.levels.clear();
        let levels = self.nullable.then_some(&mut self.levels);
        let (found, ..) = self.reader.read_records(rows, levels, None, &mut self.dense)?;
        if found != rows {
            return Err(ParquetError::General("a column ends before the others".into()));
        }
        values.clear();
        if self.dense.len() == rows {
            values.extend(self.dense.iter().map(|&value| widened(value)));
            return Ok(());
        }
        // Nulls come as they like: who branches on them guesses wrong.
        let mut next = 0;
        values.extend(self.levels.iter().map(|&level| {
            let value = self.dense.get(next).map_or(UNKNOWN, |&value| widened(value));
            next += usize::from(level > 0);
            if level > 0 {
                value
            } else {
                UNKNOWN
            }
        }));
        Ok(())
    }
}
