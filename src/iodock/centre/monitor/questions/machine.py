"""Queries the disks, load and pressure of one machine over time, and the jobs that used the machine.

The data was read by the machine's agent, or recorded by sysstat (`iodock monitor import-sar`). Both give the
same metrics."""

from __future__ import annotations

import pyarrow as pa

from iodock.centre.monitor import summaries
from iodock.centre.monitor.questions.counted import PLACES, of_place, text
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import HOUR, Span, spread
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

DISKS = ("diskstats", "sar_disk")
LOAD = ("load", "sar_load")
PRESSURE = ("pressure", "sar_pressure")
_DISK_METRICS = ("read_bytes", "write_bytes", "read", "write", "transfers", "busy_time")
_WAITED = ("some_time", "full_time")


def disks(store: MonitorTables, host: str, within: Span) -> pa.Table:
    """Returns the growth of each disk's counters in each step, in the columns bucket (number of the step),
    target (the disk), exact, read_bytes, write_bytes, operations and busy_us. Raises StoreError,
    QueryError."""
    values = {
        "read_bytes": _if("metric = 'read_bytes'"),
        "write_bytes": _if("metric = 'write_bytes'"),
        # The metric `transfers` of sysstat counts reads and writes together.
        "operations": _if("metric IN ('read', 'write', 'transfers') AND unit = '1'"),
        "busy_us": _if("metric = 'busy_time'"),
    }
    return _grown(store, host, DISKS, _DISK_METRICS, values, within)


def pressure(store: MonitorTables, host: str, within: Span) -> pa.Table:
    """Returns the time in which some or all tasks waited for a resource in each step, in the columns bucket
    (number of the step), target (io, cpu, memory), exact, some_us and full_us. Raises StoreError,
    QueryError."""
    # Kernels before 5.13 and sysstat do not report the time in which all tasks waited for a processor, so a
    # missing row is NULL for `cpu` and 0 for the other targets.
    full = "CASE WHEN metric = 'full_time' THEN value WHEN target <> 'cpu' THEN 0 END"
    values = {"some_us": _if("metric = 'some_time'"), "full_us": full}
    return _grown(store, host, PRESSURE, _WAITED, values, within)


def load(store: MonitorTables, host: str, within: Span) -> pa.Table:
    """Returns the load average over one minute (number of running or waiting tasks) in each step, in the
    columns bucket (number of the step), load (mean of the readings) and greatest. Raises StoreError,
    QueryError."""
    sql = f"""
        SELECT (end_ts - 1 - {within.begin}) // {within.step} AS bucket, avg(value) / 100 AS load,
            max(greatest) / 100 AS greatest
        FROM targets WHERE {_at(host, LOAD)} AND is_level AND metric = 'load1_percent'
            AND end_ts > {within.begin} AND end_ts <= {within.end}
        GROUP BY ALL ORDER BY ALL
    """
    return _asked(store, sql, within, Need(LOAD, ("load1_percent",)))


def last_read(store: MonitorTables, host: str, within: Span) -> int | None:
    """Returns the time of the machine's last reading in the last step of the span and the hour before it, in
    ns since the epoch. Raises StoreError."""
    sql = f"""
        SELECT max(end_ts) FROM (
            SELECT end_ts FROM targets WHERE host = {text(host)}
            UNION ALL SELECT end_ts FROM job_io WHERE host = {text(host)}
        )
    """
    begin = max(within.begin, within.end - within.step - HOUR)
    found = store.table(
        sql, begin=begin, end=within.end, resolution=within.sums, need=Need(is_presence=True)
    ).column(0)[0]
    moment = found.as_py()
    return None if moment is None else int(moment)


def jobs_on(store: MonitorTables, ids: JobIds, host: str, within: Span, end: int) -> set[str]:
    """Returns the numbers of the jobs in the span that ran on HOST. If HOST is a file server, jobs that used
    it are included; if the span is read from summaries, only those of the last hour before END. END is in ns
    since the epoch, while the span ends at a whole step. Raises StoreError, QueryError."""
    kept = summaries.kept(store, within.sums)
    found: set[str] = set()
    if kept:
        kind = summaries.of_jobs(ids)
        where = f"is_job AND list_contains(clients, {text(host)})"
        found = _numbers(summaries.asked(kept, kind, within, lambda rows: _distinct("job", rows, where)))
    begin = max(within.begin, min(end, within.end) - HOUR) if kept else within.begin
    kinds = tuple(kind for place in PLACES.values() for kind in place)
    counted = " OR ".join(of_place(place) for place in PLACES)
    # The subquery removes duplicates first, so that each id is parsed only once.
    rows = f"(SELECT DISTINCT job, host FROM job_io WHERE job IS NOT NULL AND ({counted}))"
    where = f"host = {text(host)} OR {ids.host()} = {text(host)}"
    sql = _distinct(ids.number(), rows, where)
    need = Need(kinds, ("read_bytes",))
    return found | _numbers(store.table(sql, begin=begin, end=within.end, resolution=within.sums, need=need))


def _distinct(column: str, rows: str, where: str) -> str:
    return f"SELECT DISTINCT {column} FROM {rows} WHERE {where}"


def _numbers(found: pa.Table) -> set[str]:
    return {str(number) for number in found.column(0).to_pylist() if number}


def _if(condition: str) -> str:
    """Returns SQL that is `value` in rows that meet CONDITION, and 0 in others. Every reading includes all
    metrics and a metric that did not grow has no row, so the sum over no matching row is 0 and not
    unknown."""
    return f"CASE WHEN {condition} THEN value ELSE 0 END"


def _at(host: str, sources: tuple[str, ...]) -> str:
    return f"host = {text(host)} AND source IN ({', '.join(map(text, sources))})"


def _grown(
    store: MonitorTables,
    host: str,
    sources: tuple[str, ...],
    metrics: tuple[str, ...],
    values: dict[str, str],
    within: Span,
) -> pa.Table:
    listed = ", ".join(map(text, metrics))
    rows = f"targets WHERE {_at(host, sources)} AND NOT is_level AND metric IN ({listed})"
    return _asked(store, spread(rows, "target", values, within), within, Need(sources, metrics))


def _asked(store: MonitorTables, sql: str, within: Span, need: Need) -> pa.Table:
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.resolution, need=need)
