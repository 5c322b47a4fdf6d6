"""Decides whether a run is slower than earlier ones, with robust statistics that a few unusual runs do not
affect.

A run is compared with earlier finished runs whose I/O volume is between 1/3.2 and 3.2 times its own. The
usual time is the median of their elapsed times. The spread is 1.4826 times the median of the distances from
the usual time (MAD). For normally distributed times this equals the standard deviation: Rousseeuw and Croux,
Alternatives to the median absolute deviation, J. Am. Stat. Assoc. 88 (1993). A run is slower than usual if
all of these conditions are met: It took longer than the median plus 3 (1 + 4/n) times the spread, where n is
the number of earlier runs; the factor grows for small n, because the spread is then less certain. It took
longer than nine of ten earlier runs. It took at least 10 % and 20 s (two readings) longer than the median. If
it moved over 10 % more bytes than the median run, its time per byte must exceed such a limit, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median, quantiles

from iodock.shared.language import N_

LEAST_RUNS = 5
SAME_VOLUME = 10**0.5
"""Two volumes are similar if the larger one is at most this multiple of the smaller one (half an order of
magnitude)."""
_NORMAL = 1.4826
_SPREADS = 3.0
_OF_FEW = 4.0
_LEAST_SHARE = 0.1
_LEAST_S = 20.0
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Run:
    """Measurements of one job, which is one run."""

    job: str
    begin: int
    """Time of its first reading with growth, ns since the epoch."""
    end: int
    read_bytes: float | None
    """Bytes that the run read; None: not counted, as in the following fields."""
    write_bytes: float | None
    metadata: float | None
    is_exact: bool
    is_over: bool

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin) / _SECOND, 1.0)

    @property
    def volume(self) -> tuple[bool, float]:
        """Returns (True, bytes that the run moved), or (False, metadata operations) if the run moved no
        bytes."""
        moved = (self.read_bytes or 0) + (self.write_bytes or 0)
        return (True, moved) if moved > 0 else (False, self.metadata or 0)


class Verdict(Enum):
    """The verdict on a run."""

    SLOWER = N_("slower than usual")
    USUAL = N_("as usual")
    FEW = N_("not enough runs")
    RUNS = N_("still running, and not slower so far")


@dataclass(frozen=True)
class Judgement:
    """A verdict and its evidence. The numbers are None if there are not enough runs."""

    verdict: Verdict
    compared: tuple[str, ...]
    """Ids of the jobs that the run was compared with."""
    usual_s: float | None = None
    """Median elapsed time of the earlier runs, in s."""
    spread_s: float | None = None
    """Robust standard deviation of the elapsed times of the earlier runs, in s."""
    limit_s: float | None = None
    """Elapsed time in s beyond which a run is slower than usual."""


def judged(own: Run, others: Sequence[Run]) -> Judgement:
    """Compares the run OWN with earlier ones. OTHERS are all runs with the same name and user. Those that
    began later or are not finished are ignored."""
    past = [one for one in others if one.is_over and one.begin < own.begin and is_alike(own, one)]
    jobs = tuple(one.job for one in past)
    if len(past) < LEAST_RUNS:
        return Judgement(Verdict.FEW, jobs)
    usual, spread, limit = _limits([one.seconds for one in past], _LEAST_S)
    verdict = Verdict.USUAL if own.is_over else Verdict.RUNS
    if own.seconds > limit and not _moved_more(own, past):
        verdict = Verdict.SLOWER
    return Judgement(verdict, jobs, usual, spread, limit)


def is_alike(own: Run, other: Run) -> bool:
    """Returns whether both runs transferred a similar volume. If OWN still runs, OTHER may have transferred
    any larger volume, because OWN is not complete."""
    (is_bytes, mine), (are_bytes, theirs) = own.volume, other.volume
    if is_bytes != are_bytes or mine <= 0 or theirs <= 0:
        return False
    return theirs >= mine / SAME_VOLUME and (not own.is_over or theirs <= mine * SAME_VOLUME)


def _moved_more(own: Run, past: Sequence[Run]) -> bool:
    """Returns whether the larger volume of the run explains its longer time: it moved over 10 % more than the
    median of the earlier runs, and its time per byte is within the limit."""
    volumes = [one.volume[1] for one in past]
    if own.volume[1] <= median(volumes) * (1 + _LEAST_SHARE):
        return False
    _, _, limit = _limits([one.seconds / volume for one, volume in zip(past, volumes, strict=True)])
    return own.seconds / own.volume[1] <= limit


def _limits(values: Sequence[float], least: float = 0.0) -> tuple[float, float, float]:
    """Returns the median, the spread, and the limit beyond which a value is unusual. The limit is at least
    the median plus LEAST."""
    usual = median(values)
    spread = _NORMAL * median(abs(value - usual) for value in values)
    # For fewer than ten values, the largest one takes the place of the 90th percentile.
    ninth = quantiles(values, n=10, method="inclusive")[-1] if len(values) >= 10 else max(values)
    spreads = _SPREADS * (1 + _OF_FEW / len(values))
    limit = max(usual + spreads * spread, usual * (1 + _LEAST_SHARE), usual + least, ninth)
    return usual, spread, limit
