"""Returns the rows of an answer for data formats. A top list gets an additional row `other` for the rows that
were left out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from iodock.shared.answer import Answer


def with_other(answer: Answer) -> pa.Table:
    """Returns the table of an answer. If `--top` left rows out, a row with their sums follows. Its first key
    with texts is `other`, and its numeric keys are null."""
    if answer.totals is None or answer.totals.other is None:
        return answer.table
    row = other_row(answer)
    schema = answer.table.schema
    return pa.concat_tables([answer.table, pa.Table.from_pylist([row], schema=schema)])


def other_row(answer: Answer) -> dict[str, Any]:
    """Returns the row `other`. Columns without a sum have the value None."""
    totals = answer.totals
    assert totals is not None and totals.other is not None
    row: dict[str, Any] = dict.fromkeys(answer.table.column_names)
    for name, value in totals.other.items():
        if name in row:
            row[name] = list(value.items()) if isinstance(value, dict) else value
    texts = [key for key in answer.keys if pa.types.is_string(answer.table.schema.field(key).type)]
    if texts:
        row[texts[0]] = "other"
    return row
