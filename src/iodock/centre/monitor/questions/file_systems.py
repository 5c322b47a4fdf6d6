"""Queries about file systems over time: bytes, metadata operations and waiting requests."""

from __future__ import annotations

import pyarrow as pa

from iodock.centre.monitor import summaries
from iodock.centre.monitor.questions.counted import PLACES, SERVED, SERVERS, metadata_operations, sums
from iodock.centre.monitor.questions.spans import HOUR, Span, spread
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

_MOVED = {"read_bytes": "read_bytes", "write_bytes": "write_bytes"}
_CLIENTS = ("mdt_md_stats", "llite_stats", "mountstats", "mmpmon_fs_io", "mfs_mount")
"""Sources that name their file system and count without assigning the counts to jobs."""
# A counter that did not grow has no row, so a query takes 0 for it. These sources never count bytes, so their
# bytes are unknown and not 0.
_DATA = "source NOT IN ('mdt_md_stats', 'mfs_mount')"
_SERVICE = "source = 'mds_stats' AND target NOT LIKE '%:%' AND NOT is_level AND bucket IS NULL"


def by_servers(store: MonitorTables, within: Span) -> pa.Table:
    """Returns the I/O of each file system in each step, as the sum of the counts by job on file servers. The
    columns are bucket (number of the step), file_system, exact, read_bytes, write_bytes and metadata."""
    summed = {**_MOVED, "metadata": "metadata"}
    return summaries.asked(
        store, summaries.SYSTEMS, within, lambda rows: spread(rows, "file_system", summed, within),
        within.resolution, Need(PLACES[SERVERS], sums(SERVERS)),
    )  # fmt: skip


def by_clients(store: MonitorTables, within: Span) -> pa.Table:
    """Returns the I/O of each file system in each step from counters of mounts and metadata targets, which do
    not distinguish jobs. The columns are those of `by_servers` and `source`, such as llite_stats,
    mdt_md_stats or mountstats."""
    operations = ", ".join(f"'{name}'" for name in metadata_operations())
    values = {
        **{name: f"CASE WHEN metric = '{name}' THEN value WHEN {_DATA} THEN 0 END" for name in _MOVED},
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
    """Returns the requests of each service of each metadata server in each step. The columns are bucket
    (number of the step), host, target, exact, handled (requests), waited_us (their total waiting time),
    queued and samples (queued / samples is the mean length of the queue)."""
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
    """Returns every machine that sent data in the last step of the span or in the hour before it. The columns
    are host, file_system (NULL: the machine serves none) and read_ts (time of the last reading, ns since the
    epoch)."""
    sql = f"""
        WITH seen AS (
            SELECT host, end_ts, CASE WHEN {SERVED} THEN file_system END AS file_system FROM targets
            UNION ALL SELECT host, end_ts, CASE WHEN {SERVED} THEN file_system END FROM job_io
        )
        SELECT host, max(file_system) AS file_system, max(end_ts) AS read_ts
        FROM seen GROUP BY host ORDER BY host
    """
    begin = max(within.begin, within.end - within.step - HOUR)
    need = Need(PLACES[SERVERS], is_presence=True)
    return store.table(sql, begin=begin, end=within.end, resolution=within.sums, need=need)


def served(store: MonitorTables, now: int) -> pa.Table:
    """Returns the Lustre servers that sent data in the hour before NOW (ns since the epoch), in the columns
    host and file_system. Raises StoreError."""
    sql = """
        SELECT DISTINCT host, file_system FROM (
            SELECT host, source, file_system FROM targets
            UNION ALL SELECT host, source, file_system FROM job_io
        ) WHERE file_system IS NOT NULL AND (source LIKE 'mdt%' OR source LIKE 'obdfilter%')
        QUALIFY row_number() OVER (PARTITION BY host ORDER BY file_system) = 1
    """
    need = Need(PLACES[SERVERS], is_presence=True)
    return store.table(sql, begin=now - HOUR, end=now, resolution="minute", need=need)


def heard(store: MonitorTables, begin: int, end: int) -> pa.Table:
    """Returns the machines with any reading or event in this time, in the column host. Raises StoreError."""
    sql = """
        SELECT DISTINCT host FROM (
            SELECT host FROM targets UNION ALL SELECT host FROM job_io UNION ALL SELECT host FROM events
        )
    """
    need = Need(is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution="minute", need=need)


def probed(store: MonitorTables, begin: int, end: int) -> pa.Table:
    """Returns the folders in which a probe completed a round in this time, in the columns host and target
    (the folder). Raises StoreError."""
    sql = "SELECT DISTINCT host, target FROM targets WHERE source = 'probe'"
    need = Need(("probe",), is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution="minute", need=need)


def probes(store: MonitorTables, within: Span) -> pa.Table:
    """Returns the results of probes in each step. The columns are bucket (number of the step), file_system,
    host, target (the folder), response_us (of the longest round), limit_us (NULL: no limit), failed and
    no_answer (numbers of operations)."""
    metrics = ("response_us", "limit_us", "failed", "no_answer")
    columns = ", ".join(f"max(greatest) FILTER (metric = '{name}') AS {name}" for name in metrics)
    sql = f"""
        SELECT (end_ts - 1 - {within.begin}) // {within.step} AS bucket, file_system, host, target, {columns}
        FROM targets WHERE source = 'probe' AND is_level AND end_ts > {within.begin}
        GROUP BY ALL ORDER BY ALL
    """
    return _asked(store, sql, within, Need(("probe",), metrics))


def _asked(store: MonitorTables, sql: str, within: Span, need: Need) -> pa.Table:
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.resolution, need=need)
