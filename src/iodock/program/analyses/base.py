"""Defines analyses. An analysis declares its options and columns, and has a function that computes an answer
from a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from iodock.program.relations.filters import Filters, duration_ns
from iodock.program.relations.selection import Selection, select
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column, Totals
from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    import pyarrow as pa

OptionType = Literal["int", "flag", "seconds", "keys", "choice", "column"]


@dataclass(frozen=True, slots=True)
class Option:
    """Declares an option of one analysis. It is available on the command line and as a keyword argument in
    Python."""

    name: str
    """Name with underscores; on the command line it is `--NAME` with hyphens."""
    type: OptionType
    default: Any
    doc: str
    choices: tuple[str, ...] = ()


SORT = Option(
    "sort",
    "column",
    None,
    "sort by this column: for measures the largest value first, for others the smallest",
)
TOP = Option("top", "int", None, "only the first N rows")


@dataclass(frozen=True, slots=True)
class Request:
    """Holds one request to an analysis: the filters, and a value for every option of the analysis."""

    filters: Filters
    options: Mapping[str, Any]
    given: Mapping[str, Any]
    """Filters and options that differ from their defaults."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """Describes an analysis, which computes a table from a store and documents every column of it."""

    name: str
    title: str
    doc: str
    """Description in whole sentences. It is also the manual page."""
    columns: tuple[Column, ...]
    """All columns that the analysis can return. If it has keys, the columns are those of its default keys."""
    run: Callable[[Store, Request], Answer]
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    stream: Callable[[Store, Request], Stream] | None = None
    """Returns the same rows batch by batch; only if there is one row per event."""
    counts: bool = field(default=False)
    """Whether the analysis also works on stores with only counts by call (strace -c)."""
    profiles: bool = field(default=False)
    """Whether the analysis also works on stores with only profiles (Darshan)."""
    calls: bool = field(default=True)
    """Whether the analysis works on stores with calls; False: only on profiles."""
    orders: bool = field(default=False)
    """Whether the analysis itself sorts by any column. It must if it has many rows, or a row for those left
    out."""
    hidden: bool = field(default=False)
    """Whether the analysis is left out of lists, because it exists for the report. It can still be
    requested."""

    @property
    def every_option(self) -> tuple[Option, ...]:
        """Returns the analysis's own options, and `top` and `sort`, which all analyses have."""
        own = {option.name for option in self.options}
        return (*self.options, *(option for option in (TOP, SORT) if option.name not in own))


@dataclass(frozen=True, slots=True)
class Stream:
    """Holds an answer whose rows are read in batches. `head` is the answer with an empty table."""

    head: Answer
    batches: Callable[[], pa.RecordBatchReader]
    """Starts reading the rows as columns. Only one reader may exist at a time."""
    json: Callable[[], pa.RecordBatchReader]
    """Starts reading the rows as JSON objects. They are in one text column, with a comma and a line break
    before each."""


def request(analysis: Analysis, arguments: Mapping[str, Any]) -> Request:
    """Sorts keyword arguments into filters and options. Raises RequestError for an unknown name or a wrong
    value."""
    known = {option.name: option for option in analysis.every_option}
    own = {name: value for name, value in arguments.items() if name in known and value is not None}
    filters = Filters.from_mapping({name: value for name, value in arguments.items() if name not in known})
    options = {name: option.default for name, option in known.items()}
    options |= {name: _option_value(known[name], value) for name, value in own.items()}
    changed = {name: value for name, value in options.items() if value != known[name].default}
    return Request(filters, options, filters.given() | changed)


def _option_value(option: Option, value: Any) -> Any:
    if option.type == "keys":
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, Iterable) or not all(isinstance(part, str) for part in parts):
            raise RequestError(f"{option.name} must be names, not {value!r}")
        return tuple(part.strip() for part in parts if part.strip())
    if option.type == "seconds":
        return duration_ns(value)
    if option.type == "int":
        if not isinstance(value, int) or isinstance(value, bool):
            raise RequestError(f"{option.name} must be a whole number, not {value!r}")
        if value < 1:
            raise RequestError(f"{option.name} must be 1 or more, not {value}")
        return value
    if option.type == "column" and not isinstance(value, str):
        raise RequestError(f"{option.name} must be the name of a column, not {value!r}")
    if option.type == "choice" and value not in option.choices:
        raise RequestError(f"{option.name} is one of {', '.join(option.choices)}, not {value}")
    return value


def answer(
    analysis: str,
    title: str,
    store: Store,
    asked: Request,
    table: pa.Table,
    columns: tuple[Column, ...],
    selection: Selection | None = None,
    totals: Totals | None = None,
    keys: tuple[str, ...] = (),
) -> Answer:
    """Makes an answer. It contains the notes of the selection, and the notes and losses of the store's
    manifest."""
    notes = selection.notes if selection else ()
    return answered(analysis, title, store, asked, table, columns, notes, totals, keys)


def answered(
    analysis: str,
    title: str,
    store: Store,
    asked: Request,
    table: pa.Table,
    columns: tuple[Column, ...],
    notes: Iterable[str] = (),
    totals: Totals | None = None,
    keys: tuple[str, ...] = (),
) -> Answer:
    """Makes an answer. It contains NOTES, and the notes and losses of the store's manifest."""
    return Answer(
        analysis=analysis,
        title=title,
        columns=columns,
        table=table.select([column.name for column in columns]),
        clock=store.manifest.clock,
        source=store.manifest.source,
        losses=store.manifest.losses,
        notes=(*notes, *store.manifest.notes),
        totals=totals,
        keys=keys,
        options=asked.given,
        first_ts=store.manifest.first_ts,
        store_name=store.name,
    )


__all__ = ["Analysis", "Option", "Request", "Stream", "answer", "request", "select"]
