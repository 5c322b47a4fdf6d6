"""How much users moved in a month."""

from __future__ import annotations

import pyarrow as pa

from iodock.monitor import summaries
from iodock.monitor.questions.counted import PLACES, PROCESSES, SERVERS, of_place, sums
from iodock.monitor.questions.ids import JobIds
from iodock.monitor.questions.jobs import Seen, user_of
from iodock.monitor.questions.spans import HOUR, Span
from iodock.store.monitored import MonitorTables
from iodock.store.need import Need


def by_user(
    store: MonitorTables, begin: int, end: int, ids: JobIds, seen: Seen, place: str = SERVERS
) -> pa.Table:
    """user (NULL: nobody knows), file_system, jobs, read_bytes, write_bytes, reads, writes, metadata, exact:
    of all rows that ended in the span, ns since the epoch."""
    read, write = (
        ("call_read_bytes", "call_write_bytes") if place == PROCESSES else ("read_bytes", "write_bytes")
    )
    within = Span(begin, end, HOUR, summaries.COARSEST, summaries.COARSEST)
    need = Need(PLACES[place], (*sums(place), "reads", "writes"))
    return summaries.asked(
        store, summaries.OWNERS, within,
        lambda rows: _sql(rows, within, ids, seen, place, (read, write)), need=need,
    )  # fmt: skip


def _sql(rows: str, within: Span, ids: JobIds, seen: Seen, place: str, moved: tuple[str, str]) -> str:
    read, write = moved
    return f"""
        WITH found AS (
            SELECT job, "user", file_system, bool_and(exact) AS exact, sum({read})::DOUBLE AS read_bytes,
                sum({write})::DOUBLE AS write_bytes, sum(reads)::DOUBLE AS reads,
                sum(writes)::DOUBLE AS writes,
                sum(metadata)::DOUBLE AS metadata
            FROM {rows} WHERE {of_place(place)} AND end_ts > {within.begin} AND end_ts <= {within.end}
            GROUP BY ALL
        ), named AS (SELECT *, {user_of(ids)} AS owner, {ids.number()} AS number FROM found)
        SELECT * FROM (SELECT owner AS "user", file_system, count(DISTINCT number) AS jobs,
            sum(read_bytes) AS read_bytes,
            sum(write_bytes) AS write_bytes, sum(reads) AS reads, sum(writes) AS writes,
            sum(metadata) AS metadata, bool_and(exact) AS exact
        FROM named WHERE {seen.condition("owner")} GROUP BY ALL)
        ORDER BY read_bytes + write_bytes DESC, "user", file_system
    """
