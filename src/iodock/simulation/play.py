"""Runs a simulated centre in real time, or as fast as possible, and writes its tree periodically."""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from iodock.simulation.centre import Centre
from iodock.simulation.counters import SECOND_NS
from iodock.simulation.tree import Tree


def play(
    tree: Tree, seconds: float, speed: float, every_s: float, wake: int, tell: Callable[[Centre], None]
) -> None:
    """Runs until SECONDS simulated seconds are over, or the descriptor WAKE is readable, and then writes the
    truth. SPEED: simulated seconds per second; 0: as fast as possible. The tree is written every EVERY_S
    simulated seconds. Raises OSError."""
    centre, begun, done_s = tree.centre, time.monotonic(), 0.0
    while done_s < seconds:
        step_s = min(every_s, seconds - done_s)
        due = begun + (done_s + step_s) / speed if speed else begun
        if _told(wake, due - time.monotonic()):
            # The tree then contains everything that was simulated so far.
            break
        if speed:
            # If the simulation is behind real time, this step is made longer to catch up.
            step_s = max(step_s, min(seconds, (time.monotonic() - begun) * speed) - done_s)
        centre.advance(step_s)
        done_s += step_s
        tree.write()
        tell(centre)
    tree.write_truth()


def _told(wake: int, patience_s: float) -> bool:
    ready, _, _ = select.select([wake], [], [], max(0.0, patience_s))
    return bool(ready)


def status(centre: Centre) -> str:
    """Formats one line: the simulated time, jobs, entries, and problems of servers."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(centre.now_ns // SECOND_NS))
    running = sum(
        job.start_ns <= centre.now_ns and (job.end_ns is None or centre.now_ns < job.end_ns)
        for job in centre.jobs
    )
    entries = sum(len(target.entries) for target in centre.targets)
    unwell = [
        f"{server.name} {server.condition.name}"
        for server in centre.servers
        if server.condition.name != "healthy"
    ]
    return ", ".join([f"synthetic {clock} UTC: {running:,} jobs", f"{entries:,} entries", *unwell])
