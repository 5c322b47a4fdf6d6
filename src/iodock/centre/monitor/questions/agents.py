"""Which machines' agents were heard, when last, and what they lost."""

from __future__ import annotations

import pyarrow as pa

from iodock.centre.monitor.questions.counted import SERVED
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import HOUR, SECOND
from iodock.centre.store import RESOLUTIONS, MonitorTables
from iodock.shared.engine.need import Need

_STEP = 600 * SECOND
"""Of the coarsest rows; a longer one is of an agent that was away."""


def heard(store: MonitorTables, begin: int, end: int) -> list[dict[str, object]]:
    """host, file_system (NULL: it served none in the hour before END), read_ts: the last reading or event
    until END, ns since the epoch, of every machine whose agent told anything since BEGIN. What sysstat
    recorded is no agent's. Raises StoreError."""
    # Every agent reads the load in each round: of weeks these rows are few, and lie together.
    load = f"SELECT host, NULL AS file_system, {_at(end)} AS ts FROM targets WHERE source = 'load'"
    every = " UNION ALL ".join(
        f"""SELECT host, CASE WHEN {SERVED} THEN file_system END AS file_system, {_at(end)} AS ts
            FROM {table} WHERE NOT starts_with(source, 'sar_')"""
        for table in ("targets", "job_io")
    )
    found = _last(store, load, begin, end, Need(("load",)))
    found |= _last(store, every, max(begin, end - HOUR), end, Need(is_presence=True))
    return [found[host] for host in sorted(found)]


def losses(store: MonitorTables, begin: int, end: int) -> pa.Table:
    """host (empty: nobody knows whose), name, source, count, ts (of the last): the latest first. Raises
    StoreError."""
    sql = """
        SELECT coalesce(host, '') AS host, name, source, sum(count)::BIGINT AS count, max(ts) AS ts
        FROM losses GROUP BY ALL ORDER BY ts DESC, host, name, source
    """
    return store.table(sql, begin=begin, end=end, resolution="fine")


def _at(end: int) -> str:
    """When a row's machine was heard last until END, in SQL. A row that goes on behind it: meanwhile, unless
    its agent was away."""
    return f"""CASE WHEN end_ts <= {end} THEN end_ts WHEN end_ts - begin_ts <= {_STEP} THEN {end}
        ELSE begin_ts END"""


def _last(store: MonitorTables, rows: str, begin: int, end: int, need: Need) -> dict[str, dict[str, object]]:
    """By machine. Coarser rows end where the last of theirs does: it is exact of any."""
    sql = f"""
        SELECT host, max(file_system) AS file_system, max(ts) AS read_ts FROM (
            {rows} UNION ALL SELECT host, NULL, least(last_ts, {end}) FROM events
        ) GROUP BY host
    """
    found = as_rows(store.table(sql, begin=begin, end=end, resolution=RESOLUTIONS[-1], need=need))
    return {str(row["host"]): row for row in found}
