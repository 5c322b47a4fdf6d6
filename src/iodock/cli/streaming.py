"""Answers with one row per event, written batch by batch."""

from __future__ import annotations

import dataclasses
import sys
from typing import BinaryIO

import pyarrow as pa

from iodock.analyses.base import Stream
from iodock.answer import Answer
from iodock.cli.output import destination
from iodock.views import csv, json, parquet, table


def write_stream(stream: Stream, form: str, output: str | None) -> Answer:
    """Writes all rows (as a table: the first ones) and gives the answer's head."""
    with destination(output) as out:
        if form == "table":
            _first_rows(stream, out, output)
        elif form == "csv":
            csv.write_batches(stream.head.table.schema, stream.batches(), out)
        elif form == "json":
            json.write_texts(stream.head, stream.json(), out)
        else:
            parquet.write_batches(stream.head, stream.head.table.schema, stream.batches(), out)
    return stream.head


def _first_rows(stream: Stream, out: BinaryIO, output: str | None) -> None:
    batches: list[pa.RecordBatch] = []
    more = False
    for batch in stream.batches():
        batches.append(batch)
        more = sum(one.num_rows for one in batches) > table.MOST_ROWS
        if more:
            break
    rows = pa.Table.from_batches(batches, schema=stream.head.table.schema)
    first = dataclasses.replace(stream.head, table=rows.slice(0, table.MOST_ROWS))
    width = table.terminal_width() if output is None else None
    text = table.render(first, width, output is None and sys.stdout.isatty())
    out.write(text.encode("utf-8", "backslashreplace"))
    if more:
        out.write(f"the first {table.MOST_ROWS:,} rows; --format csv has all\n".encode())
