"""Cells along one axis: what else differs is the same for all points of a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from iodock.health.measurements import Cell, Json, Unit
from iodock.health.remarks.noise import Noise, noise_of, t_limit, t_tails

PROCESSES = "processes"
SIZE = "size_bytes"
FALSE_ALARMS = 0.015
"""How often chance may make a remark of any kind in a whole result."""
_UNITS = (Unit.BYTES_PER_S, Unit.OPERATIONS_PER_S)


@dataclass(frozen=True)
class Point:
    """One cell on a curve."""

    x: float
    """Logarithm of processes or size."""
    y: float
    """Logarithm of the value."""
    error: float
    """Standard error of y."""
    cell: Cell


@dataclass(frozen=True)
class Curve:
    """Cells of one operation, by rising processes or size."""

    axis: str
    points: tuple[Point, ...]
    noise: Noise
    alpha: float
    """What a single comparison on it may cost in false alarms."""

    @property
    def cell(self) -> Cell:
        """The first cell: test, operation and the rest are the same for all."""
        return self.points[0].cell

    def without(self, point: Point) -> Curve:
        """The rest of it."""
        return replace(self, points=tuple(one for one in self.points if one is not point))

    @cached_property
    def limit(self) -> float:
        """How many standard errors are no chance."""
        return t_limit(self.alpha, self.noise.degrees)

    def at(self, point: Point) -> int:
        """Processes, or bytes."""
        return int(getattr(point.cell, self.axis))

    def sure(self, difference: float, error: float, choices: int = 1) -> bool:
        """Whether a difference lies outside the spread; CHOICES is of how many it was the largest."""
        return error > 0 and t_tails(difference / error, self.noise.degrees) * choices < self.alpha

    def place(self) -> dict[str, Json]:
        """Which curve it is, for a remark's `at`."""
        cell = self.cell
        other = SIZE if self.axis == PROCESSES else PROCESSES
        said: dict[str, Json] = {"test": cell.test, "operation": cell.operation, other: getattr(cell, other)}
        if len({point.cell.nodes for point in self.points}) == 1:
            said["nodes"] = cell.nodes
        variant: dict[str, Json] = dict(cell.variant)
        return {**said, **({"variant": variant} if variant else {})}


def mean(points: Sequence[Point]) -> tuple[float, float]:
    """The weighted mean of y, and its standard error."""
    weights = [1.0 / point.error**2 for point in points]
    total = sum(weights)
    return sum(w * point.y for w, point in zip(weights, points, strict=True)) / total, 1.0 / math.sqrt(total)


def line(points: Sequence[Point]) -> tuple[float, float, float]:
    """Weighted least squares: level at x = 0, slope, the slope's standard error. Needs two different x."""
    weights = [1.0 / point.error**2 for point in points]
    total = sum(weights)
    x = sum(w * point.x for w, point in zip(weights, points, strict=True)) / total
    y = sum(w * point.y for w, point in zip(weights, points, strict=True)) / total
    square = sum(w * (point.x - x) ** 2 for w, point in zip(weights, points, strict=True))
    product = sum(w * (point.x - x) * (point.y - y) for w, point in zip(weights, points, strict=True))
    slope = product / square
    return y - slope * x, slope, 1.0 / math.sqrt(square)


def usable(cells: Iterable[Cell]) -> list[Cell]:
    """Rates above zero: seconds and scores have no curves."""
    return [cell for cell in cells if cell.unit in _UNITS and cell.value > 0]


def curves_of(cells: Sequence[Cell], axis: str) -> list[Curve]:
    """Every curve of at least three points along AXIS whose noise is known."""
    groups = [group for operation in _operations(cells) for group in _groups(operation, axis)]
    comparisons = sum(len(group) for group in groups)
    alpha = FALSE_ALARMS / max(comparisons, 1)
    return [
        curve for operation in _operations(cells) for curve in _curves(operation, axis, alpha, len(cells))
    ]


def _operations(cells: Sequence[Cell]) -> list[list[Cell]]:
    return split(
        usable(cells), lambda cell: (cell.test, cell.operation, cell.unit, cell.cache, _variant(cell))
    )


def split(cells: Iterable[Cell], key: Callable[[Cell], object]) -> list[list[Cell]]:
    """Cells by key, in the order in which they come."""
    parts: dict[object, list[Cell]] = {}
    for cell in cells:
        parts.setdefault(key(cell), []).append(cell)
    return list(parts.values())


def _variant(cell: Cell) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in cell.variant.items() if name != "block_bytes"))


def _groups(cells: Sequence[Cell], axis: str) -> list[list[Cell]]:
    """Cells of one operation as curves, split by what else differs where x would be twice on a curve."""
    known = [cell for cell in cells if getattr(cell, axis)]
    other = SIZE if axis == PROCESSES else PROCESSES
    groups = split(known, lambda cell: getattr(cell, other))
    for key in (lambda cell: cell.nodes, lambda cell: cell.variant.get("block_bytes")):
        groups = [
            part for group in groups for part in (split(group, key) if _doubled(group, axis) else [group])
        ]
    return [group for group in groups if len(group) >= 3 and not _doubled(group, axis)]


def _doubled(cells: Sequence[Cell], axis: str) -> bool:
    return len({getattr(cell, axis) for cell in cells}) < len(cells)


def _curves(cells: Sequence[Cell], axis: str, alpha: float, everything: int) -> list[Curve]:
    noise = noise_of(cells, FALSE_ALARMS / max(everything, 1))
    if noise is None:
        return []
    return [
        Curve(axis, tuple(_point(cell, axis, noise) for cell in _sorted(group, axis)), noise, alpha)
        for group in _groups(cells, axis)
    ]


def _sorted(cells: Sequence[Cell], axis: str) -> list[Cell]:
    return sorted(cells, key=lambda cell: int(getattr(cell, axis)))


def _point(cell: Cell, axis: str, noise: Noise) -> Point:
    return Point(math.log(getattr(cell, axis)), math.log(cell.value), noise.error(cell), cell)
