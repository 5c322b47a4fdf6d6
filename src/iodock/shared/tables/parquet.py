"""Writes an answer as a Parquet file. The file's metadata contains the meaning of its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from iodock.shared.answer import Answer


def write(answer: Answer, out: BinaryIO) -> None:
    """Writes the whole answer to OUT."""
    write_batches(answer, answer.table.schema, answer.table.to_batches(), out)


def write_batches(
    answer: Answer, schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO
) -> None:
    """Writes all rows, one batch after the other."""
    described = schema.with_metadata({"iodock": json.dumps(_meaning(answer), ensure_ascii=False)})
    rows: list[pa.RecordBatch] = []
    with pyarrow.parquet.ParquetWriter(out, described, compression="zstd", compression_level=1) as writer:
        for batch in batches:
            rows.append(batch)
            # Batches are collected until a row group has about a million rows. Many small row groups would
            # make the file larger and slower to read.
            if sum(one.num_rows for one in rows) >= 1_000_000:
                writer.write_table(pa.Table.from_batches(rows).cast(described))
                rows = []
        if rows:
            writer.write_table(pa.Table.from_batches(rows).cast(described))


def _meaning(answer: Answer) -> dict[str, object]:
    return {
        "analysis": answer.analysis,
        "clock": answer.clock,
        "columns": [
            {"name": column.name, "type": column.type, "unit": column.unit, "doc": column.doc}
            for column in answer.columns
        ],
        "losses": [{"name": loss.name, "count": loss.count, "cure": loss.cure} for loss in answer.losses],
        "notes": list(answer.notes),
    }
