"""Sums calls at fault by place, for many rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict


class Where(TypedDict):
    """Places of faults, with the names of a candidate's fields."""

    files: tuple[str, ...]
    file_count: int
    call: str


@dataclass(frozen=True, slots=True)
class Faults:
    """Holds the rows of a query with `name`, `file_count`, `count`, `time_ns` and other columns, and sums
    them."""

    rows: Sequence[dict[str, Any]]

    def total(self, column: str) -> int:
        """Returns the sum of a column. Null counts as 0."""
        return sum(int(row[column] or 0) for row in self.rows)

    @property
    def time_ns(self) -> int | None:
        """Returns the time inside the calls in ns; None if no row has a time."""
        return self.sum_of("time_ns")

    def sum_of(self, column: str) -> int | None:
        """Returns the sum of a column; None if no row has a value."""
        known = [int(row[column]) for row in self.rows if row.get(column) is not None]
        return sum(known) if known else None

    @property
    def files(self) -> tuple[str, ...]:
        """Returns the names of all places, in the rows' order."""
        return tuple(str(row["name"]) for row in self.rows if row["name"] is not None)

    @property
    def file_count(self) -> int:
        """Returns the number of files in all places."""
        return sum(int(row.get("file_count") or 1) for row in self.rows)

    @property
    def where(self) -> Where:
        """Returns a candidate's fields for these places. Its call is that of the first row."""
        return {"files": self.files, "file_count": self.file_count, "call": self.rows[0]["call"]}

    def __bool__(self) -> bool:
        return bool(self.rows)
