"""Logs of several MPI ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from metadata_log import FIRST, Trace


# One log for each rank: the first call is at the same time in all of them.
def ranks(work: Callable[[Trace, int, int], None], folder: Path) -> Path:
    log = Trace(clocks={FIRST + number: 0 for number in range(4)})
    for number in range(4):
        work(log, number, FIRST + number)
        if number:
            log.clocks[FIRST + number] = max(1_000_000, log.clocks[FIRST + number])
            log.end(FIRST + number)
    return log.imported(folder, ranks=4)
