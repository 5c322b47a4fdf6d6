"""Finds remarks by statistics: the sentences that a specialist would write next to the graphs.

`find` compares cells with different numbers of processes, I/O sizes, nodes and settings. A change that is
smaller than the spread gets no remark. Without repeats the spread is not known, so no change is reported at
all. A missing remark could then be mistaken for a good result; `whole.tested` therefore lists what was
compared. If the same statement is true for several sizes (or numbers of processes), a single remark is made
for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from iodock.file_system.health.measurements import Cell, Json, Measurements, Remark
from iodock.file_system.health.remarks import across, along, sentences, whole
from iodock.file_system.health.remarks.curves import PROCESSES, SIZE, Curve, curves_of, settings_of
from iodock.file_system.health.remarks.sentences import Kind

_OTHER = {PROCESSES: SIZE, SIZE: PROCESSES}


def find(measurements: Measurements) -> tuple[Remark, ...]:
    """Returns all remarks on the measurements, in the order of the cells that they are about."""
    cells = measurements.cells
    by_processes, by_size = curves_of(cells, PROCESSES), curves_of(cells, SIZE)
    pairs = list(across.write_falls_read_grows(by_processes))
    told = {id(curve) for curve, _ in pairs}
    found = [
        *_merged([remark for _, remark in pairs], SIZE, by_processes),
        *_on_curves(by_processes, told),
        *_on_curves(by_size, told),
        *across.independent_of_size(by_size, by_processes),
        *across.of_limits(cells, measurements.protocol),
        *across.unstable(cells),
        *_trends(cells),
        *whole.into_page_cache(cells),
        *whole.other_load(cells),
    ]
    order = {(cell.test, cell.operation): at for at, cell in reversed(list(enumerate(cells)))}
    return tuple(
        sorted(
            _once(found),
            key=lambda one: order.get((str(one.at.get("test")), str(one.at.get("operation"))), -1),
        )
    )


def _on_curves(curves: Sequence[Curve], told: set[int]) -> Iterable[Remark]:
    """Yields remarks on each curve. TOLD contains the `id` of curves whose fall was already reported, because
    the write rate fell while the read rate grew."""
    remarks = [
        remark
        for curve in curves
        for remark in along.remarks_on(curve)
        if not (id(curve) in told and remark.kind == Kind.DEGRADES)
    ]
    return _merged(remarks, _OTHER[curves[0].axis], curves) if curves else []


def _trends(cells: Sequence[Cell]) -> Iterable[Remark]:
    """Yields remarks on curves with only two points, and remarks on the effect of settings."""
    for axis in (SIZE, PROCESSES, *settings_of(cells)):
        curves = [
            curve for curve in curves_of(cells, axis, least=2) if axis not in _OTHER or len(curve.points) == 2
        ]
        remarks = [remark for curve in curves for remark in along.trends(curve)]
        yield from _merged(remarks, _OTHER[axis], curves) if axis in _OTHER else remarks


def _merged(remarks: Sequence[Remark], other: str, curves: Sequence[Curve]) -> list[Remark]:
    """Combines remarks that differ only in their position on the axis OTHER."""
    groups: dict[str, list[Remark]] = {}
    for remark in remarks:
        at = {name: value for name, value in remark.at.items() if name != other}
        # Remarks about differences are not combined, because each curve has its own points.
        own = remark.at.get(other) if remark.kind == Kind.VARIES else None
        groups.setdefault(json.dumps([remark.kind, at, own], sort_keys=True), []).append(remark)
    return [_one(group, other, curves) for group in groups.values()]


def _one(group: Sequence[Remark], other: str, curves: Sequence[Curve]) -> Remark:
    first = group[len(group) // 2]
    if first.kind == Kind.PEAKS_ONLY_AT and 2 * len(group) < _alike(first.at, curves):
        # The peak appears at fewer than half of the sizes. It is then a property of one cell, and not an
        # effect of the number of processes.
        values = {PROCESSES: first.message.values[PROCESSES], "off_share": _factor(first) - 1.0}
        message = replace(first.message, text=sentences.ABOVE, values=values)
        first = replace(first, kind=Kind.APART.value, message=message)
    known = [one.at[other] for one in group if one.at.get(other) is not None]
    if len(known) < 2:
        return first
    if first.message.text in sentences.SEVERAL:
        factors = [float(str(one.message.values["change_factor"])) for one in group]
        values = {**first.message.values, "least_factor": min(factors), "most_factor": max(factors)}
        first = replace(
            first, message=replace(first.message, text=sentences.SEVERAL[first.message.text], values=values)
        )
    return replace(first, at={**first.at, other: known})


def _factor(remark: Remark) -> float:
    value = remark.message.values["above_factor"]
    return float(value) if isinstance(value, (int, float)) else 1.0


def _alike(at: Mapping[str, Json], curves: Sequence[Curve]) -> int:
    """Returns the number of curves with the test and operation that a remark is about."""
    return sum((curve.cell.test, curve.cell.operation) == (at["test"], at["operation"]) for curve in curves)


def _once(remarks: Sequence[Remark]) -> list[Remark]:
    """Removes duplicates. A cell that deviates in both the curve over sizes and the curve over processes
    would be reported twice."""
    seen: set[str] = set()
    kept = []
    for remark in remarks:
        key = json.dumps([remark.kind, remark.at], sort_keys=True)
        if remark.kind != Kind.APART or key not in seen:
            kept.append(remark)
        seen.add(key)
    return kept
