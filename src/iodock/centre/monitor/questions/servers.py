"""Queries the readings of file servers round by round: each agent's values for its machine, its metadata
service and the jobs that the server counts.

A round contains everything that an agent read within one step. The agent begins a round when its clock is a
multiple of the step, and then reads one file after the other. If a row is longer than a step, its growth is
scaled to the length of a step."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iodock.centre.monitor.questions.counted import (
    OF_METADATA,
    PLACES,
    PROCESSES,
    SERVED,
    metadata_operations,
    of_place,
    text,
)
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import Span, overlap, span
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

MACHINE = ("mds_stats", "mfs_master", "cpu", "load", "pressure")
_BUSY = ("user_time", "nice_time", "system_time", "irq_time", "softirq_time", "steal_time")
_IDLE = ("idle_time", "iowait_time")
_JOBS = ("mdt_job_stats", "obdfilter_job_stats", "mfs_sessions")
_SERVICE = "source = 'mds_stats' AND target NOT LIKE '%:%' AND bucket IS NULL"
LATE = 5
"""A round is complete a fifth of a step after its multiple, because all files were read by then."""


def _listed(values: Sequence[str]) -> str:
    return ", ".join(map(text, values)) or "NULL"


MACHINE_SUMS = {
    "handled": f"{_SERVICE} AND metric = 'req_waittime' AND unit = '1'",
    "waited_us": f"{_SERVICE} AND metric = 'req_waittime_time'",
    "queued": f"{_SERVICE} AND metric = 'req_qdepth_sum'",
    "queue_samples": f"{_SERVICE} AND metric = 'req_qdepth' AND unit = '1'",
    "active": f"{_SERVICE} AND metric = 'req_active_sum'",
    "active_samples": f"{_SERVICE} AND metric = 'req_active' AND unit = '1'",
    "busy_us": f"source = 'cpu' AND metric IN ({_listed(_BUSY)})",
    "idle_us": f"source = 'cpu' AND metric IN ({_listed(_IDLE)})",
    "pressure_us": "source = 'pressure' AND target = 'io' AND metric = 'some_time'",
    "service_us": "source = 'mfs_master' AND metric = 'cpu_time'",
}
"""SQL conditions over `targets` for the sums of a server's machine and its metadata service, by name."""

_SERVER = (
    "CASE source WHEN 'mfs_mount' THEN file_system "
    "WHEN 'mdc_stats' THEN regexp_extract(target, '^(.+)-mdc-', 1) "
    "WHEN 'osc_stats' THEN regexp_extract(target, '^(.+)-osc-', 1) "
    "ELSE regexp_extract(file_system, '^(.+):/', 1) END"
)
"""SQL for the server's name in a row of a client: the address that the client mounted, or for Lustre the
target."""
_JOB_OF_MOUNT = r"regexp_extract(target, '.*/job[_-]([0-9][A-Za-z0-9._@+\[\]-]*)', 1)"
"""SQL for the job in the name of a mount point. The agent on the master's machine derives it in the same way
(jobs.rs)."""
_OF_LUSTRE = ("mdc_stats", "osc_stats")
_CLIENTS = ("mountstats", "mfs_mount", *_OF_LUSTRE)
Hosts = Sequence[str] | None
"""Host names; None: all hosts."""


def machines(
    store: MonitorTables, begin: int, end: int, step: int, resolution: str = "fine", hosts: Hosts = None
) -> pa.Table:
    """Returns the values of each machine in each round that ended after BEGIN and until END (ns since the
    epoch). The columns are host, round, end_ts, handled, waited_us, queued, queue_samples, active,
    active_samples, busy_us, idle_us, pressure_us, load and uptime_s. For a master of MooseFS there are also
    service_us (time on a processor), service_uptime_s, answer_us (time until it answered the agent) and
    no_answer. A value is NULL if it did not grow or was not read. Raises StoreError, QueryError."""
    levels = {
        "uptime_s": ("cpu", "uptime_s"), "service_uptime_s": ("mfs_master", "uptime_s"),
        "answer_us": ("mfs_master", "answer_us"), "no_answer": ("mfs_master", "no_answer"),
    }  # fmt: skip
    columns = ", ".join(
        f"sum(value * {_scaled(step)}) FILTER ({where}) AS {name}" for name, where in MACHINE_SUMS.items()
    )
    shown = ", ".join(
        f"max(value) FILTER (source = '{source}' AND metric = '{metric}') AS {name}"
        for name, (source, metric) in levels.items()
    )
    sql = f"""
        SELECT host, {_round(step)} AS round, max(end_ts) AS end_ts, {columns}, {shown},
            max(value) FILTER (source = 'load' AND metric = 'load1_percent') / 100 AS load
        FROM targets WHERE source IN ({_listed(MACHINE)}) AND {_ended(begin, end)} AND {_at(hosts)}
        GROUP BY host, round ORDER BY host, round
    """
    need = Need(MACHINE, is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def served(
    store: MonitorTables, begin: int, end: int, step: int, resolution: str = "fine", hosts: Hosts = None
) -> pa.Table:
    """Returns the sums over all jobs of each file server in each round. The columns are host, round, end_ts,
    is_metadata (the host serves metadata), opens, closes, creates and metadata (all operations) of metadata
    targets; object_creates, requests (reads, writes, objects created and removed) and moved_bytes of object
    targets; and time_us of both. Raises StoreError, QueryError."""
    operations = " + ".join(f'"{name}"' for name in metadata_operations())
    of_metadata = OF_METADATA
    sums = {
        "opens": ('"open"', of_metadata), "closes": ('"close"', "source = 'mdt_job_stats'"),
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
    need = Need(_JOBS)
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def homes(store: MonitorTables, begin: int, end: int, resolution: str) -> pa.Table:
    """Returns the servers of each target. The columns are target, host, file_system, is_metadata, rounds
    (number of readings of the target on this server) and end_ts (time of the last reading). Raises
    StoreError, QueryError."""
    sql = f"""
        SELECT target, host, max(file_system) AS file_system, count(DISTINCT end_ts) AS rounds,
            bool_or(source NOT LIKE 'obdfilter%') AS is_metadata, max(end_ts) AS end_ts
        FROM (
            SELECT target, host, file_system, end_ts, source FROM targets
            UNION ALL SELECT target, host, file_system, end_ts, source FROM job_io
        ) WHERE {SERVED} AND target IS NOT NULL GROUP BY target, host ORDER BY target, rounds DESC, host
    """
    need = Need((*_JOBS, "mdt_md_stats", "mfs_master"), is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def places(store: MonitorTables, begin: int, end: int, resolution: str = "fine") -> pa.Table:
    """Returns the servers that handled requests of jobs on each target, in the columns target, host and
    end_ts (time of the last reading). Raises StoreError, QueryError."""
    sql = f"""
        SELECT target, host, max(end_ts) AS end_ts FROM job_io
        WHERE {of_place("servers")} AND target IS NOT NULL GROUP BY target, host
    """
    need = Need(_JOBS, is_presence=True)
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def newest(store: MonitorTables, begin: int, end: int, hosts: Sequence[str]) -> pa.Table:
    """Returns the time of the last reading of each host, by the host's own clock, in the columns host and
    end_ts. Raises StoreError, QueryError."""
    sql = f"SELECT host, max(end_ts) AS end_ts FROM targets WHERE {_at(hosts)} GROUP BY host"
    return store.table(sql, begin=begin, end=end, resolution="fine", need=Need(is_presence=True))


def mounts(store: MonitorTables, begin: int, end: int, resolution: str = "minute") -> pa.Table:
    """Returns the mounts of NFS, MooseFS and Lustre on clients with an agent, in the columns host, server
    (for Lustre, the name of a target) and file_system. Raises StoreError, QueryError."""
    sql = f"""
        SELECT DISTINCT host, {_SERVER} AS server, file_system FROM targets
        WHERE source IN ({_listed(_CLIENTS)}) AND {_SERVER} <> ''
    """
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=Need(_CLIENTS))


def clients(
    store: MonitorTables, begin: int, end: int, step: int, hosts: Sequence[str], resolution: str = "fine"
) -> pa.Table:
    """Returns the operations on the mounts of these clients in each round. The columns are server, host,
    round, end_ts, operations, time_us (of NFS and Lustre: total time from the call to the answer) and waiting
    (of MooseFS: operations without an answer at the time of the reading). A row with server NULL says only
    that the client's agent sent a reading. Raises StoreError, QueryError."""
    # Metrics with a slash, such as `read/queue`, are parts of an operation's time and are excluded, because
    # the metric of the whole operation already contains them.
    is_whole = "source = 'mountstats' AND metric NOT LIKE '%/%' AND bucket IS NULL AND NOT is_level"
    # Only operations that the master answered count. mfsmount answers others from its cache, and these say
    # nothing about the master.
    is_answered = "source = 'mfs_mount' AND metric = 'answers'"
    is_request = f"source IN ({_listed(_OF_LUSTRE)}) AND metric IN ('req_waittime', 'req_waittime_time')"
    counted, timed = f"(({is_whole}) OR ({is_request})) AND unit = '1'", f"({is_whole}) OR ({is_request})"
    sql = f"""
        SELECT CASE WHEN source <> 'load' THEN {_SERVER} END AS server, host, {_round(step)} AS round,
            max(end_ts) AS end_ts,
            sum(value * {_scaled(step)}) FILTER (({is_answered}) OR ({counted})) AS operations,
            sum(value * {_scaled(step)}) FILTER (({timed}) AND unit = 'us') AS time_us,
            sum(value::DOUBLE) FILTER (source = 'mfs_mount' AND metric = 'waiting') AS waiting
        FROM targets
        WHERE source IN ({_listed((*_CLIENTS, "load"))}) AND {_ended(begin, end)} AND {_at(hosts)}
        GROUP BY ALL ORDER BY round
    """
    need = Need((*_CLIENTS, "load"))
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def asked(store: MonitorTables, hosts: Sequence[str], ids: JobIds, begin: int, end: int) -> pa.Table:
    """Returns the requests of each job to these servers from BEGIN to END by the servers' clocks, in the
    columns job, opens, creates, metadata, object_creates, moved_bytes and requests. Raises StoreError,
    QueryError."""
    resolution = span(begin, end, store.catalogue).resolution
    share = overlap(Span(begin, end, end - begin, resolution, resolution))
    operations = " + ".join(f'"{name}"' for name in metadata_operations())
    of_metadata = OF_METADATA
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
            FROM job_io WHERE {of_place("servers")} AND job <> '' AND host IN ({_listed(hosts)})
                AND end_ts > {begin} AND begin_ts < {end}
        ) GROUP BY 1
    """
    need = Need(_JOBS)
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def asked_by_mounts(store: MonitorTables, server: str, begin: int, end: int) -> pa.Table:
    """Returns the requests of each job to a MooseFS master, in the columns job, opens, creates and metadata
    (number of answers). Agents on the clients read them from mounts whose mount point contains the job's
    number. Raises StoreError, QueryError."""
    resolution = span(begin, end, store.catalogue).resolution
    share = overlap(Span(begin, end, end - begin, resolution, resolution))
    sums = {"opens": "'open', 'create'", "creates": "'mknod', 'create'", "metadata": "'answers'"}
    columns = ", ".join(
        f"sum(value * share) FILTER (metric IN ({metrics})) AS {name}" for name, metrics in sums.items()
    )
    sql = f"""
        SELECT job, {columns} FROM (
            SELECT {_JOB_OF_MOUNT} AS job, metric, value, {share} AS share
            FROM targets WHERE source = 'mfs_mount' AND NOT is_level AND file_system = {text(server)}
                AND end_ts > {begin} AND begin_ts < {end}
        ) WHERE job <> '' GROUP BY 1
    """
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=Need(("mfs_mount",)))


def asked_of_nodes(store: MonitorTables, nodes: Hosts, ids: JobIds, begin: int, end: int) -> pa.Table:
    """Returns the bytes that the processes of each job on these nodes read and wrote with calls, on any file
    system, in the columns job and node_bytes. The nodes' agents count them. Raises StoreError, QueryError."""
    resolution = span(begin, end, store.catalogue).resolution
    share = overlap(Span(begin, end, end - begin, resolution, resolution))
    sql = f"""
        SELECT {ids.number()} AS job, sum((call_read_bytes + call_write_bytes) * {share}) AS node_bytes
        FROM job_io WHERE {of_place(PROCESSES)} AND job <> '' AND {_at(nodes)}
            AND end_ts > {begin} AND begin_ts < {end}
        GROUP BY 1
    """
    need = Need(PLACES[PROCESSES])
    return store.table(sql, begin=begin, end=end, resolution=resolution, need=need)


def owners(store: MonitorTables, jobs: Sequence[str], ids: JobIds, begin: int, end: int) -> pa.Table:
    """Returns the user and the nodes of these jobs, in the columns job, user (NULL: unknown), nodes (their
    number; 0: unknown) and job_ids (number of the JobIDs under which servers count the job). Raises
    StoreError, QueryError."""
    node = f"coalesce({ids.host()}, CASE WHEN NOT {of_place('servers')} THEN host END)"
    sql = f"""
        SELECT {ids.number()} AS job, max(coalesce("user", {ids.user()})) AS "user",
            count(DISTINCT {node}) AS nodes, count(DISTINCT job) FILTER ({of_place("servers")}) AS job_ids
        FROM job_io WHERE job IS NOT NULL AND ({" OR ".join(map(ids.is_job, jobs)) or "false"}) GROUP BY 1
    """
    return store.table(sql, begin=begin, end=end, resolution="minute", need=Need(is_presence=True))


def _round(step: int) -> str:
    """Returns SQL for the number of a row's round. A reading that ends up to a fifth of a step after a
    multiple of the step belongs to the round of this multiple, and a later one to the round of the next
    multiple."""
    return f"(end_ts - {step // LATE} + {step - 1}) // {step}"


def _scaled(step: int) -> str:
    return f"least(1.0, {step}.0 / greatest(end_ts - begin_ts, 1))"


def _ended(begin: int, end: int) -> str:
    return f"end_ts > {begin} AND end_ts <= {end}"


def _at(hosts: Hosts) -> str:
    return "true" if hosts is None else f"host IN ({_listed(hosts)})"
