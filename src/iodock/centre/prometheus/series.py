"""Interprets the names and labels of series: their owners and quantities. This is done in Python, because
series are few. Their samples are many and are processed in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from iodock.centre.prometheus.selection import QUANTITIES
from iodock.shared.engine.need import OTHERS

_NAME = re.compile(
    rf"iodock_(?P<source>.+?)(?P<others>_other)?_(?P<quantity>{'|'.join(QUANTITIES)}|owners)"
    r"(?P<ending>_total|_created)?"
)
_OWNERS_LABELS = ("job", "exported_job", "user", "session", "command", "known_by")
_OWN_LABELS = frozenset(("__name__", "operation", "bucket", *_OWNERS_LABELS))
_WITH_JOB = ("server", "cgroup", "environment")
Key = tuple[tuple[str, str], ...]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Kind:
    """The information that the name of a series contains."""

    source: str
    quantity: str
    """A key of QUANTITIES, or `owners` (number of owners not listed)."""
    is_sum_of_others: bool
    is_created: bool
    """Whether the series contains the start time of a counter instead of its value."""
    is_counter: bool


def kind_of(name: str) -> Kind | None:
    """Parses the name of a series. Returns None if the series does not contain readings of an agent."""
    found = re.fullmatch(_NAME, name)
    if found is None:
        return None
    quantity, ending, others = found["quantity"], found["ending"], found["others"] is not None
    if found["source"].startswith("agent_") or (quantity == "owners" and not others):
        return None
    others = others and quantity != "owners"
    return Kind(found["source"], quantity, others, ending == "_created", ending is not None)


@dataclass
class Series:
    """The series of one query, with numbers for their places, entries and counters. Numbers start at 0."""

    places: dict[Key, int] = field(default_factory=dict)
    entries: dict[Key, int] = field(default_factory=dict)
    counters: dict[Key, int] = field(default_factory=dict)
    place_rows: list[tuple[object, ...]] = field(default_factory=list)
    entry_rows: list[tuple[object, ...]] = field(default_factory=list)
    counter_rows: list[tuple[object, ...]] = field(default_factory=list)
    growing: set[str] = field(default_factory=set)
    """Sources that have counters of owners."""
    falling: set[str] = field(default_factory=set)
    """Sources whose sums over owners may decrease."""

    def number(self, labels: Labels, kind: Kind) -> int:
        """Returns the number of a series, which for a number of owners is that of its place. A `_created`
        series has the same number as its counter."""
        place = self._place(labels, kind)
        if kind.quantity == "owners":
            return place
        key = (*_rest(labels, frozenset(("__name__",))), ("", kind.source), ("", kind.quantity))
        key += (("", OTHERS),) if kind.is_sum_of_others else ()
        if key not in self.counters:
            self.counters[key] = len(self.counters)
            entry = self._entry(place, labels, kind)
            bucket = int(labels["bucket"]) if labels.get("bucket", "").isdecimal() else None
            self.counter_rows.append(
                (self.counters[key], entry, labels.get("operation", ""), kind.quantity, bucket)
            )
        if labels.get("known_by") and not kind.is_sum_of_others:
            (self.growing if kind.is_counter else self.falling).add(kind.source)
        return self.counters[key]

    def _place(self, labels: Labels, kind: Kind) -> int:
        """Returns the number of a place, which is a target or machine and a source. The label `job` that the
        scrape adds is ignored, because it does not name an owner."""
        key = (*_rest(labels, _OWN_LABELS), ("", kind.source))
        if key not in self.places:
            self.places[key] = len(self.places)
            self.place_rows.append((self.places[key], kind.source, *_named(labels)))
        return self.places[key]

    def _entry(self, place: int, labels: Labels, kind: Kind) -> int:
        owner = _owner(labels, kind)
        key = (("", str(place)), *((name, str(value)) for name, value in owner.items() if value is not None))
        if key not in self.entries:
            self.entries[key] = len(self.entries)
            self.entry_rows.append(
                (
                    self.entries[key],
                    place,
                    kind.source,
                    *_named(labels),
                    *owner.values(),
                    kind.is_sum_of_others,
                )
            )
        return self.entries[key]

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Yields the tables `places`, `entries`, `counters` and `falling` (the sources whose sums may
        decrease), each with its name."""
        yield "places", _table(self.place_rows, _PLACES)
        yield "entries", _table(self.entry_rows, _ENTRIES)
        yield "counters", _table(self.counter_rows, _COUNTERS)
        falling = [(source,) for source in sorted(self.falling - self.growing)]
        yield "falling", _table(falling, _FALLING)


def _owner(labels: Labels, kind: Kind) -> dict[str, str | None]:
    """Returns the owner of a series as job, user, session, command and known_by. All are None if the series
    has no owner."""
    names = ("job", "user", "session", "command", "known_by")
    if kind.is_sum_of_others:
        return {**dict.fromkeys(names), "session": OTHERS, "known_by": "others"}
    evidence = labels.get("known_by")
    if not evidence:
        # The scrape adds a label `job` to every series. In a series without an owner, this label is not a job
        # of a scheduler.
        return dict.fromkeys(names)
    # Some owners have an empty id, so an empty id is kept and not converted to None, which means no job.
    job = labels.get("exported_job", labels.get("job", "")) if evidence in _WITH_JOB else None
    others = {name: labels.get(name) or None for name in names[1:]}
    return {"job": job, **others}


def _named(labels: Labels) -> list[str | None]:
    return [labels.get(name) or None for name in ("host", "file_system", "target")]


def _rest(labels: Labels, without: frozenset[str]) -> Key:
    return tuple(sorted((name, value) for name, value in labels.items() if name not in without))


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(column, one.type) for column, one in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _texts(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.string()) for name in names]


_PLACES = pa.schema([pa.field("place", pa.int64()), *_texts("source", "host", "file_system", "target")])
_ENTRIES = pa.schema(
    [
        pa.field("entry", pa.int64()), pa.field("place", pa.int64()),
        *_texts("source", "host", "file_system", "target"),
        *_texts("job", "user", "session", "command", "known_by"), pa.field("is_others", pa.bool_()),
    ]
)  # fmt: skip
_COUNTERS = pa.schema(
    [
        pa.field("series", pa.int64()), pa.field("entry", pa.int64()),
        *_texts("operation", "quantity"), pa.field("bucket", pa.int64()),
    ]
)  # fmt: skip
_FALLING = pa.schema(_texts("source"))
