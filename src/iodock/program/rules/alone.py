"""What one worker of a team, or the process that started it, does alone in a part of a run while the others
wait: its own kinds of files, told by the pattern of their names and by whether they are read or written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from iodock.program.relations.run_facts import MOMENTS
from iodock.program.rules.facts import Facts
from iodock.program.rules.phases import Settings
from iodock.program.rules.workers import Team


@dataclass(frozen=True, slots=True)
class Part:
    """What one process or rank does alone."""

    worker: int
    """Rank, or upid."""
    workers: int
    """Who waits, the one who works included."""
    calls: int
    bytes: int
    time_ns: int
    """In I/O calls on files that are its own kind."""
    first_ts: int
    """Of those calls: the begin of the first."""
    last_ts: int
    """The begin of the last."""
    alone_ns: int
    """Wall time in which it was in I/O, or handed data over, and no other."""
    share: float
    """Of the bytes of all workers."""


def of_worker(facts: Facts, team: Team, settings: Settings) -> Part | None:
    """What one of the team does alone, if one has most of what any of it does so. Needs the derived tables
    `workers` and `file_work`."""
    numbers = ", ".join(str(one.number) for one in team.workers)
    members = f"""SELECT DISTINCT worker, upid FROM workers
  WHERE (team = -1) = {team.are_ranks} AND worker IN ({numbers})"""
    part = _part(facts, members, len(team.workers), settings)
    if part is None:
        return None
    free = _free_ns(facts, members, part, settings)
    return replace(part, alone_ns=min(part.time_ns, free))


def of_parents(facts: Facts, settings: Settings) -> list[Part]:
    """What processes do alone that started workers, and gave them data or took it from them. Needs the
    derived tables `siblings`, `workers` and `file_work`."""
    found = []
    for row in facts.rows(_POOLS_SQL):
        parent, size = int(row["parent"]), int(row["size"])
        members = f"""SELECT CAST(-1 AS INTEGER) AS worker, {parent} AS upid
  UNION ALL SELECT worker, upid FROM workers WHERE team IN ({row["teams"]})"""
        window = f"w.first_ts BETWEEN {row['first_ts']} AND {row['last_ts']}"
        part = _part(facts, members, size + 1, settings, window)
        if part is None or part.worker != -1:
            continue
        waits = _waits_ns(facts, row, members)
        free = min(_without_ns(facts, members), part.time_ns)
        beside = part.time_ns - free
        alone = free + (beside if waits >= settings.least_wait * beside else 0)
        found.append(replace(part, worker=parent, alone_ns=alone))
    return found


def _part(facts: Facts, members: str, many: int, settings: Settings, window: str = "true") -> Part | None:
    rows = facts.rows(_parts_sql(members, many, settings, window))
    if not rows or not rows[0]["time_ns"]:
        return None
    most = rows[0]
    whole = sum(int(row["time_ns"] or 0) for row in rows)
    is_little = int(most["time_ns"]) < settings.least_wall * (facts.wall_ns or 0)
    if is_little or int(most["bytes"]) < settings.least_bytes:
        return None
    if int(most["time_ns"]) < settings.least_alone * whole:
        return None
    # This table goes through all events: made where there is something to ask it.
    return Part(
        int(most["worker"]),
        many,
        int(most["calls"]),
        int(most["bytes"]),
        int(most["time_ns"]),
        int(most["first_ts"]),
        int(most["last_ts"]),
        0,
        int(most["bytes"]) / max(1, int(most["whole"])),
    )


# Who reads and writes alike in the same kind of files works together, each on its part.
def _parts_sql(members: str, many: int, settings: Settings, window: str) -> str:
    return f"""WITH members AS ({members}),
used AS (SELECT m.worker, coalesce(f.pattern, f.name) AS kind, w.written_bytes > w.read_bytes AS writes,
    sum(w.read_bytes + w.written_bytes) AS bytes, sum(w.reads + w.writes + w.metadata) AS calls,
    sum(coalesce(w.read_ns, 0) + coalesce(w.write_ns, 0) + coalesce(w.metadata_ns, 0)
      + coalesce(w.other_ns, 0)) AS time_ns,
    coalesce(min(w.first_ts), 0) AS first_ts, coalesce(max(w.last_ts), 0) AS last_ts
  FROM members m JOIN file_work w ON w.upid = m.upid JOIN files f ON f.file_id = w.file_id
  WHERE f.file_id IN (FROM data_files) AND {window} GROUP BY ALL),
kinds AS (SELECT kind, writes, max(bytes) AS most, sum(bytes) AS bytes, sum(time_ns) AS time_ns,
    arg_max(worker, bytes) AS worker FROM used GROUP BY kind, writes),
mean AS (SELECT sum(bytes) / {many} AS bytes FROM used),
alone AS (SELECT k.* FROM kinds k JOIN used u ON u.kind = k.kind AND u.writes = k.writes
    AND u.worker = k.worker
  WHERE k.most > 0 AND k.most >= {settings.least_alone} * k.bytes
    AND u.time_ns >= {settings.least_alone_time} * k.time_ns
    AND 2 * (SELECT count(*) FROM used o, mean WHERE o.kind = k.kind AND o.writes = k.writes
      AND o.worker <> k.worker AND o.bytes > 0 AND o.bytes >= {settings.most_part} * mean.bytes) < {many - 1})
SELECT u.worker, min(u.first_ts) AS first_ts, max(u.last_ts) AS last_ts,
  CAST(sum(u.bytes) AS BIGINT) AS bytes, CAST(sum(u.calls) AS BIGINT) AS calls,
  CAST(sum(u.time_ns) AS BIGINT) AS time_ns, (SELECT CAST(sum(bytes) AS BIGINT) FROM used) AS whole
FROM alone k JOIN used u ON u.kind = k.kind AND u.writes = k.writes AND u.worker = k.worker
GROUP BY u.worker ORDER BY time_ns DESC"""


def _free_ns(facts: Facts, members: str, part: Part, settings: Settings) -> int:
    """Time in I/O of the worker, while it does its part, in those moments in which the others had hardly
    any."""
    first, wall = facts.store.manifest.first_ts or 0, facts.wall_ns or 0
    step, worker = max(1, wall // MOMENTS), part.worker
    row = facts.one(
        f"""WITH members AS ({members}),
spent AS (SELECT t.moment, sum(t.time_ns) FILTER (WHERE m.worker = {worker}) AS mine,
    sum(t.time_ns) FILTER (WHERE m.worker IS NULL OR m.worker <> {worker}) AS others
  FROM moments t LEFT JOIN members m ON m.upid + 1 = t.actor GROUP BY t.moment)
SELECT CAST(sum(mine) AS BIGINT) AS ns FROM spent
WHERE coalesce(others, 0) <= {settings.most_beside} * mine
  AND {first} + (moment + 1.0) * {step} > {part.first_ts}
  AND {first} + 1.0 * moment * {step} <= {part.last_ts}"""
    )
    return int(row["ns"] or 0)


def _without_ns(facts: Facts, members: str) -> int:
    """Time in I/O of the parent in those moments in which none of its workers lived."""
    first, wall = facts.store.manifest.first_ts or 0, facts.wall_ns or 0
    step = max(1, wall // MOMENTS)
    row = facts.one(
        f"""WITH members AS ({members}),
lives AS (SELECT min(p.start_ts) AS start_ts, max(p.end_ts) AS end_ts FROM members m
    JOIN processes p ON p.upid = m.upid WHERE m.worker <> -1 GROUP BY m.upid),
mine AS (SELECT t.moment, sum(t.time_ns) AS ns FROM moments t
    JOIN members m ON m.upid + 1 = t.actor AND m.worker = -1 GROUP BY t.moment)
SELECT CAST(sum(ns) AS BIGINT) AS ns FROM mine WHERE NOT EXISTS (FROM lives l
  WHERE l.start_ts < {first} + (moment + 0.5) * {step} AND l.end_ts > {first} + (moment + 0.5) * {step})"""
    )
    return int(row["ns"] or 0)


def _waits_ns(facts: Facts, pool: dict[str, Any], members: str) -> int:
    """How long the workers of a pool waited for pipes that they share with who started them, on average: in
    reads, and from the answer that one wrote to the end of its next read."""
    row = facts.one(
        f"""WITH members AS ({members}),
seen AS (SELECT e.utid, e.ts, e.ts + e.dur AS end_ts, e.direction FROM events e
  WHERE e.utid IN (SELECT p.utid FROM members m JOIN processes p ON p.upid = m.upid WHERE m.worker <> -1)
    AND e.file_id IN (SELECT file_id FROM files WHERE kind IN ('pipe', 'fifo', 'socket'))
    AND e.file_id IN (SELECT u.file_id FROM uses u JOIN processes p ON p.utid = u.utid
      WHERE p.upid = {int(pool["parent"])})
    AND e.direction IN (1, 2) AND e.dur IS NOT NULL AND e.ts IS NOT NULL ORDER BY e.ts LIMIT {_MOST_CALLS}),
waits AS (SELECT direction, end_ts - CASE WHEN lag(direction) OVER w = 2 THEN lag(end_ts) OVER w ELSE ts END
  AS ns FROM seen WINDOW w AS (PARTITION BY utid ORDER BY ts))
SELECT CAST(sum(ns) / {int(pool["size"])} AS BIGINT) AS ns FROM waits WHERE direction = 1"""
    )
    return int(row["ns"] or 0)


_MOST_CALLS = 500_000

# A program may start its workers anew for each step: then they are one pool after the other.
_POOLS_SQL = """WITH teams AS (SELECT w.team, s.parent, s.program, any_value(w.size) AS size,
    min(s.start_ts) AS first_ts, max(s.end_ts) AS last_ts
  FROM workers w JOIN siblings s ON s.upid = w.upid AND w.worker = w.upid WHERE w.team >= 0 GROUP BY ALL)
SELECT parent, any_value(size) AS size, count(*) AS turns, string_agg(CAST(team AS VARCHAR), ', ') AS teams,
  min(first_ts) AS first_ts, max(last_ts) AS last_ts
FROM teams t WHERE program IS NULL GROUP BY parent, program
HAVING min(first_ts) IS NOT NULL AND max(last_ts) IS NOT NULL"""
