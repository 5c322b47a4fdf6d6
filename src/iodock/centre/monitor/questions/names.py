"""Queries the names that users gave their jobs. Agents on the jobs' nodes report these names.

A name is stored for a job and a user, because a user could set the id of another user's job in the
environment of a process to rename that job. If agents report several names for a job and a user, the first
one counts."""

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
"""A name is reported when its job begins. Names are searched up to this long before the requested time."""
MOST_FOUND = 20_000
_NAMED = """
    SELECT job, "user", first(name ORDER BY ts, name) AS name, min(ts) AS ts
    FROM job_names WHERE {where} GROUP BY job, "user"
"""

Names = Mapping[tuple[str, str], str]
"""Job id and login name -> name of the job; the login name is empty if only one user reported a name."""


def has_names(store: MonitorTables) -> bool:
    """Returns whether the store may contain job names that may be shown. Raises StoreError."""
    catalogue = store.catalogue
    is_wanted = not isinstance(store, MonitorStore) or store.shows_job_names
    return is_wanted and catalogue is not None and bool(catalogue.of("job_names", "fine"))


def names(store: MonitorTables, numbers: Iterable[str], begin: int, end: int) -> Names:
    """Returns the names of the jobs NUMBERS that were reported between LOOKED_BACK before BEGIN and END (ns
    since the epoch). Raises StoreError."""
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
    """Returns the name of this user's job, or None if none was reported. USER is a login name, a numeric id,
    or None if the job's user is unknown."""
    return found.get((str(number), login(str(user)) if user is not None else ""))


def tellers(found: Names, number: str) -> list[str]:
    """Returns the login names of the users who reported a name for this job."""
    return sorted(user for job, user in found if job == number and user)


def numbers_called(store: MonitorTables, part: str, seen: Seen, begin: int, end: int) -> tuple[str, ...]:
    """Returns the latest MOST_FOUND jobs whose names contain the text PART, ignoring case. Raises
    StoreError."""
    if not part or not has_names(store):
        return ()
    mine = seen.condition('"user"')
    # The text is searched only after the first name of each job was selected, because later names do not
    # count.
    having = f"contains(lower(name), lower({text(part)}))"
    named = f"({_NAMED.format(where=mine)}) WHERE {having}"
    sql = f"SELECT job FROM {named} ORDER BY ts DESC, job LIMIT {MOST_FOUND}"
    return tuple(str(row["job"]) for row in _asked(store, sql, begin, end))


def alike(
    store: MonitorTables, number: str, users: Iterable[str], begin: int, end: int, most: int
) -> tuple[str, tuple[str, ...]]:
    """Returns the name of the job NUMBER of a user (empty if none was reported), and the numbers of at most
    MOST of the user's jobs with the same name, the latest first. USERS has all names of the user. Raises
    StoreError."""
    named = _NAMED.format(where=f'"user" IN ({listed(users)})')
    # Names are compared only after the first name of each job was selected, because later names do not count.
    sql = f"""
        WITH named AS MATERIALIZED ({named}), own AS (
            SELECT name FROM named WHERE job = {text(number)} ORDER BY ts, name LIMIT 1
        )
        SELECT job, name FROM named JOIN own USING (name) ORDER BY ts DESC, job LIMIT {most}
    """
    rows = _asked(store, sql, begin, end)
    return (str(rows[0]["name"]) if rows else ""), tuple(dict.fromkeys(str(row["job"]) for row in rows))


def with_names(store: MonitorTables, rows: pa.Table, begin: int, end: int) -> pa.Table:
    """Returns ROWS with an added column `job_name`, which is empty for sessions. In ROWS, `name` is the
    number of the job, and `is_job` is false for sessions. Raises StoreError."""
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
