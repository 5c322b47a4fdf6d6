"""Computes the distribution of a site's jobs over CPU utilisation, and proposes a threshold for it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from iodock.program.ratio.record import Record, core_count, utilisation
from iodock.program.ratio.threshold import BINS, Proposal, propose
from iodock.shared.quantile import quantile

Weight = Literal["jobs", "core-hours"]
SECONDS_PER_HOUR = 3600.0
_ABOVE_ONE = 1.05


@dataclass(frozen=True, slots=True)
class Bin:
    """Holds the jobs in one bin of CPU utilisation, which is 0.01 wide. The last bin also contains all values
    above 1."""

    lower: float
    upper: float
    jobs: int
    core_hours: float


@dataclass(frozen=True, slots=True)
class History:
    """Holds the distribution of a site's jobs over CPU utilisation. Quantiles count each job once; in
    `*_by_hours`, each job counts with its core-hours."""

    jobs: int
    core_hours: float
    mean: float
    mean_by_hours: float
    deciles: tuple[float, ...]
    """Deciles of the jobs: ten, twenty, ..., ninety per cent of the jobs are below them. The fifth one is the
    median."""
    bins: tuple[Bin, ...]
    above_one: int
    """Number of jobs with more user time than their cores allow, because their number of cores is wrong. They
    count as 1 everywhere."""
    too_short: int
    """Number of jobs that were left out because they are shorter than the requested minimum."""
    without_ratio: int
    """Number of jobs that were left out because they have no elapsed time or no CPU time."""
    proposal: Proposal

    def share_below(self, limit: float) -> tuple[float, float]:
        """Returns the share of the jobs in the bins below LIMIT, and their share of the core-hours."""
        below = [one for one in self.bins if one.upper <= limit + 1e-9]
        hours = self.core_hours or 1.0
        return sum(one.jobs for one in below) / self.jobs, sum(one.core_hours for one in below) / hours


@dataclass(slots=True)
class _Sums:
    values: array[float]
    jobs: list[int]
    hours: list[float]
    weighted: float = 0.0
    above_one: int = 0
    too_short: int = 0
    without_ratio: int = 0

    def add(self, share: float, hours: float) -> None:
        self.above_one += share > _ABOVE_ONE
        value = min(share, 1.0)
        self.values.append(value)
        place = min(int(value * BINS), BINS - 1)
        self.jobs[place] += 1
        self.hours[place] += hours
        self.weighted += value * hours


def history_of(
    records: Iterable[Record], weight: Weight, shortest: float, cores: float | None
) -> History | None:
    """Computes the distribution of the jobs that took at least SHORTEST seconds. Returns None if there are
    none."""
    sums = _Sums(array("d"), [0] * BINS, [0.0] * BINS)
    for record in records:
        value = utilisation(record, cores)
        if value is None:
            sums.without_ratio += 1
        elif (record.real or 0.0) < shortest:
            sums.too_short += 1
        else:
            hours = (record.real or 0.0) * (core_count(record, cores) or 1.0) / SECONDS_PER_HOUR
            sums.add(value, hours)
    return _history(sums, weight) if sums.values else None


def _history(sums: _Sums, weight: Weight) -> History:
    ordered = sorted(sums.values)
    count, hours = len(ordered), sum(sums.hours)
    deciles = tuple(quantile(ordered, tenth / 10) for tenth in range(1, 10))
    weights = [float(jobs) for jobs in sums.jobs] if weight == "jobs" else sums.hours
    return History(
        jobs=count,
        core_hours=hours,
        mean=sum(ordered) / count,
        mean_by_hours=sums.weighted / hours if hours else sum(ordered) / count,
        deciles=deciles,
        bins=tuple(
            Bin(place / BINS, (place + 1) / BINS, sums.jobs[place], sums.hours[place])
            for place in range(BINS)
        ),
        above_one=sums.above_one,
        too_short=sums.too_short,
        without_ratio=sums.without_ratio,
        proposal=propose(weights, count, deciles[0]),
    )
