"""Decides which differences are too small to be called faster or slower."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from iodock.program.comparison.data import middle
from iodock.program.comparison.sums import RunSums

NOISE_SHARE = 0.1
"""A difference below this share of a file's time is noise: most files differ by this much between two runs of
one program, because of caches and the scheduler."""
RUN_SHARE = 0.01
"""A difference below this share of the run is not worth attention."""
ENOUGH_NS = 1e9
"""A difference of this size is worth a mention even in a long run."""


def least_of(
    time: str | None,
    before: Sequence[RunSums],
    after: Sequence[RunSums],
    units: Sequence[float],
) -> float:
    """Returns the smallest difference, in ns per unit of work, that makes a file faster or slower. It is 0 if
    numbers of calls are compared, because these do not vary by chance."""
    if time is None:
        return 0.0
    whole = [_whole(time, run) for run in (*before, *after)]
    each = [None if one is None else min(RUN_SHARE * one, ENOUGH_NS) for one in whole]
    of_units = [None if one is None else one / unit for one, unit in zip(each, units, strict=True)]
    return max(_known(of_units[: len(before)], of_units[len(before) :]), default=0.0)


def _whole(time: str, run: RunSums) -> float | None:
    """Returns the time of the run, of which differences are a share, in ns. It is the elapsed time. For CPU
    time, or if the elapsed time is not known, it is the sum over all calls."""
    wall = run.manifest.wall_ns if time == "elapsed" else None
    inside: float | None = pc.sum(run.sums.column("total_time_ns")).as_py()
    return wall or inside


def _known(*sides: Sequence[float | None]) -> Iterator[float]:
    return (one for one in map(middle, sides) if one is not None)
