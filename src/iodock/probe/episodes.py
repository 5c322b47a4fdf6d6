"""Singular points: when something got no answer, failed, or took far longer than usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iodock.probe.history import Series, Watch
from iodock.probe.operations import Operation
from iodock.probe.records import Kind
from iodock.probe.statistics import quantile

BLOCK = 101
"""Points by whose median the usual time is known there: it may change over the days."""
FACTOR = 10.0
"""So many times as long as usual is singular,"""
TAIL = 8.0
"""if it also lies so far beyond the 90 % quantile, in distances of that one from the median: where times
are always widely spread, a long one is nothing special,"""
LEAST_NS = 20_000_000
"""and is long enough for somebody to notice."""
GAP_ROUNDS = 3.0
"""Points so near to each other are one episode."""


@dataclass(frozen=True, slots=True)
class Point:
    """One operation of one round."""

    ts: int
    operation: Operation
    kind: Kind
    ns: int | None
    """How long it took, or was waited for."""
    usual_ns: int | None
    """For a slow one."""
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """Points that belong together."""

    start_ts: int
    end_ts: int
    points: tuple[Point, ...]

    @property
    def worst(self) -> Point:
        """One without an answer, else one that failed, else the slowest."""
        return max(self.points, key=lambda one: (_RANK[one.kind], one.ns or 0))

    @property
    def operations(self) -> tuple[Operation, ...]:
        there = {one.operation for one in self.points}
        return tuple(one for one in Operation if one in there)


_RANK = {Kind.ANSWERED: 0, Kind.NOT_TRIED: 0, Kind.FAILED: 1, Kind.WAITING: 2, Kind.NO_ANSWER: 3}


def episodes(watch: Watch) -> tuple[Episode, ...]:
    """All of them, by time."""
    points = [
        Point(one.ts, one.operation, one.outcome.kind, one.outcome.ns, None, one.outcome.detail)
        for one in watch.troubles
    ]
    for operation, series in watch.series.items():
        points += slow_points(operation, series)
    points.sort(key=lambda one: (one.ts, list(Operation).index(one.operation)))
    return tuple(_joined(points, int(GAP_ROUNDS * watch.every_s * 1e9)))


def slow_points(operation: Operation, series: Series) -> Iterator[Point]:
    """Those that took far longer than usual then."""
    for at, (usual, most) in enumerate(_limits(series.spans)):
        for place in range(at * BLOCK, min((at + 1) * BLOCK, len(series.spans))):
            if series.spans[place] > most:
                yield Point(series.times[place], operation, Kind.ANSWERED, series.spans[place], round(usual))


def _limits(spans: Sequence[int]) -> Iterator[tuple[float, float]]:
    """For each block what is usual and from where on it is singular, by the block and its neighbours."""
    for start in range(0, len(spans), BLOCK):
        around = spans[max(0, start - BLOCK) : start + 2 * BLOCK]
        ordered = sorted(around)
        usual, most = quantile(ordered, 0.5), quantile(ordered, 0.9)
        yield usual, max(FACTOR * usual, most + TAIL * (most - usual), float(LEAST_NS))


def _joined(points: Sequence[Point], gap_ns: int) -> Iterator[Episode]:
    under_way: list[Point] = []
    for point in points:
        if under_way and point.ts - under_way[-1].ts > gap_ns:
            yield _episode(under_way)
            under_way = []
        under_way.append(point)
    if under_way:
        yield _episode(under_way)


def _episode(points: list[Point]) -> Episode:
    # Waiting says only that the same call still has no answer: its end is when that was last seen.
    ends = (one.ts if one.kind is Kind.WAITING else one.ts + (one.ns or 0) for one in points)
    return Episode(points[0].ts, max(ends), tuple(points))
