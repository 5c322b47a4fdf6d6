"""Finds the daily pattern of an operation: the hours at which it is slower every day."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import median

from iodock.file_system.probe.history import Series
from iodock.file_system.probe.statistics import friedman

HOUR_NS = 3_600_000_000_000
LEAST_DAYS = 3
LEAST_HOURS = 12
CHANCE = 1e-4
LEAST_RATIO = 1.25


@dataclass(frozen=True, slots=True)
class Daily:
    """Usual durations of an operation by hour of the day, in ns. The usual duration is computed in two steps:
    the median of each hour of each day, and the median of these over all days."""

    hours: Mapping[int, float]
    """Usual duration by hour of the day, local time."""
    busy: tuple[int, int]
    """The first slow hour, and the first hour after it that is not slow: 9 and 17 for 'from 9 to 17'."""
    busy_ns: float
    quiet_ns: float
    chance: float


@cache
def local_hour(hour: int) -> tuple[int, int]:
    """Converts an hour, counted from the epoch, to (day, hour of the day) in local time."""
    local = time.localtime(hour * 3600)
    return local.tm_year * 366 + local.tm_yday, local.tm_hour


def by_hour(series: Series) -> dict[int, dict[int, float]]:
    """Returns the median duration of each hour, by day and by hour of the day."""
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for ts, ns in zip(series.times, series.spans, strict=True):
        cells[local_hour(ts // HOUR_NS)].append(ns)
    days: dict[int, dict[int, float]] = defaultdict(dict)
    for (day, hour), spans in cells.items():
        days[day][hour] = median(spans)
    return days


def daily(series: Series) -> Daily | None:
    """Returns the daily pattern, or None if there is none, or if there are data of too few days to find
    one."""
    days = by_hour(series)
    fullest = max((len(hours) for hours in days.values()), default=0)
    full = [hours for hours in days.values() if len(hours) == fullest]
    shared = sorted(set[int](full[0]).intersection(*full)) if full else []
    if len(full) < LEAST_DAYS or len(shared) < LEAST_HOURS:
        return None
    chance = friedman([[hours[one] for one in shared] for hours in full])
    usual = {one: median(hours[one] for hours in full) for one in shared}
    low, high = min(usual.values()), max(usual.values())
    if chance >= CHANCE or low <= 0 or high / low < LEAST_RATIO:
        return None
    start, length = _busiest({one: math.log(span) for one, span in usual.items()})
    within = {(start + at) % 24 for at in range(length)}
    return Daily(
        usual,
        (start, (start + length) % 24),
        median(span for one, span in usual.items() if one in within),
        median(span for one, span in usual.items() if one not in within),
        chance,
    )


def _busiest(logs: Mapping[int, float]) -> tuple[int, int]:
    """Finds the period of the day whose hours are slower than the others, and which explains most of the
    variation (least squares). Returns its first hour and its length in hours."""
    total, count = sum(logs.values()), len(logs)
    gains: dict[tuple[int, int], float] = {}
    for start in range(24):
        inside, here = 0.0, 0
        for length in range(1, 24):
            hour = (start + length - 1) % 24
            inside, here = inside + logs.get(hour, 0.0), here + (hour in logs)
            if 0 < here < count and inside / here > total / count:
                gains[start, length] = inside**2 / here + (total - inside) ** 2 / (count - here)
    return max(gains, key=lambda one: gains[one])
