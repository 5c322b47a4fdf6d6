"""Agents: when each machine was last heard, and what its agent lost."""

from __future__ import annotations

import pyarrow as pa

from iodock.centre.monitor.questions.counted import SERVED
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import HOUR, SECOND
from iodock.centre.store import RESOLUTIONS, MonitorTables
from iodock.shared.engine.need import Need

_STEP = 600 * SECOND
"""Length of the coarsest rows, ns. A longer row belongs to an agent that was away."""


def heard(store: MonitorTables, begin: int, end: int) -> list[dict[str, object]]:
    """Lists every machine with an active agent since BEGIN: host, file_system (NULL: it served none in the
    hour before END), read_ts (the last reading or event until END). Times in ns since the epoch. Data of
    sysstat does not come from an agent and is excluded. Raises StoreError."""
    # Every agent reads the load in each round: even for weeks these rows are few, and adjacent.
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
    """Lists losses, the latest first: host (empty: unknown), name, source, count, ts (of the last one).
    Raises StoreError."""
    sql = """
        SELECT coalesce(host, '') AS host, name, source, sum(count)::BIGINT AS count, max(ts) AS ts
        FROM losses GROUP BY ALL ORDER BY ts DESC, host, name, source
    """
    return store.table(sql, begin=begin, end=end, resolution="fine")


def _at(end: int) -> str:
    """Returns SQL for the time when a row's machine was last heard until END. If a row continues beyond END,
    this is END, unless its agent was away."""
    return f"""CASE WHEN end_ts <= {end} THEN end_ts WHEN end_ts - begin_ts <= {_STEP} THEN {end}
        ELSE begin_ts END"""


def _last(store: MonitorTables, rows: str, begin: int, end: int, need: Need) -> dict[str, dict[str, object]]:
    """For each machine, the last time with a row. The coarser rows also end at the time of their last
    reading, so the result is exact for all resolutions."""
    sql = f"""
        SELECT host, max(file_system) AS file_system, max(ts) AS read_ts FROM (
            {rows} UNION ALL SELECT host, NULL, least(last_ts, {end}) FROM events
        ) GROUP BY host
    """
    found = as_rows(store.table(sql, begin=begin, end=end, resolution=RESOLUTIONS[-1], need=need))
    return {str(row["host"]): row for row in found}
