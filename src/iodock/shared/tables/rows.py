"""Returns the rows of an answer for data formats, with the row 'other' for those that a top list left out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from iodock.shared.answer import Answer


def with_other(answer: Answer) -> pa.Table:
    """Returns the table, followed by a row for the rows that `--top` left out. The first text key of this row
    is `other`; numeric keys are null."""
    if answer.totals is None or answer.totals.other is None:
        return answer.table
    row = other_row(answer)
    schema = answer.table.schema
    return pa.concat_tables([answer.table, pa.Table.from_pylist([row], schema=schema)])


def other_row(answer: Answer) -> dict[str, Any]:
    """Returns the row 'other', with a value (perhaps None) for every column."""
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
