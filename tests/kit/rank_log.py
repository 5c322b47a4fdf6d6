"""Writes logs of several MPI ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from metadata_log import FIRST, Trace

MIB = 1 << 20


# Imports one log for each rank. All ranks make their first call at the same time.
def ranks(work: Callable[[Trace, int, int], None], folder: Path) -> Path:
    log = Trace(clocks={FIRST + number: 0 for number in range(4)})
    for number in range(4):
        work(log, number, FIRST + number)
        if number:
            log.clocks[FIRST + number] = max(1_000_000, log.clocks[FIRST + number])
            log.end(FIRST + number)
    return log.imported(folder, ranks=4)


def writes(log: Trace, number: int, pid: int, pieces: int, took_us: int) -> None:
    """Lets a rank write PIECES of 1 MiB into its own file."""
    log.open(f"/data/out.{number}", flags="O_WRONLY|O_CREAT", pid=pid)
    for _ in range(pieces):
        log.write(MIB, took_us, pid=pid)
    log.close(pid=pid)
