"""Sorts and limits the rows of an answer by any of its columns."""

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
    """Returns the terms of an SQL clause ORDER BY: the requested column, if there is one, and then the terms
    OTHERWISE. OF is the alias of the table with this column, followed by a dot. Raises RequestError if there
    is no such column."""
    if (name := options.get("sort")) is None:
        return otherwise
    found = _column(columns, name)
    direction = "DESC" if _is_descending(found) else "ASC"
    return (f'{of}"{found.name}" {direction} NULLS LAST', *otherwise)


def ordered(answer: Answer, options: Mapping[str, Any]) -> Answer:
    """Returns the answer sorted by the requested column and limited to the requested number of rows. Raises
    RequestError if there is no such column."""
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
    """Returns totals that say how many of all rows an answer shows, without sums of the other rows."""
    return Totals({}, None, shown, of, noun)


def _cut(answer: Answer, top: int) -> Totals:
    if answer.totals is None:
        return first_of(top, answer.table.num_rows, "rows")
    return dataclasses.replace(answer.totals, shown=top)


def _column(columns: Iterable[Column], name: str) -> Column:
    sortable = {column.name: column for column in columns if column.type not in _UNORDERED}
    if name not in sortable:
        from iodock.shared.tables.table import headings

        # Users see headings instead of names of columns, so both are accepted.
        shown = headings(sortable.values())
        hint = meant(name, (*shown, *sortable), f"choose one of these columns: {', '.join(shown)}")
        raise RequestError(f"no such column to sort by: {name}", hint)
    return sortable[name]


def _is_descending(column: Column) -> bool:
    """Returns whether rows are sorted from the largest value to the smallest. Measures are; names and times
    are not."""
    return column.role == "measure"
