"""File systems over time: bytes, metadata operations and waiting requests."""

from __future__ import annotations

import pyarrow as pa

from iodock.monitor import summaries
from iodock.monitor.questions.counted import (
    PLACES,
    SERVERS,
    metadata,
    metadata_operations,
    of_place,
    sums,
)
from iodock.monitor.questions.spans import HOUR, Span, spread
from iodock.store.monitored import MonitorTables
from iodock.store.need import Need

_MOVED = {"read_bytes": "read_bytes", "write_bytes": "write_bytes"}
_CLIENTS = ("mdt_md_stats", "llite_stats", "mountstats", "mmpmon_fs_io")
"""Sources that say of which file system they are, and count without jobs."""
_SERVICE = "source = 'mds_stats' AND target NOT LIKE '%:%' AND NOT is_level AND bucket IS NULL"


def by_servers(store: MonitorTables, within: Span) -> pa.Table:
    """bucket, file_system, exact, read_bytes, write_bytes, metadata: growth in each step, as file servers
    count it by job."""
    if summaries.serve(store, within.resolution):
        summed = {**_MOVED, "metadata": "metadata"}
        return summaries.asked(
            store, "systems", within, lambda rows: spread(rows, "file_system", summed, within)
        )
    rows = f"job_io WHERE {of_place(SERVERS)} AND file_system IS NOT NULL"
    values = {**_MOVED, "metadata": metadata()}
    need = Need(PLACES[SERVERS], sums(SERVERS))
    return _asked(store, spread(rows, "file_system", values, within), within, need)


def by_clients(store: MonitorTables, within: Span) -> pa.Table:
    """The same as mounts and metadata targets count it without jobs, with `source`: llite_stats,
    mdt_md_stats, mountstats, mmpmon."""
    operations = ", ".join(f"'{name}'" for name in metadata_operations())
    values = {
        **{name: f"CASE WHEN metric = '{name}' THEN value ELSE 0 END" for name in _MOVED},
        "metadata": f"CASE WHEN metric IN ({operations}) AND unit = '1' THEN value ELSE 0 END",
    }
    rows = (
        "targets WHERE file_system IS NOT NULL AND NOT is_level AND bucket IS NULL "
        "AND source NOT LIKE '%rpc_stats' "
        f"AND metric IN ('read_bytes', 'write_bytes', {operations})"
    )
    need = Need(_CLIENTS, ("read_bytes", "write_bytes", *metadata_operations()))
    return _asked(store, spread(rows, "file_system, source", values, within), within, need)


def waiting(store: MonitorTables, within: Span) -> pa.Table:
    """bucket, host, target, exact, handled (requests), waited_us, queued and samples (their quotient is the
    mean length of the queue): growth in each step, by service of each metadata server."""
    metrics = {
        "handled": "req_waittime", "waited_us": "req_waittime_time",
        "queued": "req_qdepth_sum", "samples": "req_qdepth",
    }  # fmt: skip
    values = {
        name: f"CASE WHEN metric = '{metric}' THEN value ELSE 0 END" for name, metric in metrics.items()
    }
    listed = ", ".join(f"'{metric}'" for metric in metrics.values())
    rows = f"targets WHERE {_SERVICE} AND metric IN ({listed})"
    need = Need(("mds_stats",), tuple(metrics.values()))
    return _asked(store, spread(rows, "host, target", values, within), within, need)


def servers(store: MonitorTables, within: Span) -> pa.Table:
    """host, file_system (NULL: it serves none), read_ts: the last reading, ns since the epoch, of every
    machine in the last hour of the span, and its last step."""
    sql = """
        WITH seen AS (
            SELECT host, end_ts, CASE WHEN source LIKE 'mdt%' OR source LIKE 'obdfilter%' THEN file_system END
                AS file_system FROM targets
            UNION ALL
            SELECT host, end_ts, CASE WHEN source LIKE 'mdt%' OR source LIKE 'obdfilter%' THEN file_system END
                FROM job_io
        )
        SELECT host, max(file_system) AS file_system, max(end_ts) AS read_ts
        FROM seen GROUP BY host ORDER BY host
    """
    begin = max(within.begin, within.end - within.step - HOUR)
    need = Need(PLACES[SERVERS], is_presence=True)
    return store.table(sql, begin=begin, end=within.end, resolution=within.sums, need=need)


def _asked(store: MonitorTables, sql: str, within: Span, need: Need) -> pa.Table:
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.resolution, need=need)
