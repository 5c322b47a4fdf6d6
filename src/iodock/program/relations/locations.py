"""Finds the source lines from which most of a finding's calls were made."""

from __future__ import annotations

from collections.abc import Iterable

from iodock.program.findings import MOST_LOCATIONS, Location
from iodock.program.relations.io_time import WAITED_FOR
from iodock.program.relations.sites import LINES, keep_lines
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted

_MOST_FILES = 2_000
"""Number of a finding's files that are examined. These are the costliest ones."""
_VERBS = {"read": 1, "write": 2}
_WORKING_CALLS = "c.class IN ('data', 'metadata', 'seek', 'sync')"


def locations_of(
    store: Store, call: str | None, files: Iterable[str], authors: str | None = None
) -> tuple[Location, ...]:
    """Returns the lines from which calls were made on these files or patterns of files (none: all files).
    CALL: name, family or direction of the calls; None: all I/O that does not wait for other processes. Lines
    with most calls come first; among all kinds of calls, those with most time. Lines of installed programs
    and libraries come last. AUTHORS: SQL for the `upid` of processes; then only their calls count, on any
    file. Empty if the store has no lines."""
    if not store.rows_of("sites"):
        return ()
    keep_lines(store)
    of_files = _of_processes(authors) if authors else _of_files(tuple(files))
    # Different calls are compared by time, because the number of reads can't be compared with the number of
    # stats. Calls of one kind are compared by number, because a few slow ones say little about many.
    order = "calls DESC, time_ns DESC" if call else "time_ns DESC NULLS LAST, calls DESC"
    rows = store.rows(f"""WITH of_line AS (SELECT l.line, l.function, l.module, l.file, l.source_line,
    bool_and(l.is_installed) AS is_installed, count(*) AS calls, sum(e.dur) AS time_ns
  FROM events e JOIN calls c ON c.id = e.call_id LEFT JOIN files f ON f.file_id = e.file_id
    LEFT JOIN {LINES} l ON l.site_id = e.site_id
  WHERE e.side IN (0, 1, 3) AND {_of_call(call)} AND {of_files} GROUP BY 1, 2, 3, 4, 5)
SELECT *, calls / sum(calls) OVER () AS share FROM of_line
ORDER BY is_installed, {order}, line NULLS LAST, module
LIMIT {MOST_LOCATIONS + 1}""")
    known = [row for row in rows if row["line"] is not None][:MOST_LOCATIONS]
    return tuple(
        Location(
            place=row["line"],
            function=row["function"],
            module=row["module"],
            file=row["file"],
            line=row["source_line"],
            calls=row["calls"],
            share=row["share"],
        )
        for row in known
    )


def _of_call(call: str | None) -> str:
    if call is None:
        return f"{_WORKING_CALLS} AND coalesce(f.kind, '') NOT IN ({WAITED_FOR})"
    if call in _VERBS:
        return f"(e.direction = {_VERBS[call]} OR c.name = {quoted(call)} OR c.family = {quoted(call)})"
    family = f"(SELECT family FROM calls WHERE name = {quoted(call)})"
    return f"(c.name = {quoted(call)} OR c.family = {quoted(call)} OR c.family IN {family})"


def _of_files(files: tuple[str, ...]) -> str:
    if not files:
        return "true"
    listed = ", ".join(map(quoted, files[:_MOST_FILES]))
    return f"(f.name IN ({listed}) OR f.pattern IN ({listed}))"


def _of_processes(authors: str) -> str:
    return f"e.utid IN (SELECT utid FROM processes WHERE upid IN (SELECT upid FROM ({authors})))"
