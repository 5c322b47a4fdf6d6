"""Decides whether a run is slower than earlier ones, with robust statistics that a few unusual runs do not
affect.

A run is compared with earlier finished runs with a similar volume: between a third and three times. The usual
time is their median. The spread is 1.4826 times the median of all distances from it (MAD), which equals the
standard deviation for normally distributed times: Rousseeuw and Croux, Alternatives to the median absolute
deviation, J. Am. Stat. Assoc. 88 (1993). A run is slower if it took longer than the median plus 3 (1 + 4/n)
times the spread (the factor for n runs is larger for few runs, whose spread is less certain), longer than
nine of ten of the earlier runs, and by at least a tenth and 20 s (two readings). If it moved more bytes than
they did, its time per byte must exceed such a limit, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median, quantiles

from iodock.shared.language import N_

LEAST_RUNS = 5
SAME_VOLUME = 10**0.5
"""Two volumes are similar if their ratio is at most half an order of magnitude."""
_NORMAL = 1.4826
_SPREADS = 3.0
_OF_FEW = 4.0
_LEAST_SHARE = 0.1
_LEAST_S = 20.0
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Run:
    """Measurements of one job."""

    job: str
    begin: int
    """Time of its first reading with growth, ns since the epoch."""
    end: int
    read_bytes: float | None
    """Quantities of the run; None: not counted."""
    write_bytes: float | None
    metadata: float | None
    is_exact: bool
    is_over: bool

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin) / _SECOND, 1.0)

    @property
    def volume(self) -> tuple[bool, float]:
        """Bytes that the run moved (true, bytes), or metadata operations if it moved none (false,
        operations)."""
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
    """How much the elapsed times vary, comparable to a standard deviation."""
    limit_s: float | None = None
    """A run that takes longer than this is slower than usual."""


def judged(own: Run, others: Sequence[Run]) -> Judgement:
    """Compares a run with others. OTHERS: runs with the same name and user, including later ones."""
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
    """Returns whether both runs transferred a similar volume; for a running job, at least a similar
    volume."""
    (is_bytes, mine), (are_bytes, theirs) = own.volume, other.volume
    if is_bytes != are_bytes or mine <= 0 or theirs <= 0:
        return False
    return theirs >= mine / SAME_VOLUME and (not own.is_over or theirs <= mine * SAME_VOLUME)


def _moved_more(own: Run, past: Sequence[Run]) -> bool:
    """Returns whether the run takes longer because it moves more than the earlier ones."""
    volumes = [one.volume[1] for one in past]
    if own.volume[1] <= median(volumes) * (1 + _LEAST_SHARE):
        return False
    _, _, limit = _limits([one.seconds / volume for one, volume in zip(past, volumes, strict=True)])
    return own.seconds / own.volume[1] <= limit


def _limits(values: Sequence[float], least: float = 0.0) -> tuple[float, float, float]:
    """Returns the median, the spread, and the limit beyond which a value is unusual."""
    usual = median(values)
    spread = _NORMAL * median(abs(value - usual) for value in values)
    # With fewer than ten values, the largest one is the limit instead of the ninth tenth.
    ninth = quantiles(values, n=10, method="inclusive")[-1] if len(values) >= 10 else max(values)
    spreads = _SPREADS * (1 + _OF_FEW / len(values))
    limit = max(usual + spreads * spread, usual * (1 + _LEAST_SHARE), usual + least, ninth)
    return usual, spread, limit
