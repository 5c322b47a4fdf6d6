"""What the ranks of a job, or processes side by side, did each: for rules that compare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from iodock.rules import costs
from iodock.rules.facts import Facts


@dataclass(frozen=True, slots=True)
class Worker:
    """One rank or process: its I/O on the user's files."""

    number: int
    """Rank, or the process's number in the store."""
    calls: int
    bytes: int
    time_ns: int
    """In I/O calls; 0 where the source has no durations."""
    first_ts: int | None
    last_ts: int | None


@dataclass(frozen=True, slots=True)
class Team:
    """Workers that were there at the same time."""

    are_ranks: bool
    workers: tuple[Worker, ...]

    def most(self, measure: Callable[[Worker], int]) -> Worker:
        """The worker with the most of something."""
        return max(self.workers, key=lambda one: (measure(one), -one.number))

    def mean(self, measure: Callable[[Worker], int]) -> float:
        """Mean over all workers."""
        return sum(map(measure, self.workers)) / len(self.workers)

    def median(self, measure: Callable[[Worker], int]) -> float:
        """Median over all workers."""
        return median(map(measure, self.workers))


def side_by_side(facts: Facts) -> bool:
    """Whether the run has ranks, or processes that did the same at the same time."""
    return bool(facts.one("SELECT count(*) AS n FROM workers")["n"])


def teams(facts: Facts) -> list[Team]:
    """The ranks, or else each group of at least three processes that did the same at the same time. Needs the
    derived tables `workers` and `uses`."""
    if not side_by_side(facts):
        return []
    rows = facts.rows(_SQL)
    found = []
    for number, members in groupby(rows, key=lambda row: int(row["team"])):
        workers = tuple(
            Worker(
                int(row["worker"]),
                int(row["calls"] or 0),
                int(row["bytes"] or 0),
                int(row["time_ns"] or 0),
                row["first_ts"],
                row["last_ts"],
            )
            for row in members
        )
        found.append(Team(number < 0, workers))
    return found


_SQL = f"""WITH used AS (SELECT p.upid, sum(u.count) AS calls, sum(u.bytes) AS bytes,
    sum(u.time_ns) AS time_ns, min(u.first_ts) AS first_ts, max(u.last_ts) AS last_ts
  FROM uses u JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE {costs.data_files("f")} AND u.side IN (0, 1, 3)
    AND NOT regexp_matches(f.name, '^/dev/|/ompi[^/]*/|/pmix')
  GROUP BY p.upid)
SELECT w.team, w.worker, CAST(sum(d.calls) AS BIGINT) AS calls, CAST(sum(d.bytes) AS BIGINT) AS bytes,
  CAST(sum(d.time_ns) AS BIGINT) AS time_ns, min(d.first_ts) AS first_ts, max(d.last_ts) AS last_ts
FROM workers w LEFT JOIN used d ON d.upid = w.upid WHERE w.size >= 2
GROUP BY w.team, w.worker ORDER BY w.team, w.worker"""
