"""What is too small a difference to be called faster or slower."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from iodock.program.comparison.data import middle
from iodock.program.comparison.sums import RunSums

NOISE_SHARE = 0.1
"""Of a file's time: two runs of one program differ by as much in most files, by caches and the scheduler
alone."""
RUN_SHARE = 0.01
"""Of the run: who mends it does not look at less."""
ENOUGH_NS = 1e9
"""So much is worth a word in a run of any length."""


def least_of(
    time: str | None,
    before: Sequence[RunSums],
    after: Sequence[RunSums],
    units: Sequence[float],
) -> float:
    """From this difference on, ns per unit of work, a file is called faster or slower; 0 where numbers of
    calls are compared, which don't vary by chance as times do."""
    if time is None:
        return 0.0
    whole = [_whole(time, run) for run in (*before, *after)]
    each = [None if one is None else min(RUN_SHARE * one, ENOUGH_NS) for one in whole]
    of_units = [None if one is None else one / unit for one, unit in zip(each, units, strict=True)]
    return max(_known(of_units[: len(before)], of_units[len(before) :]), default=0.0)


def _whole(time: str, run: RunSums) -> float | None:
    """What a share is of: how long the run took; of CPU time, and where that is not known, all its calls."""
    wall = run.manifest.wall_ns if time == "elapsed" else None
    inside: float | None = pc.sum(run.sums.column("total_time_ns")).as_py()
    return wall or inside


def _known(*sides: Sequence[float | None]) -> Iterator[float]:
    return (one for one in map(middle, sides) if one is not None)
