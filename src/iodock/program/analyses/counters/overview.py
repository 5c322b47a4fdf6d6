"""Summarizes the run from counters: kinds of operations, bytes, and the files that took most time."""

from __future__ import annotations

from typing import Any

from iodock.program.analyses.base import Request, answered
from iodock.program.relations.profiled import operations
from iodock.program.relations.profiled.chosen import CHOSEN, GROUND, choose
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column, Totals

_GROUND = f"o.interface IN ({', '.join(repr(one) for one in GROUND)})"
# This condition selects the uppermost interface of each file, because its time includes the time of the
# interfaces that it calls.
_UPPERMOST = f"""(o.interface = 'mpi-io' OR {_GROUND} AND coalesce(o.file_id NOT IN
  (SELECT file_id FROM {CHOSEN} WHERE interface = 'mpi-io' AND file_id IS NOT NULL), true))"""
_NOTE = (
    "rows are of posix and stdio alone, because the bytes of other interfaces pass through these; the time"
    " in which at least one process was in I/O does not follow from counters: totals have the mean of each"
    " rank instead, for files that MPI-IO used the time in MPI-IO"
)


def run(store: Store, asked: Request, columns: tuple[Column, ...], parts: tuple[str, ...]) -> Answer:
    """Returns an answer with one row per part of the I/O. `totals.total` has the numbers of the whole run."""
    notes = (*choose(store, asked.filters), _NOTE)
    operations.keep_operations(store)
    places = " ".join(f"WHEN '{part}' THEN {place}" for place, part in enumerate(parts))
    table = store.table(
        f"""WITH g AS (SELECT o.class AS part, {operations.MEASURES_SQL}
  FROM {operations.OPERATIONS} o WHERE {_GROUND} GROUP BY 1)
SELECT part, count, failed, total_time_ns, CAST(total_time_ns AS DOUBLE) / nullif(
    CASE WHEN count(total_time_ns) OVER () > 0 THEN sum(total_time_ns) OVER () END, 0) AS share,
  read_bytes, written_bytes FROM g ORDER BY CASE part {places} END"""
    )
    totals = Totals(_facts(store), None, table.num_rows, table.num_rows, "parts")
    return answered("overview", "The run at a glance", store, asked, table, columns, notes, totals, ("part",))


def _facts(store: Store) -> dict[str, Any]:
    (sums,) = store.rows(
        f"""SELECT {operations.COUNT} AS calls, {operations.TIME} AS total_time_ns,
  {operations.READ} AS read_bytes, {operations.WRITTEN} AS written_bytes, {operations.FILE_COUNT} AS files
FROM {operations.OPERATIONS} o WHERE {_GROUND}"""
    )
    wall, ranks = store.manifest.wall_ns, store.manifest.raw.get("ranks")
    (upper,) = store.rows(f"SELECT {operations.TIME} AS ns FROM {operations.OPERATIONS} o WHERE {_UPPERMOST}")
    mean = upper["ns"] / ranks if upper["ns"] is not None and ranks else None
    return {
        "wall_time_ns": wall,
        "io_time_ns": None,
        "waiting_time_ns": None,
        "io_share": None,
        "ranks": ranks,
        "mean_rank_time_ns": mean,
        "mean_rank_share": mean / wall if mean is not None and wall else None,
        **sums,
        "failed": None,
        "largest": store.rows(
            f"""SELECT o.family AS call, o.file, 1 AS file_count, any_value(o.class) AS part,
  {operations.TIME} AS total_time_ns, max(o.longest_ns) AS max_time_ns, {operations.COUNT} AS count,
  {operations.sum_or_none("o.moved_bytes")} AS bytes
FROM {operations.OPERATIONS} o WHERE {_GROUND} AND o.is_timed GROUP BY o.family, o.file, o.file_id
HAVING {operations.TIME} > 0 ORDER BY 5 DESC NULLS LAST, 2, 1 LIMIT 3"""
        ),
    }
