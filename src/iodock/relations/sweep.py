"""How long at least one thread was in a call: the union of the calls' intervals, in one sweep over their starts."""

from __future__ import annotations


def union_sql(intervals: str, subset: str) -> str:
    """A SELECT of `any_ns`, the union of all intervals of INTERVALS (from_ts, to_ts), and `subset_ns`, the union
    of those for which SUBSET holds.

    In the order of the starts, an interval adds what lies beyond the furthest end so far. That is a running
    maximum: one sort, no join, whatever the number of threads.
    """
    window = "OVER (ORDER BY from_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return f"""SELECT CAST(sum({_added("reached")}) AS BIGINT) AS any_ns,
  CAST(sum({_added("subset_reached")}) FILTER (WHERE in_subset) AS BIGINT) AS subset_ns
FROM (SELECT from_ts, to_ts, in_subset, max(to_ts) {window} AS reached,
    max(CASE WHEN in_subset THEN to_ts END) {window} AS subset_reached
  FROM (SELECT from_ts, to_ts, {subset} AS in_subset FROM ({intervals}) i) j) k"""


def _added(reached: str) -> str:
    return f"greatest(to_ts - greatest(from_ts, coalesce({reached}, from_ts)), 0)"
