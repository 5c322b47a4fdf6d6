"""Queries the bytes that users moved in a month."""

from __future__ import annotations

import pyarrow as pa

from iodock.centre.monitor import summaries
from iodock.centre.monitor.questions.counted import PLACES, SERVERS, sums, text, zero_if_counted
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import Seen
from iodock.centre.monitor.questions.spans import HOUR, Span
from iodock.centre.monitor.questions.steps import all_completed
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need


def by_user(
    store: MonitorTables, begin: int, end: int, ids: JobIds, seen: Seen, place: str = SERVERS
) -> pa.Table:
    """Returns the sums of each user on each file system from BEGIN to END (ns since the epoch). The columns
    are user (NULL: unknown), file_system, jobs (their number), read_bytes, write_bytes, reads, writes,
    metadata and exact. A sum is NULL if it is not counted."""
    within = Span(begin, end, HOUR, summaries.COARSEST, summaries.COARSEST)
    need = Need(PLACES[place], (*sums(place), "reads", "writes"))
    return summaries.asked_of_jobs(store, ids, within, lambda rows: _sql(rows, within, seen, place), need)


def _sql(rows: str, within: Span, seen: Seen, place: str) -> str:
    counts = ("read_bytes", "write_bytes", "reads", "writes", "metadata")
    added = ", ".join(f"sum({name}) AS {name}" for name in counts)
    counted = ", ".join(f"{zero_if_counted(name, 'file_system')} AS {name}" for name in counts)
    return f"""
        SELECT * REPLACE ({counted}) FROM (
            SELECT "user", file_system, count(DISTINCT CASE WHEN is_job THEN job END) AS jobs, {added},
                bool_and(exact) AS exact
            FROM (
                SELECT "user", file_system, job, is_job, {added},
                    {all_completed(within)} AS exact
                FROM {rows} WHERE place = {text(place)} AND {seen.condition('"user"')}
                GROUP BY "user", file_system, job, is_job
            ) GROUP BY "user", file_system
        ) ORDER BY coalesce(read_bytes, 0) + coalesce(write_bytes, 0) DESC, "user", file_system
    """
