"""Threads that a process starts for each round of computing, and that do not live while it does its I/O.

Threads that stay may compute during the I/O or wait for it: a wait for another thread is no call on a file,
and their CPU times say nothing on a busy machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from iodock.program.rules.facts import Facts
from iodock.program.rules.phases import Settings

_MOST_CALLS = 200_000
"""Who makes more calls makes them small, which other rules tell."""
_HELPS = 0.2
"""Of the CPU time of the thread that computes most: who stays for most of the run with less is a runtime's
own. CPU times of short threads are known in ticks only."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """The I/O of a process between its rounds."""

    threads: int
    """That compute side by side."""
    count: int
    """Stretches of I/O."""
    calls: int
    bytes: int
    time_ns: int
    """Inside calls."""
    alone_ns: int
    """Wall time of the stretches in which none of these threads lived."""


def stretches(facts: Facts, settings: Settings) -> list[Stretches]:
    """One for each process that takes turns at I/O by one thread and at computing by threads that it starts.
    Needs the derived table `thread_io`."""
    found = []
    for row in facts.rows(_one_thread_sql(settings)):
        turns = facts.one(_turns_sql(int(row["upid"]), int(row["utid"]), settings.least_stretch_ns))
        count, spent = int(turns.get("count") or 0), int(turns.get("long_ns") or 0)
        if count < settings.least_stretches:
            continue
        threads = int(turns["together"] or 0)
        if threads < 2 or int(turns["rounds"]) < count - 1:
            continue
        if int(turns["beside_ns"] or 0) > settings.most_beside_threads * spent:
            continue
        alone = spent - int(turns["beside_ns"] or 0)
        found.append(
            Stretches(threads, count, int(row["calls"]), int(row["bytes"]), int(row["time_ns"]), alone)
        )
    return found


def _one_thread_sql(settings: Settings) -> str:
    """Processes of which one thread does the I/O: `upid utid calls bytes time_ns`."""
    return f"""WITH ranked AS (SELECT *, sum(bytes) OVER (PARTITION BY upid) AS whole FROM thread_io)
SELECT upid, utid, calls, bytes, coalesce(time_ns, 0) AS time_ns FROM ranked
WHERE bytes >= {settings.least_bytes} AND bytes >= {settings.least_alone} * whole AND calls <= {_MOST_CALLS}
ORDER BY time_ns DESC"""


# Rounds are the times in which any of the threads lives.
def _turns_sql(upid: int, utid: int, pause_ns: int) -> str:
    return f"""WITH seen AS (SELECT e.ts, e.ts + e.dur AS end_ts FROM events e
    JOIN files f ON f.file_id = e.file_id
  WHERE e.utid = {utid} AND e.side IN (0, 1, 3) AND e.ts IS NOT NULL AND e.dur IS NOT NULL
    AND f.file_id IN (FROM data_files)),
io AS ({_joined("seen", pause_ns)}),
long AS (SELECT * FROM io WHERE end_ts - ts >= {pause_ns}),
helpers AS (SELECT start_ts AS ts, end_ts FROM thread_io
  WHERE upid = {upid} AND utid <> {utid} AND NOT is_main AND start_ts IS NOT NULL AND end_ts IS NOT NULL
  QUALIFY max(user_ns) OVER () > 0 AND (user_ns >= {_HELPS} * max(user_ns) OVER ()
    OR 2 * (end_ts - start_ts) < (SELECT max(end_ts) - min(start_ts) FROM thread_io WHERE upid = {upid}))),
rounds AS ({_joined("helpers", 0)})
SELECT (SELECT count(*) FROM long) AS count, (SELECT CAST(sum(end_ts - ts) AS BIGINT) FROM long) AS long_ns,
  (SELECT count(*) FROM rounds) AS rounds,
  (SELECT max(live) FROM (SELECT sum(step) OVER (ORDER BY ts, step) AS live FROM (
    SELECT ts, 1 AS step FROM helpers UNION ALL SELECT end_ts, -1 FROM helpers))) AS together,
  (SELECT CAST(sum(least(l.end_ts, r.end_ts) - greatest(l.ts, r.ts)) AS BIGINT)
    FROM long l JOIN rounds r ON r.ts < l.end_ts AND r.end_ts > l.ts) AS beside_ns"""


def _joined(intervals: str, pause_ns: int) -> str:
    """SQL: INTERVALS (`ts end_ts`) that follow each other within PAUSE_NS, put together."""
    return f"""SELECT min(ts) AS ts, max(end_ts) AS end_ts FROM (
    SELECT ts, end_ts, sum(CASE WHEN ts - before < {pause_ns} OR ts <= before THEN 0 ELSE 1 END)
        OVER (ORDER BY ts, end_ts) AS number
    FROM (SELECT ts, end_ts, max(end_ts) OVER (ORDER BY ts, end_ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM {intervals})) GROUP BY number"""
