"""Returns the I/O of each rank of a job, or of each parallel process, for rules that compare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

from iodock.program.rules.facts import Facts


@dataclass(frozen=True, slots=True)
class Worker:
    """Holds the I/O of one rank, process or thread on the user's files."""

    number: int
    """Number of the rank, or of the process in the store."""
    calls: int
    bytes: int
    time_ns: int
    """Time in I/O calls, ns; 0 if the source has no durations."""
    first_ts: int | None
    last_ts: int | None
    busy_ns: int | None = None
    """CPU time of a thread; None if unknown, as is the time that its I/O waited."""
    longest_ns: int = 0
    """Time in the worker's longest call, ns; 0 for threads, and if the source has no durations."""


@dataclass(frozen=True, slots=True)
class Team:
    """A group of workers that existed at the same time."""

    are_ranks: bool
    workers: tuple[Worker, ...]
    are_threads: bool = False

    def most(self, measure: Callable[[Worker], int]) -> Worker:
        """Returns the worker for which MEASURE has the largest value."""
        return max(self.workers, key=lambda one: (measure(one), -one.number))

    def mean(self, measure: Callable[[Worker], int]) -> float:
        """Returns the mean over all workers."""
        return sum(map(measure, self.workers)) / len(self.workers)

    def median(self, measure: Callable[[Worker], int]) -> float:
        """Returns the median over all workers."""
        return median(map(measure, self.workers))


def side_by_side(facts: Facts) -> bool:
    """Returns whether the run has ranks, or processes that did the same work at the same time."""
    return bool(facts.one("SELECT count(*) AS n FROM workers")["n"])


def teams(facts: Facts) -> list[Team]:
    """Returns the ranks of a job. For a program without ranks, it returns each group of at least three
    processes that did the same work at the same time. Needs the derived table `worker_io`."""
    rows = facts.rows("SELECT * FROM worker_io ORDER BY team, worker")
    found = []
    for number, members in groupby(rows, key=lambda row: int(row["team"])):
        found.append(Team(number < 0, tuple(_worker(row, int(row["worker"])) for row in members)))
    return found


def thread_teams(facts: Facts) -> list[Team]:
    """Returns groups of at least three threads that were started by one thread, lived at the same time and
    did I/O. Needs the derived table `thread_io`."""
    found = []
    for _, members in groupby(facts.rows(_THREADS_SQL), key=lambda row: (row["upid"], row["parent_utid"])):
        rows = list(members)
        if max(row["start_ts"] for row in rows) < min(row["end_ts"] for row in rows) and len(rows) >= 3:
            found.append(Team(False, tuple(_worker(row, int(row["utid"])) for row in rows), True))
    return found


def _worker(row: Mapping[str, Any], number: int) -> Worker:
    return Worker(
        number,
        int(row["calls"] or 0),
        int(row["bytes"] or 0),
        int(row["time_ns"] or 0),
        row["first_ts"],
        row["last_ts"],
        row.get("busy_ns"),
        int(row.get("longest_ns") or 0),
    )


_THREADS_SQL = """SELECT * FROM thread_io WHERE NOT is_main AND calls > 0
  AND start_ts IS NOT NULL AND end_ts IS NOT NULL ORDER BY upid, parent_utid, utid"""
