"""Queries the jobs of a span of time with their bytes and rates."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from iodock.centre.monitor import summaries
from iodock.centre.monitor.questions.counted import (
    CGROUPS,
    PLACES,
    PROCESSES,
    SERVERS,
    known,
    listed,
    metadata,
    of_place,
    sums,
    text,
    zero_if_counted,
)
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import HOUR, SECOND, Span, overlap
from iodock.centre.monitor.questions.steps import all_completed, completed
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

SORTS = {
    "read_rate": "read_rate", "write_rate": "write_rate", "metadata_rate": "metadata_rate",
    "read_bytes": "read_bytes", "write_bytes": "write_bytes", "metadata": "metadata",
    "job": "job", "user": "user", "seconds": "seconds", "hosts": "hosts",
}  # fmt: skip
"""Columns by which jobs can be sorted."""
_BY_TEXT = ("job", "user")
_SUMMED = ("read_bytes", "write_bytes", "metadata")


@dataclass(frozen=True)
class Seen:
    """Says whose rows a query returns: those with one of these names of a user (login name, numeric id), or
    those of all users if `names` is None."""

    names: tuple[str, ...] | None = None

    def condition(self, user: str) -> str:
        """Returns the SQL condition that USER, an SQL expression for a row's user, is one of the names."""
        if self.names is None:
            return "true"
        return f"({user}) IN ({', '.join(text(name) for name in self.names) or 'NULL'})"


def user_of(ids: JobIds) -> str:
    """Returns an SQL expression for a row's user, which is the one that the agent reported or else the one in
    the job's id."""
    return f'coalesce("user", {ids.user()})'


@dataclass(frozen=True)
class Wanted:
    """Selects and sorts the jobs of a query."""

    place: str = SERVERS
    seen: Seen = field(default_factory=Seen)
    users: tuple[str, ...] = ()
    """Names of one user to filter by."""
    file_system: str = ""
    having: str = ""
    """Text that must occur in the job's id or command."""
    named: tuple[str, ...] = ()
    """Jobs whose names contain the searched text."""
    only: tuple[str, ...] | None = None
    """The only jobs to list; None: all jobs."""
    sort: str = "write_rate"
    descending: bool = True
    most: int = 100


def jobs(store: MonitorTables, within: Span, ids: JobIds, wanted: Wanted) -> pa.Table:
    """Returns the jobs in the columns job, user, command, file_systems, hosts (their number), read_bytes,
    write_bytes, metadata, seconds (from the first to the last reading with growth), read_rate, write_rate and
    metadata_rate (per second in that time), exact, begin_ts, end_ts and total (number of jobs before `most`
    limits the rows). A value is NULL if it is not counted."""
    summed = summaries.kept(store, within.sums)
    if summed:
        return summaries.asked_of_jobs(
            summed, ids, within, lambda rows: _rated(within, wanted, _of_summaries(within, wanted, rows))
        )
    sql = _rated(within, wanted, _of_rows(within, ids, wanted))
    need = Need(PLACES[wanted.place], sums(wanted.place))
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.sums, need=need)


def _rated(within: Span, wanted: Wanted, summed: str) -> str:
    """Returns SQL that adds rates, selection and order. SUMMED: a SELECT with the sums of each job."""
    counted = ", ".join(f"{zero_if_counted(name, 'file_systems')} AS {name}" for name in _SUMMED)
    order = f'"{SORTS[wanted.sort]}" {"DESC" if wanted.descending else "ASC"} NULLS LAST, job, "user"'
    return f"""
        WITH rated AS (
            SELECT *, greatest(least(end_ts, {within.end}) - greatest(begin_ts, {within.begin}), {SECOND})
                / {SECOND} AS seconds FROM (SELECT * REPLACE ({counted}) FROM ({summed}))
            WHERE {wanted.seen.condition('"user"')} AND {_looked_for(wanted)}
        )
        SELECT *, read_bytes / seconds AS read_rate, write_bytes / seconds AS write_rate,
            metadata / seconds AS metadata_rate, count(*) OVER () AS total
        FROM rated ORDER BY {order} LIMIT {wanted.most}
    """


def _of_summaries(within: Span, wanted: Wanted, rows: str) -> str:
    """Returns SQL for the sums of each job from ROWS, which are summaries of jobs."""
    where = f"AND file_system = {text(wanted.file_system)}" if wanted.file_system else ""
    return f"""
        SELECT job, "user", min(command) AS command, is_job,
            nullif(array_to_string(list_sort(list_distinct(list(file_system))), ', '), '') AS file_systems,
            nullif(len(list_distinct(flatten(list(clients)))), 0) AS hosts,
            sum(read_bytes) AS read_bytes, sum(write_bytes) AS write_bytes, sum(metadata) AS metadata,
            {all_completed(within)} AS exact, min(begin_ts) AS begin_ts, max(end_ts) AS end_ts
        FROM {rows} WHERE place = {text(wanted.place)} {where} GROUP BY job, "user", is_job
    """


def _of_rows(within: Span, ids: JobIds, wanted: Wanted) -> str:
    return f"""
        WITH found AS ({_by_id(within, wanted)}), named AS (
            SELECT *, {ids.number()} AS number, {user_of(ids)} AS owner, {ids.host()} AS client FROM found
        )
        {_BY_JOB}
    """


_BY_JOB = """
    SELECT coalesce(number, session, '') AS job, owner AS "user", min(command) AS command,
        number IS NOT NULL AS is_job,
        string_agg(DISTINCT file_system, ', ' ORDER BY file_system) AS file_systems,
        nullif(count(DISTINCT coalesce(
            client, CASE WHEN source IN ('process_io', 'slurm_step', 'cgroup_io') THEN host END
        )), 0) AS hosts,
        sum(read_bytes) AS read_bytes, sum(write_bytes) AS write_bytes, sum(metadata) AS metadata,
        bool_and(exact) AS exact, min(begin_ts) AS begin_ts, max(end_ts) AS end_ts
    FROM named GROUP BY ALL
"""


def _by_id(within: Span, wanted: Wanted) -> str:
    """Returns SQL for sums by id. Ids are parsed later, when only few rows are left. At the place
    `processes`, bytes are those of the processes' read and write calls."""
    of_calls = wanted.place == PROCESSES
    read, write = map(
        known, ("call_read_bytes", "call_write_bytes") if of_calls else ("read_bytes", "write_bytes")
    )  # fmt: skip
    share = overlap(within)
    where = f"AND file_system = {text(wanted.file_system)}" if wanted.file_system else ""
    rows = completed(f"{of_place(wanted.place)} {where}", within, wanted.place)
    host = "host" if wanted.place in (PROCESSES, CGROUPS) else "NULL::VARCHAR AS host"
    return f"""
        SELECT job, "user", session, command, source, file_system, {host}, bool_and(exact) AS exact,
            min(begin_ts) AS begin_ts, max(end_ts) AS end_ts,
            sum({read} * {share})::DOUBLE AS read_bytes, sum({write} * {share})::DOUBLE AS write_bytes,
            sum(({metadata()}) * {share})::DOUBLE AS metadata
        FROM ({rows}) GROUP BY ALL
    """


def _looked_for(wanted: Wanted) -> str:
    conditions = ["true"]
    if wanted.users:
        conditions.append(Seen(wanted.users).condition('"user"'))
    if wanted.only is not None:
        conditions.append(f"is_job AND job IN ({listed(wanted.only)})")
    if wanted.having:
        conditions.append(
            f"(contains(lower(job), lower({text(wanted.having)})) OR "
            f"contains(lower(coalesce(command, '')), lower({text(wanted.having)})) OR "
            f"job IN ({listed(wanted.named)}))"
        )
    return " AND ".join(conditions)


def places(store: MonitorTables, within: Span) -> list[str]:
    """Returns the places that have counts in the last hour of the span and in its last step."""
    sql = "SELECT DISTINCT source FROM job_io"
    begin = max(within.begin, within.end - within.step - HOUR)
    need = Need(tuple(kind for kinds in PLACES.values() for kind in kinds), is_presence=True)
    found = store.table(sql, begin=begin, end=within.end, resolution=within.sums, need=need)
    sources = set(found.column(0).to_pylist())
    return [place for place, kinds in PLACES.items() if sources & set(kinds)]
