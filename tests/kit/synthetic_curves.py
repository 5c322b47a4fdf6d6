"""Creates made-up results of check-ups: curves of a known shape with noise of a known size."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from iodock.file_system.health.measurements import Cache, Cell, Limit, Measurements, Protocol, Unit, repeated

PROCESSES = (1, 5, 10, 50, 100, 500)
DOUBLED = (1, 2, 4, 8, 16, 32, 64)
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
MIB = 1 << 20
Shape = Callable[[int, int], float]
"""The true value by processes and size."""


@dataclass(frozen=True)
class Made:
    """One operation of a made-up result, with the shape of its curve."""

    operation: str
    shape: Shape
    processes: tuple[int, ...] = PROCESSES
    sizes: tuple[int | None, ...] = (MIB,)
    test: str = "large-transfer"
    cache: Cache | None = None


def made(
    operations: Iterable[Made], noise: float, seed: int, repeats: int = 3, limits: tuple[Limit, ...] = ()
) -> Measurements:
    """Returns measurements with repeats that vary log-normally by NOISE."""
    chance = random.Random(seed)
    cells = []
    for one in operations:
        for size in one.sizes:
            for processes in one.processes:
                true = one.shape(processes, size or 0)
                values = [true * chance.lognormvariate(0.0, noise) for _ in range(repeats)]
                cells.append(cell(one, processes, size, values))
    return Measurements(Protocol(tool="iodock", limits=limits), tuple(cells))


def cell(one: Made, processes: int, size: int | None, values: Iterable[float]) -> Cell:
    """Returns a cell with these repeats."""
    unit = Unit.BYTES_PER_S if size else Unit.OPERATIONS_PER_S
    empty = Cell(one.test, one.operation, size, processes, 1, 0.0, unit, None, None, one.cache)
    return repeated(empty, values)


def by_steps(**at: float) -> Shape:
    """Returns a curve with these values at numbers of processes, given as `_50=700.0`."""
    values = {int(name.removeprefix("_")): value for name, value in at.items()}
    return lambda processes, size: values[processes] * MIB
