"""Finds remarks that compare several curves or cells: sizes without an effect, writing compared with reading,
limits of the hardware, and unstable cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from iodock.file_system.health.measurements import (
    Cache,
    Cell,
    Json,
    Limit,
    Protocol,
    Remark,
    Unit,
    from_memory,
)
from iodock.file_system.health.remarks import sentences, shape
from iodock.file_system.health.remarks.along import measured
from iodock.file_system.health.remarks.along import remark as on_curve
from iodock.file_system.health.remarks.curves import (
    FALSE_ALARMS,
    PROCESSES,
    SIZE,
    Curve,
    line,
    mean,
    split,
    usable,
)
from iodock.file_system.health.remarks.noise import log_spread, noise_of
from iodock.file_system.health.remarks.sentences import Kind
from iodock.shared.message import Message

_SAME = math.log(1.15)
_CHANGES = math.log(1.3)
_FALLS, _GROWS = math.log(0.75), math.log(1.5)
_LEAST_SPREAD, _FAR_ABOVE = 0.17, 2.5
_UNSTABLE_ALARMS = 0.005
_THROUGHOUT = 0.5
_LEAST_OF_LIMIT = 0.25
_SURE_OF_LIMIT = 0.15


def independent_of_size(by_size: Sequence[Curve], by_processes: Sequence[Curve]) -> Iterator[Remark]:
    """Reports that the I/O size has no effect on an operation. This is worth a remark only if other values do
    change: with the number of processes for the same operation, or with the size for another operation."""
    for several in split_curves(by_size):
        curve = several[0]
        changes = any(_changes(one) for one in by_processes if _same_operation(one, curve))
        others = any(
            _changes(one)
            for one in by_size
            if one.cell.test == curve.cell.test and one.cell.operation != curve.cell.operation
        )
        if not changes and not others:
            continue
        differs = _size_effect(several)
        if differs is None:
            continue
        sizes = [curve.at(point) for point in curve.points]
        values = {"first_bytes": sizes[0], "last_bytes": sizes[-1], "differs_share": math.exp(differs) - 1.0}
        at: dict[str, Json] = {
            SIZE: [sizes[0], sizes[-1]],
            PROCESSES: [one.cell.processes for one in several],
        }
        evidence: dict[str, Json] = {
            **values,
            "sizes": list(sizes),
            "spread_share": round(curve.noise.sigma, 4),
        }
        yield on_curve(curve, Kind.INDEPENDENT_OF_SIZE, sentences.INDEPENDENT_OF_SIZE, values, evidence, at)


def split_curves(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Groups curves by operation. The curves of one group have different numbers of processes (or different
    sizes)."""
    parts: dict[object, list[Curve]] = {}
    for curve in curves:
        cell = curve.cell
        key = (cell.test, cell.operation, cell.unit, cell.cache, tuple(sorted(cell.variant.items())))
        parts.setdefault(key, []).append(curve)
    return list(parts.values())


def _same_operation(one: Curve, other: Curve) -> bool:
    ours, theirs = one.cell, other.cell
    return (ours.test, ours.operation, ours.cache, ours.variant) == (
        theirs.test,
        theirs.operation,
        theirs.cache,
        theirs.variant,
    )


def _changes(curve: Curve) -> bool:
    ends = max(curve.points, key=lambda point: point.y), min(curve.points, key=lambda point: point.y)
    difference = ends[0].y - ends[1].y
    error = math.hypot(ends[0].error, ends[1].error)
    return difference > _CHANGES and curve.sure(difference, error, len(curve.points) ** 2)


def _size_effect(several: Sequence[Curve]) -> float | None:
    """Returns the largest difference between two sizes, averaged over all numbers of processes, as a
    logarithm. Returns None if the sizes differ significantly, if the difference may be larger than _SAME, or
    if the curves have different sizes."""
    sizes = {tuple(curve.at(point) for point in curve.points) for curve in several}
    if len(sizes) != 1 or not all(shape.constant(curve) for curve in several):
        return None
    levels = []
    for at in range(len(several[0].points)):
        centred = [
            replace(curve.points[at], y=curve.points[at].y - mean(curve.points)[0]) for curve in several
        ]
        levels.append(mean(centred))
    difference = max(level for level, _ in levels) - min(level for level, _ in levels)
    error = max(error for _, error in levels) * math.sqrt(2.0)
    return difference if difference < _SAME and 2.0 * error < _SAME else None


def write_falls_read_grows(curves: Sequence[Curve]) -> Iterator[tuple[Curve, Remark]]:
    """Yields each write curve that falls while the read curve of the same test grows, with the remark about
    it."""
    for write in curves:
        if write.cell.operation != "write" or from_memory(write.cell):
            continue
        for read in curves:
            if not _pair(write, read):
                continue
            down, up = _change(write), _change(read)
            if down is None or up is None or down > _FALLS or up < _GROWS:
                continue
            yield write, _write_read(write, read, down, up)


def _pair(write: Curve, read: Curve) -> bool:
    one, other = write.cell, read.cell
    return (
        other.operation == "read"
        and other.cache is not Cache.UNCACHED
        and (one.test, one.size_bytes, one.variant, one.unit)
        == (other.test, other.size_bytes, other.variant, other.unit)
    )


def _change(curve: Curve) -> float | None:
    """Returns the change from the first to the last point as a logarithm, or None if it may be due to chance.
    It is the smaller of two estimates: the difference of the two points, and the fitted straight line."""
    _, slope, error = line(curve.points)
    span = curve.points[-1].x - curve.points[0].x
    ends = curve.points[-1].y - curve.points[0].y
    sure = curve.sure(slope, error) and curve.sure(
        ends, math.hypot(curve.points[0].error, curve.points[-1].error)
    )
    # Both estimates must show the change. Otherwise, a single deviating point at an end, or a bend in the
    # curve, would be reported as a trend.
    return math.copysign(min(abs(slope * span), abs(ends)), ends) if sure and slope * ends > 0 else None


def _write_read(write: Curve, read: Curve, down: float, up: float) -> Remark:
    first, last = write.at(write.points[0]), write.at(write.points[-1])
    values = {
        "first_processes": first,
        "last_processes": last,
        "write_share": math.exp(write.points[-1].y - write.points[0].y),
        "read_factor": math.exp(read.points[-1].y - read.points[0].y),
    }
    evidence: dict[str, Json] = {**values, "write": measured(write), "read": measured(read)}
    at: dict[str, Json] = {"operation": "write", PROCESSES: [first, last]}
    return on_curve(
        write, Kind.WRITE_FALLS_READ_GROWS, sentences.WRITE_FALLS_READ_GROWS, values, evidence, at
    )


def of_limits(cells: Sequence[Cell], protocol: Protocol) -> Iterator[Remark]:
    """Reports for each operation which share of each limit of the hardware its best cell reached."""
    moving = [cell for cell in usable(cells) if cell.unit is Unit.BYTES_PER_S and not from_memory(cell)]
    for group in split(moving, lambda cell: (cell.test, cell.operation, tuple(sorted(cell.variant.items())))):
        noise = noise_of(group, FALSE_ALARMS)
        if noise is None:
            continue
        for limit in protocol.limits:
            best = max(group, key=lambda cell: cell.value / _most(limit, cell))
            share = best.value / _most(limit, best)
            if share >= _LEAST_OF_LIMIT and 2.0 * noise.error(best) < _SURE_OF_LIMIT:
                yield _of_limit(best, limit, share)


def _most(limit: Limit, cell: Cell) -> float:
    return limit.bytes_per_s * ((cell.nodes or 1) if limit.per == "node" else 1)


def _of_limit(best: Cell, limit: Limit, share: float) -> Remark:
    most = _most(limit, best)
    template = sentences.ABOVE_LINK_LIMIT if share > 1.05 else sentences.LINK_LIMIT
    message = Message(template, {"limit_share": share, "limit": limit.name, "limit_bytes_per_s": most})
    evidence: dict[str, Json] = {"limit": limit.name, "limit_bytes_per_s": most, "value": best.value}
    return Remark(Kind.LINK_LIMIT.value, _place(best), message, {**evidence, "limit_share": share})


def unstable(cells: Sequence[Cell]) -> Iterator[Remark]:
    """Reports cells whose repeats vary much more than those of similar cells. If the repeats of all cells of
    an operation vary widely, this is reported as well."""
    measured_cells = usable(cells)
    alpha = _UNSTABLE_ALARMS / max(len(measured_cells), 1)
    for group in split(
        measured_cells, lambda cell: (cell.test, cell.operation, cell.cache, tuple(cell.variant.items()))
    ):
        noise = noise_of(group, alpha)
        if noise is None:
            continue
        if noise.sigma > _THROUGHOUT and noise.degrees >= 6:
            values = {"spread_share": noise.sigma}
            place = _place(group[0])
            at: dict[str, Json] = {
                name: place[name] for name in ("test", "operation", "variant") if name in place
            }
            yield Remark(
                Kind.UNSTABLE.value, at, Message(sentences.UNSTABLE_THROUGHOUT, values), dict(values)
            )
        for cell in group:
            spread = log_spread(cell)
            if (
                id(cell) in noise.unstable
                and spread is not None
                and spread > max(_LEAST_SPREAD, _FAR_ABOVE * noise.sigma)
            ):
                yield _unstable(cell, noise.sigma)


def _unstable(cell: Cell, usual: float) -> Remark:
    values: dict[str, int | float | str | bool | None] = {
        PROCESSES: cell.processes,
        "spread_share": cell.spread,
        "usual_share": usual,
    }
    evidence: dict[str, Json] = {"repeats": cell.repeats, "values": list(cell.values), **values}
    return Remark(Kind.UNSTABLE.value, _place(cell), Message(sentences.UNSTABLE, values), evidence)


def _place(cell: Cell) -> dict[str, Json]:
    at: dict[str, Json] = {
        "test": cell.test,
        "operation": cell.operation,
        SIZE: cell.size_bytes,
        PROCESSES: cell.processes,
        "nodes": cell.nodes,
    }
    variant: dict[str, Json] = dict(cell.variant)
    return {**at, **({"variant": variant} if variant else {})}
