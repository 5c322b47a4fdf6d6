"""Writes an answer as JSON: one object with the columns, rows, notes and losses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa

from iodock.shared.answer import Answer
from iodock.shared.tables.rows import with_other


def write(answer: Answer, out: BinaryIO) -> None:
    """Writes the whole answer. In a top list, the last row `other` has the sums of the rows that were left
    out."""
    head, tail = _around(answer)
    out.write(head)
    table = with_other(answer)
    names = table.column_names
    kinds = {name: table.schema.field(name).type for name in names}
    before = "\n"
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            values = {name: _plain(row[name], kinds[name]) for name in names}
            out.write((before + _text(values)).encode())
            before = ",\n"
    out.write(b"\n" + tail)


def write_texts(answer: Answer, texts: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """Writes rows that the SQL engine has already formatted as JSON. They are in a column of text, each with
    a comma and a line break in front. The buffer of the column is written directly, because converting each
    row to a Python object would be slow."""
    head, tail = _around(answer)
    out.write(head)
    skip = 1
    for batch in texts:
        if batch.num_rows:
            out.write(_characters(batch.column(0))[skip:])
            skip = 0
    out.write(b"\n" + tail)


def _around(answer: Answer) -> tuple[bytes, bytes]:
    """Returns the JSON text before and after the rows."""
    before = {
        "analysis": answer.analysis,
        "clock": answer.clock,
        "columns": [
            {"name": column.name, "type": column.type, "unit": column.unit, "doc": column.doc}
            for column in answer.columns
        ],
    }
    after: dict[str, Any] = {"source": dict(answer.source)}
    if answer.totals is not None:
        totals = answer.totals
        after["totals"] = {
            "total": dict(totals.total),
            "other": None if totals.other is None else dict(totals.other),
            "shown": totals.shown,
            "of": totals.of,
            "noun": totals.noun,
            "text": totals.sentence,
        }
    after["losses"] = [{"name": loss.name, "count": loss.count, "cure": loss.cure} for loss in answer.losses]
    after["notes"] = list(answer.notes)
    after["options"] = dict(answer.options)
    head = _text(before)[:-1] + ', "rows": ['
    return head.encode(), ("], " + _text(after)[1:] + "\n").encode()


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_other)


def _other(value: object) -> object:
    """Converts values that Python's JSON module does not support: decimals become numbers, all others become
    text."""
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def _characters(texts: pa.Array) -> memoryview:
    width = pa.int64() if pa.types.is_large_string(texts.type) else pa.int32()
    _, offsets, data = texts.buffers()
    bounds = pa.Array.from_buffers(width, texts.offset + len(texts) + 1, [None, offsets])
    return memoryview(data)[bounds[texts.offset].as_py() : bounds[texts.offset + len(texts)].as_py()]


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Converts a value to one that JSON supports. Maps become objects. Infinity and NaN become null."""
    if pa.types.is_map(kind):
        return dict(value or ())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value
