"""Formats a comparison's table of all files as CSV. It has plain numbers, and a row for each file or name
pattern."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from iodock.program.comparison.data import MEASURES, Change, Comparison, Row
from iodock.program.views.diff_json import whole
from iodock.shared.tables.cells import guarded_row

COLUMNS = (
    *("file", "matched", "files_before", "files_after"),
    *(f"{measure}_{side}" for measure in MEASURES for side in ("before", "after")),
    *("time_difference_ns", "sureness", "p_value"),
)
"""`NAME_before` and `NAME_after` are medians over the runs of each side."""


def diff_csv(comparison: Comparison) -> Iterator[str]:
    """Yields lines with line ends. The comparison must contain `Comparison.files`."""
    yield _line(COLUMNS)
    for row in comparison.files:
        yield _line(_fields(row))


def _line(fields: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(guarded_row(fields))
    return line.getvalue()


def _fields(row: Row) -> list[object]:
    time = row.changes[MEASURES[0]]
    return [
        *(row.name, row.matched, *row.files),
        *(value for measure in MEASURES for value in _sides(row.changes[measure])),
        *(whole(time.difference), time.sureness.value, time.p_value),
    ]


def _sides(change: Change) -> tuple[float | int | None, float | int | None]:
    return whole(change.before), whole(change.after)
