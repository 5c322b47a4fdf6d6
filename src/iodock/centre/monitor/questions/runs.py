"""Queries the I/O and elapsed time of a user's jobs that have the same name, which are runs of the same
work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iodock.centre.monitor import summaries
from iodock.centre.monitor.questions.counted import PLACES, PROCESSES, of_place, sums, text
from iodock.centre.monitor.questions.counted import listed as several
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import SECOND, Span
from iodock.centre.monitor.questions.steps import all_completed, ended
from iodock.centre.monitor.usual import Run
from iodock.centre.store import MonitorTables
from iodock.shared.engine.need import Need, literally

MOST_RUNS = 200
"""Number of runs that are compared, the latest ones."""


def runs(
    store: MonitorTables,
    ids: JobIds,
    numbers: Sequence[str],
    users: Sequence[str],
    place: str,
    within: Span,
    now: int,
    with_nobodys: bool = False,
) -> list[Run]:
    """Returns the jobs of NUMBERS that belong to a user and were counted at PLACE, the latest first. USERS
    has all names of the user. A run lasts from its first to its last reading with growth. NOW is in ns since
    the epoch. If WITH_NOBODYS is true, jobs whose user is unknown are included. Raises StoreError,
    QueryError."""
    if not numbers or not users:
        return []
    need = Need(PLACES[place], sums(place), tuple(map(literally, numbers)))
    kind = summaries.of_jobs(ids)
    # For files without a summary, this condition selects the rows of these jobs before their ids are parsed.
    # Rows of processes are included, because Slurm reports the end of a job there.
    mine = f"({of_place(place)} OR {of_place(PROCESSES)}) AND {_begins(ids)} IN ({several(numbers)})"
    chosen = replace(
        kind, select=lambda rows, level: kind.select(f"SELECT * FROM ({rows}) WHERE {mine}", level)
    )

    def sql(rows: str) -> str:
        return f"""
            WITH days AS (SELECT * FROM {rows} WHERE is_job AND job IN ({several(numbers)})), ends AS (
                SELECT job, {ended()} AS ended_ts FROM days WHERE place = {text(PROCESSES)} GROUP BY job
            )
            SELECT job, any_value(ended_ts) AS ended_ts, min(begin_ts) AS begin_ts, max(end_ts) AS end_ts,
                sum(read_bytes) AS read_bytes, sum(write_bytes) AS write_bytes, sum(metadata) AS metadata,
                {all_completed(within)} AS exact
            FROM days LEFT JOIN ends USING (job)
            WHERE place = {text(place)}
                AND ("user" IN ({several(users)}){' OR "user" IS NULL' if with_nobodys else ""})
            GROUP BY job ORDER BY begin_ts DESC, job
        """

    found = summaries.asked(store, chosen, within, sql, need=need).to_pylist()
    return [
        Run(
            str(row["job"]), row["begin_ts"], row["end_ts"], row["read_bytes"], row["write_bytes"],
            row["metadata"], bool(row["exact"]),
            row["ended_ts"] is not None or row["end_ts"] + OVER_AFTER < now,
        )
        for row in found
    ]  # fmt: skip


OVER_AFTER = 900 * SECOND
"""Slurm may not report a job's end. A job without I/O for this time is then regarded as ended, although it
may still compute."""


def _begins(ids: JobIds) -> str:
    """Returns SQL for the part of an id in front of the first separator, which is the job's number if the id
    has one. Splitting is faster than parsing the id."""
    return f"split_part(job, {text(ids.before)}, 1)" if ids.before else ids.number()
