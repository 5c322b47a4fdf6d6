"""Queries the I/O of one job over time by operation, node and target, and the I/O of other jobs at the same
time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from iodock.centre.monitor import summaries
from iodock.centre.monitor.questions.counted import (  # fmt: skip
    OF_METADATA,
    PLACES,
    PROCESSES,
    SERVERS,
    known,
    listed,
    metadata,
    metadata_operations,
    of_place,
    sums,
    text,
)
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import Seen, user_of
from iodock.centre.monitor.questions.spans import HOUR, Span, overlap, spread
from iodock.centre.monitor.questions.steps import completed
from iodock.centre.store import RESOLUTIONS, MonitorTables, counters
from iodock.shared.engine.need import Need, literally

HEAVIEST = 5
"""Number of other jobs that are shown separately."""


@dataclass(frozen=True)
class OneJob:
    """Selects the rows of one job that the visitor may see."""

    ids: JobIds
    number: str
    seen: Seen = field(default_factory=Seen)
    lived: tuple[int, int] | None = None
    """First and last time at which the job has rows, ns since the epoch, if known. Files of other times are
    not read."""
    since: int | None = None
    """Start of the last run, ns since the epoch: rows that end earlier belong to previous runs."""

    def need(self, sources: tuple[str, ...] = (), metrics: tuple[str, ...] = ()) -> Need:
        """Returns the data that a query for rows of the job needs: these sources and metrics, and ids that
        match the job."""
        session = "" if self.number[:1].isdigit() else self.number
        return Need(sources, metrics, (self.ids.pattern(self.number),), session)

    @property
    def condition(self) -> str:
        """Returns the SQL condition that a row of `job_io` belongs to the job."""
        own = self.ids.is_job(self.number)
        # If the name does not begin with a digit, it may be that of a session, which has work outside of
        # jobs. For a job's number this condition is omitted, because without `OR` the engine reads only a
        # range of ids.
        if not self.number[:1].isdigit():
            own = f"({own} OR (job IS NULL AND session = {text(self.number)}))"
        last = "" if self.since is None else f" AND end_ts > {self.since}"
        return f"{own} AND {self.seen.condition(user_of(self.ids))}{last}"


def extent(store: MonitorTables, job: OneJob, within: Span) -> tuple[int, int] | None:
    """Returns the begin of the job's first row and the end of its last row, or None if there is no row that
    the visitor may see."""

    def sql(rows: str) -> str:
        return f"SELECT min(begin_ts), max(end_ts) FROM {rows} WHERE {job.condition}"

    if summaries.kept(store, within.sums):
        found = summaries.asked(store, summaries.OWNERS, within, sql)
    else:
        found = _summed(store, sql("job_io"), within, job.need())
    begin, end = (column[0].as_py() for column in found.columns)
    return None if begin is None else (begin, end)


PARTS = ("place", "side", "node", "target")


def parts(store: MonitorTables, job: OneJob, within: Span, wanted: Sequence[str] = PARTS) -> pa.Table:
    """Returns the sums of every column of `job_io`, divided in several ways, after reading the rows once. The
    column `part` says how a row is divided: by `place` only, by `side` (name `mdt` for metadata servers, else
    `data`), by `node` or by `target`. `name` is the name of this part. Other columns are users, commands and
    file_systems (lists of names) and exact. A sum is NULL if it is not counted. WANTED has the wanted values
    of `part`."""
    cases = " ".join(f"WHEN {of_place(place)} THEN '{place}'" for place in PLACES)
    sums = ", ".join(f'sum("{name}" * share)::DOUBLE AS "{name}"' for name in counters())
    counted = ", ".join(f'{known(name)} AS "{name}"' for name in counters())
    # Rows are summed by id before the ids are parsed, because parsing an id takes longer than adding a row.
    # SQL's GROUPING SETS are not used, because the engine takes longer to plan them than to read the rows.
    sql = f"""
        SELECT CASE {cases} END AS place, CASE WHEN source LIKE 'mdt%' THEN 'mdt' ELSE 'data' END AS side,
            CASE WHEN {of_place(SERVERS)} THEN {job.ids.host()} ELSE host END AS node, target,
            {user_of(job.ids)} AS users, command AS commands, file_system AS file_systems,
            exact, {counted}, ({metadata()})::DOUBLE AS metadata
        FROM (
            SELECT job, "user", command, source, file_system, target, host, bool_and(exact) AS exact, {sums}
            FROM (SELECT *, {overlap(within)} AS share FROM ({completed(job.condition, within)})) GROUP BY ALL
        ) WHERE place IS NOT NULL
    """
    found = _summed(store, sql, _while_it_lived(job, within), job.need())
    # Descending order of the places' names puts `servers` first.
    return pa.concat_tables(_added_up(found, part) for part in wanted).sort_by([("place", "descending")])


def _added_up(rows: pa.Table, part: str) -> pa.Table:
    """Sums the rows of one job at each place, by the column PART."""
    only_valid = pc.CountOptions(mode="only_valid")
    lists = ("users", "commands", "file_systems")
    numbers = (*counters(), "metadata")
    kinds: list[tuple[str, str, pc.FunctionOptions | None]] = [
        *((name, "distinct", only_valid) for name in lists),
        ("exact", "all", None),
        *((name, "sum", None) for name in numbers),
    ]
    keys = ["place"] if part == "place" else ["place", part]
    sums = rows.group_by(keys).aggregate(kinds)
    names = sums[part] if part != "place" else pa.nulls(sums.num_rows, pa.string())
    columns = {"place": sums["place"], "part": pa.array([part] * sums.num_rows, pa.string()), "name": names}
    columns |= {name: sums[f"{name}_{kind}"] for name, kind, _ in kinds}
    return pa.table(columns)


def over_time(store: MonitorTables, job: OneJob, within: Span, place: str = SERVERS) -> pa.Table:
    """Returns the job's I/O in each step, in the columns bucket (number of the step), exact, read_bytes,
    write_bytes and one for each metadata operation."""
    read, write = _bytes(place)
    values = {"read_bytes": known(read), "write_bytes": known(write)}
    values |= {name: f'CASE WHEN {OF_METADATA} THEN "{name}" END' for name in metadata_operations()}
    rows = f"job_io WHERE {of_place(place)} AND {job.condition}"
    need = job.need(PLACES[place], sums(place))
    curve = spread(rows, "1 AS all_of_it", values, within)
    return _curve(store, curve, _while_it_lived(job, within), need)


def _while_it_lived(job: OneJob, within: Span) -> Span:
    if job.lived is None:
        return within
    # One hour is added at both ends, because a row begins at the previous reading of its agent, which may be
    # older than the job.
    begin, end = job.lived[0] - HOUR, job.lived[1] + HOUR
    return replace(within, begin=max(within.begin, begin), end=min(within.end, end))


def heaviest_others(store: MonitorTables, job: OneJob, within: Span, file_systems: list[str]) -> pa.Table:
    """Returns the other jobs of any user with most I/O on these file systems: HEAVIEST jobs by bytes and
    HEAVIEST by metadata operations. The columns are job, user, bytes, metadata, by_bytes and by_metadata
    (ranks from 1), ids, and mine (the visitor may see the job's name)."""
    on = f"file_system IN ({listed(file_systems)})"
    summed = summaries.kept(store, within.sums)
    if summed:
        # Hourly summaries are not exact in the incomplete hours at both ends of the span. This hardly changes
        # the ranking.
        return summaries.asked_of_jobs(
            summed, job.ids, within, lambda rows: _with_ids(job, rows, on), cut_days=within.step >= HOUR
        )
    # The finest resolution is read only for short spans: it has half of all rows of a day, and hardly changes
    # the ranking.
    level = within.sums if within.sums == RESOLUTIONS[0] else summaries.COARSEST
    sql = _ranked(job, _of_rows(job, within, f"{of_place(SERVERS)} AND {on}"))
    return _summed(store, sql, replace(within, sums=level), Need(PLACES[SERVERS], sums(SERVERS)))


def _with_ids(job: OneJob, rows: str, on: str) -> str:
    """Returns SQL that ranks the jobs of ROWS and then collects the ids of the heaviest ones. Collecting the
    ids of all jobs would take longer than computing the sums."""
    jobs = (
        'SELECT job, "user", sum(bytes) AS bytes, sum(metadata) AS metadata FROM others GROUP BY job, "user"'
    )
    return f"""
        WITH others AS MATERIALIZED (
            SELECT job, "user", coalesce(read_bytes, 0) + coalesce(write_bytes, 0) AS bytes, metadata, ids
            FROM {rows}
            WHERE place = {text(SERVERS)} AND is_job AND {on} AND job <> {text(job.number)}
        ), heaviest AS ({_ranked(job, jobs)})
        SELECT *, (
            SELECT list_distinct(flatten(list(ids))) FROM others
            WHERE others.job = heaviest.job AND others."user" IS NOT DISTINCT FROM heaviest."user"
        ) AS ids FROM heaviest ORDER BY by_bytes
    """


def _of_rows(job: OneJob, within: Span, where: str) -> str:
    share = overlap(within)
    return f"""
        WITH ids AS (
            SELECT job AS id, "user" AS u, sum((read_bytes + write_bytes) * {share})::DOUBLE AS bytes,
                sum(({metadata()}) * {share})::DOUBLE AS metadata
            FROM job_io WHERE {where} AND job IS NOT NULL AND NOT ({job.ids.is_job(job.number)})
            GROUP BY ALL
        ), named AS (
            SELECT *, {job.ids.number("id")} AS job, coalesce(u, {job.ids.user("id")}) AS "user" FROM ids
        )
        SELECT job, "user", sum(bytes) AS bytes, sum(metadata) AS metadata, list(DISTINCT id) AS ids
        FROM named GROUP BY ALL
    """


def _ranked(job: OneJob, jobs: str) -> str:
    return f"""
        WITH ranked AS (
            SELECT *, rank() OVER (ORDER BY bytes DESC NULLS LAST, job) AS by_bytes,
                rank() OVER (ORDER BY metadata DESC NULLS LAST, job) AS by_metadata FROM ({jobs}) AS jobs
        )
        SELECT *, {job.seen.condition('"user"')} AS mine FROM ranked
        WHERE by_bytes <= {HEAVIEST} OR by_metadata <= {HEAVIEST} ORDER BY by_bytes
    """


def others_over_time(store: MonitorTables, ids: list[str], file_systems: list[str], within: Span) -> pa.Table:
    """Returns the I/O of these ids in each step, in the columns bucket (number of the step), id, exact, bytes
    and metadata."""
    where = f"{_on(file_systems)} AND job IN ({listed(ids)})"
    moved = "coalesce(read_bytes, 0) + coalesce(write_bytes, 0)"

    def sql(rows: str, operations: str) -> str:
        chosen = f"(SELECT *, job AS id FROM {rows} WHERE {where})"
        return spread(chosen, "id", {"bytes": moved, "metadata": operations}, within)

    if within.step >= HOUR and summaries.kept(store, within.resolution):
        return summaries.asked(store, summaries.OWNERS, within, lambda rows: sql(rows, "metadata"))
    need = Need(PLACES[SERVERS], sums(SERVERS), tuple(map(literally, ids)) or ("",))
    return _curve(store, sql("job_io", metadata()), within, need)


def by_other(rows: pa.Table, others: Mapping[str, int]) -> pa.Table:
    """Sums rows of `others_over_time` by job. OTHERS maps each id to an index of its job. The columns of the
    result are bucket, other (this index), bytes and metadata."""
    which = pc.index_in(rows["id"], value_set=pa.array(others.keys(), pa.string()))
    numbered = rows.append_column("other", pa.array(others.values(), pa.int64()).take(which))
    sums = numbered.group_by(["other", "bucket"]).aggregate([("bytes", "sum"), ("metadata", "sum")])
    return sums.rename_columns(["other", "bucket", "bytes", "metadata"])


def _on(file_systems: list[str]) -> str:
    return f"{of_place(SERVERS)} AND file_system IN ({listed(file_systems)})"


def _bytes(place: str) -> tuple[str, str]:
    return ("call_read_bytes", "call_write_bytes") if place == PROCESSES else ("read_bytes", "write_bytes")


def _summed(store: MonitorTables, sql: str, within: Span, need: Need) -> pa.Table:
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.sums, need=need)


def _curve(store: MonitorTables, sql: str, within: Span, need: Need) -> pa.Table:
    return store.table(sql, begin=within.begin, end=within.end, resolution=within.resolution, need=need)
