"""Queries the largest current rates by job, user, node, target or file system."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from iodock.centre.monitor.questions.counted import (
    CGROUPS,
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
from iodock.centre.monitor.questions.counted import PLACES as SOURCES
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import user_of
from iodock.centre.monitor.questions.spans import SECOND, overlap, span
from iodock.centre.monitor.questions.steps import completed
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need

PLACES = (SERVERS, PROCESSES, CGROUPS)
SORTS = ("read", "write", "metadata", "name")
_BY = {
    "job": "coalesce({number}, session, '')",
    "user": "coalesce({user}, '')",
    "node": "coalesce({client}, '')",
    "target": "coalesce(target, '')",
    "file-system": "coalesce(file_system, '')",
}
GROUPS = tuple(_BY)
_RATES = ("read_rate", "write_rate", "metadata_rate")


@dataclass(frozen=True)
class TopWanted:
    """Parameters of the query."""

    by: str = "job"
    sort: str = "write"
    reverse: bool = False
    place: str = SERVERS
    having: str = ""
    """Text that must occur in the name, the user or the command."""
    named: tuple[str, ...] = ()
    """Numbers of the jobs whose name matches the text."""
    user: str = ""
    file_system: str = ""
    seconds: float = 60.0
    """Time over which rates are averaged."""
    most: int = 50

    def next(self, what: str) -> TopWanted:
        """Returns the same request with the next value of `by`, `sort` or `place`."""
        if what == "by":
            return replace(self, by=_after(self.by, GROUPS))
        if what == "sort":
            return replace(self, sort=_after(self.sort, SORTS))
        return replace(self, place=_after(self.place, PLACES))


def _after(choice: str, choices: tuple[str, ...]) -> str:
    return choices[(choices.index(choice) + 1) % len(choices)]


def top(store: MonitorTables, end: int, ids: JobIds, wanted: TopWanted) -> pa.Table:
    """Returns the first `most` rows in the wanted order. The columns are name, user, command, file_systems,
    nodes (their number), read_rate and write_rate (bytes/s), metadata_rate (operations/s), exact, read_ts
    (time of the last reading), is_job (at least a part of the I/O was done by a job) and total (number of
    rows before `most` limits them). A value is NULL if it is not counted. END is in ns since the epoch.
    Raises StoreError, QueryError."""
    within = span(end - int(wanted.seconds * SECOND), end, store.catalogue)
    begin = end - int(wanted.seconds * SECOND)
    within = replace(within, begin=begin, end=end)
    of_calls = wanted.place == PROCESSES
    read, write = map(
        known, ("call_read_bytes", "call_write_bytes") if of_calls else ("read_bytes", "write_bytes")
    )
    share = overlap(within)
    name = _BY[wanted.by].format(number=ids.number(), user=user_of(ids), client=_node(ids, wanted.place))
    node = _node(ids, wanted.place)
    # Metadata and object targets count different operations, so a missing count of a target is 0 only if
    # another row of the same target has it.
    among = "name" if wanted.by == "target" else "file_systems"
    rates = ", ".join(f"{zero_if_counted(rate, among)} AS {rate}" for rate in _RATES)
    rows = completed(f"{of_place(wanted.place)} AND {_looked_for(wanted)}", within, wanted.place)
    sql = f"""
        WITH found AS (
            SELECT {name} AS name, {user_of(ids)} AS owner, command, file_system, {node} AS node,
                job IS NOT NULL AS is_job, exact, end_ts,
                {read} * {share} AS r, {write} * {share} AS w, ({metadata()}) * {share} AS m
            FROM ({rows})
        ), summed AS (
            SELECT name, {_one("owner")} AS "user", {_one("command")} AS command,
                string_agg(DISTINCT file_system, ', ' ORDER BY file_system) AS file_systems,
                nullif(count(DISTINCT node), 0) AS nodes, sum(r)::DOUBLE / {wanted.seconds} AS read_rate,
                sum(w)::DOUBLE / {wanted.seconds} AS write_rate,
                sum(m)::DOUBLE / {wanted.seconds} AS metadata_rate, bool_and(exact) AS exact,
                max(end_ts) AS read_ts, bool_or(is_job) AS is_job
            FROM found GROUP BY name
        ), counted AS (SELECT * REPLACE ({rates}) FROM summed)
        SELECT *, count(*) OVER () AS total FROM counted WHERE {_having(wanted)}
        ORDER BY {_order(wanted)} LIMIT {wanted.most}
    """
    need = Need(SOURCES[wanted.place], sums(wanted.place))
    return store.table(sql, begin=begin, end=end, resolution=within.resolution, need=need)


def _node(ids: JobIds, place: str) -> str:
    return ids.host() if place == SERVERS else "host"


def _one(column: str) -> str:
    """Returns SQL for the value of COLUMN that all rows of a group share, or for a text such as `3 of them`
    if the rows have different values."""
    several = f"count(DISTINCT {column})::VARCHAR || ' of them'"
    return f"CASE WHEN count(DISTINCT {column}) > 1 THEN {several} ELSE min({column}) END"


def _looked_for(wanted: TopWanted) -> str:
    conditions = ["true"]
    if wanted.file_system:
        conditions.append(f"file_system = {text(wanted.file_system)}")
    return " AND ".join(conditions)


def _having(wanted: TopWanted) -> str:
    conditions = ["(read_rate > 0 OR write_rate > 0 OR metadata_rate > 0 OR NOT exact)"]
    if wanted.user:
        conditions.append(f'"user" = {text(wanted.user)}')
    if wanted.having:
        looked = f"lower({text(wanted.having)})"
        columns = ("name", '"user"', "command")
        found = (f"contains(lower(coalesce({column}, '')), {looked})" for column in columns)
        called = f"name IN ({listed(wanted.named if wanted.by == 'job' else ())})"
        conditions.append(f"({' OR '.join((*found, called))})")
    return " AND ".join(conditions)


def _order(wanted: TopWanted) -> str:
    if wanted.sort == "name":
        return f"name {'DESC' if wanted.reverse else 'ASC'}"
    others = [sort for sort in ("write", "read", "metadata") if sort != wanted.sort]
    direction = "ASC" if wanted.reverse else "DESC"
    rates = [
        f"{wanted.sort}_rate {direction} NULLS LAST",
        *(f"{sort}_rate DESC NULLS LAST" for sort in others),
    ]
    return ", ".join([*rates, "name"])
