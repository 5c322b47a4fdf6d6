"""Writes an answer as CSV for spreadsheets and scripts. It has a header, and numbers without units. Null
becomes an empty field. Texts that look like formulas are protected (see cells.py)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv

from iodock.shared.answer import Answer
from iodock.shared.tables.cells import guarded_column, guarded_row
from iodock.shared.tables.rows import with_other


def write(answer: Answer, out: BinaryIO) -> None:
    """Writes the whole answer. In a top list, the last row `other` has the sums of the rows that were left
    out."""
    table = with_other(answer)
    write_batches(table.schema, table.to_batches(), out)


def write_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """Writes the header and all rows, one batch after the other."""
    flat = pa.schema([pa.field(field.name, _flat_type(field.type)) for field in schema])
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(guarded_row(flat.names))
    out.write(header.getvalue().encode("utf-8", "backslashreplace"))
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    with pyarrow.csv.CSVWriter(out, flat, write_options=options) as writer:
        for batch in batches:
            columns = [guarded_column(_flat(column)) for column in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=flat))


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _flat_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.string() if _is_nested(kind) else kind


def _flat(column: pa.Array) -> pa.Array:
    """Converts maps and lists to JSON texts. Conversion is slow, but only answers with few rows have such
    columns."""
    if not _is_nested(column.type):
        return column
    is_map = pa.types.is_map(column.type)
    texts = [
        None if value is None else json.dumps(dict(value) if is_map else value, ensure_ascii=False)
        for value in column.to_pylist()
    ]
    return pa.array(texts, pa.string())
