"""File servers round by round: what each agent read of its machine, its metadata service and its jobs
together.

A round is what one agent read within a step; its files are read one after the other, at its clock's
multiples. Growth of a row that is longer than a step counts as a rate."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iodock.centre.monitor.questions.counted import metadata_operations, of_place, text
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import Span, overlap, span
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

_MACHINE = ("mds_stats", "cpu", "load", "pressure")
_BUSY = ("user_time", "nice_time", "system_time", "irq_time", "softirq_time", "steal_time")
_IDLE = ("idle_time", "iowait_time")
_SERVICE = "source = 'mds_stats' AND target NOT LIKE '%:%' AND bucket IS NULL"
_SERVED = "(source LIKE 'mdt%' OR source LIKE 'obdfilter%')"
LATE = 5
"""A round is over a fifth of a step after its multiple: by then all files were read."""

_SERVER = "regexp_extract(file_system, '^(.+):/', 1)"
Hosts = Sequence[str] | None
"""None: all."""


def machines(
    store: MonitorTables, begin: int, end: int, step: int, resolution: str = "fine", hosts: Hosts = None
) -> pa.Table:
    """host, round, end_ts, handled, waited_us, queued, queue_samples, active, active_samples, busy_us,
    idle_us, pressure_us, load, uptime_s: of rounds that ended in (BEGIN, END], ns since the epoch; NULL of
    what did not grow or nobody read. Raises StoreError, QueryError."""
    sums = {
        "handled": f"{_SERVICE} AND metric = 'req_waittime' AND unit = '1'",
        "waited_us": f"{_SERVICE} AND metric = 'req_waittime_time'",
        "queued": f"{_SERVICE} AND metric = 'req_qdepth_sum'",
        "queue_samples": f"{_SERVICE} AND metric = 'req_qdepth' AND unit = '1'",
        "active": f"{_SERVICE} AND metric = 'req_active_sum'",
        "active_samples": f"{_SERVICE} AND metric = 'req_active' AND unit = '1'",
        "busy_us": f"source = 'cpu' AND metric IN ({_listed(_BUSY)})",
        "idle_us": f"source = 'cpu' AND metric IN ({_listed(_IDLE)})",
        "pressure_us": "source = 'pressure' AND target = 'io' AND metric = 'some_time'",
    }
    columns = ", ".join(
        f"sum(value * {_scaled(step)}) FILTER ({where}) AS {name}" for name, where in sums.items()
    )
    sql = f"""
        SELECT host, {_round(step)} AS round, max(end_ts) AS end_ts, {columns},
            max(value) FILTER (source = 'load' AND metric = 'load1_percent') / 100 AS load,
            max(value) FILTER (source = 'cpu' AND metric = 'uptime_s') AS uptime_s
        FROM targets WHERE source IN ({_listed(_MACHINE)}) AND {_ended(begin, end)} AND {_at(hosts)}
        GROUP BY host, round ORDER BY host, round
    """
    need = Need(_MACHINE, is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def served(
    store: MonitorTables, begin: int, end: int, step: int, resolution: str = "fine", hosts: Hosts = None
) -> pa.Table:
    """host, round, end_ts, is_metadata, opens, closes, creates (of metadata targets), metadata (all their
    operations), object_creates, requests (reads, writes, objects made and removed), moved_bytes, time_us:
    what all jobs together did. Raises StoreError, QueryError."""
    operations = " + ".join(f'"{name}"' for name in metadata_operations())
    of_metadata = "source = 'mdt_job_stats'"
    sums = {
        "opens": ('"open"', of_metadata), "closes": ('"close"', of_metadata),
        "creates": ("mknod + \"create\"", of_metadata), "metadata": (operations, of_metadata),
        "object_creates": ('"create"', f"NOT {of_metadata}"),
        "requests": ("reads + writes + \"create\" + destroy", f"NOT {of_metadata}"),
        "moved_bytes": ("read_bytes + write_bytes", f"NOT {of_metadata}"), "time_us": ("time_us", "true"),
    }  # fmt: skip
    columns = ", ".join(
        f"sum(({value}) * {_scaled(step)}) FILTER ({where}) AS {name}"
        for name, (value, where) in sums.items()
    )
    sql = f"""
        SELECT host, {_round(step)} AS round, max(end_ts) AS end_ts,
            bool_or({of_metadata}) AS is_metadata, {columns}
        FROM job_io WHERE {of_place("servers")} AND {_ended(begin, end)} AND {_at(hosts)}
        GROUP BY host, round ORDER BY host, round
    """
    need = Need(("mdt_job_stats", "obdfilter_job_stats"))
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def homes(store: MonitorTables, begin: int, end: int, resolution: str) -> pa.Table:
    """target, host, file_system, rounds (how often it was read there), end_ts (last): which server had which
    target. Raises StoreError, QueryError."""
    sql = f"""
        SELECT target, host, max(file_system) AS file_system, count(DISTINCT end_ts) AS rounds,
            max(end_ts) AS end_ts
        FROM (
            SELECT target, host, file_system, end_ts, source FROM targets
            UNION ALL SELECT target, host, file_system, end_ts, source FROM job_io
        ) WHERE {_SERVED} AND target IS NOT NULL GROUP BY target, host ORDER BY target, rounds DESC, host
    """
    need = Need(("mdt_job_stats", "obdfilter_job_stats", "mdt_md_stats"), is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def places(store: MonitorTables, begin: int, end: int) -> pa.Table:
    """target, host, end_ts (last): which servers did something for jobs on which target. Raises StoreError,
    QueryError."""
    sql = f"""
        SELECT target, host, max(end_ts) AS end_ts FROM job_io
        WHERE {of_place("servers")} AND target IS NOT NULL GROUP BY target, host
    """
    need = Need(("mdt_job_stats", "obdfilter_job_stats"), is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution="fine", need=need)


def newest(store: MonitorTables, begin: int, end: int, hosts: Sequence[str]) -> pa.Table:
    """host, end_ts: when each was read last, by its own clock. Raises StoreError, QueryError."""
    sql = f"SELECT host, max(end_ts) AS end_ts FROM targets WHERE {_at(hosts)} GROUP BY host"
    return store.table(sql, begin=begin, end=end, resolution="fine", need=Need(is_presence=True))


def mounts(store: MonitorTables, begin: int, end: int) -> pa.Table:
    """host, server, file_system: which clients with an agent have which NFS mounts. Raises StoreError,
    QueryError."""
    sql = f"""
        SELECT DISTINCT host, {_SERVER} AS server, file_system FROM targets
        WHERE source = 'mountstats' AND {_SERVER} <> ''
    """
    return store.table(sql, begin=begin, end=end, resolution="minute", need=Need(("mountstats",)))


def clients(
    store: MonitorTables, begin: int, end: int, step: int, hosts: Sequence[str], resolution: str = "fine"
) -> pa.Table:
    """server (NULL: the client was read, and had nothing to tell), host, round, end_ts, operations,
    time_us (from the call to the answer): of NFS mounts of these clients. Raises StoreError, QueryError."""
    # `read/queue` and the like are parts of the time, `read_bytes` and the like no operations.
    is_whole = "source = 'mountstats' AND metric NOT LIKE '%/%' AND bucket IS NULL AND NOT is_level"
    sql = f"""
        SELECT CASE WHEN source = 'mountstats' THEN {_SERVER} END AS server, host, {_round(step)} AS round,
            max(end_ts) AS end_ts,
            sum(value * {_scaled(step)}) FILTER ({is_whole} AND unit = '1') AS operations,
            sum(value * {_scaled(step)}) FILTER ({is_whole} AND unit = 'us') AS time_us
        FROM targets WHERE source IN ('mountstats', 'load') AND {_ended(begin, end)} AND {_at(hosts)}
        GROUP BY ALL ORDER BY round
    """
    need = Need(("mountstats", "load"))
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def asked(store: MonitorTables, hosts: Sequence[str], ids: JobIds, begin: int, end: int) -> pa.Table:
    """job, opens, creates, metadata, object_creates, moved_bytes, requests: what each job asked these
    servers for between two moments by their clocks. Raises StoreError, QueryError."""
    resolution = span(begin, end, store.catalogue).resolution
    share = overlap(Span(begin, end, end - begin, resolution, resolution))
    operations = " + ".join(f'"{name}"' for name in metadata_operations())
    of_metadata = "source = 'mdt_job_stats'"
    sql = f"""
        SELECT {ids.number()} AS job,
            sum("open" * share) FILTER ({of_metadata}) AS opens,
            sum((mknod + "create") * share) FILTER ({of_metadata}) AS creates,
            sum(({operations}) * share) FILTER ({of_metadata}) AS metadata,
            sum("create" * share) FILTER (NOT {of_metadata}) AS object_creates,
            sum((read_bytes + write_bytes) * share) FILTER (NOT {of_metadata}) AS moved_bytes,
            sum((reads + writes) * share) FILTER (NOT {of_metadata}) AS requests
        FROM (
            SELECT *, {share} AS share
            FROM job_io WHERE {of_place("servers")} AND job IS NOT NULL AND host IN ({_listed(hosts)})
                AND end_ts > {begin} AND begin_ts < {end}
        ) GROUP BY 1
    """
    need = Need(("mdt_job_stats", "obdfilter_job_stats"))
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def owners(store: MonitorTables, jobs: Sequence[str], ids: JobIds, begin: int, end: int) -> pa.Table:
    """job, user (NULL: nobody says so), nodes (0: nobody knows): of these jobs. Raises StoreError,
    QueryError."""
    node = f"coalesce({ids.host()}, CASE WHEN NOT {of_place('servers')} THEN host END)"
    sql = f"""
        SELECT {ids.number()} AS job, max(coalesce("user", {ids.user()})) AS "user",
            count(DISTINCT {node}) AS nodes
        FROM job_io WHERE job IS NOT NULL AND ({" OR ".join(map(ids.is_job, jobs)) or "false"}) GROUP BY 1
    """
    return store.table(sql, begin=begin, end=end, resolution="minute", need=Need(is_presence=True))


def _round(step: int) -> str:
    """A whole number: the multiple of a step at which the agent began, or which its last reading follows."""
    return f"(end_ts - {step // LATE} + {step - 1}) // {step}"


def _scaled(step: int) -> str:
    return f"least(1.0, {step}.0 / greatest(end_ts - begin_ts, 1))"


def _ended(begin: int, end: int) -> str:
    return f"end_ts > {begin} AND end_ts <= {end}"


def _at(hosts: Hosts) -> str:
    return "true" if hosts is None else f"host IN ({_listed(hosts)})"


def _listed(values: Sequence[str]) -> str:
    return ", ".join(map(text, values)) or "NULL"
