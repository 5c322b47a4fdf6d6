"""What an analysis answers: a table that knows what its columns mean. Views draw it, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from iodock.shared.labels import HEADINGS

if TYPE_CHECKING:
    # Recording needs a Loss and no tables, and loading Arrow costs more than recording a small program.
    import pyarrow as pa

Role = Literal["key", "measure", "time", "detail"]
"""key: what rows are grouped by. measure: a number that may be drawn. time: where on the time axis.
detail: anything else."""

Importance = Literal["first", "usual", "last"]
"""What a narrow table keeps. first: identity, time and bytes, which stay; last: what goes before all else."""

_BY_ROLE: Mapping[Role, Importance] = {"key": "first", "measure": "usual", "time": "last", "detail": "last"}

Clock = Literal["epoch", "day", "relative", "none"]
"""What a `ts` counts from: 1970, midnight, the start of the run, or nothing (no time in the source)."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an answer, documented where it is declared."""

    name: str
    type: str
    """`int`, `float`, `str`, `bool`, `map` (name -> count) or `list`."""
    unit: str | None
    """`ns`, `bytes`, `1/s`, `bytes/s`, `calls`, ...; None for what has no unit."""
    role: Role
    doc: str
    importance: Importance | None = None
    """Where its role does not say it."""
    own_heading: str | None = None
    """Where it is not called as other columns of this name."""

    @property
    def heading(self) -> str:
        """What stands above it, in English."""
        return self.own_heading or HEADINGS.get(self.name, self.name.replace("_", " "))

    @property
    def place(self) -> int:
        """Its turn where there is room for some columns only: 0 comes first."""
        return ("first", "usual", "last").index(self.importance or _BY_ROLE[self.role])


@dataclass(frozen=True, slots=True)
class Loss:
    """What could not be read, kept or known."""

    name: str
    count: int
    cure: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What a top list left out, and what it adds up to."""

    total: Mapping[str, Any]
    """Column -> value over all rows, also those not shown."""
    other: Mapping[str, Any] | None
    """Column -> value over the rows that `--top` left out; None if it left none out."""
    shown: int
    """N of 'N of M'."""
    of: int
    """M of 'N of M': rows before `--top`."""
    noun: str
    """What is being counted: `calls`, `files`, `pids`, ..."""

    @property
    def sentence(self) -> str:
        """`5 of 42 files`."""
        return f"{self.shown:,} of {self.of:,} {self.noun}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A table, what its columns mean, and what must be said beside it."""

    analysis: str
    title: str
    columns: tuple[Column, ...]
    """In the order of the table's columns."""
    table: pa.Table
    clock: Clock
    source: Mapping[str, Any]
    """`lines`, `calls`, `unfinished`, `orphans`, `durations`, `signals`: the manifest's."""
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences that must stand beside the numbers ('this log has no durations')."""
    totals: Totals | None = None
    keys: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """What was asked: filters and options that are not at their default, by their command line name."""
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
