//! A row group under construction. Each column's pages are encoded as rows arrive and kept in this compact
//! form until the group is full. (For events, `chunk` contains faster code.)

use crate::schema::Schema;
use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{get_column_writer, get_typed_column_writer_mut, ColumnWriter};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of encoded pages, shared between the column's writer and the row group.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<u8>>>);

impl Pages {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Pages {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A page writer that owns its output. The Parquet crate's page writer borrows its output, so a new one is
/// made for each page.
struct PagesWriter(TrackedWrite<Pages>);

impl PageWriter for PagesWriter {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }
    fn close(&mut self) -> Result<()> {
        self.0.flush().map_err(ParquetError::from)
    }
}

/// One column of a row group.
pub struct ColumnChunk {
    writer: ColumnWriter<'static>,
    pages: Pages,
}

impl ColumnChunk {
    /// Appends values, and a definition level for each row if the column may be null. `T` must be the
    /// column's type.
    pub fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        levels: Option<&[i16]>,
        repeats: Option<&[i16]>,
    ) -> Result<()> {
        let writer = get_typed_column_writer_mut::<T>(&mut self.writer);
        writer.write_batch(values, levels, repeats).map(|_| ())
    }
}

/// All columns of a row group.
pub struct RowGroup {
    pub columns: Vec<ColumnChunk>,
}

impl RowGroup {
    pub fn new(schema: &Schema, compressed: bool) -> RowGroup {
        let properties = if compressed { &schema.properties } else { &schema.uncompressed };
        let chunk = |descriptor: &parquet::schema::types::ColumnDescPtr| {
            let pages = Pages::default();
            let writer = PagesWriter(TrackedWrite::new(pages.clone()));
            let writer = get_column_writer(descriptor.clone(), properties.clone(), Box::new(writer));
            ColumnChunk { writer, pages }
        };
        RowGroup { columns: schema.descriptor.columns().iter().map(chunk).collect() }
    }

    /// Appends the row group to a file.
    pub fn write_to<W: Write + Send>(self, file: &mut SerializedFileWriter<W>) -> Result<()> {
        let mut group = file.next_row_group()?;
        for column in self.columns {
            let closed = column.writer.close()?;
            group.append_column(&Bytes::from(column.pages.take()), closed)?;
        }
        group.close().map(|_| ())
    }
}
