"""Proposes a threshold below which a job is called I/O-heavy, from a histogram of CPU utilisation.

Jobs that wait for I/O and jobs that compute form two peaks with a valley between them. A valley is a place
where the smoothed histogram falls to less than half of the lower of the two peaks next to it. Each of these
peaks must contain at least a hundredth of the jobs. If there are several valleys, the one at the lowest
utilisation counts, because half-used nodes form peaks at higher values. The threshold is at the end of the
peak below the valley, and not in the middle of the valley, because the jobs in the valley are not known to be
I/O-heavy.

Otsu's method (1979), which is often used to divide a histogram, chooses the division by the variance of the
two parts. It is not used here: usually few jobs wait for I/O, and the large peak of computing jobs would then
determine the division.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from iodock.shared.language import N_

BINS = 100
FEWEST_JOBS = 100
"""With fewer jobs, peaks may arise by chance."""
_LEAST_SHARE = 0.01
_VALLEY = 0.5
_FLOOR = 0.1
_HIGHEST_MODE = 0.3
"""If the lowest peak is above this, it is not a peak of I/O: such jobs use a half or a third of their
cores."""
_HIGHEST = 0.5


@dataclass(frozen=True, slots=True)
class Proposal:
    """Holds a proposed threshold and the reason for it."""

    threshold: float
    bimodal: bool
    reason: str
    modes: tuple[float, float] | None = None
    """Positions of the two peaks."""

    @property
    def toml(self) -> str:
        """Returns the threshold as lines for the site's settings file."""
        return f"[ratio]\nio_below = {self.threshold:.2f}\n"


@dataclass(frozen=True, slots=True)
class _Valley:
    left: int
    """Position of the peak below the valley."""
    right: int
    start: int
    """The first bin of the valley's floor."""


def propose(weights: Sequence[float], jobs: int, first_decile: float) -> Proposal:
    """Proposes a threshold from a histogram over 0 to 1. WEIGHTS are the values of its bins. JOBS is the
    number of jobs: if it is small, or if there is no valley, the first decile is proposed."""
    decile = min(_HIGHEST, max(0.01, round(first_decile, 2)))
    so = N_("the first decile") if first_decile <= _HIGHEST else f"{_HIGHEST} (the first decile is higher)"
    if jobs < FEWEST_JOBS:
        why_few = f"{jobs:,} jobs are too few to find peaks ({FEWEST_JOBS} or more are needed)"
        return Proposal(decile, False, f"{why_few}: {so}")
    valley = _lowest_valley(weights, jobs)
    if valley is None:
        return Proposal(decile, False, f"not bimodal, with no valley between I/O and computing: {so}")
    left, right = _middle(valley.left), _middle(valley.right)
    if left > _HIGHEST_MODE:
        high = f"the lower peak, at {left:.2f}, is too high for I/O (jobs that leave cores unused?)"
        return Proposal(decile, False, f"{high}: {so}", (left, right))
    threshold = round(max(1, valley.start) / BINS, 2)
    reason = f"bimodal: peaks at {left:.2f} and {right:.2f}, and the lower one ends at {threshold:.2f}"
    return Proposal(threshold, True, reason, (left, right))


def _middle(place: int) -> float:
    return (place + 0.5) / BINS


def _lowest_valley(weights: Sequence[float], jobs: int) -> _Valley | None:
    """Returns the valley above the lowest peak, or None if there is only one peak."""
    smooth = smoothed(weights, max(1.5, 20.0 * jobs**-0.2))
    # For each bin, `left` has the maximum over it and all bins to its left, and `right` the maximum over it
    # and all bins to its right.
    left = list(accumulate(smooth, max))
    right = list(accumulate(reversed(smooth), max))[::-1]
    inside = [
        smooth[place] < _VALLEY * min(left[place], right[place]) and _holds_some(weights, place)
        for place in range(len(smooth))
    ]
    if True not in inside:
        return None
    first = inside.index(True)
    last = inside.index(False, first) if False in inside[first:] else len(inside)
    return _floor(smooth, first, last)


def _holds_some(weights: Sequence[float], place: int) -> bool:
    below, total = sum(weights[:place]), sum(weights)
    return min(below, total - below) >= _LEAST_SHARE * total


def _floor(smooth: Sequence[float], first: int, last: int) -> _Valley:
    hump = max(range(first), key=lambda place: smooth[place])
    other = max(range(last, len(smooth)), key=lambda place: smooth[place])
    lowest = min(smooth[first:last])
    floor = lowest + _FLOOR * (smooth[hump] - lowest)
    start = next((place for place in range(first, last) if smooth[place] <= floor), first)
    return _Valley(hump, other, start)


def smoothed(weights: Sequence[float], width: float) -> list[float]:
    """Smooths the bins with a normal distribution whose standard deviation is WIDTH bins. At its ends, the
    histogram is continued by its mirror image."""
    reach = math.ceil(3 * width)
    bell = [math.exp(-0.5 * (step / width) ** 2) for step in range(-reach, reach + 1)]
    whole, size = sum(bell), len(weights)
    return [
        sum(factor * weights[_mirrored(place + step - reach, size)] for step, factor in enumerate(bell))
        / whole
        for place in range(size)
    ]


def _mirrored(place: int, size: int) -> int:
    place %= 2 * size
    return place if place < size else 2 * size - 1 - place
