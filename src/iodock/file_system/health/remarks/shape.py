"""Recognises the shape of one curve: where it levels off, falls or has a peak, and whether it grows in
proportion.

Each function takes a curve and returns the points that describe the shape, or None if the change may be due
to chance. A change that is smaller than the margins below is not reported even if it is certain, because it
does not matter to users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from iodock.file_system.health.remarks.curves import Curve, Point, line, mean

_SAME = math.log(1.08)
"""Values that differ by less look the same to a reader of the graph (logarithm)."""
_GROWN = math.log(1.3)
_FALLEN = math.log(1.12)
_FLAT = math.log(1.2)
_PEAK = math.log(1.4)
_APART = math.log(1.3)
_JUMP = math.log(2.0)
_OUTSIDE = 2.6
"""A point that is this number of standard errors away from a level does not belong to it."""
_FALLING = 2.0
"""As `_OUTSIDE`, for the case that values certainly fall and only the position is unknown."""
_SUSPECT = 3.0
_PROPORTION = 0.12
"""The growth is proportional if its slope differs from 1 by at most this."""
_WIDEST = math.log(1.25)
"""Points lie on a straight line if none deviates by more than this (logarithm)."""


@dataclass(frozen=True)
class Plateau:
    """Values that grow up to the point `start` and are constant from there on."""

    start: Point
    before: Point
    points: tuple[Point, ...]
    level: float
    """Logarithm of the constant value."""
    growth: float
    """Logarithm of the factor by which values grew before the plateau."""


@dataclass(frozen=True)
class Fall:
    """Values that have their maximum at `last` and fall after it."""

    last: Point
    top: float
    end: Point
    loss: float
    """Logarithm of the fall from the maximum to the last point."""


def same(curve: Curve, point: Point, others: tuple[Point, ...]) -> bool:
    """Returns whether a point may have the same value as the others, within the spread or the margin
    _SAME."""
    level, error = mean(others)
    difference = abs(point.y - level)
    return difference < _SAME or not curve.sure(difference, math.hypot(point.error, error))


def constant(curve: Curve) -> bool:
    """Returns whether all points may have the same value."""
    return all(same(curve, point, curve.without(point).points) for point in curve.points)


def _misfit(points: Sequence[Point], outside: float) -> float:
    """Returns chi-square for the assumption that all points have the same value. The errors are enlarged by
    the margin _SAME, so that differences too small to report contribute little."""
    errors = [math.hypot(point.error, _SAME / outside) for point in points]
    weights = [1.0 / error**2 for error in errors]
    level = sum(w * point.y for w, point in zip(weights, points, strict=True)) / sum(weights)
    return sum(w * (point.y - level) ** 2 for w, point in zip(weights, points, strict=True))


def _level_part(
    points: Sequence[Point], held: int, to_the_end: bool, off: float = _OUTSIDE
) -> tuple[int, int]:
    """Returns the first and the last point of that part of the curve around the point HELD which is closest
    to constant. Each point outside the part costs as much as a point inside that is OFF errors away from the
    constant value. A single deviating point therefore does not end the part."""
    best, found = math.inf, (held, held)
    for first in range(held + 1):
        for last in range(len(points) - 1 if to_the_end else held, len(points)):
            outside = len(points) - (last - first + 1)
            cost = _misfit(points[first : last + 1], off) + outside * off**2
            if cost < best:
                best, found = cost, (first, last)
    return found


def plateau(curve: Curve) -> Plateau | None:
    """Returns the constant part at the end of the curve, if values grew before it. The part must have at
    least two points."""
    points = curve.points
    start, _ = _level_part(points, len(points) - 1, to_the_end=True)
    level, error = mean(points[start:])
    if start == 0 or len(points) - start < 2 or points[start - 1].y > level:
        return None
    growth = level - points[0].y
    if growth < _GROWN or not curve.sure(growth, math.hypot(error, points[0].error)):
        return None
    found = Plateau(points[start], points[start - 1], points[start:], level, growth)
    return found if _stops_growing(curve, found) else None


def _stops_growing(curve: Curve, found: Plateau) -> bool:
    """Returns whether growth really stops at the plateau. The values there must not keep growing in small
    steps, and must be below the continued growth."""
    points = found.points
    _, slope, error = line(points)
    span = points[-1].x - points[0].x
    if slope * span > max(_FLAT, 2.5 * error * span):
        return False
    grown = tuple(point for point in curve.points if point.x <= found.start.x)
    _, before, uncertain = line(grown)
    return curve.sure((before - slope) * span, math.hypot(uncertain, error) * span) and before > 2 * slope


def jump(curve: Curve) -> Point | None:
    """Returns the last point if it is far above all previous points and these are equal."""
    points = curve.points
    if len(points) < 4:
        return None
    rest = curve.without(points[-1])
    level, error = mean(rest.points)
    above = points[-1].y - level
    sure = above > _JUMP and curve.sure(above, math.hypot(error, points[-1].error))
    return points[-1] if sure and constant(rest) else None


def fall(curve: Curve) -> Fall | None:
    """Returns the point of the maximum, and the fall from there to the end of the curve."""
    points = curve.points
    best = max(range(len(points)), key=lambda at: points[at].y)
    first, last = _level_part(points, best, to_the_end=False, off=_FALLING)
    level, error = mean(points[first : last + 1])
    end = points[-1]
    loss = level - end.y
    if last == len(points) - 1 or loss < _FALLEN:
        return None
    if any(one.y > level - _FALLEN for one in points[last + 1 :]):
        return None
    return Fall(points[last], level, end, loss) if curve.sure(loss, math.hypot(error, end.error)) else None


@dataclass(frozen=True)
class Trend:
    """Values that grow, or fall, from the first to the last point."""

    grows: bool


def trend(curve: Curve) -> Trend | None:
    """Returns a change in one direction along the whole curve. The last point must be beyond all others."""
    points = curve.points
    whole = points[-1].y - points[0].y
    error = math.hypot(points[0].error, points[-1].error)
    if abs(whole) < _GROWN or not curve.sure(whole, error):
        return None
    sign = math.copysign(1.0, whole)
    back = any(
        sign * (one.y - later.y) > max(_SAME, _SUSPECT * math.hypot(one.error, later.error))
        for one, later in combinations(points, 2)
    )
    # If the last point is about as high as another one, more processes or a larger size would no longer
    # change the value, so no trend is reported.
    last = sign * points[-1].y - max(sign * one.y for one in points[:-1])
    return Trend(sign > 0) if not back and last > _SAME else None


def differs(curve: Curve) -> tuple[Point, Point] | None:
    """Returns the lowest and the highest point if they differ significantly."""
    low, high = (choose(curve.points, key=lambda point: point.y) for choose in (min, max))
    difference, error = high.y - low.y, math.hypot(low.error, high.error)
    sure = difference > _GROWN and curve.sure(difference, error, len(curve.points) ** 2)
    return (low, high) if sure else None


def peak(curve: Curve) -> Point | None:
    """Returns a single point that is far above all others, if the other points never fall or lie on a
    straight line."""
    points = curve.points
    if len(points) < 4:
        return None
    best = max(range(len(points)), key=lambda at: points[at].y)
    if best in (0, len(points) - 1):
        return None
    point = points[best]
    above = [point.y - other.y for other in points if other is not point]
    errors = [math.hypot(point.error, other.error) for other in points if other is not point]
    if min(above) < _PEAK or not all(
        curve.sure(one, error) for one, error in zip(above, errors, strict=True)
    ):
        return None
    rest = curve.without(point)
    return point if _never_falls(rest) or straight(rest) else None


def _never_falls(curve: Curve) -> bool:
    """Returns whether no point is clearly below an earlier one. If one is, a peak before it may be the
    maximum of a curve that really falls, and not a single deviating point."""
    return not any(
        one.y - later.y > max(_FALLEN, _SUSPECT * math.hypot(one.error, later.error))
        for one, later in combinations(curve.points, 2)
    )


def straight(curve: Curve) -> bool:
    """Returns whether the logarithms of all points lie on a straight line."""
    level, slope, _ = line(curve.points)
    return all(
        abs(point.y - level - slope * point.x) < max(_SAME, min(curve.limit * point.error, _WIDEST))
        for point in curve.points
    )


def apart(curve: Curve) -> list[Point]:
    """Returns the points that are clearly below both neighbours, or above both without being the maximum of
    the curve."""
    points = curve.points
    if len(points) < 4:
        return []
    best = max(point.y for point in points)
    found = []
    for left, point, right in zip(points, points[1:], points[2:], strict=False):
        below = min(left.y, right.y) - point.y
        above = point.y - max(left.y, right.y)
        depth = max(below, above if point.y < best else -math.inf)
        nearest = max(left.error, right.error)
        if depth > _APART and curve.sure(depth, math.hypot(point.error, nearest)):
            found.append(point)
    return found


def proportional(curve: Curve) -> float | None:
    """Returns the slope if values are proportional to the number of processes. The largest number must be at
    least four times the smallest."""
    points = curve.points
    if len(points) < 3 or points[-1].x - points[0].x < math.log(4.0):
        return None
    _, slope, error = line(points)
    near = abs(slope - 1.0) < _PROPORTION and curve.limit * error < 0.4
    return slope if near and straight(curve) else None
