"""Runs analyses on a store, and converts their answers to the small tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.store import Store
from iodock.shared.answer import Answer, Totals

Row = list[Any]
PageTable = dict[str, Any]
"""A table of the page: `columns`, `rows`, `other` and `total` (a row each, or None), and `of` (M in 'N of
M')."""


def ask(store: Store, analysis: str, **arguments: Any) -> Answer:
    """Runs one analysis on the store and returns its answer."""
    found = find(analysis)
    return found.run(store, request(found, arguments))


def rows_of(answer: Answer, names: Sequence[str]) -> list[Row]:
    """Returns the values of the columns NAMES for each row of the answer."""
    table = answer.table.select(list(names))
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def page_table(
    names: Sequence[str], rows: list[Row], totals: Totals | None = None, of: int | None = None
) -> PageTable:
    """Makes a table for the page. The first column is the key, so the rows with totals have no value
    there. OF is the number of rows that exist in all."""
    known = totals.of if totals else len(rows)
    return {
        "columns": list(names),
        "rows": rows,
        "other": _summed(names, totals.other) if totals else None,
        "total": _summed(names, totals.total) if totals else None,
        "of": known if of is None else of,
    }


def _summed(names: Sequence[str], values: Mapping[str, Any] | None) -> Row | None:
    if values is None:
        return None
    return [None, *(_plain(values.get(name)) for name in names[1:])]


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) else None


class Names:
    """Gives each file name a number. The page then contains a name only once, even if many tables show it."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str | None) -> int | None:
        """Returns the number of a file name. For calls without a file, NAME and the result are None."""
        if name is None:
            return None
        if name not in self._numbers:
            self._numbers[name] = len(self.listed)
            self.listed.append(name)
        return self._numbers[name]


def without_empty_columns(table: PageTable, optional: Sequence[str]) -> PageTable:
    """Returns the table without the columns in OPTIONAL that have no value in any row."""
    rows = [*table["rows"], *(row for row in (table["other"], table["total"]) if row)]
    drop = {
        place
        for place, name in enumerate(table["columns"])
        if name in optional and not any(row[place] for row in rows)
    }
    if not drop:
        return table

    def kept(row: Row | None) -> Row | None:
        return None if row is None else [value for place, value in enumerate(row) if place not in drop]

    return table | {
        "columns": kept(table["columns"]),
        "rows": [kept(row) for row in table["rows"]],
        "other": kept(table["other"]),
        "total": kept(table["total"]),
    }
