"""Queries the data of one compute node in a short time: counters that its agent read, and the owners of
processes that moved data there."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iodock.centre.monitor.questions.counted import CGROUPS, PLACES, PROCESSES, listed, text
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import Span, overlap
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

_OF_NODES = (*PLACES[PROCESSES], *PLACES[CGROUPS])


def hosts(store: MonitorTables, begin: int, end: int, resolution: str) -> pa.Table:
    """Returns the machines with any reading in this time, in the column host. Raises StoreError,
    QueryError."""
    sql = "SELECT DISTINCT host FROM (SELECT host FROM targets UNION ALL SELECT host FROM job_io)"
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=Need(is_presence=True))


def grown(
    store: MonitorTables,
    host: str,
    sources: Sequence[str],
    metrics: Sequence[str],
    span: tuple[int, int, str],
) -> pa.Table:
    """Returns the growth of byte counters between each two readings, in the columns source, target (for a
    mount, its mount point), metric, begin_ts, end_ts and value. If a counter did not grow between two
    readings and another counter of the same source did, its value is 0. SPAN is begin, end and resolution.
    Raises StoreError, QueryError."""
    begin, end, resolution = span
    sql = f"""
        WITH read AS (
            SELECT source, target, metric, begin_ts, end_ts, sum(value) AS value FROM targets
            WHERE host = {text(host)} AND source IN ({listed(sources)}) AND NOT is_level
                AND unit = 'bytes' AND bucket IS NULL AND metric IN ({listed(metrics)}) GROUP BY ALL
        ), rounds AS (
            SELECT DISTINCT source, begin_ts, end_ts FROM targets
            WHERE host = {text(host)} AND source IN ({listed(sources)}) AND end_ts > begin_ts
        )
        SELECT s.source, s.target, s.metric, r.begin_ts, r.end_ts, coalesce(v.value, 0)::DOUBLE AS value
        FROM (SELECT DISTINCT source, target, metric FROM read) s JOIN rounds r USING (source)
            LEFT JOIN read v USING (source, target, metric, begin_ts, end_ts)
        WHERE r.begin_ts >= {begin} AND r.end_ts <= {end} ORDER BY ALL
    """
    need = Need(tuple(sources))
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def users(store: MonitorTables, host: str, ids: JobIds, within: Span) -> pa.Table:
    """Returns the bytes that each owner of processes moved through the machine's devices and mounts, as its
    agent reports. The columns are name (a job's number, else a session or command), user, read_bytes,
    written_bytes and commands (the one with most bytes first; NULL: not reported). The table is empty if the
    agent reported no owners. Raises StoreError, QueryError."""
    share = overlap(within)
    sql = f"""
        WITH told AS (
            SELECT *, source = 'cgroup_io' AS is_group, {share} AS share FROM job_io
            WHERE host = {text(host)} AND source IN ({listed(_OF_NODES)})
                AND end_ts > {within.begin} AND begin_ts < {within.end}
        ), by_command AS (
            SELECT coalesce({ids.number()}, session, command, '') AS name, "user", command,
                sum(read_bytes * share) AS reads, sum(write_bytes * share) AS writes
            FROM told WHERE is_group = (SELECT bool_and(is_group) FROM told) GROUP BY ALL
        )
        SELECT name, max("user") AS "user", CAST(sum(reads) AS BIGINT) AS read_bytes,
            CAST(sum(writes) AS BIGINT) AS written_bytes,
            list(command ORDER BY reads + writes DESC, command) FILTER (command IS NOT NULL) AS commands
        FROM by_command GROUP BY name ORDER BY sum(reads + writes) DESC, name
    """
    need = Need(_OF_NODES)
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.resolution, need=need)
