"""Finds the source lines from which most of a finding's calls were made."""

from __future__ import annotations

from collections.abc import Iterable

from iodock.program.findings import MOST_LOCATIONS, Caller, Location
from iodock.program.relations.io_time import WAITED_FOR
from iodock.program.relations.sites import CALLERS, LINES, keep_callers, keep_lines
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted

_MOST_FILES = 2_000
"""Number of a finding's files that are examined, the costliest first."""
_LEAST_OWN = 0.1
"""Share of the calls from which on lines of the user's own code come first."""
_VERBS = {"read": 1, "write": 2}
_WORKING_CALLS = "c.class IN ('data', 'metadata', 'seek', 'sync')"


def locations_of(
    store: Store, call: str | None, files: Iterable[str], authors: str | None = None
) -> tuple[Location, ...]:
    """Returns the source lines from which calls were made on FILES (names or patterns; all files if it is
    empty). CALL is the name, family or direction of these calls. If it is None, all I/O counts that does not
    wait for other processes. The lines with most calls come first, or, without CALL, the lines with most
    time. Lines of installed programs and libraries come last, unless they made nearly all of the calls.
    AUTHORS is SQL for the `upid` of processes. If it is given, all calls of these processes count, whatever
    their file. Returns nothing if the store has no lines."""
    if not store.rows_of("sites"):
        return ()
    keep_lines(store)
    keep_callers(store)
    of_files = _of_processes(authors) if authors else _of_files(tuple(files))
    # Calls of different kinds are compared by time, because a read and a stat have different costs and their
    # numbers can't be compared. Calls of one kind are compared by number, because the time of many calls may
    # come from a few slow ones.
    order = "calls DESC, time_ns DESC" if call else "time_ns DESC NULLS LAST, calls DESC"
    rows = store.rows(f"""WITH of_stack AS (SELECT e.site_id, e.stack_id, count(*) AS calls,
    sum(e.dur) AS time_ns
  FROM events e JOIN calls c ON c.id = e.call_id LEFT JOIN files f ON f.file_id = e.file_id
  WHERE e.side IN (0, 1, 3) AND {_of_call(call)} AND {of_files} GROUP BY 1, 2),
of_caller AS (SELECT l.line, l.function, l.module, l.file, l.source_line,
    bool_and(l.is_installed) AS is_installed, sum(s.calls)::BIGINT AS calls, sum(s.time_ns) AS time_ns,
    CASE WHEN k.line IS NOT NULL THEN struct_pack(place := k.line, function := k.function, file := k.file,
      line := k.source_line) END AS caller
  FROM of_stack s LEFT JOIN {LINES} l ON l.site_id = s.site_id
    LEFT JOIN {CALLERS} k ON k.stack_id = s.stack_id
  GROUP BY l.line, l.function, l.module, l.file, l.source_line, caller),
of_line AS (SELECT line, function, module, file, source_line, bool_and(is_installed) AS is_installed,
    sum(calls)::BIGINT AS calls, sum(time_ns) AS time_ns, arg_max(caller, calls) AS caller,
    max(calls) FILTER (caller IS NOT NULL) / sum(calls) AS callers_share
  FROM of_caller GROUP BY 1, 2, 3, 4, 5)
SELECT *, calls / sum(calls) OVER () AS share FROM of_line
ORDER BY is_installed AND sum(calls) FILTER (NOT is_installed) OVER () >= {_LEAST_OWN} * sum(calls) OVER (),
  {order}, line NULLS LAST, module
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
            called_from=Caller(**row["caller"], share=row["callers_share"]) if row["caller"] else None,
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
