"""Measurements of a file system: cells with their protocol, whoever measured them. Data only, and its JSON.

The JSON is described by `docs/reference/measurements.schema.json`. `null` is not known.
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
    """Measurements that can't be read, or that a question does not fit."""


class Unit(StrEnum):
    """What a cell's value counts. All but seconds: more is better."""

    BYTES_PER_S = "bytes_per_s"
    OPERATIONS_PER_S = "operations_per_s"
    SECONDS = "seconds"
    SCORE = "score"
    """Without a unit, such as that of the IO500."""

    @property
    def more_is_better(self) -> bool:
        return self is not Unit.SECONDS


class Cache(StrEnum):
    """Where a read came from and a write went to, as far as it is known."""

    CACHED = "cached"
    UNCACHED = "uncached"
    MAYBE_CACHED = "maybe-cached"
    """Past the page cache of its file system; what lies under that may have a cache on this machine."""
    PAGE_CACHE = "page-cache"
    """A write without sync: the rate is that of memory."""
    UNKNOWN = "unknown"

    @property
    def is_memory(self) -> bool:
        """Whether the rate says nothing of a disk or server."""
        return self in (Cache.CACHED, Cache.PAGE_CACHE)


@dataclass(frozen=True, slots=True)
class Latency:
    """How long single operations took, over all processes and repeats, in nanoseconds."""

    p50: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None
    min: float | None = None
    mean: float | None = None
    count: int | None = None
    """Operations that were timed."""


@dataclass(frozen=True, slots=True)
class User:
    """A program that used the machine meanwhile."""

    name: str
    amount: float
    """Processors (1 is one of them all the time), or bytes per second from and to devices."""


@dataclass(frozen=True, slots=True)
class Load:
    """What else the machine did while a cell was measured: the busiest of its repeats and machines. None is
    not known."""

    load_average: float | None = None
    """Over the last minute; the check-up's own processes count."""
    others_cpu_share: float | None = None
    """Of the time of all processors, used by other programs."""
    steal_share: float | None = None
    """Of the time of all processors, given to other virtual machines."""
    by_cpu: tuple[User, ...] | None = None
    """Other programs that used most processor time; without those that ended meanwhile."""
    by_io: tuple[User, ...] | None = None
    """Other programs that moved most to and from devices, as far as they may be asked."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One operation at one size and number of processes, measured `repeats` times."""

    test: str
    """`large-transfer`, `constant-volume`, `metadata`, `workload`, or the name of the foreign benchmark."""
    operation: str
    """`write`, `read`, `file-create`, `file-stat`, `file-remove`, `directory-create`, ...; kebab-case."""
    size_bytes: int | None
    """Of one I/O request; null where the operation moves no data."""
    processes: int | None
    """In total. Threads that do I/O by themselves count."""
    nodes: int | None
    value: float
    """Of all processes together: the median of `values`, else the mean that the source gives."""
    unit: Unit
    repeats: int | None
    spread: float | None
    """Standard deviation of the repeats (n - 1) as a share of their mean; null where there is one only."""
    cache: Cache | None = None
    """Null where no data is moved, and where a write was synced or went past the page cache."""
    latency_ns: Latency | None = None
    values: tuple[float, ...] = ()
    """Of each repeat, where the source has them."""
    minimum: float | None = None
    """Least and most of the repeats, where the source has them but not each one."""
    maximum: float | None = None
    variant: Mapping[str, str] = field(default_factory=dict)
    """What else tells cells apart: `api`, `access` (`file-per-process`, `shared-file`), ..."""
    cache_reason: str | None = None
    volume_bytes: int | None = None
    """Moved in one repeat by all processes."""
    seconds: float | None = None
    """Wall time of one repeat, on average."""
    source: str | None = None
    """File and line that it was read from."""
    load: Load | None = None
    """Null where nobody looked."""

    @property
    def best(self) -> float:
        """The best repeat, as far as it is known."""
        known = [*self.values, self.value, *(one for one in (self.minimum, self.maximum) if one is not None)]
        return max(known) if self.unit.more_is_better else min(known)


@dataclass(frozen=True, slots=True)
class Limit:
    """What hardware allows at most, as an administrator said: a link, a server, a controller."""

    name: str
    bytes_per_s: float
    per: str = "total"
    """`total`, or `node`: then N nodes have N times as much."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How cells were measured: without it a value says nothing."""

    tool: str | None = None
    version: str | None = None
    started: str | None = None
    """ISO 8601; without a zone where the source has none."""
    finished: str | None = None
    host: str | None = None
    target: str | None = None
    """Folder or file that was measured."""
    file_system: str | None = None
    """Its type: `lustre`, `nfs4`, `ext4`, ..."""
    command: str | None = None
    limits: tuple[Limit, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Whatever else the tool says: class, seed, memory, ...; names end in the unit."""
    notes: tuple[str, ...] = ()
    """What was left out or must be known to read the values, in English."""
    parts: tuple[Protocol, ...] = ()
    """Where measurements of several runs were put together: each one's."""


PLAIN_FIELDS = ("tool", "version", "started", "finished", "host", "target", "file_system", "command")
"""Of a protocol: those that are a text each."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence that a specialist would write beside the graph."""

    kind: str
    """Kebab-case; each is explained in docs/explanation/remarks.md."""
    at: Mapping[str, Json]
    """The cells that it speaks of: `test`, `operation`, `processes`, `size_bytes`, ..."""
    message: Message
    """The sentence, in English, translated where it is shown."""
    evidence: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Measurements:
    """Cells measured under one protocol, and what was found in them."""

    protocol: Protocol
    cells: tuple[Cell, ...]
    remarks: tuple[Remark, ...] = ()


def from_memory(cell: Cell) -> bool:
    """Whether its rate says nothing of a disk or server."""
    return cell.cache is not None and cell.cache.is_memory


def spread_of(values: Iterable[float]) -> float | None:
    """Standard deviation (n - 1) as a share of the mean; None of fewer than two values or of mean 0."""
    several = tuple(values)
    if len(several) < 2 or fmean(several) == 0:
        return None
    return stdev(several) / abs(fmean(several))


def repeated(cell: Cell, values: Iterable[float]) -> Cell:
    """CELL with the value, repeats and spread that VALUES (one a repeat, at least one) give."""
    several = tuple(values)
    return replace(
        cell, value=median(several), values=several, repeats=len(several), spread=spread_of(several)
    )


def joined(several: Iterable[Measurements]) -> Measurements:
    """Measurements of several runs as one: what all protocols agree in is the protocol, each is a part."""
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
