"""Measures whole commands from outside: elapsed and CPU seconds, and peak memory of the largest process."""

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
    """Measurements of one finished command, in seconds and bytes."""

    wall: float
    cpu: float
    peak_bytes: int
    status: int


def run(command: Sequence[str], cwd: Path | None = None, environment: dict[str, str] | None = None) -> Run:
    """Runs `command` until it ends and discards its output."""
    # RUSAGE_CHILDREN counts every descendant that was waited for, so it includes the programs that a tracer
    # traces.
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
    """Runs all programs alternately, `rounds` times, so that a machine whose speed drifts does not favour
    one. Each round has its own order, the same in each use, so that the effects of one program (a busy disk,
    memory to be freed) do not always meet the same other one. First, the first program runs unmeasured, so
    that none has to read common files from the disk."""
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
    """Returns `median (minimum to maximum)`."""
    values = [getattr(one, figure) for one in runs]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def ratio(runs: dict[str, list[Run]], who: str, figure: str, more: Sequence[float] = ()) -> str:
    """Returns the ratio to the run alone in the same round, since a machine's speed drifts: `median (minimum
    to maximum)`. `more`: seconds to add."""
    added = [*more, *[0.0] * (len(runs[who]) - len(more))]
    pairs = zip(runs[who], runs["alone"], added, strict=False)
    values = sorted(
        (getattr(one, figure) + extra) / max(getattr(alone, figure), 1e-4) for one, alone, extra in pairs
    )
    return f"{values[len(values) // 2]:.2f} ({values[0]:.2f}-{values[-1]:.2f})"


def quickest(runs: Sequence[Run]) -> float:
    return max(min(one.cpu for one in runs), 1e-4)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table with the first column aligned left and the others right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        cells = [
            str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
