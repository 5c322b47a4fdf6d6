"""The answer of an analysis: a table and the meaning of its columns. Views draw answers and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from iodock.shared.labels import HEADINGS

if TYPE_CHECKING:
    # Recording needs Loss but no tables, and importing pyarrow takes longer than recording a small program.
    import pyarrow as pa

Role = Literal["key", "measure", "time", "detail"]
"""key: rows are grouped by it. measure: a number that may be drawn. time: a place on the time axis. detail:
anything else."""

Importance = Literal["first", "usual", "last"]
"""Columns of a narrow table. first: identity, time and bytes, which are kept; last: columns that are dropped
first."""

_BY_ROLE: Mapping[Role, Importance] = {"key": "first", "measure": "usual", "time": "last", "detail": "last"}

Clock = Literal["epoch", "day", "relative", "none"]
"""Origin of a `ts`: 1970, midnight, the start of the run, or nothing (the source has no times)."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an answer, documented where it is declared."""

    name: str
    type: str
    """`int`, `float`, `str`, `bool`, `map` (name -> count) or `list`."""
    unit: str | None
    """`ns`, `bytes`, `1/s`, `bytes/s`, `calls`, ...; None if the column has no unit."""
    role: Role
    doc: str
    importance: Importance | None = None
    """Set where it does not follow from the role."""
    own_heading: str | None = None
    """Set where the heading differs from that of other columns with this name."""

    @property
    def heading(self) -> str:
        """Heading of the column, in English."""
        return self.own_heading or HEADINGS.get(self.name, self.name.replace("_", " "))

    @property
    def place(self) -> int:
        """Priority when only some columns fit: 0 comes first."""
        return ("first", "usual", "last").index(self.importance or _BY_ROLE[self.role])


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that could not be read, kept or known."""

    name: str
    count: int
    cure: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows that a top list left out, and their sums."""

    total: Mapping[str, Any]
    """Column -> sum over all rows, including those that are not shown."""
    other: Mapping[str, Any] | None
    """Column -> sum over the rows that `--top` left out; None if it left none out."""
    shown: int
    """N of 'N of M'."""
    of: int
    """M of 'N of M': rows before `--top`."""
    noun: str
    """Unit of the counts: `calls`, `files`, `pids`, ..."""

    @property
    def sentence(self) -> str:
        """`5 of 42 files`."""
        return f"{self.shown:,} of {self.of:,} {self.noun}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A table, the meaning of its columns, and the notes that belong to it."""

    analysis: str
    title: str
    columns: tuple[Column, ...]
    """In the order of the table's columns."""
    table: pa.Table
    clock: Clock
    source: Mapping[str, Any]
    """`lines`, `calls`, `unfinished`, `orphans`, `durations`, `signals`: taken from the manifest."""
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences that views must show with the numbers ('this log has no durations')."""
    totals: Totals | None = None
    keys: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Filters and options that differ from their defaults, by their command line names."""
    first_ts: int | None = None
    """Start of the run (manifest), for axes that count from the start."""
    store_name: str = ""

    def column(self, name: str) -> Column:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def with_role(self, role: Role) -> tuple[Column, ...]:
        """The columns with a role, in the table's order."""
        return tuple(column for column in self.columns if column.role == role)
