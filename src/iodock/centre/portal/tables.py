"""Declares the tables of a page. The same declaration is used for HTML, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iodock.shared.tables.cells import guarded

Row = Mapping[str, object]
_TEXTS = ("text", "name", "title", "job", "machine", "user", "time", "severity", "plain", "sentence")


@dataclass(frozen=True)
class Column:
    """One column of a table. `kind` says what its values are and how they are formatted. It is text, sentence
    (a long text), name, title (a name of which only the beginning is shown), job, machine, user, time,
    severity, plain (shown only in files for download), or for numbers integer, number, bytes, bytes_rate,
    rate, share (from 0 to 1), seconds or short_seconds."""

    key: str
    title: str
    kind: str = "text"
    sort: str = ""
    """Name by which the server sorts when the user clicks on the heading; empty: not sortable."""

    @property
    def is_number(self) -> bool:
        return self.kind not in _TEXTS


@dataclass(frozen=True)
class Table:
    """One table. Each row maps every column's key to a value. A row also has `exact` if its sums may be lower
    bounds. If a name in the row is a link, the row has `link` (its address) and `full` (the whole id of the
    job)."""

    name: str
    """Name of the table in addresses."""
    title: str
    columns: tuple[Column, ...]
    rows: list[Row]
    empty: str
    """Text that is shown if there are no rows."""
    note: str = ""
    sorted_by: str = ""
    """The `sort` of the column by which rows are sorted; empty: the address's default."""
    has_bounds: bool = True
    """Whether the file for download has a column `exact`."""

    @property
    def has_lower_bounds(self) -> bool:
        return any(row.get("exact") is False for row in self.rows)

    @property
    def shown(self) -> list[Column]:
        """Returns the first column and the columns that have a value in at least one row. Only these are
        shown on the page, while files for download have all columns."""
        first, *others = self.columns
        filled = (
            column
            for column in others
            if column.kind != "plain" and any(row.get(column.key) not in (None, "") for row in self.rows)
        )
        return [first, *filled]

    def fields(self) -> list[str]:
        return [column.key for column in self.columns] + (["exact"] if self.has_bounds else [])


def as_csv(table: Table) -> str:
    """Formats a table as CSV with plain numbers without prefixes (bytes, counts, seconds, ns since the
    epoch). An apostrophe is put in front of a text that a spreadsheet would take for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.fields())
    for row in table.rows:
        writer.writerow([_field(row.get(key)) for key in table.fields()])
    return out.getvalue()


def as_json(table: Table, begin: int, end: int) -> str:
    """Formats a table as JSON with its span from BEGIN to END (ns since the epoch). Rows have the same keys
    as the CSV."""
    rows = [{key: _plain(row.get(key)) for key in table.fields()} for row in table.rows]
    return json.dumps(
        {"table": table.name, "begin_ts": begin, "end_ts": end, "rows": rows}, ensure_ascii=False
    )


def total(values: Iterable[object]) -> float | None:
    """Returns the sum of the known values, or None if no value is known."""
    known = [value for value in values if isinstance(value, (int, float))]
    return float(sum(known)) if known else None


def _field(value: object) -> object:
    if isinstance(value, str):
        return guarded(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else _plain(value)


def _plain(value: object) -> object:
    """Rounds a floating-point number to six decimals, and converts it to an integer if it is whole. The
    queries sum shares of counts, so their results are floating-point numbers that are usually whole."""
    if isinstance(value, float):
        rounded = round(value, 6)
        return int(rounded) if rounded.is_integer() else rounded
    return value
