"""Finds when the usual duration of an operation changed. A change may be sudden (change point) or gradual
(drift)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from iodock.file_system.probe.daily import HOUR_NS, Daily, local_hour
from iodock.file_system.probe.history import Series
from iodock.file_system.probe.statistics import mann_kendall, pettitt, theil_sen

MOST_BINS = 300
LEAST_BINS = 16
LEAST_SEGMENT = 6
"""There must be at least this number of bins on either side of a change."""
LEAST_POINTS = 3
"""A bin needs this number of values for a meaningful median."""
CHANCE = 1e-4
LEAST_RATIO = 1.25
_WIDTHS_S = (60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400)


@dataclass(frozen=True, slots=True)
class Change:
    """A sudden change of the usual duration. Times are in ns since the epoch, durations in ns."""

    ts: int
    """Latest possible time of the change. The earliest is `ts - within_ns`."""
    within_ns: int
    before_ns: float
    after_ns: float
    chance: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A gradual change of the usual duration. Times are in ns since the epoch, durations in ns."""

    since_ts: int
    until_ts: int
    first_ns: float
    last_ns: float
    chance: float


@dataclass(frozen=True, slots=True)
class _Bins:
    width_ns: int
    times: tuple[int, ...]
    """Start of each bin, ns since the epoch."""
    values: tuple[float, ...]
    """Logarithm of the median in each bin, with the daily pattern removed."""


def levels(series: Series, every_s: float, pattern: Daily | None) -> tuple[tuple[Change, ...], Drift | None]:
    """Returns either sudden changes or a drift. Schwarz's criterion decides which of the two describes the
    values better in relation to its number of parameters."""
    bins = _bins(series, every_s, pattern)
    if len(bins.values) < LEAST_BINS:
        return (), None
    places = _told(bins.values, _places(bins.values, 0, len(bins.values)))
    drift, of_drift = _drift(bins)
    of_changes = _criterion(_step_errors(bins.values, places), 2 * len(places) + 1)
    if drift is not None and of_drift < of_changes:
        return (), drift
    return tuple(_changes(bins, places)), None


def _bins(series: Series, every_s: float, pattern: Daily | None) -> _Bins:
    if not series.times:
        return _Bins(1, (), ())
    span_s = (series.times[-1] - series.times[0]) / 1e9
    wanted = max(span_s / MOST_BINS, 2 * LEAST_POINTS * every_s)
    width = next((one for one in _WIDTHS_S if one >= wanted), _WIDTHS_S[-1]) * 1_000_000_000
    cells: dict[int, list[float]] = {}
    for ts, ns in zip(series.times, series.spans, strict=True):
        cells.setdefault(ts // width, []).append(
            ns if pattern is None else ns / _usual(ts // HOUR_NS, pattern)
        )
    kept = sorted(at for at, values in cells.items() if len(values) >= LEAST_POINTS)
    medians = (math.log(max(median(cells[at]), 1)) for at in kept)
    return _Bins(width, tuple(at * width for at in kept), tuple(medians))


def _usual(hour: int, pattern: Daily) -> float:
    """Returns the factor by which this hour of the day is usually slower than the quiet hours."""
    return pattern.hours.get(local_hour(hour)[1], pattern.quiet_ns) / pattern.quiet_ns


def _places(values: Sequence[float], start: int, end: int) -> list[int]:
    """Returns the positions between START and END at which the level changes. The most significant one
    divides the values into two parts, which are then searched in the same way."""
    if end - start < 2 * LEAST_SEGMENT:
        return []
    place, chance = pettitt(values[start:end])
    place += start
    if chance >= CHANCE or min(place - start, end - place) < LEAST_SEGMENT:
        return []
    return [*_places(values, start, place), place, *_places(values, place, end)]


def _told(values: Sequence[float], places: Sequence[int]) -> list[int]:
    """Removes positions at which the level changes by less than LEAST_RATIO, the smallest change first. Each
    remaining position is then determined again between its neighbours. Its first estimate may be wrong,
    because the other changes were not known at that time."""
    kept = list(places)
    while kept:
        steps = {place: _step(values, kept, at) for at, place in enumerate(kept)}
        slightest = min(kept, key=lambda place: steps[place])
        if steps[slightest] >= math.log(LEAST_RATIO):
            break
        kept.remove(slightest)
    for at in range(len(kept)):
        before, after = (0, *kept)[at], (*kept, len(values))[at + 1]
        kept[at] = before + _cut(values[before:after])
    return kept


def _cut(values: Sequence[float]) -> int:
    """Returns the position that divides VALUES into two levels with the smallest sum of squares. Pettitt's
    test shows that there is a change, but the position that it estimates is biased towards the middle."""
    count, total, low = len(values), sum(values), 0.0
    gains: dict[int, float] = {}
    for at in range(1, count):
        low += values[at - 1]
        if min(at, count - at) >= LEAST_SEGMENT:
            gains[at] = low**2 / at + (total - low) ** 2 / (count - at)
    return max(gains, key=lambda at: gains[at])


def _step(values: Sequence[float], places: Sequence[int], at: int) -> float:
    before, place, after = (0, *places)[at], places[at], (*places, len(values))[at + 1]
    return abs(median(values[before:place]) - median(values[place:after]))


def _changes(bins: _Bins, places: Sequence[int]) -> list[Change]:
    edges = [0, *places, len(bins.values)]
    found = []
    for before, place, after in zip(edges, edges[1:], edges[2:], strict=False):
        own = bins.values[before:after]
        first, second = (median(bins.values[low:high]) for low, high in ((before, place), (place, after)))
        since = bins.times[place - 1]
        found.append(
            Change(
                bins.times[place],
                bins.times[place] - since,
                math.exp(first),
                math.exp(second),
                pettitt(own)[1],
            )
        )
    return found


def _drift(bins: _Bins) -> tuple[Drift | None, float]:
    """Fits a straight line. Returns the drift, if it is significant and large enough, and Schwarz's criterion
    for it."""
    chance = mann_kendall(bins.values)
    if chance >= CHANCE:
        return None, math.inf
    hours = [(one - bins.times[0]) / HOUR_NS for one in bins.times]
    slope, first = theil_sen(hours, bins.values)
    last = first + slope * hours[-1]
    if abs(last - first) < math.log(LEAST_RATIO):
        return None, math.inf
    errors = [value - first - slope * hour for hour, value in zip(hours, bins.values, strict=True)]
    drift = Drift(bins.times[0], bins.times[-1] + bins.width_ns, math.exp(first), math.exp(last), chance)
    return drift, _criterion(errors, 2)


def _step_errors(values: Sequence[float], places: Sequence[int]) -> list[float]:
    edges = [0, *places, len(values)]
    return [value - median(values[low:high]) for low, high in pairwise(edges) for value in values[low:high]]


def _criterion(errors: Sequence[float], parameters: int) -> float:
    """Returns Schwarz's criterion for errors with a Laplace distribution, in which a single outlier counts
    less than in a normal distribution."""
    mean = sum(abs(one) for one in errors) / len(errors)
    return 2 * len(errors) * math.log(max(mean, 1e-9)) + parameters * math.log(len(errors))
