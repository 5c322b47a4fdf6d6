"""Finds singular points in the results of probes, and joins them to episodes. A point is singular if the
operation was not answered, failed, or took much longer than usual."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from iodock.file_system.probe.history import Series, Watch
from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import Kind, Late
from iodock.shared.quantile import quantile

BLOCK = 101
"""The median of this number of points is the usual duration at that time. It may change over the days."""
FACTOR = 10.0
"""A point is singular only if it took at least this multiple of the usual duration."""
TAIL = 8.0
"""A point is singular only if its excess over the 90 % quantile is at least this multiple of the quantile's
distance from the median. Where durations vary widely, long ones are normal."""
LEAST_NS = 20_000_000
"""A point is singular only if it took at least this time, which is long enough to be noticed."""
GAP_ROUNDS = 3.0
"""Points that are at most this number of rounds apart belong to one episode."""


class Sort(Enum):
    """Kinds of singular points, from the least to the most severe."""

    SLOW = 0
    FAILED = 1
    UNANSWERED = 2


@dataclass(frozen=True, slots=True)
class Point:
    """A singular point: the result of one operation in one round."""

    ts: int
    operation: Operation
    kind: Kind
    ns: int | None
    """Duration of the operation; if there was no answer, the time waited."""
    usual_ns: int | None
    """Usual duration, if the operation was slow."""
    detail: str | None = None

    @property
    def sort(self) -> Sort:
        if self.kind is Kind.FAILED:
            return Sort.FAILED
        return Sort.UNANSWERED if self.kind in (Kind.NO_ANSWER, Kind.WAITING) else Sort.SLOW


@dataclass(frozen=True, slots=True)
class Episode:
    """Singular points of one kind that are close together in time."""

    start_ts: int
    end_ts: int
    points: tuple[Point, ...]

    @property
    def worst(self) -> Point:
        """The point with the longest duration."""
        return max(self.points, key=lambda one: one.ns or 0)

    @property
    def sort(self) -> Sort:
        return self.points[0].sort

    @property
    def operations(self) -> tuple[Operation, ...]:
        there = {one.operation for one in self.points}
        return tuple(one for one in Operation if one in there)


def episodes(watch: Watch) -> tuple[Episode, ...]:
    """Returns all episodes of a watch, sorted by their start."""
    points = list(_troubles(watch))
    for operation, series in watch.series.items():
        points += slow_points(operation, series)
    points.sort(key=lambda one: (one.ts, list(Operation).index(one.operation)))
    gap_ns = int(GAP_ROUNDS * watch.every_s * 1e9)
    # Each kind of point has episodes of its own. Otherwise, a slow operation shortly before an outage would
    # make the outage seem longer.
    sorts = ([one for one in points if one.sort is wanted] for wanted in Sort)
    found = [one for several in sorts for one in _joined(several, gap_ns)]
    return tuple(sorted(found, key=lambda one: one.start_ts))


def _troubles(watch: Watch) -> Iterator[Point]:
    """Yields the operations that failed or were not answered in time. If the answer came after the time
    limit, the point has the real duration."""
    late = {
        one: sorted((answer.ts, answer.ns) for answer in answers) for one, answers in _late(watch).items()
    }
    # All earlier operations of a round may have waited until the time limit, so an operation may begin this
    # many ns after its round.
    within = int(watch.limit_s * len(Operation) * 1e9) + 1
    for one in watch.troubles:
        ns = one.outcome.ns
        if one.outcome.kind is Kind.NO_ANSWER:
            answers = late.get(one.operation, [])
            at = bisect_left(answers, (one.ts, 0))
            if at < len(answers) and answers[at][0] < one.ts + within:
                ns = max(ns or 0, answers[at][1])
        yield Point(one.ts, one.operation, one.outcome.kind, ns, None, one.outcome.detail)


def _late(watch: Watch) -> dict[Operation, list[Late]]:
    found: dict[Operation, list[Late]] = defaultdict(list)
    for one in watch.late:
        found[one.operation].append(one)
    return found


def slow_points(operation: Operation, series: Series) -> Iterator[Point]:
    """Yields the points whose duration was far above the usual duration at that time."""
    for at, (usual, most) in enumerate(_limits(series.spans)):
        for place in range(at * BLOCK, min((at + 1) * BLOCK, len(series.spans))):
            if series.spans[place] > most:
                yield Point(series.times[place], operation, Kind.ANSWERED, series.spans[place], round(usual))


def _limits(spans: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yields the usual duration of each block, and the duration above which a point is singular. Both are
    computed from the block and its two neighbours."""
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
    # WAITING means that the call of an earlier round still has no answer. Its `ns` counts from the start of
    # that call, so the episode ends at the time of the point itself.
    ends = (one.ts if one.kind is Kind.WAITING else one.ts + (one.ns or 0) for one in points)
    return Episode(points[0].ts, max(ends), tuple(points))
