"""Computes the numbers for the verdict: duration of the run, time in I/O, kinds of I/O, and the largest
costs."""

from __future__ import annotations

import dataclasses
from typing import Any

from iodock.program.analyses.base import Analysis, Request, answer, select
from iodock.program.analyses.counters import overview as counters
from iodock.program.relations.io_time import IO_CALLS, WAITED_FOR, WAITING_CALLS, io_time
from iodock.program.relations.patterns import PATTERNED, keep_patterns
from iodock.program.relations.selection import Selection
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column, Totals

LARGEST_COSTS = 3
PARTS = ("data", "metadata", "seek", "sync", "map", "waiting", "other")

COLUMNS = (
    Column(
        "part", "str", None, "key", "data, metadata, seek, sync, map, waiting (on pipes and sockets) or other"
    ),
    Column("count", "int", "calls", "measure", "calls", importance="first"),
    Column("failed", "int", "calls", "measure", "calls that failed"),
    Column(
        "total_time_ns",
        "int",
        "ns",
        "measure",
        "time inside the calls, added up over all threads",
        importance="first",
    ),
    Column("share", "float", None, "measure", "share of the time of all rows together, 0 to 1"),
    Column("read_bytes", "int", "bytes", "measure", "bytes read", importance="first"),
    Column("written_bytes", "int", "bytes", "measure", "bytes written", importance="first"),
)
# This SQL classifies the I/O of a call. Waiting for another process or for the network is a kind of its own,
# because it is not a cost of a file system.
PART = f"""CASE WHEN c.family IN ({WAITING_CALLS}) OR (c.class = 'data' AND f.kind IN ({WAITED_FOR}))
    OR (c.class = 'data' AND f.kind = 'standard' AND direction = 1) THEN 'waiting' ELSE c.class END"""


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per part of the I/O. `totals.total` has the numbers of the whole run and
    its largest costs."""
    if store.manifest.profiles_only:
        return counters.run(store, asked, COLUMNS, PARTS)
    filters = asked.filters
    if not filters.kind and not filters.file:
        filters = dataclasses.replace(filters, kind=("all",))
    selection = select(store, filters)
    store.keep("costs", costs_sql(selection))
    keep_patterns(store)
    table = store.table(PARTS_SQL)
    total = _facts(store, selection)
    totals = Totals(total, None, table.num_rows, table.num_rows, "parts")
    return answer(
        "overview", "The run at a glance", store, asked, table, COLUMNS, selection, totals, ("part",)
    )


def costs_sql(selection: Selection) -> str:
    """Returns the SQL for I/O calls summed by file, call and direction, with the part of the I/O that they
    belong to."""
    counted = f"NOT {selection.again}"
    return f"""WITH s AS (SELECT e.file_id, e.call_id, e.direction,
    count(*) FILTER (WHERE {counted}) AS count, count(e.errno_id) FILTER (WHERE {counted}) AS failed,
    CAST(sum(e.dur) FILTER (WHERE {counted}) AS BIGINT) AS time,
    max(e.dur) AS longest, sum(e.bytes) AS bytes
  {selection.from_events} GROUP BY 1, 2, 3)
SELECT s.file_id, f.name AS file, c.name AS call, {PART} AS part, count, failed, time, longest,
  CASE WHEN direction = 1 THEN bytes END AS read_bytes,
  CASE WHEN direction = 2 THEN bytes END AS written_bytes
FROM s JOIN calls c ON c.id = s.call_id LEFT JOIN files f ON f.file_id = s.file_id
WHERE s.file_id IS NOT NULL OR {IO_CALLS}"""


_PLACES = " ".join(f"WHEN '{part}' THEN {place}" for place, part in enumerate(PARTS))
PARTS_SQL = f"""SELECT part, CAST(sum(count) AS BIGINT) AS count, CAST(sum(failed) AS BIGINT) AS failed,
  CAST(sum(time) AS BIGINT) AS total_time_ns,
  CAST(sum(time) AS DOUBLE) / nullif(sum(sum(time)) OVER (), 0) AS share,
  CAST(sum(read_bytes) AS BIGINT) AS read_bytes, CAST(sum(written_bytes) AS BIGINT) AS written_bytes
FROM costs GROUP BY part ORDER BY CASE part {_PLACES} END"""


def _facts(store: Store, selection: Selection) -> dict[str, Any]:
    wall = store.manifest.wall_ns
    io = io_time(store, selection)
    io_ns = io.subset_ns if io else None
    (sums,) = store.rows(
        """SELECT CAST(coalesce(sum(count), 0) AS BIGINT) AS calls,
  CAST(coalesce(sum(failed), 0) AS BIGINT) AS failed,
  CAST(sum(time) AS BIGINT) AS total_time_ns, CAST(coalesce(sum(read_bytes), 0) AS BIGINT) AS read_bytes,
  CAST(coalesce(sum(written_bytes), 0) AS BIGINT) AS written_bytes,
  count(DISTINCT file_id) FILTER (WHERE file_id IS NOT NULL) AS files FROM costs"""
    )
    return {
        "wall_time_ns": wall,
        "io_time_ns": io_ns,
        "waiting_time_ns": io.any_ns - io.subset_ns if io else None,
        "io_share": io_ns / wall if io_ns is not None and wall else None,
        **sums,
        "largest": _largest(store),
    }


def _largest(store: Store) -> list[dict[str, Any]]:
    """Returns the pairs of call and file (or name pattern of files) with most time. If no call has a
    duration, it returns those with most calls."""
    return store.rows(
        f"""SELECT call, coalesce(pattern, file) AS file, count(DISTINCT file_id) AS file_count,
  any_value(part) AS part, CAST(sum(time) AS BIGINT) AS total_time_ns,
  max(longest) AS max_time_ns, CAST(sum(count) AS BIGINT) AS count, CAST(sum(failed) AS BIGINT) AS failed,
  CAST(sum(coalesce(read_bytes, written_bytes)) AS BIGINT) AS bytes
FROM costs LEFT JOIN {PATTERNED} USING (file_id)
WHERE part <> 'waiting' GROUP BY call, coalesce(pattern, file), CASE WHEN NOT several THEN file_id END
ORDER BY sum(time) DESC NULLS LAST, sum(count) DESC, call, 2 LIMIT {LARGEST_COSTS}"""
    )


ANALYSIS = Analysis(
    name="overview",
    title="The run at a glance",
    doc="""Wall time, the part of it in which at least one thread was in an I/O call (the union over all
threads), the division of the calls' time into data, metadata, seek, sync, waiting on pipes and sockets, and
other, the bytes, and the three largest costs with call and file, or pattern of files. Without --kind or
--file it covers every file, pipe and socket. In JSON the numbers of the run are in `totals`. For counters
(Darshan's logs) it has no wall time of I/O, but the mean over ranks.""",
    columns=COLUMNS,
    run=run,
    profiles=True,
    examples=("iodock show overview run.iodock", "iodock show overview run.iodock --rank 0 --format json"),
)
