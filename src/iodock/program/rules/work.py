"""Estimates the work of a program and its libraries around the calls at fault, and how much of it would be
saved with the calls."""

from __future__ import annotations

from dataclasses import dataclass

from iodock.program.rules.base import Candidate, Pieces
from iodock.program.rules.facts import Facts
from iodock.shared.engine.sql import quoted

MOST_CALL_NS = 1500
"""Longest work of a library around one call, such as flushing a buffer or switching to native code, ns. It is
saved if the call is. A longer pause is computing."""
MOST_PAUSE_NS = 250_000
"""Longest pause between two calls on a file that is opened for each piece, ns. In it, a library reads a
header, builds its objects or encodes a chunk, which takes tens of microseconds in Python and Java, and
hundreds in HDF5 or pandas."""
MOST_NAME_BYTE_NS = 10
"""Longest time for a byte of a folder's listing, ns. Python takes 7 ns to build and sort its names."""


@dataclass(frozen=True, slots=True)
class Work:
    """Holds the time around the calls of a candidate, in seconds of wall time, without the time that a
    tracer adds."""

    inside: float = 0.0
    """Time between the calls of a piece that is opened and closed separately. Nearly all of it is the
    library's work."""
    between: float = 0.0
    """Time before a piece begins, which is work of the library or the program. All threads count, because a
    library may pass pieces on."""


def around(candidate: Candidate, facts: Facts) -> Work:
    """Returns the work that could be saved together with the pieces of a candidate. It is 0 if times or
    files are unknown."""
    if candidate.pieces is None or not candidate.files or not facts.durations:
        return Work()
    if candidate.pieces is Pieces.LISTINGS:
        return Work(inside=_sorting(candidate, facts))
    of_calls = candidate.pieces is Pieces.CALLS
    row = facts.one(_sql(candidate, facts, MOST_CALL_NS if of_calls else MOST_PAUSE_NS))
    if not row or not row["looked"]:
        return Work()
    side_by_side = float(row["side_by_side"] or 1)
    counted = _shared_ns(row, facts) * float(row["calls"]) / float(row["looked"]) / side_by_side
    if of_calls:
        return Work(between=counted / 1e9)
    pieces = float(row["pieces"]) * float(row["calls"]) / float(row["looked"])
    left = float(row["span_ns"] or 0) - counted - float(row["called_ns"] or 0) / side_by_side
    between = max(0.0, min(left, facts.stretch * MOST_PAUSE_NS * pieces))
    return Work(counted / 1e9, between / 1e9)


def _shared_ns(row: dict[str, float], facts: Facts) -> float:
    """Returns the sum in ns of all pauses, of which each counts only up to a limit. The limited sum is
    multiplied by `stretch`, because a task that shares processors is stopped for a long time in some
    pauses."""
    return min(float(row["pause_ns"] or 0), facts.stretch * float(row["least_ns"] or 0))


def _sorting(candidate: Candidate, facts: Facts) -> float:
    """Estimates how many seconds a program spends on processing names that it had listed before. Of each
    listing this is the time from the call on the folder to the next call, but at most MOST_NAME_BYTE_NS for
    each byte of names."""
    row = facts.one(_listings_sql(candidate, facts))
    if not row or not row["looked"]:
        return 0.0
    most = min(float(row["pause_ns"] or 0), facts.stretch * MOST_NAME_BYTE_NS * float(row["listed"] or 0))
    seen = float(row["calls"]) / float(row["looked"]) / float(row["side_by_side"] or 1)
    return candidate.again * most * seen / 1e9


def _sql(candidate: Candidate, facts: Facts, most_ns: int) -> str:
    """Returns SQL for the pauses before calls on the files at fault. If the pieces are files that are
    opened, only pauses between calls of the same piece count."""
    begins = "coalesce(opens OR closed_before OR NOT at_fault_before, true)"
    counted = "true" if candidate.pieces is Pieces.CALLS else "NOT begins"
    return f"""{_seen_sql(candidate, facts)},
steps AS (SELECT *, lag(ended) OVER w AS ended_before, lag(at_fault) OVER w AS at_fault_before,
    lag(closes) OVER w AS closed_before
  FROM seen WINDOW w AS (PARTITION BY utid, slice ORDER BY ts)),
pauses AS (SELECT {begins} AS begins, opens, greatest(0, ts - ended_before - {facts.added_ns}) AS ns
  FROM steps WHERE at_fault)
SELECT sum(ns) FILTER (WHERE {counted}) AS pause_ns, sum(least(ns, {most_ns})) FILTER (WHERE {counted})
    AS least_ns, count(*) FILTER (WHERE opens) AS pieces, count(*) AS looked, any_value(whole.calls) AS calls,
  any_value(whole.called_ns) AS called_ns, any_value(whole.span_ns) AS span_ns,
  any_value(whole.side_by_side) AS side_by_side
FROM pauses, whole"""


def _listings_sql(candidate: Candidate, facts: Facts) -> str:
    """Returns SQL for the pauses after calls on the folders at fault, and for the number of bytes in their
    listings."""
    return f"""{_seen_sql(candidate, facts)},
steps AS (SELECT *, lead(ts) OVER (PARTITION BY utid, slice ORDER BY ts) AS next_ts FROM seen)
SELECT sum(greatest(0, next_ts - ended - {facts.added_ns})) AS pause_ns, sum(listed) AS listed,
  count(*) AS looked, any_value(whole.calls) AS calls, any_value(whole.side_by_side) AS side_by_side
FROM steps, whole WHERE at_fault"""


def _seen_sql(candidate: Candidate, facts: Facts) -> str:
    """Returns SQL for two CTEs: `seen` has the calls of tasks that use the files at fault, and `whole` has
    sums of the calls on these files."""
    names = ", ".join(quoted(name) for name in candidate.files)
    return f"""WITH fault AS (SELECT file_id FROM places WHERE name IN ({names})
  UNION SELECT file_id FROM files WHERE name IN ({names})),
spans AS (SELECT utid, min(first_ts) AS first_ts, max(last_ts) AS last_ts, sum(count) AS calls,
    sum(time_ns) + {facts.added_ns} * sum(count) AS called_ns
  FROM uses WHERE file_id IN (FROM fault) AND side IN (0, 1, 3) GROUP BY utid),
whole AS (SELECT sum(calls) AS calls, sum(called_ns) AS called_ns, max(last_ts) - min(first_ts) AS span_ns,
    greatest(1, sum(last_ts - first_ts) / nullif(max(last_ts) - min(first_ts), 0)) AS side_by_side
  FROM spans),
seen AS (SELECT e.utid, e.ts, e.ts + e.dur AS ended, coalesce(e.file_id IN (FROM fault), false) AS at_fault,
    c.family = 'open' AS opens, c.family = 'close' AS closes, {facts.slice_of} AS slice,
    CASE WHEN c.family = 'getdents' THEN greatest(0, e.result) END AS listed
  FROM events e JOIN calls c ON c.id = e.call_id
  WHERE e.utid IN (SELECT utid FROM spans) AND e.ts IS NOT NULL AND e.dur IS NOT NULL AND e.side IN (0, 1, 3)
    AND {facts.is_in_sample})"""
