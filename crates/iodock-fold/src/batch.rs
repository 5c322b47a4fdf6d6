//! Reads columns of a row group, some thousand rows at a time.

use iodock_event::UNKNOWN;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::column::reader::{get_typed_column_reader, ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::ColumnDescriptor;

/// Number of rows in a batch, few enough that all columns of a batch stay in the processor's cache.
pub const BATCH_ROWS: usize = 1 << 12;

/// Limit for the rows of a row group, because `folding` counts rows in 32 bits. iodock writes row groups of a
/// million rows.
pub const MOST_ROWS: usize = 1 << 29;

/// A column that a fold needs, and the values that it has in a store of iodock.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An unsigned number of 32 bits in every row, less than the given limit.
    Id(i64),
    /// A number as with `Id`, or null.
    OptionalId(i64),
    /// A time, a duration or a number of bytes that is not negative, or null.
    Amount,
    /// Any number, or null.
    Number,
}

impl Kind {
    fn is_id(self) -> bool {
        matches!(self, Kind::Id(_) | Kind::OptionalId(_))
    }

    fn is_required(self) -> bool {
        matches!(self, Kind::Id(_))
    }

    /// Returns whether all `values` that are not null are valid for this kind.
    fn holds(self, values: &[i64]) -> bool {
        match self {
            Kind::Id(end) | Kind::OptionalId(end) => values.iter().all(|&value| value < end),
            Kind::Amount => values.iter().all(|&value| value >= 0),
            Kind::Number => values.iter().all(|&value| value != UNKNOWN),
        }
    }
}

/// Rows of the columns that a fold needs, in the order of its columns. Ids and amounts are both `i64`, where
/// [`UNKNOWN`] means null.
pub type Batch<'a> = &'a [Vec<i64>];

/// Reads the columns of one row group in parallel.
pub struct GroupReader {
    columns: Vec<Source>,
    values: Vec<Vec<i64>>,
    rows: usize,
}

impl GroupReader {
    /// Makes a reader of the `wanted` columns. A nullable column that the file lacks reads as null, because
    /// an older store may lack it.
    ///
    /// # Errors
    /// The file cannot be read, or is not in iodock's format.
    pub fn new(group: &dyn RowGroupReader, wanted: &[Wanted]) -> Result<GroupReader> {
        let columns = wanted.iter().map(|wanted| Source::open(group, *wanted)).collect::<Result<_>>()?;
        let rows = usize::try_from(group.metadata().num_rows())
            .ok()
            .filter(|&rows| rows <= MOST_ROWS)
            .ok_or_else(|| foreign("a row group can't have so many rows"))?;
        Ok(GroupReader { columns, values: vec![Vec::with_capacity(BATCH_ROWS); wanted.len()], rows })
    }

    /// Returns the number of rows that are not read yet.
    pub fn left(&self) -> usize {
        self.rows
    }

    /// Returns the next rows; `None` after the last.
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

fn foreign(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// A reader of the values of one column.
enum Source {
    Wide(Typed<Int64Type>),
    Narrow(Typed<Int32Type>),
    Missing,
}

impl Source {
    fn open(group: &dyn RowGroupReader, wanted: Wanted) -> Result<Source> {
        let columns = group.metadata().columns();
        let name = |column: &ColumnChunkMetaData| column.column_path().string();
        // SQL column names are case-insensitive, so this comparison is, too.
        let Some(index) = columns.iter().position(|column| name(column).eq_ignore_ascii_case(wanted.name))
        else {
            return if wanted.kind.is_required() {
                Err(unlike(wanted, "is missing"))
            } else {
                Ok(Source::Missing)
            };
        };
        let descriptor = columns[index].column_descr();
        if descriptor.max_rep_level() > 0 || descriptor.max_def_level() > 1 {
            return Err(unlike(wanted, "is a list"));
        }
        let (is_id, is_unsigned) = (wanted.kind.is_id(), is_unsigned(descriptor));
        let nullable = descriptor.max_def_level() == 1;
        match group.get_column_reader(index)? {
            reader @ ColumnReader::Int64ColumnReader(_) if !is_id && !is_unsigned => {
                Ok(Source::Wide(Typed::new(reader, wanted, nullable)))
            }
            reader @ ColumnReader::Int32ColumnReader(_) if is_id && is_unsigned => {
                Ok(Source::Narrow(Typed::new(reader, wanted, nullable)))
            }
            _ => Err(unlike(wanted, "is of another type")),
        }
    }

    /// Puts the next `rows` rows into `values`.
    fn read(&mut self, rows: usize, values: &mut Vec<i64>) -> Result<()> {
        match self {
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

fn unlike(wanted: Wanted, how: &str) -> ParquetError {
    foreign(format!("column {} {how}", wanted.name))
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(kind)), _) => !kind.is_signed,
        (
            _,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
        ) => true,
        _ => false,
    }
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    wanted: Wanted,
    nullable: bool,
    /// The values that are not null, without gaps.
    dense: Vec<T::T>,
    widened: Vec<i64>,
    levels: Vec<i16>,
}

impl<T: DataType> Typed<T>
where
    T::T: Copy,
{
    fn new(reader: ColumnReader, wanted: Wanted, nullable: bool) -> Typed<T> {
        let (dense, widened, levels) = Default::default();
        Typed { reader: get_typed_column_reader(reader), wanted, nullable, dense, widened, levels }
    }

    fn read(&mut self, rows: usize, values: &mut Vec<i64>, widened: impl Fn(T::T) -> i64) -> Result<()> {
        self.dense.clear();
        self.levels.clear();
        let levels = self.nullable.then_some(&mut self.levels);
        let (found, ..) = self.reader.read_records(rows, levels, None, &mut self.dense)?;
        if found != rows {
            return Err(unlike(self.wanted, "ends before the others"));
        }
        let whole = self.dense.len() == rows;
        let there = if whole { &mut *values } else { &mut self.widened };
        there.clear();
        there.extend(self.dense.iter().map(|&value| widened(value)));
        if !self.wanted.kind.holds(there) {
            return Err(unlike(self.wanted, "holds what it can't"));
        }
        if whole {
            return Ok(());
        }
        if self.wanted.kind.is_required() {
            return Err(unlike(self.wanted, "holds nulls"));
        }
        // A branch on nulls would often be mispredicted, so this loop has none.
        let mut next = 0;
        values.clear();
        values.extend(self.levels.iter().map(|&level| {
            let value = self.widened.get(next).copied().unwrap_or(UNKNOWN);
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
