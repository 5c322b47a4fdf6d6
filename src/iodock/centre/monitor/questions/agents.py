"""Queries about agents: when each machine last sent data, and which data its agent lost."""

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
    """Lists every machine whose agent sent data between BEGIN and END (ns since the epoch). The keys of a row
    are host, file_system (None: the machine served none in the hour before END) and read_ts (time of the last
    reading or event until END). Data of sysstat does not come from an agent and is excluded. Raises
    StoreError."""
    # Every agent reads the load average in each round, so these rows are enough to find all agents. They are
    # few and adjacent in the files, which makes queries over weeks fast.
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
    """Lists losses, the latest first, in the columns host (empty: unknown), name, source, count and ts (time
    of the last loss). Raises StoreError."""
    sql = """
        SELECT coalesce(host, '') AS host, name, source, sum(count)::BIGINT AS count, max(ts) AS ts
        FROM losses GROUP BY ALL ORDER BY ts DESC, host, name, source
    """
    return store.table(sql, begin=begin, end=end, resolution="fine")


def _at(end: int) -> str:
    """Returns SQL for the last time until END at which a row shows that its machine sent data. If the row
    continues beyond END, this is END. If it is longer than the coarsest rows, its agent was not running in
    between, and this is the row's begin."""
    return f"""CASE WHEN end_ts <= {end} THEN end_ts WHEN end_ts - begin_ts <= {_STEP} THEN {end}
        ELSE begin_ts END"""


def _last(store: MonitorTables, rows: str, begin: int, end: int, need: Need) -> dict[str, dict[str, object]]:
    """Returns the last time with a row for each machine. Rows of all resolutions end at the time of their
    last reading, so the coarsest rows give the exact time."""
    sql = f"""
        SELECT host, max(file_system) AS file_system, max(ts) AS read_ts FROM (
            {rows} UNION ALL SELECT host, NULL, least(last_ts, {end}) FROM events
        ) GROUP BY host
    """
    found = as_rows(store.table(sql, begin=begin, end=end, resolution=RESOLUTIONS[-1], need=need))
    return {str(row["host"]): row for row in found}
