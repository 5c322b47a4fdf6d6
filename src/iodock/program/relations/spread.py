"""Sums bytes and times of reads and writes by interval of time. A call is either assigned to the interval in
which it ended, or distributed: each interval gets the share of the bytes and time that corresponds to the
time for which the call ran in it. A call without a duration belongs to the interval of its time stamp."""

from __future__ import annotations

import math

END = "coalesce(e.end_ts, e.ts + e.dur, e.ts)"
"""SQL for the end time of the call of event `e`."""
SUMS = ("read_bytes", "written_bytes", "read_time_ns", "write_time_ns")
_OF = {
    "read_bytes": ("bytes", 1),
    "written_bytes": ("bytes", 2),
    "read_time_ns": ("dur", 1),
    "write_time_ns": ("dur", 2),
}


SPREAD = tuple(f"spread_{name}" for name in SUMS)
"""Names of the sums that are distributed over intervals. Charts over time use them, so that a long call does
not appear as a burst at its end."""


def cells_sql(source: str, every: int, key: str = "0", again: str = "false") -> str:
    """Returns the SQL for sums over events, grouped by interval and by all properties that rows over time
    need. SOURCE is `FROM events e ... WHERE ...`, and must leave out events without a time. AGAIN is the
    condition for events that do not count as calls."""
    return f"""SELECT {key} AS key, {slot_of(END, every)} AS slot, e.direction, {again} AS again,
  e.errno_id IS NULL AS is_right, {_begun_before("slot", every)} AS is_long, count(*) AS calls,
  count(e.result) AS results, count(e.bytes) AS transfers, sum(e.bytes) AS bytes, sum(e.dur) AS dur
{source} GROUP BY ALL"""


def _begun_before(slot: str, every: int) -> str:
    """Returns the SQL condition that event `e` began before the interval SLOT."""
    return f"{END} - coalesce(e.dur, 0) < {slot} * {every}"


def ended_sums() -> str:
    """Returns the SQL for SUMS over the cells of a group, in which a call belongs to the interval in which it
    ended."""
    return ", ".join(
        f"sum({of}) FILTER (WHERE direction = {way}) AS {name}" for name, (of, way) in _OF.items()
    )


def spread_sums(of: str) -> str:
    """Returns the SQL for the columns SPREAD. OF is the alias of a table with the rows of `moved_sql`."""
    return ", ".join(f"{of}.{name} AS {spread}" for name, spread in zip(SUMS, SPREAD, strict=True))


def slot_of(moment: str, every: int) -> str:
    """Returns the SQL for the number of the interval that contains a moment. It uses integers, because floats
    would be wrong by 100 ns and more for time stamps since the epoch. `//` rounds towards zero, so moments
    before 0 are shifted by one interval."""
    return f"CASE WHEN ({moment}) >= 0 THEN ({moment}) // {every} ELSE (({moment}) + 1) // {every} - 1 END"


def round_interval(span_ns: int, wanted: int) -> int:
    """Returns an interval length with which SPAN_NS has about WANTED intervals or fewer: 1, 2 or 5 times a
    power of ten, at least 1000 ns."""
    value = max(1000.0, span_ns / wanted)
    power = 10 ** math.floor(math.log10(value))
    return int(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * 0.9999))


def moved_sql(source: str, every: int, key: str = "0") -> str:
    """Returns the SQL for SUMS of the events of SOURCE by KEY and interval (`slot`), with each call
    distributed over the intervals in which it ran. The query must define the rows of `cells_sql` as `cells`.
    Only intervals with bytes have a row."""
    # A call that runs in several intervals adds one row for its part in the first interval and one for its
    # part in the last. For the intervals in between, the query adds the call's rate at the first of them and
    # subtracts it after the last, because a row for each interval could be too many.
    return f"""WITH short AS (SELECT key, slot, {_columns("{value}")} FROM cells
  WHERE NOT is_long AND direction IN (1, 2) GROUP BY 1, 2),
lasting AS (SELECT {key} AS key, e.direction, coalesce(e.bytes, 0) AS bytes, coalesce(e.dur, 0) AS dur,
    {END} AS ended, {slot_of(END, every)} AS high, {_begun_before("high", every)} AS is_long {source}),
long AS (SELECT *, ended - dur AS begun, {slot_of("ended - dur", every)} AS low,
    CAST(bytes AS DOUBLE) / dur AS rate FROM lasting WHERE is_long AND direction IN (1, 2)),
steps AS (
  SELECT key, low AS slot, direction, rate * ((low + 1) * {every} - begun) AS bytes,
    CAST((low + 1) * {every} - begun AS DOUBLE) AS dur, 0.0 AS more_bytes, 0.0 AS more_dur FROM long
  UNION ALL SELECT key, high, direction, rate * (ended - high * {every}),
    CAST(ended - high * {every} AS DOUBLE), 0.0, 0.0 FROM long
  UNION ALL SELECT key, low + 1, direction, 0.0, 0.0, rate * {every}, {every}.0 FROM long WHERE low + 1 < high
  UNION ALL SELECT key, high, direction, 0.0, 0.0, -rate * {every}, -{every}.0 FROM long
    WHERE low + 1 < high),
stepped AS (SELECT key, slot, {_columns("{value}")}, {_columns("{value}", "more_")} FROM steps GROUP BY 1, 2),
ends AS (SELECT key, min(slot) AS first, max(slot) AS last FROM stepped GROUP BY key),
filled AS (SELECT key, unnest(range(first, last + 1)) AS slot FROM ends),
rated AS (SELECT key, slot, {_each("coalesce(s.{n}, 0) + sum(coalesce(s.more_{n}, 0)) OVER w AS {n}")}
  FROM filled f LEFT JOIN stepped s USING (key, slot) WINDOW w AS (PARTITION BY key ORDER BY slot)),
summed AS (SELECT key, slot, {_each("round(sum({n}) OVER w) AS {n}")} FROM rated
  WINDOW w AS (PARTITION BY key ORDER BY slot)),
both_parts AS (SELECT key, slot, {_each("CAST({n} AS HUGEINT) AS {n}")} FROM short
  UNION ALL SELECT key, slot, {_each("CAST({n} - lag({n}, 1, 0) OVER w AS HUGEINT)")} FROM summed
  WINDOW w AS (PARTITION BY key ORDER BY slot))
SELECT key, slot, {_each("sum({n}) AS {n}")} FROM both_parts GROUP BY key, slot"""


def _columns(value: str, before: str = "") -> str:
    """Returns the SQL for the columns SUMS. Each is a sum over the rows with the direction that _OF declares
    for it."""
    parts = []
    for name, (of, direction) in _OF.items():
        parts.append(
            f"coalesce(sum({value.format(value=before + of)}) FILTER (WHERE direction = {direction}), 0) "
            f"AS {before}{name}"
        )
    return ", ".join(parts)


def _each(text: str) -> str:
    return ", ".join(text.format(n=name) for name in SUMS)
