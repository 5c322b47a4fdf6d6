"""One job: what it did over time by operation, node and target, and what others did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from iodock.monitor import summaries
from iodock.monitor.questions.counted import (
    PLACES,
    PROCESSES,
    SERVERS,
    metadata,
    metadata_operations,
    of_place,
    sums,
    text,
)  # fmt: skip
from iodock.monitor.questions.ids import JobIds
from iodock.monitor.questions.jobs import Seen, user_of
from iodock.monitor.questions.spans import Span, overlap, spread
from iodock.store.monitored import MonitorTables, counters
from iodock.store.need import Need, literally

HEAVIEST = 5
"""So many other jobs are told apart."""


@dataclass(frozen=True)
class OneJob:
    """One job, as far as its rows may be seen."""

    ids: JobIds
    number: str
    seen: Seen = field(default_factory=Seen)

    def need(self, sources: tuple[str, ...] = (), metrics: tuple[str, ...] = ()) -> Need:
        """Its rows."""
        session = "" if self.number[:1].isdigit() else self.number
        return Need(sources, metrics, (self.ids.pattern(self.number),), session)

    @property
    def condition(self) -> str:
        """In SQL, of a row of `job_io`."""
        own = self.ids.is_job(self.number)
        # What is done outside of jobs has a session's name, which is no number; for jobs it stays a range.
        if not self.number[:1].isdigit():
            own = f"({own} OR (job IS NULL AND session = {text(self.number)}))"
        return f"{own} AND {self.seen.condition(user_of(self.ids))}"


def extent(store: MonitorTables, job: OneJob, within: Span) -> tuple[int, int] | None:
    """First and last moment with a row; None: there is none that may be seen."""
    sql = f"SELECT min(begin_ts), max(end_ts) FROM job_io WHERE {job.condition}"
    found = _summed(store, sql, within, job.need())
    begin, end = (column[0].as_py() for column in found.columns)
    return None if begin is None else (begin, end)


def parts(store: MonitorTables, job: OneJob, within: Span) -> pa.Table:
    """Sums of every column, one scan for all: `part` is `place` (all that was counted at one place), `side`
    (metadata servers, `mdt`, or the others, `data`), `node` or `target`, and `name` which. Also users,
    commands and file_systems (lists of names), exact."""
    cases = " ".join(f"WHEN {of_place(place)} THEN '{place}'" for place in PLACES)
    sums = ", ".join(f'sum("{name}" * share)::DOUBLE AS "{name}"' for name in counters())
    sql = f"""
        WITH found AS (
            SELECT *, CASE {cases} END AS place,
                CASE WHEN source LIKE 'mdt%' THEN 'mdt' ELSE 'data' END AS side,
                CASE WHEN {of_place(SERVERS)} THEN {job.ids.host()} ELSE host END AS node,
                {user_of(job.ids)} AS owner, {metadata()} AS metadata, {overlap(within)} AS share
            FROM job_io WHERE {job.condition}
        )
        SELECT place, CASE grouping(side, node, target) WHEN 7 THEN 'place' WHEN 3 THEN 'side'
                WHEN 5 THEN 'node' ELSE 'target' END AS part,
            coalesce(side, node, target) AS name, list(DISTINCT owner) AS users,
            list(DISTINCT command) AS commands, list(DISTINCT file_system) AS file_systems,
            bool_and(exact) AS exact, {sums},
            sum(metadata * share)::DOUBLE AS metadata
        FROM found WHERE place IS NOT NULL
        GROUP BY GROUPING SETS ((place), (place, side), (place, node), (place, target)) ORDER BY place DESC
    """
    return _summed(store, sql, within, job.need())


def over_time(store: MonitorTables, job: OneJob, within: Span, place: str = SERVERS) -> pa.Table:
    """bucket, exact, read_bytes, write_bytes and every metadata operation: growth in each step."""
    read, write = _bytes(place)
    values = {"read_bytes": read, "write_bytes": write}
    values |= {
        name: f"CASE WHEN source = 'mdt_job_stats' THEN \"{name}\" ELSE 0 END"
        for name in metadata_operations()
    }
    rows = f"job_io WHERE {of_place(place)} AND {job.condition}"
    need = job.need(PLACES[place], sums(place))
    return _curve(store, spread(rows, "1 AS all_of_it", values, within), within, need)


def heaviest_others(store: MonitorTables, job: OneJob, within: Span, file_systems: list[str]) -> pa.Table:
    """job, user, bytes, metadata, by_bytes, by_metadata (ranks from 1 on) and ids of the other jobs on these
    file systems that did most, whoever's they are: HEAVIEST by bytes and as many by metadata operations.
    `mine`: may be seen by name."""

    def sql(rows: str) -> str:
        return _heaviest(job, within, file_systems, rows)

    if summaries.serve(store, within.sums):
        return summaries.asked(store, "owners", within, sql)
    return _summed(store, sql("job_io"), within, Need(PLACES[SERVERS], sums(SERVERS)))


def _heaviest(job: OneJob, within: Span, file_systems: list[str], rows: str) -> str:
    """ROWS: `job_io`, or a summary of it."""
    everyone = OneJob(job.ids, job.number)
    share = overlap(within)
    operations = metadata() if rows == "job_io" else "metadata"
    return f"""
        WITH ids AS (
            SELECT job AS id, "user" AS u, sum((read_bytes + write_bytes) * {share})::DOUBLE AS bytes,
                sum(({operations}) * {share})::DOUBLE AS metadata
            FROM {rows} WHERE {_on(file_systems)} AND job IS NOT NULL AND NOT ({everyone.condition})
            GROUP BY ALL
        ), named AS (
            SELECT *, {job.ids.number("id")} AS job, coalesce(u, {job.ids.user("id")}) AS "user" FROM ids
        ), jobs AS (
            SELECT job, "user", sum(bytes) AS bytes, sum(metadata) AS metadata, list(DISTINCT id) AS ids
            FROM named GROUP BY ALL
        ), ranked AS (
            SELECT *, rank() OVER (ORDER BY bytes DESC, job) AS by_bytes,
                rank() OVER (ORDER BY metadata DESC, job) AS by_metadata FROM jobs
        )
        SELECT *, {job.seen.condition('"user"')} AS mine FROM ranked
        WHERE by_bytes <= {HEAVIEST} OR by_metadata <= {HEAVIEST} ORDER BY by_bytes
    """


def others_over_time(store: MonitorTables, ids: list[str], file_systems: list[str], within: Span) -> pa.Table:
    """bucket, id, exact, bytes, metadata: growth in each step, by id."""
    values = {"bytes": "read_bytes + write_bytes", "metadata": metadata()}
    listed = ", ".join(text(one) for one in ids) or "NULL"
    rows = f"(SELECT *, job AS id FROM job_io WHERE {_on(file_systems)} AND job IN ({listed}))"
    need = Need(PLACES[SERVERS], sums(SERVERS), tuple(map(literally, ids)) or ("",))
    return _curve(store, spread(rows, "id", values, within), within, need)


def _on(file_systems: list[str]) -> str:
    return (
        f"{of_place(SERVERS)} AND file_system IN ({', '.join(text(name) for name in file_systems) or 'NULL'})"
    )


def _bytes(place: str) -> tuple[str, str]:
    return ("call_read_bytes", "call_write_bytes") if place == PROCESSES else ("read_bytes", "write_bytes")


def _summed(store: MonitorTables, sql: str, within: Span, need: Need) -> pa.Table:
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.sums, need=need)


def _curve(store: MonitorTables, sql: str, within: Span, need: Need) -> pa.Table:
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.resolution, need=need)
