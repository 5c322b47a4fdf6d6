"""Makes an answer from a plain Arrow table, such as the result of a user's query. The meaning of its
columns is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from iodock.program.store import Manifest
from iodock.shared.answer import Answer, Column


def answer_of(table: pa.Table, name: str, manifest: Manifest) -> Answer:
    """Returns the table as an answer. Its columns have only a name and a type. Dates, intervals and
    similar types become text, which every view can write."""
    table = pa.table([_writable(column) for column in table.columns], _unlike(table.column_names))
    columns = tuple(
        Column(field.name, _type_name(field.type), None, "key" if at == 0 else "detail", "")
        for at, field in enumerate(table.schema)
    )
    return Answer(
        analysis=name,
        title="Query",
        columns=columns,
        table=table,
        clock=manifest.clock,
        source=manifest.source,
        losses=manifest.losses,
        notes=manifest.notes,
        first_ts=manifest.first_ts,
    )


def _unlike(names: Sequence[str]) -> list[str]:
    """Makes the names unique by appending a number: `a a` becomes `a a_2`."""
    unlike: list[str] = []
    for name in names:
        new, number = name, 1
        while new in unlike or (number > 1 and new in names):
            number += 1
            new = f"{name}_{number}"
        unlike.append(new)
    return unlike


def _writable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if _type_name(kind) != "str" or pa.types.is_string(kind) or pa.types.is_null(kind):
        return column
    return pa.chunked_array([[_text(value) for value in column.to_pylist()]], pa.string())


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return None if value is None else str(value)


def _type_name(kind: pa.DataType) -> str:
    # The engine returns sums of integers as decimals without decimal places.
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return "int"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "float"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_map(kind):
        return "map"
    return "list" if pa.types.is_nested(kind) else "str"
