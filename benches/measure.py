"""Whole commands, measured from outside: wall and CPU seconds, peak memory of the largest process."""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One finished command. Seconds; bytes."""

    wall: float
    cpu: float
    peak_bytes: int
    status: int


def run(command: Sequence[str], cwd: Path | None = None, environment: dict[str, str] | None = None) -> Run:
    """Runs `command` to its end, its output thrown away."""
    # Children's CPU counts every descendant that was waited for, so a tracer's tracees are in it.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stderr is not None
        messages = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if child.returncode != 0:
        sys.stderr.write(messages.decode(errors="replace"))
    return Run(wall, cpu, usage.ru_maxrss * 1024, child.returncode)


def alternate(
    contestants: dict[str, Sequence[str]],
    rounds: int,
    prepare: Callable[[], None] = lambda: None,
    **options: object,
) -> dict[str, list[Run]]:
    """Runs all contestants in turn, `rounds` times, so that a machine whose speed drifts is fair to all. Each
    round has an order of its own, the same ones every time: what one leaves behind (a busy disk, memory to be
    given back) does not always meet the same. Before that the first one runs unmeasured: nobody is the one to
    read from the disk what all read."""
    prepare()
    run(next(iter(contestants.values())), **options)  # type: ignore[arg-type]
    runs: dict[str, list[Run]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in random.Random(number).sample(list(contestants), len(contestants)):
            prepare()
            runs[name].append(run(contestants[name], **options))  # type: ignore[arg-type]
    return runs


def median(runs: Sequence[Run], figure: str) -> float:
    return statistics.median(getattr(one, figure) for one in runs)


def spread(runs: Sequence[Run], figure: str) -> str:
    """`median (minimum to maximum)`."""
    values = [getattr(one, figure) for one in runs]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def ratio(runs: dict[str, list[Run]], who: str, figure: str, more: Sequence[float] = ()) -> str:
    """Pair by pair, since a machine's speed drifts: `median (minimum to maximum)`. `more`: seconds to add."""
    added = [*more, *[0.0] * (len(runs[who]) - len(more))]
    pairs = zip(runs[who], runs["alone"], added, strict=False)
    values = sorted(
        (getattr(one, figure) + extra) / max(getattr(alone, figure), 1e-4) for one, alone, extra in pairs
    )
    return f"{values[len(values) // 2]:.2f} ({values[0]:.2f}-{values[-1]:.2f})"


def quickest(runs: Sequence[Run]) -> float:
    return max(min(one.cpu for one in runs), 1e-4)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a plain table, first column left, the others right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        cells = [
            str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
