"""Derives typical values of a file system, and the knees of its curves, from measurements. A site stores them
in its settings file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from iodock.file_system.health import remarks
from iodock.file_system.health.measurements import Cell, Measurements, Remark, Unit, from_memory
from iodock.file_system.health.remarks.sentences import Kind
from iodock.shared.language import N_
from iodock.shared.settings import kind_of

SMALL_BYTES = 4096
LARGE_BYTES = 1 << 20
"""From this request size on, the rate is limited by bandwidth and not by the latency of requests."""
METADATA = ("file-create", "file-open", "file-stat", "file-remove")
KNEES = (Kind.LEVELS_OFF, Kind.DEGRADES)


@dataclass(frozen=True, slots=True)
class Value:
    """One typical value, with its name in the site's settings file."""

    name: str
    """Name of a field of `iodock.shared.settings.FileSystem`."""
    value: str | int
    source: str
    """Describes in a few words the measurements that the value comes from."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that can't be derived, and the measurement that is missing for it."""

    name: str
    why: str


_NEEDS = {
    "read_bytes_per_s": N_("no uncached read of 1 MiB or more by one process"),
    "write_bytes_per_s": N_("no write of 1 MiB or more by one process"),
    "small_read_per_s": N_("no uncached read of 4 KiB by one process"),
    "small_write_per_s": N_("no write of 4 KiB by one process"),
    "read_knee_bytes": N_("no size above which uncached reads of one process are equally fast"),
    "write_knee_bytes": N_("no size above which writes of one process are equally fast"),
    "metadata_per_s": N_("no creation, stat or removal of files by one process"),
    "stat_knee_processes": N_("no number of processes beyond which metadata calls per second stop growing"),
}


def typical(measured: Measurements) -> tuple[tuple[Value, ...], tuple[Missing, ...]]:
    """Returns the values that can be derived from the measurements, and those that can't. Values for one
    process are taken from cells with a single process. A rate of several processes divided by their number
    would be lower, because the processes slow each other down."""
    found = [one for one in (make(measured) for make in _MAKERS) if one is not None]
    names = {one.name for one in found}
    return tuple(found), tuple(Missing(name, why) for name, why in _NEEDS.items() if name not in names)


def _kind(measured: Measurements) -> Value | None:
    fs_type = measured.protocol.file_system
    return Value("kind", kind_of(fs_type), fs_type) if fs_type else None


def _link(measured: Measurements) -> Value | None:
    # A node can't be faster than the narrowest limit, so the smallest one is the limit of the link.
    least = min(measured.protocol.limits, key=lambda one: one.bytes_per_s, default=None)
    return None if least is None else Value("link_bytes_per_s", round(least.bytes_per_s), least.name)


def _stream(name: str, operation: str) -> Callable[[Measurements], Value | None]:
    def make(measured: Measurements) -> Value | None:
        cells = [
            one
            for one in _alone(measured.cells, operation)
            if one.unit is Unit.BYTES_PER_S and (one.size_bytes or 0) >= LARGE_BYTES
        ]
        # Cells of the test `large-transfer` are preferred, because it measures nothing but streams.
        best = max(cells, key=lambda one: (one.test == "large-transfer", one.value), default=None)
        return None if best is None else Value(name, round(best.value), _said(best))

    return make


def _small(name: str, operation: str) -> Callable[[Measurements], Value | None]:
    def make(measured: Measurements) -> Value | None:
        cells = [one for one in _alone(measured.cells, operation) if one.size_bytes == SMALL_BYTES]
        rates = [(one, _per_s(one)) for one in cells]
        known = [(one, rate) for one, rate in rates if rate]
        if not known:
            return None
        best, rate = max(known, key=lambda one: one[1] or 0.0)
        return Value(name, round(rate or 0.0), _said(best))

    return make


def _per_s(cell: Cell) -> float | None:
    if cell.unit is Unit.OPERATIONS_PER_S:
        return cell.value
    return cell.value / SMALL_BYTES if cell.unit is Unit.BYTES_PER_S else None


def _size_knee(name: str, operation: str) -> Callable[[Measurements], Value | None]:
    """Makes a function that returns the smallest request size with good performance. The size is taken from
    the remark on the curve of one process."""

    def make(measured: Measurements) -> Value | None:
        uncached = [one for one in measured.cells if not from_memory(one)]
        for one in remarks.find(replace(measured, cells=tuple(uncached))):
            is_ours = one.kind == Kind.GOOD_ONLY_ABOVE_SIZE and one.at.get("operation") == operation
            size, processes = one.at.get("size_bytes"), one.at.get("processes")
            alone = processes == 1 or (isinstance(processes, list) and 1 in processes)
            if is_ours and alone and isinstance(size, int):
                share = one.message.values["below_share"]
                assert isinstance(share, float)
                return Value(
                    name, size, f"{one.at['test']}, {operation}, 1 process: below at most {share:.0%}"
                )
        return None

    return make


def _metadata(measured: Measurements) -> Value | None:
    """Returns the rate of metadata calls. It is the harmonic mean of the rates of all kinds of calls, which
    is the rate of a program that makes equal numbers of each kind."""
    best: dict[str, Cell] = {}
    for operation in METADATA:
        for cell in _alone(measured.cells, operation):
            before = best.get(operation)
            if cell.unit is Unit.OPERATIONS_PER_S and (before is None or cell.value > before.value):
                best[operation] = cell
    if not best or any(cell.value <= 0 for cell in best.values()):
        return None
    mean = len(best) / sum(1 / cell.value for cell in best.values())
    names = ", ".join(name.removeprefix("file-") for name in best)
    first = next(iter(best.values()))
    return Value("metadata_per_s", round(mean), f"{names} in turn; {first.test}, 1 process")


def _knee(measured: Measurements) -> Value | None:
    """Returns the number of processes beyond which metadata calls do not become faster. It is taken from the
    remark on `file-stat`, or else from the remark with the smallest number of processes."""
    known = [one for one in remarks.find(measured) if one.kind in KNEES and _processes(one)]
    of_stat = [one for one in known if one.at.get("operation") == "file-stat"]
    chosen = of_stat or [one for one in known if one.at.get("operation") in METADATA]
    first = min(chosen, key=_processes, default=None)
    if first is None:
        return None
    said = f"{first.at['operation']} {first.kind.replace('-', ' ')} there"
    return Value("stat_knee_processes", _processes(first), said)


def _processes(one: Remark) -> int:
    found = one.at.get("processes")
    return found if isinstance(found, int) else 0


def _stripes(measured: Measurements) -> Value | None:
    count = measured.protocol.settings.get("stripe_count")
    return Value("stripe_count", count, "as set") if isinstance(count, int) and count > 0 else None


_MAKERS: tuple[Callable[[Measurements], Value | None], ...] = (
    _kind,
    _link,
    _stream("read_bytes_per_s", "read"),
    _stream("write_bytes_per_s", "write"),
    _small("small_read_per_s", "read"),
    _small("small_write_per_s", "write"),
    _size_knee("read_knee_bytes", "read"),
    _size_knee("write_knee_bytes", "write"),
    _metadata,
    _knee,
    _stripes,
)


def _alone(cells: Iterable[Cell], operation: str) -> Iterator[Cell]:
    """Selects cells of OPERATION by a single process. Cells whose rate is that of memory are left out."""
    for one in cells:
        is_alone = one.operation == operation and one.processes == 1
        if is_alone and not from_memory(one) and one.value > 0:
            yield one


def _said(cell: Cell) -> str:
    parts = [cell.test, cell.operation, f"{cell.size_bytes} bytes a request", "1 process"]
    if cell.cache is not None:
        parts.append(f"cache {cell.cache.value}")
    if cell.repeats:
        parts.append(f"repeats {cell.repeats}")
    if cell.spread is not None:
        parts.append(f"spread {cell.spread:.0%}")
    return ", ".join(parts)
