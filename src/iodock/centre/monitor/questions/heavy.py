"""Queries the jobs of several weeks by their load on file servers: opens, creates, bytes, and the share of
each job in the requests of all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iodock.centre.monitor import summaries
from iodock.centre.monitor.logins import login
from iodock.centre.monitor.questions import names
from iodock.centre.monitor.questions.counted import PLACES, SERVERS, listed, sums, text, zero_if_counted
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import Seen
from iodock.centre.monitor.questions.rows import as_rows
from iodock.centre.monitor.questions.spans import SECOND, Span
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

LATEST = "end_ts"
SORTS = (
    *("metadata", "metadata_share", "opens", "creates", "object_creates", "bytes", "bytes_share"),
    *("read_bytes", "write_bytes", "episodes", "hosts", "seconds", "begin_ts", LATEST, "job", "user"),
)
"""Columns by which jobs can be sorted."""
COLUMNS = (
    *("job", "user", "job_name", "metadata", "metadata_share", "opens", "creates", "object_creates"),
    *("read_bytes", "write_bytes", "bytes_share", "episodes", "hosts", "begin_ts", "end_ts", "seconds"),
    *("file_systems", "command", "exact"),
)
"""Columns of `heavy`, in the order of files."""
_COUNTS = ("metadata", "opens", "creates", "object_creates", "read_bytes", "write_bytes")


@dataclass(frozen=True)
class Wanted:
    """Selects and sorts the jobs of a query."""

    seen: Seen = field(default_factory=Seen)
    users: tuple[str, ...] = ()
    """Names of one user to filter by."""
    file_system: str = ""
    having: str = ""
    """Text that must occur in the job's id, name or command."""
    sort: str = "metadata"
    descending: bool = True
    most: int = 100
    episodes: Mapping[str, int] | None = None
    """For each job, the number of episodes in which it was a suspect; None: the store keeps no episodes."""


def heavy(
    store: MonitorTables, within: Span, ids: JobIds, wanted: Wanted
) -> tuple[list[dict[str, object]], int]:
    """Returns the jobs that file servers counted as rows with COLUMNS, and the number of jobs before `most`
    limits the rows. A share is relative to the requests of all jobs to the same file systems in the steps in
    which the job was active. A step is ten minutes, or shorter for recent data. A value is None if it is not
    counted. Raises StoreError, QueryError."""
    named = names.numbers_called(store, wanted.having, wanted.seen, within.begin, within.end)

    def sql(rows: str) -> str:
        systems = summaries.rows_of(store, summaries.SYSTEMS, within)
        return _ordered(_shared(within, wanted, named, rows, systems), wanted)

    need = Need(PLACES[SERVERS], sums(SERVERS))
    found = as_rows(summaries.asked_of_jobs(store, ids, within, sql, need))
    called = names.names(store, (str(row["job"]) for row in found), within.begin, within.end)
    total = int(str(found[0]["total"])) if found else 0
    return [_row(row, called) for row in found], total


def _row(row: dict[str, object], called: names.Names) -> dict[str, object]:
    user = row["user"]
    more = {
        "user": login(str(user)) if user is not None else None,
        "job_name": names.name_of(called, row["job"], user),
    }
    return {**row, **more}


def _ordered(jobs: str, wanted: Wanted) -> str:
    direction = "DESC" if wanted.descending else "ASC"
    counted = ", ".join(f"{zero_if_counted(name, 'file_systems')} AS {name}" for name in (*_COUNTS, "bytes"))
    return f"""
        SELECT *, count(*) OVER () AS total FROM (SELECT * REPLACE ({counted}) FROM ({jobs}))
        ORDER BY "{wanted.sort}" {direction} NULLS LAST, metadata DESC NULLS LAST, job, "user"
        LIMIT {wanted.most}
    """


def _shared(within: Span, wanted: Wanted, named: tuple[str, ...], rows: str, systems: str) -> str:
    """Returns SQL for the jobs with their shares of all requests. ROWS: summaries of jobs; SYSTEMS: sums of
    file systems in each step."""
    counts = ", ".join(f"sum({name}) AS {name}" for name in _COUNTS)
    either = "coalesce(read_bytes, 0) + coalesce(write_bytes, 0)"
    moved = f"CASE WHEN coalesce(read_bytes, write_bytes) IS NOT NULL THEN {either} END"
    return f"""
        WITH jobs AS (
            SELECT job, "user", file_system, min(command) AS command, flatten(list(clients)) AS clients,
                greatest(min(begin_ts), {within.begin}) AS b, least(max(end_ts), {within.end}) AS e,
                bool_and(exact) AS exact, {counts}
            FROM {rows} WHERE place = {text(SERVERS)} AND is_job AND {_looked_for(wanted, named)}
            GROUP BY job, "user", file_system
        ), steps AS (
            SELECT file_system, begin_ts, end_ts, sum(metadata) AS metadata, sum({moved}) AS bytes
            FROM ({systems}) GROUP BY ALL
        ), begun AS ({_until("begin_ts")}), ended AS ({_until("end_ts")}), shared AS (
            SELECT jobs.*, begun.metadata - coalesce(ended.metadata, 0) AS of_metadata,
                begun.bytes - coalesce(ended.bytes, 0) AS of_bytes
            FROM jobs
            ASOF LEFT JOIN begun ON jobs.file_system = begun.file_system AND jobs.e > begun.at
            ASOF LEFT JOIN ended ON jobs.file_system = ended.file_system AND jobs.b >= ended.at
        )
        SELECT job, "user", min(command) AS command,
            string_agg(DISTINCT file_system, ', ' ORDER BY file_system) AS file_systems,
            nullif(len(list_distinct(flatten(list(clients)))), 0) AS hosts, {counts},
            sum({moved}) AS bytes, {_share("sum(metadata)", "sum(of_metadata)")} AS metadata_share,
            {_share(f"sum({moved})", "sum(of_bytes)")} AS bytes_share,
            {_episodes(wanted)} AS episodes, min(b) AS begin_ts, max(e) AS end_ts,
            (max(e) - min(b)) / {SECOND} AS seconds, bool_and(exact) AS exact
        FROM shared GROUP BY job, "user"
    """


def _share(part: str, whole: str) -> str:
    """Returns SQL for PART / WHOLE, at most 1. It is NULL if PART is NULL. The CASE is needed for this,
    because the SQL function `least` ignores a NULL and would return 1."""
    return f"CASE WHEN {part} IS NOT NULL AND {whole} > 0 THEN least(1.0, {part} / {whole}) END"


def _until(at: str) -> str:
    """Returns SQL for running totals: for each file system and each time in the column AT, the sum over all
    steps up to this time. The difference of two running totals is the sum over a range of steps."""
    return f"""
        SELECT file_system, {at} AS at, sum(sum(metadata)) OVER upto AS metadata,
            sum(sum(bytes)) OVER upto AS bytes
        FROM steps GROUP BY file_system, {at} WINDOW upto AS (PARTITION BY file_system ORDER BY {at})
    """


def _episodes(wanted: Wanted) -> str:
    if wanted.episodes is None:
        return "NULL::BIGINT"
    known = " ".join(f"WHEN {text(job)} THEN {count}" for job, count in wanted.episodes.items())
    return f"CASE job {known} ELSE 0 END" if known else "0"


def _looked_for(wanted: Wanted, named: tuple[str, ...]) -> str:
    conditions = [wanted.seen.condition('"user"')]
    if wanted.users:
        conditions.append(Seen(wanted.users).condition('"user"'))
    if wanted.file_system:
        conditions.append(f"file_system = {text(wanted.file_system)}")
    if wanted.having:
        part = f"lower({text(wanted.having)})"
        found = (f"contains(lower(coalesce({column}, '')), {part})" for column in ("job", "command"))
        conditions.append(f"({' OR '.join((*found, f'job IN ({listed(named)})'))})")
    return " AND ".join(conditions)
