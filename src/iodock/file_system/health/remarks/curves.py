"""Defines curves. A curve consists of cells that differ in one property, the axis, and are the same in all
others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from iodock.file_system.health.measurements import Cell, Json, Unit, from_memory
from iodock.file_system.health.remarks.noise import Noise, noise_of, t_limit, t_tails

PROCESSES = "processes"
SIZE = "size_bytes"
NODES = "nodes"
BLOCK = "block_bytes"
FALSE_ALARMS = 0.015
"""Probability of a false remark of each kind in a whole result."""
_UNITS = (Unit.BYTES_PER_S, Unit.OPERATIONS_PER_S)


@dataclass(frozen=True)
class Point:
    """One cell on a curve, with the logarithms of its position and value."""

    x: float
    """Logarithm of the processes or of the size."""
    y: float
    """Logarithm of the value."""
    error: float
    """Standard error of y."""
    cell: Cell


@dataclass(frozen=True)
class Curve:
    """Cells of one operation, sorted by their position on the axis."""

    axis: str
    points: tuple[Point, ...]
    noise: Noise
    alpha: float
    """Probability of a false alarm that is allowed for a single comparison on this curve."""

    @property
    def cell(self) -> Cell:
        """The first cell of the curve. Test, operation and other properties are the same for all cells."""
        return self.points[0].cell

    def without(self, point: Point) -> Curve:
        """Returns the curve without one point."""
        return replace(self, points=tuple(one for one in self.points if one is not point))

    @cached_property
    def limit(self) -> float:
        """The number of standard errors that a difference must exceed to be significant on this curve."""
        return t_limit(self.alpha, self.noise.degrees)

    def at(self, point: Point) -> int:
        """Returns the position of a point on the axis: its number of processes, bytes or nodes, or the value
        of a setting."""
        return position(point.cell, self.axis) or 0

    def sure(self, difference: float, error: float, choices: int = 1) -> bool:
        """Returns whether a difference is significant. ERROR is its standard error. If it was chosen as the
        largest of several differences, CHOICES is their number."""
        return error > 0 and t_tails(difference / error, self.noise.degrees) * choices < self.alpha

    def place(self) -> dict[str, Json]:
        """Returns the properties that identify the curve, in the form of a remark's field `at`."""
        cell = self.cell
        said: dict[str, Json] = {"test": cell.test, "operation": cell.operation}
        if from_memory(cell) and cell.cache:
            said["cache"] = cell.cache.value
        for other in (SIZE, PROCESSES):
            if other != self.axis and len({getattr(point.cell, other) for point in self.points}) == 1:
                said[other] = getattr(cell, other)
        if len({point.cell.nodes for point in self.points}) == 1:
            said["nodes"] = cell.nodes
        variant: dict[str, Json] = {name: value for name, value in cell.variant.items() if name != self.axis}
        return {**said, **({"variant": variant} if variant else {})}


def mean(points: Sequence[Point]) -> tuple[float, float]:
    """Returns the mean of y over the points, weighted by their errors, and the standard error of this
    mean."""
    weights = [1.0 / point.error**2 for point in points]
    total = sum(weights)
    return sum(w * point.y for w, point in zip(weights, points, strict=True)) / total, 1.0 / math.sqrt(total)


def line(points: Sequence[Point]) -> tuple[float, float, float]:
    """Fits a straight line by weighted least squares. Returns its value at x = 0, its slope, and the standard
    error of the slope. At least two points must have different x."""
    weights = [1.0 / point.error**2 for point in points]
    total = sum(weights)
    x = sum(w * point.x for w, point in zip(weights, points, strict=True)) / total
    y = sum(w * point.y for w, point in zip(weights, points, strict=True)) / total
    square = sum(w * (point.x - x) ** 2 for w, point in zip(weights, points, strict=True))
    product = sum(w * (point.x - x) * (point.y - y) for w, point in zip(weights, points, strict=True))
    slope = product / square
    return y - slope * x, slope, 1.0 / math.sqrt(square)


def usable(cells: Iterable[Cell]) -> list[Cell]:
    """Selects cells with rates above zero. Durations and scores are not compared along curves."""
    return [cell for cell in cells if cell.unit in _UNITS and cell.value > 0]


def curves_of(cells: Sequence[Cell], axis: str, least: int = 3) -> list[Curve]:
    """Returns the curves along AXIS that have at least LEAST points and a known spread."""
    operations = _operations(cells, axis)
    comparisons = sum(len(group) for operation in operations for group in _groups(operation, axis, least))
    alpha = FALSE_ALARMS / max(comparisons, 1)
    return [curve for operation in operations for curve in _curves(operation, axis, alpha, len(cells), least)]


def settings_of(cells: Iterable[Cell]) -> list[str]:
    """Returns the names of all axes other than processes and size: the nodes, and each setting with numeric
    values, such as threads, files or io_depth."""
    names = {
        name: None
        for cell in cells
        for name, value in cell.variant.items()
        if value.isdecimal() and name != BLOCK
    }
    return [NODES, *names]


def position(cell: Cell, axis: str) -> int | None:
    """Returns the position of a cell on an axis, or None if the cell has no value there."""
    if axis in (PROCESSES, SIZE, NODES):
        value = getattr(cell, axis)
        return int(value) if value else None
    text = cell.variant.get(axis, "")
    return (int(text) or None) if text.isdecimal() and len(text) < 19 else None


def _operations(cells: Sequence[Cell], axis: str) -> list[list[Cell]]:
    return split(
        usable(cells), lambda cell: (cell.test, cell.operation, cell.unit, cell.cache, _variant(cell, axis))
    )


def split(cells: Iterable[Cell], key: Callable[[Cell], object]) -> list[list[Cell]]:
    """Groups cells for which KEY returns the same value. Groups and cells keep their order."""
    parts: dict[object, list[Cell]] = {}
    for cell in cells:
        parts.setdefault(key(cell), []).append(cell)
    return list(parts.values())


def _variant(cell: Cell, axis: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in cell.variant.items() if name not in (BLOCK, axis)))


def _groups(cells: Sequence[Cell], axis: str, least: int) -> list[list[Cell]]:
    """Groups the cells of one operation into curves. If two cells of a group have the same position on the
    axis, the group is split by nodes, and then by block size."""
    known = [cell for cell in cells if position(cell, axis)]
    others = [other for other in (PROCESSES, SIZE) if other != axis]
    if axis == NODES:
        # The number of processes usually grows with the number of nodes, so the cells of a curve have the
        # same number of processes per node.
        others = [SIZE]
        groups = split(known, lambda cell: (cell.size_bytes, (cell.processes or 0) / (cell.nodes or 1)))
    else:
        groups = split(known, lambda cell: tuple(getattr(cell, other) for other in others))
    for key in (lambda cell: cell.nodes, lambda cell: cell.variant.get(BLOCK)):
        groups = [
            part for group in groups for part in (split(group, key) if _doubled(group, axis) else [group])
        ]
    return [group for group in groups if len(group) >= least and not _doubled(group, axis)]


def _doubled(cells: Sequence[Cell], axis: str) -> bool:
    return len({position(cell, axis) for cell in cells}) < len(cells)


def _curves(cells: Sequence[Cell], axis: str, alpha: float, everything: int, least: int) -> list[Curve]:
    noise = noise_of(cells, FALSE_ALARMS / max(everything, 1))
    if noise is None:
        return []
    return [
        Curve(axis, tuple(_point(cell, axis, noise) for cell in _sorted(group, axis)), noise, alpha)
        for group in _groups(cells, axis, least)
    ]


def _sorted(cells: Sequence[Cell], axis: str) -> list[Cell]:
    return sorted(cells, key=lambda cell: position(cell, axis) or 0)


def _point(cell: Cell, axis: str, noise: Noise) -> Point:
    return Point(math.log(position(cell, axis) or 1), math.log(cell.value), noise.error(cell), cell)
