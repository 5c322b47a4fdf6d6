"""Orders and limits rows, by any column of any analysis."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from iodock.shared.answer import Answer, Column, Totals
from iodock.shared.errors import RequestError, meant

_UNORDERED = ("map", "list")


def order_sql(
    columns: Iterable[Column], options: Mapping[str, Any], otherwise: tuple[str, ...] = (), of: str = ""
) -> tuple[str, ...]:
    """SQL clause ORDER BY with the requested column, if any, and then OTHERWISE. OF: prefix of the table that
    has it, with a dot. Raises RequestError."""
    if (name := options.get("sort")) is None:
        return otherwise
    found = _column(columns, name)
    direction = "DESC" if _is_descending(found) else "ASC"
    return (f'{of}"{found.name}" {direction} NULLS LAST', *otherwise)


def ordered(answer: Answer, options: Mapping[str, Any]) -> Answer:
    """Returns the answer in the requested order, limited to the requested rows. Raises RequestError."""
    name, top = options.get("sort"), options.get("top")
    table = answer.table
    if name is not None:
        import pyarrow.compute as pc

        found = _column(answer.columns, name)
        keys = [(found.name, "descending" if _is_descending(found) else "ascending")]
        table = table.take(pc.sort_indices(table, sort_keys=keys))
    if top is None or top >= table.num_rows:
        return dataclasses.replace(answer, table=table)
    return dataclasses.replace(answer, table=table.slice(0, top), totals=_cut(answer, top))


def first_of(shown: int, of: int, noun: str) -> Totals:
    """Returns the line that is shown below the first rows if there are no sums of the others."""
    return Totals({}, None, shown, of, noun)


def _cut(answer: Answer, top: int) -> Totals:
    if answer.totals is None:
        return first_of(top, answer.table.num_rows, "rows")
    return dataclasses.replace(answer.totals, shown=top)


def _column(columns: Iterable[Column], name: str) -> Column:
    sortable = {column.name: column for column in columns if column.type not in _UNORDERED}
    if name not in sortable:
        from iodock.shared.tables.table import headings

        # Headings of tables are also accepted, because users see those.
        shown = headings(sortable.values())
        hint = meant(name, (*shown, *sortable), f"choose one of these columns: {', '.join(shown)}")
        raise RequestError(f"no such column to sort by: {name}", hint)
    return sortable[name]


def _is_descending(column: Column) -> bool:
    """Whether the order is descending. Measures start with the largest; names and times are in ascending
    order."""
    return column.role == "measure"
