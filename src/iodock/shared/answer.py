"""Defines the answer of an analysis, which is a table with the meaning of its columns. Views format answers,
and take their data from nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from iodock.shared.labels import HEADINGS

if TYPE_CHECKING:
    # The import is only for types. A recording needs the class Loss but no tables, and importing pyarrow
    # takes longer than recording a small program.
    import pyarrow as pa

Role = Literal["key", "measure", "time", "detail"]
"""Role of a column. key: rows are grouped by it. measure: a number that may be drawn. time: a place on the
time axis. detail: anything else."""

Importance = Literal["first", "usual", "last"]
"""Importance of a column in a narrow table. first: identity, time and bytes, which are kept; last: columns
that are left out first."""

_BY_ROLE: Mapping[Role, Importance] = {"key": "first", "measure": "usual", "time": "last", "detail": "last"}

Clock = Literal["epoch", "day", "relative", "none"]
"""Origin of a `ts`: 1970, midnight, the start of the run, or none, because the source has no times."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an answer: its name, type and unit, and a text that explains it."""

    name: str
    type: str
    """Type of the values: `int`, `float`, `str`, `bool`, `map` (name -> count) or `list`."""
    unit: str | None
    """Unit of the values: `ns`, `bytes`, `1/s`, `bytes/s`, `calls`, ...; None if the column has no unit."""
    role: Role
    doc: str
    importance: Importance | None = None
    """Importance, if it does not follow from the role."""
    own_heading: str | None = None
    """Heading, if it differs from that of other columns with this name."""

    @property
    def heading(self) -> str:
        """The column's heading in English."""
        return self.own_heading or HEADINGS.get(self.name, self.name.replace("_", " "))

    @property
    def place(self) -> int:
        """The importance of the column as a number. If only some columns fit into a table, those with 0 are
        kept first."""
        return ("first", "usual", "last").index(self.importance or _BY_ROLE[self.role])


@dataclass(frozen=True, slots=True)
class Loss:
    """The number of things of one kind that could not be read, stored or determined, with advice."""

    name: str
    count: int
    cure: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all rows of a table, and over the rows that the option `--top` left out."""

    total: Mapping[str, Any]
    """Sum of each column over all rows, including those that are not shown."""
    other: Mapping[str, Any] | None
    """Sum of each column over the rows that `--top` left out; None if it left none out."""
    shown: int
    """Number of rows that are shown, N in 'N of M'."""
    of: int
    """Number of rows before `--top`, M in 'N of M'."""
    noun: str
    """Plural of what the rows are: `calls`, `files`, `pids`, ..."""

    @property
    def sentence(self) -> str:
        """A text such as `5 of 42 files`."""
        return f"{self.shown:,} of {self.of:,} {self.noun}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an analysis: a table, the meaning of its columns, and notes about it."""

    analysis: str
    title: str
    columns: tuple[Column, ...]
    """The columns, in the order of the table."""
    table: pa.Table
    clock: Clock
    source: Mapping[str, Any]
    """Counts from the manifest: `lines`, `calls`, `unfinished`, `orphans`, `durations`, `signals`."""
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences that views must show with the numbers, such as 'this log has no durations'."""
    totals: Totals | None = None
    keys: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Filters and options that differ from their defaults, by their command line names."""
    first_ts: int | None = None
    """Start of the run according to the manifest, for axes that count from the start."""
    store_name: str = ""

    def column(self, name: str) -> Column:
        """Returns the column with this name. Raises KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def with_role(self, role: Role) -> tuple[Column, ...]:
        """Returns the columns with a role, in the order of the table."""
        return tuple(column for column in self.columns if column.role == role)
