"""An answer as JSON: rows and all that must be said beside them, in one object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from iodock.answer import Answer
from iodock.views.rows import with_other


def write(answer: Answer, out: BinaryIO) -> None:
    """The whole answer, with the row 'other' of a top list."""
    table = with_other(answer)
    write_batches(answer, table.to_batches(max_chunksize=65_536), out)


def write_batches(answer: Answer, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """Rows batch by batch, one to a line."""
    head, tail = _around(answer)
    out.write(head)
    first = True
    for batch in batches:
        if batch.num_rows == 0:
            continue
        text = rows_text(batch)
        out.write(b"\n  " if first else b",\n  ")
        out.write(text)
        first = False
    out.write(b"\n" + tail if not first else tail)


def _around(answer: Answer) -> tuple[bytes, bytes]:
    """What stands before and after the rows."""
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
    return json.dumps(value, ensure_ascii=False, default=str)


def rows_text(batch: pa.RecordBatch) -> bytes:
    """The rows as JSON objects with a comma and a line break between them: put together by whole columns, since
    an object for each row would cost too much."""
    parts: list[pa.Array | str] = []
    for at, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts.append(f"{'{' if at == 0 else ', '}{_text(name)}: ")
        parts.append(_column_text(column))
    parts.append("},\n  ")
    joined = pc.binary_join_element_wise(*parts, "")
    # The text buffer of the joined column is the output, but for the last separator.
    text = _characters(joined)
    return text[: -len(b",\n  ")]


def _characters(texts: pa.Array) -> bytes:
    if isinstance(texts, pa.ChunkedArray):
        return b"".join(_characters(chunk) for chunk in texts.chunks)
    whole = pc.cast(texts, pa.large_string())
    offsets, data = whole.buffers()[1:]
    bounds = pa.Array.from_buffers(pa.int64(), len(whole) + 1, [None, offsets], offset=whole.offset)
    return bytes(data[bounds[0].as_py() : bounds[-1].as_py()])


def _column_text(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        texts = pc.cast(column, pa.string())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = _quoted(column)
    elif pa.types.is_floating(kind):
        texts = pa.array([_float(value) for value in column.to_pylist()], pa.string())
    else:
        is_map = pa.types.is_map(kind)
        texts = pa.array([_nested(value, is_map) for value in column.to_pylist()], pa.string())
    return pc.fill_null(texts, "null")


def _float(value: float | None) -> str | None:
    # JSON has no infinity and no NaN; no analysis gives one, but a query may.
    return None if value is None or value != value or abs(value) == float("inf") else repr(value)


def _nested(value: Any, is_map: bool) -> str:
    if value is None:
        return "{}" if is_map else "null"
    return _text(dict(value) if is_map and not isinstance(value, Mapping) else value)


def _quoted(column: pa.Array) -> pa.Array:
    """Strings as JSON; each different one is escaped once."""
    encoded = column.dictionary_encode()
    escaped = [_text(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(escaped, pa.string()).take(encoded.indices)
