"""Finds remarks on the measurements as a whole: writes that end in memory, and other load. It also lists what
was compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iodock.file_system.health.busy import is_high
from iodock.file_system.health.measurements import Cache, Cell, Json, Measurements, Remark, Unit
from iodock.file_system.health.remarks import sentences
from iodock.file_system.health.remarks.curves import (
    NODES,
    PROCESSES,
    SIZE,
    curves_of,
    settings_of,
    split,
    usable,
)
from iodock.file_system.health.remarks.sentences import Kind
from iodock.shared.language import N_
from iodock.shared.message import Message


def into_page_cache(cells: Sequence[Cell]) -> Iterator[Remark]:
    """Reports for each operation that writes without sync do not show the performance of the disk or
    server."""
    found = [cell for cell in cells if cell.cache is Cache.PAGE_CACHE and cell.unit is Unit.BYTES_PER_S]
    for group in split(found, lambda cell: (cell.test, cell.operation)):
        first = group[0]
        values: dict[str, int | float | str | bool | None] = {
            "cells": len(group),
            "best_bytes_per_s": max(cell.value for cell in group),
        }
        at: dict[str, Json] = {
            "test": first.test,
            "operation": first.operation,
            "cache": Cache.PAGE_CACHE.value,
        }
        yield Remark(Kind.PAGE_CACHE.value, at, Message(sentences.PAGE_CACHE, values), dict(values))


def other_load(cells: Sequence[Cell]) -> Iterator[Remark]:
    """Reports that other programs or virtual machines used the machine while cells were measured."""
    high = [cell for cell in cells if is_high(cell)]
    if not high:
        return
    loads = [cell.load for cell in high if cell.load is not None]
    values: dict[str, int | float | str | bool | None] = {
        "busy": len(high),
        "cells": len(cells),
        "cpu_share": max(
            (one.others_cpu_share for one in loads if one.others_cpu_share is not None), default=None
        ),
        "steal_share": max((one.steal_share for one in loads if one.steal_share is not None), default=None),
    }
    yield Remark(Kind.OTHER_LOAD.value, {}, Message(sentences.OTHER_LOAD, values), dict(values))


@dataclass(frozen=True)
class Tested:
    """The comparisons that were made, and the reasons why others were not possible."""

    operations: tuple[tuple[str, str], ...]
    """Test and operation for which at least one comparison was made."""
    sizes: tuple[int, ...]
    processes: tuple[int, ...]
    repeats: tuple[int, int] | None
    """Smallest and largest number of repeats of the compared cells."""
    untested: tuple[Message, ...]


_ONCE = N_("cells measured only once: {cells} of {all}")
_FEW = N_("cells with too few repeats to know their spread: {cells} of {all}")
_ONE_SIZE = N_("the effect of the request size: only one size, or none known")
_ONE_COUNT = N_("the effect of the number of processes: only one number, or none known")
_CACHE = N_("measurements with an unknown cache state: {cells}")
_MAYBE = N_("cells that a cache below the file system may have answered: {cells}")
_MEMORY = N_("the performance of the disk or server, where rates are those of memory: {cells} cells")
_LOAD = N_("other load on the machine: not recorded in {cells} cells")
_LIMITS = N_("the limit of a link: none was given")


def tested(measurements: Measurements) -> Tested:
    """Lists the comparisons that were made. Without remarks, users can see from the list whether there was
    nothing to report or nothing to compare."""
    cells = measurements.cells
    curves = [
        curve for axis in (SIZE, PROCESSES, *settings_of(cells)) for curve in curves_of(cells, axis, least=2)
    ]
    compared = {id(point.cell): point.cell for curve in curves for point in curve.points}
    several = [cell for cell in cells if id(cell) in compared]
    counts = [cell.repeats for cell in several if cell.repeats]
    return Tested(
        operations=tuple(dict.fromkeys((cell.test, cell.operation) for cell in several)),
        sizes=tuple(sorted({cell.size_bytes for cell in several if cell.size_bytes})),
        processes=tuple(sorted({cell.processes for cell in several if cell.processes})),
        repeats=(min(counts), max(counts)) if counts else None,
        untested=tuple(_untested(measurements, [curve.axis for curve in curves])),
    )


def _untested(measurements: Measurements, axes: Sequence[str]) -> Iterator[Message]:
    cells = measurements.cells
    once = sum(cell.spread is None for cell in cells)
    if once:
        yield Message(_ONCE, {"cells": once, "all": len(cells)})
    elif cells and not axes:
        yield Message(_FEW, {"cells": len(usable(cells)), "all": len(cells)})
    for axis, text in ((SIZE, _ONE_SIZE), (PROCESSES, _ONE_COUNT)):
        known = {getattr(cell, axis) for cell in cells if getattr(cell, axis)}
        if axis not in axes and not (axis == PROCESSES and NODES in axes) and len(known) < 2:
            yield Message(text)
    labels = [cell.cache for cell in cells]
    for labelled, text in (
        ((Cache.UNKNOWN,), _CACHE),
        ((Cache.MAYBE_CACHED,), _MAYBE),
        ((Cache.CACHED, Cache.PAGE_CACHE), _MEMORY),
    ):
        if count := sum(one in labelled for one in labels):
            yield Message(text, {"cells": count})
    if unknown := sum(cell.load is None for cell in cells):
        yield Message(_LOAD, {"cells": unknown})
    if not measurements.protocol.limits:
        yield Message(_LIMITS)
