"""Defines the data types for measurements of a file system by any tool: cells, and the protocol under which
they were measured.

Their JSON form is described by `docs/reference/measurements.schema.json`. In JSON, `null` means that a value
is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean, median, stdev
from typing import TypeAlias

from iodock.shared.errors import IodockError
from iodock.shared.message import Message

SCHEMA = "iodock-measurements-1"
Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


class MeasurementError(IodockError):
    """The error that is raised if measurements can't be read, or do not contain what a command needs."""


class Unit(StrEnum):
    """Unit of a cell's value. A larger value is better in every unit except seconds."""

    BYTES_PER_S = "bytes_per_s"
    OPERATIONS_PER_S = "operations_per_s"
    SECONDS = "seconds"
    SCORE = "score"
    """A value without a unit, such as the score of the IO500."""

    @property
    def more_is_better(self) -> bool:
        return self is not Unit.SECONDS


class Cache(StrEnum):
    """States whether a cell's reads came from a cache, or whether its writes ended in a cache, as far as this
    is known."""

    CACHED = "cached"
    UNCACHED = "uncached"
    MAYBE_CACHED = "maybe-cached"
    """Not served by the page cache of the file system. The layers below may have a cache on this machine."""
    PAGE_CACHE = "page-cache"
    """Writes without sync. Their rate is that of memory."""
    UNKNOWN = "unknown"

    @property
    def is_memory(self) -> bool:
        """Returns whether a rate with this label is that of memory. Such a rate says nothing about a disk or
        server."""
        return self in (Cache.CACHED, Cache.PAGE_CACHE)


@dataclass(frozen=True, slots=True)
class Latency:
    """Durations of single operations, over all processes and repeats, in ns."""

    p50: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None
    min: float | None = None
    mean: float | None = None
    count: int | None = None
    """Number of operations that were timed."""


@dataclass(frozen=True, slots=True)
class User:
    """Another program that used the machine while a cell was measured."""

    name: str
    amount: float
    """Processor time (1: one processor all the time), or bytes per second from and to devices."""


@dataclass(frozen=True, slots=True)
class Load:
    """What other programs did on the machine while a cell was measured. Each number is the largest of any
    repeat and machine; None means that it is not known."""

    load_average: float | None = None
    """Load average of the last minute, including the check-up's own processes."""
    others_cpu_share: float | None = None
    """Share of the time of all processors that other programs used."""
    steal_share: float | None = None
    """Share of the time of all processors that other virtual machines used."""
    by_cpu: tuple[User, ...] | None = None
    """The other programs that used most processor time. Programs that ended during the measurement are
    missing."""
    by_io: tuple[User, ...] | None = None
    """The other programs that moved most data to and from devices, as far as their counters are readable."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One operation at one I/O size and number of processes, measured `repeats` times."""

    test: str
    """`large-transfer`, `constant-volume`, `metadata`, `workload`, or the name of the foreign benchmark."""
    operation: str
    """Operation in kebab-case: `write`, `read`, `file-create`, `file-stat`, `file-remove`,
    `directory-create`, ..."""
    size_bytes: int | None
    """Size of one I/O request; null if the operation moves no data."""
    processes: int | None
    """Total number of processes. Threads that do I/O independently count, too."""
    nodes: int | None
    value: float
    """Value for all processes together: the median of `values`, or else the mean that the source gives."""
    unit: Unit
    repeats: int | None
    spread: float | None
    """Standard deviation of the repeats (n - 1) as a share of their mean; null if there is a single
    repeat."""
    cache: Cache | None = None
    """Role of the cache; null if no data is moved, or if a write was synced or bypassed the page cache."""
    latency_ns: Latency | None = None
    values: tuple[float, ...] = ()
    """The value of each repeat, if the source has them."""
    minimum: float | None = None
    """Smallest value of the repeats, if the source has only extremes."""
    maximum: float | None = None
    variant: Mapping[str, str] = field(default_factory=dict)
    """Further properties that distinguish cells: `api`, `access` (`file-per-process`, `shared-file`), ..."""
    cache_reason: str | None = None
    volume_bytes: int | None = None
    """Bytes that all processes together moved in one repeat."""
    seconds: float | None = None
    """Mean wall time of one repeat."""
    source: str | None = None
    """File and line from which the cell was read."""
    load: Load | None = None
    """Other activity of the machine; null: not examined."""

    @property
    def best(self) -> float:
        """Returns the value of the best repeat that is known."""
        known = [*self.values, self.value, *(one for one in (self.minimum, self.maximum) if one is not None)]
        return max(known) if self.unit.more_is_better else min(known)


@dataclass(frozen=True, slots=True)
class Limit:
    """Upper limit of the bandwidth of a link, a server or a controller, as an administrator stated it."""

    name: str
    bytes_per_s: float
    per: str = "total"
    """`total`, or `node`, which means that N nodes have N times the limit."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """The conditions under which cells were measured. Values can be interpreted only if they are known."""

    tool: str | None = None
    version: str | None = None
    started: str | None = None
    """Start time in ISO 8601; without a time zone if the source has none."""
    finished: str | None = None
    host: str | None = None
    target: str | None = None
    """Folder or file that was measured."""
    file_system: str | None = None
    """Type of the file system: `lustre`, `nfs4`, `ext4`, ..."""
    command: str | None = None
    limits: tuple[Limit, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Further properties that the tool reports: class, seed, memory, ...; names end in the unit."""
    notes: tuple[str, ...] = ()
    """Sentences in English about omissions, and facts that are needed to interpret the values."""
    parts: tuple[Protocol, ...] = ()
    """If measurements of several runs were combined, the protocol of each run."""


PLAIN_FIELDS = ("tool", "version", "started", "finished", "host", "target", "file_system", "command")
"""Fields of a protocol that contain a text."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A statement about measurements, such as a specialist would write next to a graph."""

    kind: str
    """Name of the kind in kebab-case; docs/explanation/remarks.md explains each."""
    at: Mapping[str, Json]
    """Identifies the cells that the remark is about: `test`, `operation`, `processes`, `size_bytes`, ..."""
    message: Message
    """The sentence in English, which is translated when it is shown."""
    evidence: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Measurements:
    """Cells measured under one protocol, and the remarks on them."""

    protocol: Protocol
    cells: tuple[Cell, ...]
    remarks: tuple[Remark, ...] = ()


def from_memory(cell: Cell) -> bool:
    """Returns whether the cell's rate is that of memory. Such a rate says nothing about a disk or server."""
    return cell.cache is not None and cell.cache.is_memory


def spread_of(values: Iterable[float]) -> float | None:
    """Returns the standard deviation (n - 1) divided by the mean, or None if there are fewer than two values
    or the mean is 0."""
    several = tuple(values)
    if len(several) < 2 or fmean(several) == 0:
        return None
    return stdev(several) / abs(fmean(several))


def repeated(cell: Cell, values: Iterable[float]) -> Cell:
    """Returns a copy of CELL whose value, repeats and spread are computed from VALUES. VALUES has one number
    for each repeat, and at least one."""
    several = tuple(values)
    return replace(
        cell, value=median(several), values=several, repeats=len(several), spread=spread_of(several)
    )


def joined(several: Iterable[Measurements]) -> Measurements:
    """Combines measurements of several runs. A field of the common protocol has a value if it is the same in
    all protocols. The protocol of each run is kept in `parts`."""
    given = tuple(several)
    if len(given) == 1:
        return given[0]
    parts = tuple(part for one in given for part in (one.protocol.parts or (one.protocol,)))
    limits = parts[0].limits if len({part.limits for part in parts}) == 1 else ()
    same = {name: _agreed(getattr(part, name) for part in parts) for name in PLAIN_FIELDS}
    protocol = replace(Protocol(limits=limits, parts=parts), **same)  # type: ignore[arg-type]
    return Measurements(
        protocol,
        tuple(cell for one in given for cell in one.cells),
        tuple(remark for one in given for remark in one.remarks),
    )


def _agreed(values: Iterator[str | None]) -> str | None:
    different = set(values)
    return different.pop() if len(different) == 1 else None
