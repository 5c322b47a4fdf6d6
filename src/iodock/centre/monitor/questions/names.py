"""What users call their jobs, as agents on the jobs' nodes have learnt it.

A name belongs to a job and a user: whoever writes another job's id into his environment names nothing of
anybody else. Where agents tell several, the first counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa

from iodock.centre.monitor.logins import login
from iodock.centre.monitor.questions.counted import listed, text
from iodock.centre.monitor.questions.jobs import Seen
from iodock.centre.monitor.questions.spans import DAY
from iodock.centre.store import MonitorStore, MonitorTables

LOOKED_BACK = 30 * DAY
"""A name is told when its job begins: so long before the job is asked for, at most."""
MOST_FOUND = 20_000
_NAMED = """
    SELECT job, "user", first(name ORDER BY ts, name) AS name, min(ts) AS ts
    FROM job_names WHERE {where} GROUP BY job, "user"
"""

Names = Mapping[tuple[str, str], str]
"""Job's number and login name -> what the job is called; an empty login name where only one told it."""


def has_names(store: MonitorTables) -> bool:
    """May there be any? Raises StoreError."""
    catalogue = store.catalogue
    is_wanted = not isinstance(store, MonitorStore) or store.shows_job_names
    return is_wanted and catalogue is not None and bool(catalogue.of("job_names", "fine"))


def names(store: MonitorTables, numbers: Iterable[str], begin: int, end: int) -> Names:
    """Of these jobs, which were there between two moments, ns since the epoch. Raises StoreError."""
    wanted = sorted({number for number in numbers if number})
    if not wanted or not has_names(store):
        return {}
    rows = _asked(store, _NAMED.format(where=f"job IN ({listed(wanted)})"), begin, end)
    found: dict[tuple[str, str], str] = {}
    for row in sorted(rows, key=lambda row: int(str(row["ts"]))):
        found.setdefault((str(row["job"]), login(str(row["user"]))), str(row["name"]))
    tellers = Counter(job for job, _ in found)
    return found | {(job, ""): name for (job, _), name in found.items() if tellers[job] == 1}


def name_of(found: Names, number: object, user: object) -> str | None:
    """What this user's job is called; USER: login name, id in digits, or None where ids of jobs name no
    users."""
    return found.get((str(number), login(str(user)) if user is not None else ""))


def tellers(found: Names, number: str) -> list[str]:
    """Login names of those who told what a job is called."""
    return sorted(user for job, user in found if job == number and user)


def numbers_called(store: MonitorTables, part: str, seen: Seen, begin: int, end: int) -> tuple[str, ...]:
    """Jobs whose names contain a text, whatever its case; the latest MOST_FOUND. Raises StoreError."""
    if not part or not has_names(store):
        return ()
    mine = seen.condition('"user"')
    # As one job is called by its first name only, the text is looked for after that was found.
    having = f"contains(lower(name), lower({text(part)}))"
    named = f"({_NAMED.format(where=mine)}) WHERE {having}"
    sql = f"SELECT job FROM {named} ORDER BY ts DESC, job LIMIT {MOST_FOUND}"
    return tuple(str(row["job"]) for row in _asked(store, sql, begin, end))


def alike(
    store: MonitorTables, number: str, users: Iterable[str], begin: int, end: int, most: int
) -> tuple[str, tuple[str, ...]]:
    """What a user's job is called, empty if nobody told, and his jobs of that name, the latest first. USERS:
    all that he may be called. Raises StoreError."""
    named = _NAMED.format(where=f'"user" IN ({listed(users)})')
    # As one job is called by its first name only, the name is compared after that was found.
    sql = f"""
        WITH named AS MATERIALIZED ({named}), own AS (
            SELECT name FROM named WHERE job = {text(number)} ORDER BY ts, name LIMIT 1
        )
        SELECT job, name FROM named JOIN own USING (name) ORDER BY ts DESC, job LIMIT {most}
    """
    rows = _asked(store, sql, begin, end)
    return (str(rows[0]["name"]) if rows else ""), tuple(dict.fromkeys(str(row["job"]) for row in rows))


def with_names(store: MonitorTables, rows: pa.Table, begin: int, end: int) -> pa.Table:
    """Rows of jobs (`name` is the number, `is_job` false of sessions) with a column `job_name` more. Raises
    StoreError."""
    jobs = rows.select(["name", "user", "is_job"]).to_pylist()
    found = names(store, (row["name"] for row in jobs if row["is_job"]), begin, end)
    called = [name_of(found, row["name"], row["user"]) if row["is_job"] else None for row in jobs]
    return rows.append_column("job_name", pa.array(called, pa.string()))


def _asked(store: MonitorTables, sql: str, begin: int, end: int) -> list[dict[str, object]]:
    if not has_names(store):
        return []
    found: list[dict[str, object]] = store.table(
        sql, begin=begin - LOOKED_BACK, end=end, resolution="fine"
    ).to_pylist()
    return found
