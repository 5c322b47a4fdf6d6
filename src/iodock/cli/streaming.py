"""Writes answers that have one row per event. Rows are written batch by batch, because they may not fit into
memory."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from iodock.cli.output import destination, write_table
from iodock.cli.spoken import language
from iodock.program.analyses.base import Stream
from iodock.shared.answer import Answer
from iodock.shared.language import N_
from iodock.shared.tables import csv, json, parquet, table


def write_stream(stream: Stream, form: str, output: str | None, is_wide: bool = False) -> Answer:
    """Writes all rows of a stream. A table has only the first ones. Returns the head of the answer, which
    contains its notes."""
    if form == "table":
        _first_rows(stream, output, is_wide)
        return stream.head
    with destination(output) as out:
        if form == "csv":
            csv.write_batches(stream.head.table.schema, stream.batches(), out)
        elif form == "json":
            json.write_texts(stream.head, stream.json(), out)
        else:
            parquet.write_batches(stream.head, stream.head.table.schema, stream.batches(), out)
    return stream.head


def _first_rows(stream: Stream, output: str | None, is_wide: bool) -> None:
    batches: list[pa.RecordBatch] = []
    more = False
    for batch in stream.batches():
        batches.append(batch)
        more = sum(one.num_rows for one in batches) > table.MOST_ROWS
        if more:
            break
    rows = pa.Table.from_batches(batches, schema=stream.head.table.schema)
    first = dataclasses.replace(stream.head, table=rows.slice(0, table.MOST_ROWS))
    all_rows = N_("the first {n} rows; --format csv has all")
    said = language().gettext(all_rows, n=f"{table.MOST_ROWS:,}") + "\n" if more else ""
    write_table(first, output, is_wide, more=said)
