"""Removes files that killed runs left in a watched folder. Their names are derived from the records of the
runs, so the folder is not searched."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from iodock.file_system.probe.records import End, Round, Run
from iodock.file_system.probe.rounds import Plan, Prober
from iodock.file_system.probe.store import Losses, ProbeStore, host_name


@dataclass(slots=True)
class _Traces:
    """What the records of one run say about files that it may have left."""

    run: Run
    next_round: int | None = 0
    """Number of the round that was in progress when the run was killed; None if the run ended normally."""
    unclean: set[int] = field(default_factory=set)


def clean(store: ProbeStore, target: str, limit_s: float) -> int:
    """Removes files that earlier runs on this host left below TARGET. Child processes with a short time limit
    remove them. Returns the number of rounds whose files may still exist. Raises StoreError."""
    remaining = 0
    for traces in _traces(store, target):
        prober = Prober(Plan(traces.run.run, target, False, limit_s, 0))
        under_way = () if traces.next_round is None else (traces.next_round,)
        numbers = sorted(traces.unclean.union(under_way))
        left = tuple(number for number in numbers if not prober.clean(number))
        store.append(End(time.time_ns(), traces.run.run, left))
        remaining += len(left)
        if left:
            break  # The folder does not respond, and each further child process would hang as well.
    return remaining


def _traces(store: ProbeStore, target: str) -> list[_Traces]:
    found: dict[str, _Traces] = {}
    host = host_name()
    for record in store.records(Losses()):
        match record:
            case Run() if (record.host, record.target, record.is_command) == (host, target, False):
                found.setdefault(record.run, _Traces(record))
            case Round() if record.run in found:
                found[record.run].next_round = record.number + 1
                if not record.is_clean:
                    found[record.run].unclean.add(record.number)
            case End() if record.run in found:
                found[record.run].next_round, found[record.run].unclean = None, set(record.left)
            case _:
                continue
    return [
        one
        for one in found.values()
        if (one.next_round is not None or one.unclean) and not _is_running(one.run)
    ]


def _is_running(run: Run) -> bool:
    """Returns whether the process of a run still exists. Process ids are reused, so a process that started
    after the run's record was written is another one."""
    try:
        stat = Path(f"/proc/{run.pid}/stat").read_text(encoding="ascii", errors="replace")
        ticks = int(stat.rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return False
    started = time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
    return started <= run.ts / 1e9 + 1
