"""Reads an answer for charts: numbers by column, labels by key, and only the rows that fit a picture.

Whole columns stay in Arrow. Only the few hundred values that a picture shows become Python lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.shared.answer import Answer
from iodock.shared.text import labels, visible
from iodock.shared.units import BYTES, BYTES_PER_SECOND, COUNT, COUNT_PER_SECOND, NANOSECONDS, Unit, unit_of

# Number of bars in a ranked chart, including the bar 'other'. More bars would be unreadable.
MOST_BARS = 40

_UNITS = {
    "ns": NANOSECONDS,
    "bytes": BYTES,
    "bytes/s": BYTES_PER_SECOND,
    "1/s": COUNT_PER_SECOND,
    "calls/s": COUNT_PER_SECOND,
}


class CannotDraw(Exception):
    """Raised if the answer has no data for the chart. The text says why, and how to get the data."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Describes one row of a ranked chart: its label, its full name, and its values by column."""

    label: str
    name: str
    values: dict[str, float | None]
    is_rest: bool = False


def has(answer: Answer, *columns: str) -> bool:
    """Returns whether the answer's table has all these columns."""
    return set(columns) <= set(answer.table.column_names)


def numbers(answer: Answer, column: str) -> pa.ChunkedArray:
    """Returns a column as float64. A sum of int64 could overflow, and a picture does not show the digits
    that float64 loses."""
    values = answer.table.column(column)
    return values if values.type == pa.float64() else pc.cast(values, pa.float64(), safe=False)


def unit_in(answer: Answer, column: str) -> Unit:
    """Returns the unit that the answer declares for a column. If it declares none, the column's name
    determines the unit."""
    for declared in answer.columns:
        if declared.name == column and declared.unit is not None:
            return _UNITS.get(declared.unit, COUNT)
    return unit_of(column)


def all_null(answer: Answer, column: str) -> bool:
    """Returns whether a column is absent or has no value at all."""
    if not has(answer, column):
        return True
    values = answer.table.column(column)
    return bool(values.null_count == len(values))


def need_rows(answer: Answer) -> None:
    """Raises CannotDraw for an answer without rows."""
    if answer.table.num_rows == 0:
        chosen = " with these filters" if answer.options else ""
        raise CannotDraw(f"the {answer.analysis} analysis has no rows{chosen}")


def need_durations(answer: Answer, column: str) -> None:
    """Raises CannotDraw if the source has no durations."""
    if all_null(answer, column):
        raise CannotDraw("this source has no call durations: strace records them with -T")


def ranked(
    answer: Answer, columns: Sequence[str], by: str, fold: Sequence[str] = ()
) -> tuple[list[Bar], list[str]]:
    """Returns a bar for each of the rows with the largest values in `by`, largest first, and sentences about
    the rows that were left out.

    Each bar has the values of `columns`. The columns in `fold` can be added up. If `fold` is not empty, a
    bar 'other' has the sums of the rows beyond MOST_BARS and of those that `--top` left out. If it is empty,
    a sentence says only how many rows were left out.
    """
    weights = pc.fill_null(numbers(answer, by), 0.0)
    order = pc.sort_indices(weights, sort_keys=[("", "descending")])
    total = len(order)
    shown = total if total <= MOST_BARS - (answer.totals is not None) else MOST_BARS - 1
    top, rest = order.slice(0, shown), order.slice(shown)
    bars = _bars(answer, columns, top)
    left_out = _left_out(answer, fold)
    outside = max(0, answer.totals.of - answer.totals.shown) if answer.totals else 0
    hidden = total - shown + outside
    folded = hidden if left_out else total - shown
    if fold and folded > 0:
        values = {name: _folded(answer, name, rest, left_out) if name in fold else None for name in columns}
        bars.append(Bar(f"other ({folded:,})", f"{folded:,} other rows together", values, is_rest=True))
    said = [f"the {shown:,} largest of {shown + hidden:,}"] if hidden > 0 else []
    return bars, said


def _bars(answer: Answer, columns: Sequence[str], rows: pa.Array) -> list[Bar]:
    names = row_names(answer, rows)
    taken = {name: numbers(answer, name).take(rows).to_pylist() for name in columns}
    return [
        Bar(label, visible(name), {column: taken[column][index] for column in columns})
        for index, (label, name) in enumerate(zip(labels(names), names, strict=True))
    ]


def _left_out(answer: Answer, columns: Sequence[str]) -> Mapping[str, Any] | None:
    """Returns the sums of the rows that `--top` left out. They are the answer's row 'other', or the total
    minus the rows in the answer. Returns None if a total is unknown."""
    if answer.totals is None or answer.totals.other is not None:
        return answer.totals.other if answer.totals else None
    totals = answer.totals.total
    if not all(totals.get(column) is not None for column in columns):
        return None
    here = {column: pc.sum(numbers(answer, column)).as_py() or 0.0 for column in columns}
    return {column: max(0.0, float(totals[column]) - here[column]) for column in columns}


def _folded(answer: Answer, column: str, rows: pa.Array, left_out: Any) -> float | None:
    summed = pc.sum(numbers(answer, column).take(rows)).as_py() if len(rows) else None
    outside = (left_out or {}).get(column)
    if summed is None and outside is None:
        return None
    return float(summed or 0.0) + float(outside or 0.0)


def row_names(answer: Answer, rows: pa.Array) -> list[str]:
    """Returns the label of each row, which joins its keys. The label of a name pattern also states the
    number of its names."""
    keys = [key for key in answer.keys if has(answer, key)]
    keys = keys or [column.name for column in answer.with_role("key") if has(answer, column.name)]
    keys = keys or answer.table.column_names[:1]
    columns = [
        [_key_text(key, value) for value in answer.table.column(key).take(rows).to_pylist()] for key in keys
    ]
    names = [" · ".join(parts) for parts in zip(*columns, strict=True)]
    if "pattern" in keys and has(answer, "file_count"):
        counts = answer.table.column("file_count").take(rows).to_pylist()
        names = [
            f"{name} ({count:,} files)" if count else name for name, count in zip(names, counts, strict=True)
        ]
    return names


def key_title(answer: Answer) -> str:
    """Returns the names of the keys, for the title of an axis."""
    keys = answer.keys or tuple(column.name for column in answer.with_role("key"))
    return " · ".join(keys) or answer.table.column_names[0]


def _key_text(key: str, value: Any) -> str:
    if value is None:
        return "(no file)" if key in ("file", "folder", "pattern") else "(none)"
    if value == "":
        return "(none)"
    return f"{key} {value}" if key in ("pid", "tid", "rank") else str(value)


def extent(values: pa.ChunkedArray) -> tuple[float, float] | None:
    """Returns the smallest and largest value as floats; None if there is no value."""
    found = pc.min_max(values).as_py()
    if found["min"] is None or math.isnan(found["min"]):
        return None
    return float(found["min"]), float(found["max"])
