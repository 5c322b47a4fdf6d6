"""Tables of a page: one declaration for HTML, CSV and JSON."""

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
    """One column. `kind`: text, sentence (a long one), name, title (a name of which only the beginning is
    shown), job, machine, user, time, severity, plain (only in files for download), or a number: integer,
    number, bytes, bytes_rate, rate, share (1 is all), seconds, short_seconds."""

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
    """A table. Its rows have a value for every column's key, `exact` if sums may be lower bounds, and `link`
    and `full` (the whole text of a job's id) if a name is a link."""

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
        """Columns that have a value in some row. Files for download have all columns."""
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
    """Formats a table as CSV with plain numbers: bytes, counts, seconds, ns since the epoch. Text that a
    spreadsheet would take for a formula gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.fields())
    for row in table.rows:
        writer.writerow([_field(row.get(key)) for key in table.fields()])
    return out.getvalue()


def as_json(table: Table, begin: int, end: int) -> str:
    """Formats a table as JSON: the span in ns since the epoch, and rows with the keys of the CSV."""
    rows = [{key: _plain(row.get(key)) for key in table.fields()} for row in table.rows]
    return json.dumps(
        {"table": table.name, "begin_ts": begin, "end_ts": end, "rows": rows}, ensure_ascii=False
    )


def total(values: Iterable[object]) -> float | None:
    """Sums values; None if none of them is known."""
    known = [value for value in values if isinstance(value, (int, float))]
    return float(sum(known)) if known else None


def _field(value: object) -> object:
    if isinstance(value, str):
        return guarded(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else _plain(value)


def _plain(value: object) -> object:
    """Converts a number to an integer if it is one, as sums of shares usually are."""
    if isinstance(value, float):
        rounded = round(value, 6)
        return int(rounded) if rounded.is_integer() else rounded
    return value
